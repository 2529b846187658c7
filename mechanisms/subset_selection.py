"""Subset selection: a few labels, which include the true one more often than any other.

Each user reports a random set of ``size`` labels.  It contains the true label with probability
``keep``, and its other labels are a uniform choice from the rest.

References: Wang et al. (2016); Ye & Barg (2018).
"""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.numerics.rounding import LARGEST_BELOW_ONE
from mechanisms.base import FiniteRows, declare, param
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
    """A set of ``size`` labels with the true one in it with probability ``keep``, else uniform.

    Examples
    --------
    >>> from mechanisms import SubsetSelection
    >>> selection = SubsetSelection(k=4, size=2, keep=0.75)
    >>> reports = selection.release([0, 1, 2], rng=0)
    >>> reports.tolist(), selection.decode(reports).round(4).tolist()
    ([[0, 2], [0, 3], [1, 3]], [0.75, -0.25, -0.25, 0.75])
    >>> round(selection.loss.pure, 4)
    1.0986
    """

    releases: ClassVar[str] = "a set of labels of each user"
    reference: ClassVar[str] = "Wang et al. (2016); Ye & Barg (2018)"

    k: int = param(IntegerRange(2), "number of labels 0 .. k-1", typical=(6,))
    size: int = param(
        lambda self: IntegerRange(1, self.k - 1),
        "number of labels in a report, from 1 to k - 1",
        typical=(2,),
    )
    # At the typical value, 2e / (2e + 4) for 2 of 6 labels, epsilon is 1.
    keep: float = param(
        lambda self: Interval(self.size / self.k, 1.0, "()"),
        "probability that the true label is among them, in (size / k, 1)",
        typical=(0.5761169,),
        knob=True,
    )

    @classmethod
    def optimised(cls, k: int, epsilon: float) -> Self:
        """Return the mechanism with the size of smallest variance, about ``k / (e^epsilon + 1)``.

        The variance is the sum over all estimated shares, of many users.

        Parameters
        ----------
        k : int
            Number of labels.
        epsilon : float
            Largest pure epsilon, in nats.

        Returns
        -------
        SubsetSelection
            Its epsilon is at most ``epsilon``, to rounding.
        """
        odds = math.exp(-POSITIVE.check("epsilon", epsilon))

        def variance(size: int) -> float:
            """Return the variance, up to a factor that is the same for all sizes."""
            return (size + (k - size) * odds) ** 2 / (size * (k - size))

        # As a function of a real size the variance is least at k / (e^epsilon + 1).
        below = max(1, int(k * odds / (1 + odds)))
        size = min(range(below, min(below + 2, k)), key=variance)
        keep = min(size / (size + (k - size) * odds), LARGEST_BELOW_ONE)
        return calibrated_safely(lambda x: cls(k, size, x), keep, size / k, epsilon)

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        other_mass = (fields.k - fields.size) * math.exp(-epsilon)
        return None if delta else fields.size / (fields.size + other_mass)

    @property
    def own_label_probability(self) -> float:
        """The probability ``keep``."""
        return self.keep

    @property
    def other_label_probability(self) -> float:
        """The probability that a given other label is in the set."""
        d, p = self.size, self.keep
        return (p * (d - 1) + (1 - p) * d) / (self.k - 1)

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """The probabilities that only the true label, and only a given other, is in the set."""
        # Among the k - 1 other labels are size - 1 of the set if the true one is in it, so that a
        # given one is missing with probability (k - size) / (k - 1); else all of the set are.
        only_true = self.keep * (self.k - self.size) / (self.k - 1)
        only_other = (1 - self.keep) * self.size / (self.k - 1)
        return only_true, only_other

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """Labels in increasing order, so that equal sets are equal rows."""
        return (self.size,), np.min_scalar_type(self.k - 1)

    @property
    def bytes_per_label(self) -> int:
        """One byte for each label."""
        return self.k

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Return uniform sets by Floyd's algorithm, one step for all users at a time."""
        starts = np.arange(0, labels.size * self.k, self.k)
        chosen = np.zeros(labels.size * self.k, dtype=bool)
        honest = bernoulli(self.keep, labels.shape, rng)
        # Bentley & Floyd (1987): add one of 0 .. `top_label`, or `top_label` itself where the set
        # already has the drawn one.  The first of `size` steps is for users whose set excludes the
        # true label.
        first_step, end = self.k - 1 - self.size, self.k - 1
        for top_label in range(first_step, end):
            users = starts[~honest] if top_label == first_step else starts
            drawn = rng.integers(0, top_label, users.size, smallest_uint(self.k), endpoint=True)
            drawn += (top_label - drawn) * chosen[users + drawn]
            chosen[users + drawn] = True
        # The sets so far contain labels 0 .. k-2; label k-1 replaces the true label.
        true_entries = starts + labels
        chosen[starts + self.k - 1] |= chosen[true_entries]
        chosen[true_entries] = honest
        return np.flatnonzero(chosen).reshape(-1, self.size) - starts[:, None]

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether the label is in the set."""
        return np.asarray(np.equal(reports, labels[..., None]).any(axis=-1))

    def supported_labels(self, reports: ArrayLike) -> NDArray[np.bool_]:
        """Return which labels are in each set."""
        rows = np.asarray(reports)
        supported = np.zeros((*rows.shape[:-1], self.k), dtype=bool)
        np.put_along_axis(supported, rows.astype(np.intp), True, axis=-1)
        return supported

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Return whether rows are labels in increasing order."""
        growing = (reports[..., 1:] > reports[..., :-1]).all(axis=-1)
        inside: NDArray[np.bool_] = (reports[..., 0] >= 0) & (reports[..., -1] < self.k)
        return growing & inside

    def log_probabilities_by_support(self, reports: Reports) -> tuple[float, float]:
        """Return the log-probability of one set with the label, and of one without it."""
        del reports
        sets_with = math.comb(self.k - 1, self.size - 1)
        sets_without = math.comb(self.k - 1, self.size)
        return math.log(self.keep) - math.log(sets_with), math.log1p(-self.keep) - math.log(
            sets_without
        )

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return the number of sets that contain each label."""
        return count_labels(reports, self.k)

    @property
    def support(self) -> FiniteRows:
        """All sets of the size."""

        def sets() -> Reports:
            labels = itertools.combinations(range(self.k), self.size)
            return np.array(list(labels), self.report_layout[1])

        return FiniteRows(math.comb(self.k, self.size), sets)
