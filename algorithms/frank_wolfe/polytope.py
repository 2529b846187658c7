"""Private Frank-Wolfe over any polytope, for any convex loss with bounded gradients.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from accountant.domains import BOOLEAN, DELTA, POSITIVE, IntegerRange
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.fit_data import checked_shape
from algorithms.base.glm_losses import DeclaredLoss, LinearLoss, glm_loss_of
from algorithms.base.noisy_gradient_rounds import MAX_ROUNDS
from algorithms.base.non_private import NoPrivacy
from algorithms.frank_wolfe.constants import (
    SELECTION,
    Bounds,
    noise_scale,
    optimal_rounds,
    selection_mechanism,
    selection_regret,
)
from algorithms.frank_wolfe.dense_scores import run_frank_wolfe
from algorithms.frank_wolfe.polytopes import Polytope
from algorithms.frank_wolfe.set_estimator import SetEstimator
from algorithms.frank_wolfe.user_sets import polytope_of


@dataclass(eq=False, repr=False)
class FrankWolfe(SetEstimator):
    """Minimise a mean loss over a polytope; (epsilon, delta)-DP for every record.

    Every round selects, with noise, the vertex that reduces the loss most, and steps towards it.

    Parameters
    ----------
    loss : str, LinearLoss or DeclaredLoss
        "squared", "logistic" (labels -1 and 1), or a loss object.
    vertices_or_oracle : array_like or Polytope
        Vertices of shape (vertices, features), an `L1Ball`, a `Simplex`, a `box`, or any object
        with the methods of `Polytope`.
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in [0, 1).
    rounds : int or None
        Number of selections, the paper's T - 1; None takes the optimum T* of the utility bound.
    selection : {"gumbel", "laplace", "permute-and-flip"}
        The selection mechanism.
    average : bool
        Return the mean of the iterates, with larger weights for later ones, instead of the last.
    x_bound : float
        Largest absolute feature; larger ones are clipped.
    y_bound : float
        Largest absolute target; larger ones are clipped.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        with gradient 0.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        A point of the polytope.
    rounds_ : int
        The number of selections.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Talwar, Thakurta & Zhang (2015), Algorithm 2 and Theorem 2.2, with noise recalibrated.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import FrankWolfe
    >>> from algorithms.frank_wolfe.polytopes import Simplex
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = FrankWolfe("squared", Simplex(), 5.0, 1e-5, rounds=10, random_state=0)
    >>> model.fit(X, X[:, 0]).coef_.round(1).tolist()
    [0.9, 0.1]
    """

    loss: str | LinearLoss | DeclaredLoss
    vertices_or_oracle: Any
    epsilon: float
    delta: float
    _: KW_ONLY
    rounds: int | None = None
    selection: str = "gumbel"
    average: bool = False
    x_bound: float = 1.0
    y_bound: float = 1.0
    relation: str = REPLACE
    random_state: Any = None
    non_private: bool = False

    def plan(self, shape: tuple[int, ...]) -> Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        BOOLEAN.check("average", self.average)
        loss, polytope, bounds = self._problem()
        vertices = polytope.count(features)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        selection = SELECTION.check("selection", self.selection)
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        sensitivity = bounds.score_sensitivity(records, relation, loss)
        if self.rounds is None and self.non_private:
            rounds = MAX_ROUNDS
        elif self.rounds is None:
            curvature = bounds.curvature(loss)
            rounds = optimal_rounds(curvature, sensitivity, vertices, selection, epsilon, delta)
        else:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        if self.non_private:
            return Repeat(NoPrivacy(), rounds)
        scale = noise_scale(epsilon, delta, rounds, selection, sensitivity)
        return Repeat(selection_mechanism(scale, sensitivity, selection), rounds)

    def run(self, ledger: Any) -> Array:
        """Return the coefficients, computed from released values only."""
        loss, polytope, bounds = self._problem()
        plan = ledger.plan
        return run_frank_wolfe(ledger, plan.part, plan.count, bounds, loss, polytope, self.average)

    def _curvature_and_noise(self, features: int) -> tuple[float, float]:
        loss, polytope, bounds = self._problem()
        regret = selection_regret(polytope.count(features), self.selection)
        return bounds.curvature(loss), regret

    def _problem(self) -> tuple[LinearLoss | DeclaredLoss, Polytope, Bounds]:
        polytope = polytope_of(self.vertices_or_oracle)
        x, y = POSITIVE.check("x_bound", self.x_bound), POSITIVE.check("y_bound", self.y_bound)
        return glm_loss_of(self.loss), polytope, Bounds(polytope.norm, x, y)
