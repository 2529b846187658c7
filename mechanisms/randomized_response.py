"""k-ary randomised response: every user tells the truth, or some other label."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange, Interval
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import Labels
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from mechanisms.families.frequency_oracle import (
    FrequencyOracle,
    Reports,
    count_labels,
    smallest_uint,
)


@final
@declare
class RandomizedResponse(FrequencyOracle):
    """The true label with probability ``keep``, else one of the others, each alike."""

    releases: ClassVar[str] = "a label of each user"
    reference: ClassVar[str] = "Warner (1965); Kairouz, Bonawitz & Ramage (2016)"

    k: int = param(IntegerRange(2), "number of labels 0 .. k-1", typical=(10,))
    # .2319693 is ln-odds 1 against each other label of ten
    keep: float = param(
        lambda self: Interval(1 / self.k, 1.0, "()"), "probability of the true label",
        typical=(0.2319693,), knob=True,
    )  # fmt: skip

    @property
    def own_label_probability(self) -> float:
        """``keep``."""
        return self.keep

    @property
    def other_label_probability(self) -> float:
        """The lie, shared by the other labels."""
        return (1 - self.keep) / (self.k - 1)

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """A report supports one label."""
        return self.own_label_probability, self.other_label_probability

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """A label."""
        return (), np.intp

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Who lies moves 1 to k-1 labels on, around the circle."""
        # to draw a step for the honest too costs less than to find who lies
        word = smallest_uint(2 * self.k)
        told = rng.integers(1, self.k, labels.size, word)
        told *= ~bernoulli(self.keep, labels.shape, rng)
        told += labels.astype(word)
        reports: Reports = np.minimum(told, told - word.type(self.k))  # below 0 is very great
        return reports

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """The label that is told."""
        return np.equal(reports, labels)

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Labels."""
        return (reports >= 0) & (reports < self.k)

    def log_probabilities_by_support(self, reports: Reports) -> tuple[float, float]:
        """``ln keep`` for the truth, ``ln((1 - keep) / (k - 1))`` for any other label."""
        del reports
        truth, lie = np.log([self.own_label_probability, self.other_label_probability])
        return truth, lie

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """How often each label was told."""
        return count_labels(reports, self.k)

    @property
    def support(self) -> Labels:
        """The labels."""
        return Labels(self.k)
