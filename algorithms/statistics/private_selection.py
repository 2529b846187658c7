"""The best of k candidates by the sum of users' scores, chosen by a trusted curator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.ledger import Ledger
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.plan import Release
from algorithms.base.estimators import PrivateEstimator, checked_shape, generator_of, validated_data
from algorithms.base.non_private import NoPrivacy
from mechanisms.permute_and_flip import PermuteAndFlip


class PrivateSelection(PrivateEstimator):
    """The candidate with about the greatest sum of scores, epsilon-DP for one user's scores.

    Each user gives each of k candidates a score, clipped to [0, 1]; one user is exchanged for
    another.  ``epsilon`` infinite with ``non_private=True`` has no noise, for comparison.
    After ``fit``: ``chosen_``, ``plan_``, ``ledger_``, ``transcript_``.
    Source: McKenna & Sheldon (2020), never worse than the exponential mechanism.
    """

    def __init__(
        self, *, epsilon: float, non_private: bool = False, random_state: Any = None
    ) -> None:
        self.epsilon = epsilon
        self.non_private = non_private
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Release:
        """Return what a fit on ``shape = (users, candidates)`` will release; needs no data."""
        _, candidates = checked_shape(shape)
        if candidates < 2:
            raise ParameterError("shape", shape, "at least 2 candidates")
        epsilon = self._checked_epsilon()
        if self.non_private:
            return NoPrivacy()
        return PermuteAndFlip(round_up(2 / epsilon), 1.0)

    def run(self, ledger: Any) -> int:
        """Return the candidate's index, seen through the gate alone."""
        told = ledger.release(ledger.plan, clipped_score_sums)
        # without a mechanism it is the sums themselves
        return int(np.argmax(told)) if np.ndim(told) else int(told)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on X (users, candidates); y is ignored; nothing is spent on bad input."""
        del y
        X = validated_data(self, X, dtype=np.float64)
        self.plan_, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = Ledger(X, self.plan_, rng=rng)
        self.chosen_ = self.run(self.ledger_)
        self._warn_if_not_private("the choice is")
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise_summary(self) -> str:
        return f"sums of scores are told apart at the scale {self.plan_.scale:.4g}"


def clipped_score_sums(scores: Any) -> Array:
    """The query: every candidate's sum of scores, each within [0, 1]."""
    total: Array = np.clip(scores, 0.0, 1.0).sum(axis=0, dtype=np.float64)
    return total
