"""An estimator that selects the best of k candidates by the sum of users' scores.

A trusted curator holds the scores of all users, and permute-and-flip releases only the index of one
candidate.

References: McKenna & Sheldon (2020).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.plan import Release
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape, generator_of, validated_data
from algorithms.base.non_private import NoPrivacy
from mechanisms.permute_and_flip import PermuteAndFlip


@dataclass(eq=False, repr=False)
class PrivateSelection(PrivateEstimator):
    """The candidate with about the largest sum of scores, epsilon-DP for one user's scores.

    Each user gives each of k candidates a score, clipped to [0, 1].  Neighbours replace one user.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    non_private : bool
        Select without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    chosen_ : int
        Index of the selected candidate.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    McKenna & Sheldon (2020): permute-and-flip, never worse than the exponential mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateSelection
    >>> scores = np.tile([0.2, 0.9, 0.4], (100, 1))
    >>> PrivateSelection(epsilon=1.0, random_state=0).fit(scores).chosen_
    1
    """

    delta = 0.0

    _: KW_ONLY
    epsilon: float
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Release:
        """Return what a fit on ``shape = (users, candidates)`` will release; needs no data."""
        _, candidates = checked_shape(shape)
        if candidates < 2:
            allowed = f"at least 2 candidates, not {candidates} feature(s)"
            raise ParameterError("shape", shape, allowed)
        epsilon = self._checked_epsilon()
        if self.non_private:
            return NoPrivacy()
        # A replaced user moves each sum by at most 1; permute-and-flip of this scale then costs
        # 2 * 1 / scale, at most epsilon.
        return PermuteAndFlip(round_up(2 / epsilon), 1.0)

    def run(self, ledger: Any) -> int:
        """Return the candidate's index, computed from the released value only."""
        released = ledger.release(ledger.plan, clipped_score_sums, shape=ledger.shape[1])
        # Without privacy the ledger returns the sums themselves, not an index.
        return int(np.argmax(released)) if np.ndim(released) else int(released)

    def fit(self, X: Any, y: Any = None, ledger: Any = None) -> Self:
        """Fit on scores; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like of shape (users, candidates)
            Scores of each user.
        y : object
            Ignored.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        del y
        X = validated_data(self, X, dtype=np.float64)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(X, plan, rng=rng, ledger=ledger)
        self.chosen_ = self.run(self.ledger_)
        self._warn_if_not_private("the choice is")
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise_summary(self) -> str:
        return f"permute-and-flip of scale {self.plan_.scale:.4g} on the sums of scores"


def clipped_score_sums(scores: Any) -> Array:
    """Return every candidate's sum of scores, each clipped to [0, 1]: the query."""
    total: Array = np.clip(scores, 0.0, 1.0).sum(axis=0, dtype=np.float64)
    return total
