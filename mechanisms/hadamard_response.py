"""Hadamard response: a column of a Hadamard matrix where the label's row is probably +1.

A Hadamard matrix has entries +1 and -1; each label has a row of it, and any two rows agree in half
of the columns.  Each user reports the index of one column, of about log2(labels) bits.  A report
supports the labels whose rows have +1 in that column.

References: Acharya, Sun & Zhang (2019).
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
class HadamardResponse(FrequencyOracle):
    """A uniform column where row ``label + 1`` is +1, with probability ``keep``, or else is -1.

    The matrix is Sylvester's, its order the smallest power of two above ``k``: the entry of row r
    and column c is +1 where ``r & c`` has an even number of ones.

    Examples
    --------
    >>> from mechanisms import HadamardResponse
    >>> one = HadamardResponse(k=3, keep=0.75)
    >>> reports = one.release([0, 1, 2, 0], rng=0)
    >>> reports.tolist(), one.decode(reports).round(4).tolist()
    ([3, 1, 3, 2], [-1.0, -1.0, 0.0])
    >>> round(one.loss.pure, 4)
    1.0986
    """

    releases: ClassVar[str] = "a column of a Hadamard matrix, of each user"
    reference: ClassVar[str] = "Acharya, Sun & Zhang (2019)"

    k: int = param(IntegerRange(2), "number of labels 0 .. k-1", typical=(5,))
    # At the typical value, e / (e + 1), epsilon is 1.
    keep: float = param(
        Interval(0.5, 1.0, "()"),
        "probability that the label's row is +1 at the column",
        typical=(0.7310586,),
        knob=True,
    )

    @property
    def order(self) -> int:
        """The smallest power of two above ``k``; row 0 is all ones and stands for no label."""
        return 1 << self.k.bit_length()

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        del fields
        return None if delta else 1 / (1 + math.exp(-epsilon))

    @property
    def own_label_probability(self) -> float:
        """The probability ``keep``."""
        return self.keep

    @property
    def other_label_probability(self) -> float:
        """One half: where a row is +1 or -1, half of any other row is +1."""
        return 0.5

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """The probabilities that a report supports the true label only, and a given other only.

        Of the columns with either sign in the label's row, half have +1 in the other row.
        """
        return self.keep / 2, (1 - self.keep) / 2

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """One column index for each user."""
        return (), np.intp

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Return uniform columns; where the sign is wrong, a column with the other sign instead."""
        word = smallest_uint(self.order)
        rows = (labels + 1).astype(word)
        columns = rng.integers(0, self.order, labels.size, word)
        wrong_sign = has_odd_parity(rows & columns) == bernoulli(self.keep, labels.shape, rng)
        # Flipping the lowest bit of the row in the column changes the sign.
        columns ^= (rows & (~rows + word.type(1))) * wrong_sign
        return columns

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether the label's row is +1 at the column."""
        return ~has_odd_parity(np.asarray(reports & (labels + 1)))

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Return whether the numbers are column indices."""
        return (reports >= 0) & (reports < self.order)

    def log_probabilities_by_support(self, reports: Reports) -> tuple[float, float]:
        """Return ``ln`` of ``keep`` and of ``1 - keep``, over half of the columns."""
        del reports
        half = math.log(self.order // 2)
        return math.log(self.keep) - half, math.log1p(-self.keep) - half

    def support_counts(self, reports: Reports) -> NDArray[np.int64]:
        """Return support counts, by the fast Walsh-Hadamard transform of the column counts."""
        sums, half = count_labels(reports, self.order), 1
        while half < self.order:
            even, uneven = np.moveaxis(sums.reshape(-1, 2, half), 1, 0)
            sums, half = np.stack([even + uneven, even - uneven], axis=1).reshape(-1), 2 * half
        # The number of reports at +1 minus the number at -1.
        supporting: NDArray[np.int64] = (len(reports) + sums[1 : self.k + 1]) // 2
        return supporting

    @property
    def support(self) -> Labels:
        """The columns of the matrix, by their index."""
        return Labels(self.order)


def has_odd_parity(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether the number of ones among the bits is odd."""
    folded, shift = numbers.copy(), 4 * numbers.dtype.itemsize
    while shift:
        folded ^= folded >> shift
        shift //= 2
    return (folded & 1).astype(np.bool_)
