"""The exponential mechanism on long lists of candidates, whose scores are constant on runs.

References: McSherry & Talwar (2007); Smith (2011) for quantiles; proof in docs/proofs/quantiles.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE
from accountant.errors import ParameterError, PrivateValueError
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.randomness import Rng, generator
from mechanisms.base import (
    EXACT,
    IDEALISED,
    Arithmetic,
    Cells,
    Mechanism,
    Support,
    declare,
    draw_shape,
    finite_floats,
    param,
    refuse_size_for_batch,
)
from mechanisms.base.supports import MAX_CELLS
from mechanisms.base.values import first_true_index
from mechanisms.exact_noise.exact_selection import WeightTable, row_chunks
from mechanisms.exponential import Exponential
from mechanisms.families.selection import scaled_gap_to_best

IndexArray = NDArray[np.int64]
MOST_CANDIDATES = 2.0**52  # candidates of a list; sums of lengths are then exact in floats


@final
@declare
class RunLengthExponential(Mechanism):
    """One index r of each list, with probability proportional to ``exp(score[r] / scale)``.

    A value has one row for each list: ``value[i] = scores, lengths`` of its runs, so that a list
    may have 2^52 candidates.  Between neighbours the largest moves of each list's scores sum to at
    most ``sensitivity`` over the lists, as where a record is in one list.  A run of length 0 stands
    for none.  Scores are taken as they are: where floats compute them, the sensitivity must hold in
    floats.

    Examples
    --------
    >>> from mechanisms import RunLengthExponential
    >>> one = RunLengthExponential(scale=0.5)
    >>> far, near = [-20.0, 0.0, -20.0], [10**9, 5, 10**9]  # 2,000,000,005 candidates
    >>> int(one.release([[far, near]], rng=0)[0])
    1000000002
    >>> one.loss
    BoundedRangeLoss(epsilon=4.0)
    """

    releases: ClassVar[str] = "an index of each of many long lists of scores"
    reference: ClassVar[str] = "McSherry & Talwar (2007); Smith (2011)"
    limits: ClassVar[str] = "the time of a draw varies"

    scale: float = param(POSITIVE, "divisor of the scores", typical=(2.0,), knob=True)
    sensitivity: float = param(
        POSITIVE, "by how much scores move, summed over lists", typical=(1.0,), default=1.0
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return one index for each list; see `Mechanism.release`."""
        lists, source = self.values.check(value), generator(rng)
        refuse_size_for_batch(size, lists, axes=3)  # one value has 3 axes, a batch of users has 4
        scores, lengths = lists[..., 0, :], lists[..., 1, :]
        if size is not None:
            drawn = np.empty(draw_shape(size, lists.shape[:1]), dtype=np.int64)
            for i in range(len(lists)):
                table = self._weights(scores[i : i + 1], lengths[i : i + 1])
                drawn[:, i] = _places(table.draw(size, source), lengths[i : i + 1], source)
            return drawn
        runs = lists.shape[-1]
        rows, counts = scores.reshape(-1, runs), lengths.reshape(-1, runs)
        winners = np.empty(len(rows), dtype=np.int64)
        for part in row_chunks(*rows.shape):
            drawn_runs = self._weights(rows[part], counts[part]).draw(None, source)
            winners[part] = _places(drawn_runs, counts[part], source)
        return winners.reshape(lists.shape[:-2])

    def _weights(self, scores: Array, lengths: Array) -> WeightTable:
        # Only runs that are not empty count for the best score of a list; the score of an empty one
        # may be above it, and is lowered to it.
        best = np.where(lengths > 0, scores, -np.inf).max(axis=-1, keepdims=True)
        return WeightTable.of(np.minimum(scores, best), self.scale, lengths)

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return log-probabilities summed over the lists; see `Mechanism.log_density`."""
        lists, index = self.values.check(value), np.asarray(output, dtype=float)[..., None]
        scores, lengths = lists[..., 0, :], lists[..., 1, :]
        height = scaled_gap_to_best(scores, self.scale)  # of empty runs too: it cancels below
        with np.errstate(divide="ignore"):
            total = logsumexp(height + np.log(lengths))
        ends = np.cumsum(lengths, axis=-1)
        inside = (ends - lengths <= index) & (index < ends) & (index == np.floor(index))
        # The index lies in at most one run; in none the log-probability is minus infinity.
        chosen = np.where(inside, height, -np.inf).max(axis=-1)
        terms: Array = chosen - total
        result: Array = terms.sum(axis=-1)
        return result if each or lists.ndim == 3 else result.sum(axis=-1)

    @property
    def _listed(self) -> Exponential:
        """The mechanism on one short list, whose loss and worst pair are those of this one."""
        return Exponential(self.scale, self.sensitivity, arithmetic=IDEALISED)

    @property
    def arithmetic(self) -> Arithmetic:
        """EXACT: the probabilities are those of the scores as they are, drawn in integers."""
        return EXACT

    def outputs_fault(self, outputs: NDArray[Any], users: int) -> str:
        """Return why these cannot be outputs of so many users; see `Mechanism.outputs_fault`.

        A user's value is one array of lists, and the output a row with an index of each.
        """
        # There may be any number of lists.
        fits = outputs.dtype == np.int64 and outputs.ndim == 2 and len(outputs) == users
        return (
            "" if fits and bool((outputs >= 0).all()) else "indices of lists, a row for each user"
        )

    @property
    def loss(self) -> BoundedRangeLoss:
        """Bounded range ``2 sensitivity / scale``: a choice among all combinations of indices."""
        return self._listed.loss

    @property
    def why_no_formula(self) -> str:
        """Why `verify` proves no formula here: the claim is that of `Exponential`."""
        return "the loss is that of Exponential, over all combinations"

    def worst_pair(self, epsilon: float = 0.0) -> tuple[Array, Array]:
        """Return one list of two candidates whose gap shrinks by the largest amount."""
        scores, neighbour_scores = self._listed.worst_pair(epsilon)
        return np.stack([scores, np.ones(2)])[None], np.stack([neighbour_scores, np.ones(2)])[None]

    @property
    def hidden_axes(self) -> int:
        """The last two axes of a value, scores and runs: an output is one index for each list."""
        return 2

    @property
    def values(self) -> RunValues:
        """Scores and lengths of the runs of each list."""
        return RunValues(self.sensitivity)

    @property
    def support(self) -> ListIndices:
        """All combinations of an index of each list."""
        return ListIndices()


def _places(runs: NDArray[np.intp], lengths: Array, rng: np.random.Generator) -> IndexArray:
    """Return a random candidate of the run that was drawn in each row, or in the only row."""
    counts = lengths.astype(np.int64)
    starts = np.cumsum(counts, axis=-1) - counts
    row = np.arange(len(lengths)) if len(lengths) == len(runs) else np.zeros(len(runs), np.intp)
    candidates: IndexArray = starts[row, runs] + rng.integers(0, counts[row, runs])
    return candidates


@dataclass(frozen=True, slots=True)
class RunValues:
    """Arrays of shape (lists, 2, runs): scores, and how many candidates in a row have each.

    Between neighbours the largest moves of each list's scores sum to at most ``sensitivity``.
    """

    sensitivity: float
    axes: ClassVar[int] = 3

    def check(self, value: ArrayLike) -> Array:
        """Return the array; every list has a candidate, and at most 2^52."""
        lists = finite_floats(value)
        if lists.ndim not in (3, 4) or lists.shape[-2] != 2 or not lists.shape[-1]:
            raise PrivateValueError("value", "an array of shape (lists, 2, runs)")
        lengths = lists[..., 1, :]
        invalid = (lengths < 0) | (lengths != np.floor(lengths))
        if invalid.any():
            allowed = "lengths that are whole numbers from 0"
            raise PrivateValueError("value", allowed, first_true_index(invalid))
        total = lengths.sum(axis=-1)
        if not ((total > 0) & (total <= MOST_CANDIDATES)).all():
            raise PrivateValueError("value", "lists of 1 to 2^52 candidates")
        return lists

    def example(self, rng: np.random.Generator) -> Array:
        """Return one or two random lists of two or three runs."""
        lists, runs = rng.integers(1, 3), rng.integers(2, 4)
        lengths = rng.integers(0, 4, (lists, runs))
        lengths[:, 0] += 1
        scores = rng.normal(scale=rng.choice([0.5, 3.0]), size=(lists, runs))
        return np.stack([scores, lengths], axis=1)

    def neighbour(self, value: Any, rng: np.random.Generator) -> Array:
        """Return the lists with scores moved, in one list or in all of them."""
        moved = np.array(value, dtype=float)
        shape = moved[:, 0].shape
        share = rng.dirichlet(np.full(len(moved), 0.5))[:, None]
        share = np.where(rng.random() < 0.5, share == share.max(), share)
        fractions = np.where(
            rng.random(shape) < 0.7, rng.choice([-1.0, 1.0], shape), rng.uniform(-1, 1, shape)
        )
        moved[:, 0] += self.sensitivity * share * fractions
        return moved


@dataclass(frozen=True, slots=True)
class ListIndices(Support):
    """One index of each list."""

    def cells(self, first: Any, second: Any) -> Cells | None:
        """Return every combination of indices; the neighbour's lists have the same lengths."""
        del second
        totals = np.asarray(first)[:, 1].sum(axis=-1).astype(np.int64)
        count = int(np.prod(totals.astype(float)))
        if count > MAX_CELLS:
            raise ParameterError(
                "value", count, f"at most {MAX_CELLS:,} combinations, to be listed"
            )
        rows = np.stack(np.unravel_index(np.arange(count), totals), axis=-1)
        return Cells(
            rows,
            np.ones(count),
            lambda output: np.ravel_multi_index(np.moveaxis(output, -1, 0), totals),
        )

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs are indices."""
        return bool((outputs >= 0).all())
