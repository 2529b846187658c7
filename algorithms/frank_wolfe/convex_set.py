"""Private Frank-Wolfe over any convex set with a linear oracle: noisy gradients are released.

References: Talwar, Thakurta & Zhang (2015), Theorem 2.6.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from accountant.domains import BOOLEAN, POSITIVE, POSITIVE_DELTA, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, Adjacency, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.erm_losses import clipped_row_products, norm_clip_factors
from algorithms.base.fit_data import checked_shape
from algorithms.base.glm_losses import LinearLoss, glm_loss_of
from algorithms.base.noisy_gradient_rounds import MAX_ROUNDS, calibrated_gaussian, mu_of_budget
from algorithms.base.non_private import NoPrivacy
from algorithms.frank_wolfe.convex_sets import ConvexSet
from algorithms.frank_wolfe.set_estimator import SetEstimator
from algorithms.frank_wolfe.user_sets import convex_set_of


@dataclass(eq=False, repr=False)
class GaussianFrankWolfe(SetEstimator):
    """Minimise a linear model's mean loss over a convex set; (epsilon, delta)-DP for every record.

    Every round releases the gradient with Gaussian noise and steps towards the point that the set's
    oracle finds.  So the error grows with the set's Gaussian width and not with its dimension.

    Parameters
    ----------
    loss : str or LinearLoss
        "squared", "logistic" (labels -1 and 1), or a `LinearLoss`.
    convex_set : ConvexSet
        An `L2Ball`, a `GroupBall`, a `NuclearBall` or any object with the methods of `ConvexSet`.
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in (0, 1).
    rounds : int or None
        Number of gradients; None takes the optimum of the utility bound.
    average : bool
        Return the mean of the iterates, with larger weights for later ones, instead of the last.
    row_bound : float
        Largest Euclidean norm of a row; longer rows are scaled to it.
    y_bound : float
        Largest absolute target; larger ones are clipped.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        A point of the set.
    rounds_ : int
        The number of gradients.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Talwar, Thakurta & Zhang (2015), Theorem 2.6, with noise calibrated exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import GaussianFrankWolfe
    >>> from algorithms.frank_wolfe.convex_sets import L2Ball
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (1000, 2))
    >>> model = GaussianFrankWolfe("squared", L2Ball(1.0), 5.0, 1e-5, rounds=10, random_state=0)
    >>> model.fit(X, X[:, 0]).coef_.round(1).tolist()
    [0.7, 0.0]
    """

    loss: str | LinearLoss
    convex_set: Any
    epsilon: float
    delta: float
    _: KW_ONLY
    rounds: int | None = None
    average: bool = False
    row_bound: float = 1.0
    y_bound: float = 1.0
    relation: str = REPLACE
    random_state: Any = None
    non_private: bool = False

    def plan(self, shape: tuple[int, ...]) -> Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        BOOLEAN.check("average", self.average)
        loss, convex, longest = self._problem()
        width = convex.width(features)
        influence = longest / records
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        sensitivity = 2 * influence if relation is Adjacency.REPLACE_ONE else influence
        epsilon, delta = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        if self.rounds is None and self.non_private:
            rounds = MAX_ROUNDS
        elif self.rounds is None:
            # T Gaussian releases of mu / sqrt T cost as much as one of mu.  So the error bound is
            # 2 Gamma / T + a sqrt T with a = sensitivity width / mu, which is least at
            # T* = (4 Gamma / a)^(2/3).
            a = sensitivity * width / mu_of_budget(epsilon, delta)
            rounds = max(1, round((4 * self._curvature(loss, convex) / a) ** (2 / 3)))
        else:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        if self.non_private:
            return Repeat(NoPrivacy(), rounds)
        return Repeat(calibrated_gaussian(epsilon, delta, rounds, sensitivity, features), rounds)

    def run(self, ledger: Any) -> Array:
        """Return the coefficients, computed from released values only."""
        loss, convex, longest = self._problem()
        query = ClippedMeanGradient(loss, self.row_bound, self.y_bound, longest / self.row_bound)
        theta = convex.start(ledger.shape[1])
        mean = theta.copy()
        for t in range(1, ledger.plan.count + 1):
            query.theta = theta
            gradient = ledger.release(ledger.plan.part, query, shape=theta.size)
            theta = theta + 2 / (t + 2) * (convex.minimiser(gradient) - theta)
            mean += 2 / (t + 2) * (theta - mean)
        return mean if self.average else theta

    def _curvature_and_noise(self, features: int) -> tuple[float, float]:
        loss, convex, _ = self._problem()
        # The noise's product with the fixed minimiser has mean 0, so a step loses sigma times the
        # width of the set.
        return self._curvature(loss, convex), convex.width(features)

    def _problem(self) -> tuple[LinearLoss, ConvexSet, float]:
        """Return the loss, the set, and the largest length of one record's gradient."""
        loss, convex = glm_loss_of(self.loss), convex_set_of(self.convex_set)
        if not isinstance(loss, LinearLoss):
            raise ParameterError("loss", loss, "a LinearLoss, whose gradients have a length")
        row = POSITIVE.check("row_bound", self.row_bound)
        steepest = loss.bound(row * convex.radius, POSITIVE.check("y_bound", self.y_bound))
        return loss, convex, steepest * row

    def _curvature(self, loss: LinearLoss, convex: ConvexSet) -> float:
        return loss.smoothness * (2 * self.row_bound * convex.radius) ** 2


class ClippedMeanGradient:
    """The query of every round: the mean gradient at public coefficients, on scaled rows."""

    def __init__(self, loss: LinearLoss, row: float, y: float, steepest: float) -> None:
        self._loss, self._row_bound, self._y_bound, self._steepest = loss, row, y, steepest
        self._clip_factors: Array | None = None
        self.theta: Array = np.empty(0)

    def __call__(self, data: tuple[Any, Array]) -> Array:
        """Return the mean gradient; row lengths are computed once, for all rounds."""
        x, y = data[0], np.clip(data[1], -self._y_bound, self._y_bound)
        if self._clip_factors is None:
            self._clip_factors = norm_clip_factors(x, self._row_bound)
        slope = self._loss.slope(clipped_row_products(x, self._clip_factors, self.theta), y)
        slope = np.clip(slope, -self._steepest, self._steepest)
        gradient: Array = np.asarray((self._clip_factors * slope) @ x)
        return gradient / len(y)
