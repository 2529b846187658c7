"""Shares of labels in the local model of privacy: each user sends one randomised report.

A frequency oracle randomises a user's label into a report that supports some labels: the true one
with probability p, each other with probability q < p.  From the number of reports that support a
label its share is estimated without bias; the estimates are then projected to the simplex.

References: Ye & Barg (2018); Wang, Blocki, Li & Jha (2017); Acharya, Sun & Zhang (2019).
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange, OneOf
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import LARGEST_BELOW_ONE
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan, Release
from algorithms.base.fit_data import cells_of, filled
from algorithms.base.non_private import NoPrivacy
from algorithms.base.partial_fits import NO_CALLS, Calls, PartlyFitted, first_release
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.base.row_blocks import equal_slices
from mechanisms.base.mechanism import CACHE_BYTES
from mechanisms.families.frequency_oracle import (
    FrequencyOracle,
    calibrated_safely,
    count_labels,
)
from mechanisms.hadamard_response import HadamardResponse
from mechanisms.subset_selection import SubsetSelection
from mechanisms.unary_encoding import UnaryEncoding

# The frequency oracles: subset selection, unary encoding and Hadamard response.
RANDOMIZER = OneOf(("subset", "unary", "hadamard"))


@renamed_parameters(oracle="randomizer")
@dataclass(eq=False, repr=False)
class LocalHistogram(PartlyFitted):
    """The shares of the labels 0 .. k-1 among users, epsilon-DP for each user's label.

    A label outside 0 .. k-1 counts as the nearest one inside.  The estimate is projected to the
    simplex, so shares are nonnegative and sum to 1.

    Parameters
    ----------
    k : int
        Number of labels, at least 2.
    epsilon : float
        Target epsilon of each user, positive, in nats; infinity with ``non_private=True``.
    randomizer : {"subset", "unary", "hadamard"}
        "subset" selection has the smallest error, "unary" encoding is about as good for a small
        epsilon, "hadamard" response sends one number.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    shares_ : numpy.ndarray of shape (k,)
        Estimated shares.
    n_samples_seen_ : int
        Number of users of all calls.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Ye & Barg (2018); Wang, Blocki, Li & Jha (2017); Acharya, Sun & Zhang (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LocalHistogram
    >>> labels = np.repeat([0, 1, 2], [500, 300, 200])
    >>> LocalHistogram(k=3, epsilon=3.0, random_state=0).fit(labels).shares_.round(1).tolist()
    [0.5, 0.3, 0.2]
    """

    delta = 0.0

    _: KW_ONLY
    k: int
    epsilon: float
    randomizer: str = "subset"
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users,)`` will release; needs no data."""
        if not isinstance(shape, tuple) or len(shape) != 1:
            raise ParameterError("shape", shape, "(users,)")
        return Parallel([self.mechanism()] * IntegerRange(1).check("shape", shape[0]))

    def mechanism(self) -> Release:
        """Return the mechanism of each user's report.

        Returns
        -------
        Release
            A frequency oracle whose epsilon is at most the target.
        """
        k, epsilon = IntegerRange(2).check("k", self.k), self._checked_epsilon()
        randomizer = RANDOMIZER.check("randomizer", self.randomizer)
        if self.non_private:
            return NoPrivacy()
        if randomizer == "hadamard":
            # It is epsilon-DP with keep = e^epsilon / (1 + e^epsilon); rounding may make this a
            # little too large, then it is moved towards 1/2.
            keep = min(1 / (1 + math.exp(-epsilon)), LARGEST_BELOW_ONE)
            return calibrated_safely(lambda x: HadamardResponse(k, x), keep, 0.5, epsilon)
        oracle = SubsetSelection if randomizer == "subset" else UnaryEncoding
        return oracle.optimised(k, epsilon)

    def run(self, ledger: Any, executor: Executor | None = None, before: Calls = NO_CALLS) -> Array:
        """Return the shares (k,), nonnegative and of sum 1, from released reports only."""
        (users,), mechanism = ledger.shape, ledger.plan.parts[0]
        # A block has so many users that k bytes for each fill 16 times `CACHE_BYTES`, at least 64.
        blocks = equal_slices(0, users, max(64, 16 * CACHE_BYTES // self.k))
        total = np.zeros(self.k, dtype=np.int64)
        for reports in ledger.release_blocks(mechanism, self.labels, blocks, executor):
            total += self._counts(mechanism, reports)
        if before.users:
            total, users = total + before.sums, users + before.users
        private = isinstance(mechanism, FrequencyOracle)
        return project_to_simplex(mechanism.estimate(total, users) if private else total / users)

    def _counts(self, mechanism: Any, reports: Any) -> NDArray[np.int64]:
        """Return how many reports support each label."""
        if isinstance(mechanism, FrequencyOracle):
            return mechanism.support_counts(reports)
        return count_labels(reports, self.k)

    def _report_sums(self, plan: Plan, transcript: Any) -> NDArray[np.int64]:
        """Return how many reports of a call support each label."""
        counts = [self._counts(first_release(plan), entry.output) for entry in transcript]
        total: NDArray[np.int64] = np.sum(counts, axis=0, dtype=np.int64)
        return total

    def labels(self, rows: Any) -> NDArray[np.int64]:
        """Return each user's label, clipped to 0 .. ``k - 1``: the query of a block.

        Parameters
        ----------
        rows : array_like of shape (users,)
            Integers.

        Returns
        -------
        numpy.ndarray of shape (users,)
            Labels.
        """
        within: NDArray[np.int64] = np.clip(rows, 0, self.k - 1).astype(np.int64)
        return within

    def fit(
        self, labels: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on labels, anew; nothing is released if the input is bad.

        Parameters
        ----------
        labels : array_like of int, of shape (users,)
            One label for each user.
        y : object
            Ignored.
        executor : concurrent.futures.Executor or None
            Where blocks of users are processed; None takes threads.  It changes no bit of the
            result.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        del y
        return self._fit_labels(labels, executor, ledger, NO_CALLS)

    def partial_fit(
        self, labels: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Add the labels of other users: each person in one call only.

        Reports of all calls are counted together.  A person pays for the own call, so `plan_` is
        that of all calls in parallel; `ledger_` and `transcript_` are those of the last call.

        Parameters
        ----------
        labels : array_like of int, of shape (users,)
            One label for each user of this call.
        y : object
            Ignored.
        executor : concurrent.futures.Executor or None
            As in `fit`.
        ledger : Budget, Filter, Book, tuple or None
            What this call draws on: a budget of its own persons.  One that several calls share is
            charged for each.

        Returns
        -------
        self
            The estimator, fitted on the users of all calls since the last `fit`.
        """
        del y
        return self._fit_labels(labels, executor, ledger, self._calls)

    def _fit_labels(
        self, labels: Any, executor: Executor | None, ledger: Any, before: Calls
    ) -> Self:
        """Add the reports of a call to those before it."""
        cells = cells_of(labels)
        if cells.dtype.kind == "O":
            cells = self.labels(filled(cells))
        if cells.ndim != 1 or cells.dtype.kind not in "iu" or not cells.size:
            layout = f"{cells.dtype}{cells.shape}"
            raise ParameterError("labels", layout, "whole numbers, one for each user")
        self.shares_ = self._fit_call(cells, executor, ledger, before)
        self._warn_if_not_private("the shares are")
        return self

    def __sklearn_tags__(self) -> Any:
        """Return tags of one column."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags

    def _noise_summary(self) -> str:
        mechanism = first_release(self.plan_)
        return (
            f"a report supports the user's label with probability "
            f"{mechanism.own_label_probability:.4g}, and any "
            f"other with {mechanism.other_label_probability:.4g}"
        )


def project_to_simplex(estimate: Array) -> Array:
    """Return the nearest vector, in the Euclidean norm, whose entries are nonnegative and sum to 1.

    It is ``max(estimate - level, 0)``.  With the entries in falling order u_1 >= u_2 >= ... and

        level_j = (u_1 + ... + u_j - 1) / j,

    the level is level_j of the last j with u_j > level_j.

    References: Duchi, Shalev-Shwartz, Singer & Chandra (2008), Figure 1.
    """
    falling = np.sort(estimate)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, falling.size + 1)
    shares: Array = np.maximum(estimate - levels[np.flatnonzero(falling > levels)[-1]], 0.0)
    return shares
