"""k-ary randomised response: every user reports the true label, or another one at random.

References: Warner (1965); Kairouz, Bonawitz & Ramage (2016).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange, Interval
from mechanisms.base import Labels, declare, param
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
    """The true label with probability ``keep``, else a uniform other label.

    Examples
    --------
    >>> from mechanisms import RandomizedResponse
    >>> response = RandomizedResponse(k=3, keep=0.75)
    >>> reports = response.release([0, 1, 2, 0], rng=0)
    >>> reports.tolist(), response.decode(reports).round(4).tolist()
    ([2, 1, 2, 0], [0.2, 0.2, 0.6])
    >>> round(response.loss.pure, 4)
    1.7918
    """

    releases: ClassVar[str] = "a label of each user"
    reference: ClassVar[str] = "Warner (1965); Kairouz, Bonawitz & Ramage (2016)"

    k: int = param(IntegerRange(2), "number of labels 0 .. k-1", typical=(10,))
    # At the typical value, e / (e + 9) with 10 labels, epsilon is 1.
    keep: float = param(
        lambda self: Interval(1 / self.k, 1.0, "()"),
        "probability of the true label, in (1 / k, 1)",
        typical=(0.2319693,),
        knob=True,
    )

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        return None if delta else 1 / (1 + (fields.k - 1) * math.exp(-epsilon))

    @property
    def own_label_probability(self) -> float:
        """The probability ``keep``."""
        return self.keep

    @property
    def other_label_probability(self) -> float:
        """The probability ``(1 - keep) / (k - 1)``."""
        return (1 - self.keep) / (self.k - 1)

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """The probabilities of the true label and of another, as a report supports one label."""
        return self.own_label_probability, self.other_label_probability

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """One label for each user."""
        return (), np.intp

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Return labels, kept or moved by 1 to ``k - 1`` steps around the circle."""
        # To draw a move for every user is faster than to select those who need one.
        unsigned = smallest_uint(2 * self.k)
        reported = rng.integers(1, self.k, labels.size, unsigned)
        reported *= ~bernoulli(self.keep, labels.shape, rng)
        reported += labels.astype(unsigned)
        # Less k, a number below k wraps to a huge one, so that the lesser of both is the label.
        reports: Reports = np.minimum(reported, reported - unsigned.type(self.k))
        return reports

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether the label is the reported one."""
        return np.equal(reports, labels)

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Return whether the numbers are labels."""
        return (reports >= 0) & (reports < self.k)

    def log_probabilities_by_support(self, reports: Reports) -> tuple[float, float]:
        """Return ``ln keep`` for the true label, ``ln((1 - keep) / (k - 1))`` for another."""
        del reports
        own, other = np.log([self.own_label_probability, self.other_label_probability])
        return own, other

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return how often each label was reported."""
        return count_labels(reports, self.k)

    @property
    def support(self) -> Labels:
        """All labels, since any of them can be reported."""
        return Labels(self.k)
