"""Sparse regression when only labels are private: subspace pursuit, or hard thresholding.

By default columns are chosen by subspace pursuit (`support_pursuit`) on labels that are reported in
stages (`label_stages`).  With a ``step`` it is the iterative hard thresholding (IHT) of the paper.

References: Wang & Xu (2021), Algorithms 2 and 5.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange
from accountant.numerics import Array
from algorithms.base.hard_thresholding import checked_step, iht_step, project_to_ball
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.base.row_blocks import row_products, sum_over_blocks, weighted_row_sum
from algorithms.sparse_regression.label_stages import LabelStages, stage_ends
from algorithms.sparse_regression.links import Link, link_of
from algorithms.sparse_regression.noisy_labels import LabelRegressor
from algorithms.sparse_regression.support_pursuit import (
    NormalEquations,
    PublicRows,
    pursued_support,
)


@renamed_parameters(label_bound="y_bound", noise="randomizer")
@dataclass(eq=False, repr=False)
class LabelIHT(LabelRegressor):
    """Sparse regression ``y = f(<x, theta>) + noise`` with private labels and public features.

    Theta is sparse and in the unit ball.  Labels are clipped to ``[-y_bound, y_bound]``, and every
    user reports once, with noise.  By default subspace pursuit chooses the columns, and users
    report in stages: a first group reports labels, later groups report what the fit so far does not
    explain, for residuals are smaller, and so is their noise.  With a ``step`` all labels are
    noised at once, and rounds of hard thresholding follow, which add no privacy loss.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each label, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in [0, 1); positive for Gaussian noise.
    sparsity : int
        Number of coefficients that may be nonzero.
    y_bound : float
        Largest absolute label; larger ones are clipped.
    rounds : int or None
        Largest number of rounds; None takes ``log2(users)``.
    step : float or None
        Step size of gradient rounds, as the paper has them; None solves least squares in every
        round instead, for which features may be correlated, and leaves out columns that noise alone
        would explain.
    link : str or Link
        The link function f, such as "identity".
    randomizer : {"auto", "gaussian", "laplace", "staircase", "bounded", "piecewise", "pure"}
        The mechanism of a label; "auto" takes that of least variance at epsilon and delta.  All but
        "gaussian" give a pure epsilon.  "bounded" reports one of two values, "piecewise" one of an
        interval, "pure" is Gaussian noise made pure.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        Coefficients in the unit ball, at most ``sparsity`` of them not 0.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Wang & Xu (2021), Algorithms 2 and 5, with the sensitivity, the sign and the loss of the link
    corrected (docs/sparse-regression.md); Dai & Milenkovic (2009) for the rounds without a step.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LabelIHT
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (5000, 10))
    >>> model = LabelIHT(epsilon=2.0, delta=1e-6, sparsity=1, y_bound=1.0, random_state=0)
    >>> model.fit(X, 0.8 * X[:, 3]).coef_.nonzero()[0].tolist()
    [3]
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    sparsity: int
    y_bound: float
    rounds: int | None = None
    step: float | None = None
    link: str | Link = "identity"
    randomizer: str = "auto"
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Any:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        plan = super().plan(shape)
        self._settings(*shape)  # checks them
        return self._staged(plan, self._stage_ends(shape[0]))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, computed from noisy labels and public features only."""
        X = ledger.public
        sparsity, rounds, step = self._settings(*X.shape)
        if step is None:
            return self._pursued(ledger, sparsity, rounds, executor)
        data, theta = (X, self.noisy_labels(ledger)), np.zeros(X.shape[1])
        for _ in range(rounds):
            theta = iht_step(theta, self.gradient(theta, data, executor), step, sparsity)
        return theta

    def gradient(self, theta: Array, data: Any, executor: Executor | None = None) -> Array:
        """Return the gradient of ``1/2n sum_i (f(<x_i, theta>) - y_i)^2`` on noisy labels.

        Parameters
        ----------
        theta : numpy.ndarray of shape (features,)
            Coefficients.
        data : tuple
            Public features of shape (users, features), and noisy labels of shape (users,).
        executor : concurrent.futures.Executor or None
            Where blocks of users are processed; None takes threads.

        Returns
        -------
        numpy.ndarray of shape (features,)
            The gradient.
        """
        work = LinkGradient(link_of(self.link), theta)
        return sum_over_blocks(work, data, executor) / len(data[1])

    def predict(self, X: Any) -> Array:
        """Return predictions for X (records, features)."""
        predicted: Array = link_of(self.link).function(super().predict(X))
        return predicted

    def _pursued(self, ledger: Any, sparsity: int, rounds: int, executor: Executor | None) -> Array:
        """Return theta by least squares, from labels reported at once or in stages."""
        X, link = ledger.public, link_of(self.link)
        ends = self._stage_ends(X.shape[0])

        def fit(data: tuple[Any, ...], clip: float) -> NormalEquations:
            del clip
            rows = PublicRows(link, data, executor)
            return pursued_support(rows, sparsity, rounds).significant(X.shape[1])

        if len(ends) == 2:  # one stage
            equations = fit((X, self.noisy_labels(ledger)), self.y_bound)
        else:
            equations = LabelStages(ledger, link, self.y_bound, ends).run(fit)
        theta = np.zeros(X.shape[1])
        theta[equations.columns] = equations.solution()
        return project_to_ball(theta)

    def _stage_ends(self, users: int) -> list[int]:
        """Return where stages of labels begin and end: one stage for gradient steps.

        Noise that was made pure has no known variance, which stages need to choose clips.
        """
        at_once = self.step is not None or self.non_private or self.randomizer == "pure"
        return [0, users] if at_once else stage_ends(users)

    def _settings(self, users: int, features: int) -> tuple[int, int, float | None]:
        link = link_of(self.link)
        sparsity = IntegerRange(1, features).check("sparsity", self.sparsity)
        rounds = max(1, math.ceil(math.log2(users)))
        if self.rounds is not None:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        if self.step is None:
            return sparsity, rounds, None
        step = checked_step(POSITIVE.check("step", self.step), link.low, link.high)
        return sparsity, rounds, step


@final
@dataclass(frozen=True, slots=True)
class LinkGradient:
    """The gradient of ``1/2 sum_i (f(<x_i, theta>) - y_i)^2`` over the rows of a block."""

    link: Link
    theta: Array

    def __call__(self, block: tuple[Any, Array]) -> Array:
        """Return the gradient, with one entry for each feature."""
        x, y = block
        inner = row_products(x, self.theta)
        return weighted_row_sum(x, (self.link.function(inner) - y) * self.link.derivative(inner))
