"""Subset selection: a few labels, among which the true one is likelier than any other."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.numerics.rounding import LARGEST_BELOW_ONE
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import FiniteRows
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.families.frequency_oracle import (
    FrequencyOracle,
    Reports,
    calibrated_safely,
    count_labels,
    smallest_uint,
)


@final
@declare
class SubsetSelection(FrequencyOracle):
    """``size`` labels in order: the true one with probability ``keep``, the rest uniform."""

    releases: ClassVar[str] = "a set of labels of each user"
    reference: ClassVar[str] = "Wang et al. (2016); Ye & Barg (2018)"

    k: int = param(IntegerRange(2), "number of labels 0 .. k-1", typical=(6,))
    size: int = param(
        lambda self: IntegerRange(1, self.k - 1), "number of labels that are told", typical=(2,)
    )
    # .5761169 is 2e / (2e + 4)
    keep: float = param(
        lambda self: Interval(self.size / self.k, 1.0, "()"),
        "probability that the true label is among them", typical=(0.5761169,), knob=True,
    )  # fmt: skip

    @classmethod
    def optimised(cls, k: int, epsilon: float) -> Self:
        """The size of the least variance, about ``k / (e^epsilon + 1)``."""
        odds = math.exp(-POSITIVE.check("epsilon", epsilon))
        size = max(1, math.ceil(k * odds / (1 + odds)))
        keep = min(size / (size + (k - size) * odds), LARGEST_BELOW_ONE)
        return calibrated_safely(lambda x: cls(k, size, x), keep, size / k, epsilon)

    @property
    def own_label_probability(self) -> float:
        """``keep``."""
        return self.keep

    @property
    def other_label_probability(self) -> float:
        """One of ``size - 1`` others with the truth, of ``size`` without."""
        d, p = self.size, self.keep
        return (p * (d - 1) + (1 - p) * d) / (self.k - 1)

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """The true one and not the other of k-1; the other among ``size`` of them."""
        share = self.keep * (self.k - self.size), (1 - self.keep) * self.size
        return share[0] / (self.k - 1), share[1] / (self.k - 1)

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """Labels that grow along the row, so that equal sets are equal rows."""
        return (self.size,), np.min_scalar_type(self.k - 1)

    @property
    def bytes_per_label(self) -> int:
        """A byte for each label."""
        return self.k

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Floyd's algorithm for a uniform set of the others, all users a step at a time."""
        starts = np.arange(0, labels.size * self.k, self.k)
        chosen = np.zeros(labels.size * self.k, dtype=bool)
        honest = bernoulli(self.keep, labels.shape, rng)
        # Bentley & Floyd (1987): add one of 0 .. last, or `last` itself where that is there.  The
        # first of `size` steps is for those who leave the true label out.
        first, end = self.k - 1 - self.size, self.k - 1
        for last in range(first, end):
            users = starts[~honest] if last == first else starts
            drawn = rng.integers(0, last, users.size, smallest_uint(self.k), endpoint=True)
            drawn += (last - drawn) * chosen[users + drawn]
            chosen[users + drawn] = True
        # so far of 0 .. k-2: label k-1 takes the place of the true one
        own = starts + labels
        chosen[starts + self.k - 1] |= chosen[own]
        chosen[own] = honest
        return np.flatnonzero(chosen).reshape(-1, self.size) - starts[:, None]

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """The labels that are told."""
        return np.asarray(np.equal(reports, labels[..., None]).any(axis=-1))

    def supported_labels(self, reports: ArrayLike) -> NDArray[np.bool_]:
        """The labels that are told."""
        rows = np.asarray(reports)
        found = np.zeros((*rows.shape[:-1], self.k), dtype=bool)
        np.put_along_axis(found, rows.astype(np.intp), True, axis=-1)
        return found

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Labels that grow along the row."""
        growing = (reports[..., 1:] > reports[..., :-1]).all(axis=-1)
        inside: NDArray[np.bool_] = (reports[..., 0] >= 0) & (reports[..., -1] < self.k)
        return growing & inside

    def log_probabilities_by_support(self, reports: Reports) -> tuple[float, float]:
        """Shared by all sets with the label, and by all without it."""
        del reports
        with_it = math.comb(self.k - 1, self.size - 1)
        without = math.comb(self.k - 1, self.size)
        return math.log(self.keep) - math.log(with_it), math.log1p(-self.keep) - math.log(without)

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """How often each label was told."""
        return count_labels(reports, self.k)

    @property
    def support(self) -> FiniteRows:
        """All sets of the size."""
        return FiniteRows(math.comb(self.k, self.size), self._all_sets)

    def _all_sets(self) -> Reports:
        return np.array(
            list(itertools.combinations(range(self.k), self.size)), self.report_layout[1]
        )
