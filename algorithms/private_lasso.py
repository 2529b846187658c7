"""The private LASSO: Frank-Wolfe over the l1 ball, as plan, run and scikit-learn estimator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.calibration import calibrate
from accountant.domains import DELTA, POSITIVE, OneOf, Whole
from accountant.ledger import Ledger
from accountant.numerics import Array
from accountant.plan import Repeat
from algorithms.estimators import PrivateRegressor, checked, checked_shape, noise_source
from algorithms.frank_wolfe import Bounds, best_rounds, clipped, descend
from mechanisms.noisy_max import NoisyMax

SELECTION = OneOf(("gumbel", "laplace"))
RELATION = OneOf(("replace", "add-remove"))


class PrivateLasso(PrivateRegressor):
    """Least squares over the l1 ball of ``radius``, (epsilon, delta)-DP for every record.

    Features and targets are clipped to ``[-x_bound, x_bound]`` and ``[-y_bound, y_bound]``, which
    makes the sensitivity true; there is no intercept (add a constant feature).  ``rounds`` is the
    number of private selections, the paper's T - 1; None takes the utility bound's optimum, which
    `best_rounds` tells (on small data it is several times too long).
    ``relation="add-remove"`` takes the number of records as public.  ``random_state`` None draws
    noise from operating-system entropy.

    After ``fit``: ``coef_``, ``bounds_``, ``rounds_``, ``plan_``, ``ledger_``, ``transcript_``.
    Source: Talwar, Thakurta & Zhang (2015), Algorithm 2, its noise recalibrated.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        radius: float = 1.0,
        rounds: int | None = None,
        selection: str = "gumbel",
        x_bound: float = 1.0,
        y_bound: float = 1.0,
        relation: str = "replace",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.rounds = rounds
        self.selection = selection
        self.x_bound = x_bound
        self.y_bound = y_bound
        self.relation = relation
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        sensitivity = self._sensitivity(shape)
        epsilon, delta = POSITIVE.check("epsilon", self.epsilon), DELTA.check("delta", self.delta)
        selection = SELECTION.check("selection", self.selection)
        if self.rounds is None:
            rounds = self.best_rounds(shape)
        else:
            rounds = Whole(1).check("rounds", self.rounds)
        scale = 2 * sensitivity / epsilon_each(epsilon, delta, rounds, selection)
        return Repeat(NoisyMax(scale, sensitivity, selection), rounds)

    def best_rounds(self, shape: tuple[int, ...]) -> int:
        """Return the utility bound's optimum T* for ``shape``: what ``rounds=None`` takes."""
        return best_rounds(
            self._bounds(),
            self._sensitivity(shape),
            shape[1],
            SELECTION.check("selection", self.selection),
            POSITIVE.check("epsilon", self.epsilon),
            DELTA.check("delta", self.delta),
        )

    def run(self, ledger: Any) -> Array:
        """Return the coefficients, seen through the gate alone."""
        plan = ledger.plan
        return descend(ledger, plan.part, plan.count, self._bounds())

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X (records, features) and y (records,); nothing is spent on bad input."""
        X, y = checked(self, X, y, dtype=np.float64, y_numeric=True)
        plan, bounds, rng = self.plan(X.shape), self._bounds(), noise_source(self.random_state)
        self.plan_, self.bounds_ = plan, bounds
        self.ledger_ = Ledger((X, y), plan, rng=rng)
        self.coef_ = self.run(self.ledger_)
        self.rounds_ = self.plan_.count
        self.transcript_ = self.ledger_.transcript
        return self

    def predict(self, X: Any) -> Array:
        """Predict for X (records, features), clipped as in the fit."""
        check_is_fitted(self)
        X = checked(self, X, dtype=np.float64, reset=False)
        predicted: Array = clipped(X, self.bounds_.x) @ self.coef_
        return predicted

    def _sensitivity(self, shape: tuple[int, ...]) -> float:
        records, _ = checked_shape(shape)
        relation = RELATION.check("relation", self.relation)
        return self._bounds().score_sensitivity(records, relation)

    def _bounds(self) -> Bounds:
        return Bounds(
            POSITIVE.check("radius", self.radius),
            POSITIVE.check("x_bound", self.x_bound),
            POSITIVE.check("y_bound", self.y_bound),
        )


@lru_cache(maxsize=256)
def epsilon_each(epsilon: float, delta: float, rounds: int, selection: str) -> float:
    """The range (Gumbel) or pure epsilon (Laplace) of one of ``rounds`` selections."""

    def plan_of(scale: float) -> Repeat:
        return Repeat(NoisyMax(scale, 0.5, selection), rounds)

    return 1 / calibrate(plan_of, epsilon=epsilon, delta=delta)
