"""Unary encoding: one random bit for every label, more often 1 at the true label.

Each user reports ``k`` independent bits.  The number of ones at a label, corrected for the ones of
users who have another label, estimates the share of users who have it.

References: Erlingsson, Pihur & Korolova (2014); Wang, Blocki, Li & Jha (2017).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from mechanisms.base import FiniteRows, bit_rows, declare, param
from mechanisms.base.mechanism import cache_blocks
from mechanisms.exact_noise.exact_bernoulli import bernoulli, bernoulli_words
from mechanisms.families.frequency_oracle import (
    FrequencyOracle,
    Reports,
    calibrated_safely,
    randomise_in_blocks,
)

MIN_PROBABILITY = 1e-300  # the least probability of a bit that is accepted


@final
@declare
class UnaryEncoding(FrequencyOracle):
    """A row of ``k`` independent bits: 1 with probability ``p`` at the true label, ``q`` elsewhere.

    Examples
    --------
    >>> from mechanisms import UnaryEncoding
    >>> encoding = UnaryEncoding(k=3, p=0.5, q=0.25)
    >>> reports = encoding.release([0, 1], rng=0)
    >>> reports.tolist(), encoding.decode(reports).round(4).tolist()
    ([[0, 1, 0], [0, 1, 0]], [-1.0, 3.0, -1.0])
    >>> round(encoding.loss.pure, 4)
    1.0986
    """

    releases: ClassVar[str] = "a bit for each label, of each user"
    reference: ClassVar[str] = "Erlingsson, Pihur & Korolova (2014); Wang, Blocki, Li & Jha (2017)"

    k: int = param(IntegerRange(2), "number of labels 0 .. k-1", typical=(5,))
    # A fair coin at the true label, the default, gives the estimate of a rare label the least
    # variance.
    p: float = param(
        Interval(MIN_PROBABILITY, 1.0, "()"),
        "probability of a 1 at the true label",
        typical=(0.5,),
        default=0.5,
    )
    # At the typical value, 1 / (e + 1), epsilon is 1 for p = 1/2.  The default NaN is refused, so
    # that the field is required.
    q: float = param(
        lambda self: Interval(MIN_PROBABILITY, self.p, "[)"),
        "probability of a 1 at any other label, below `p`; required",
        typical=(0.2689414,),
        default=math.nan,
        knob=True,
    )

    @classmethod
    def symmetric(cls, k: int, epsilon: float) -> Self:
        """Return the mechanism with ``p = 1 - q``, half of epsilon for each of two bits: RAPPOR.

        Parameters
        ----------
        k : int
            Number of labels.
        epsilon : float
            Largest pure epsilon, in nats.

        Returns
        -------
        UnaryEncoding
            Its epsilon is at most ``epsilon``, to rounding.
        """
        epsilon = POSITIVE.check("epsilon", epsilon)
        # From 2^-53 on, p = 1 - q is below 1 in floats.
        lowest = max(1 / (1 + math.exp(min(epsilon / 2, 600.0))), 2.0**-53)
        # Towards 1/2, where all bits are fair coins, epsilon falls to 0.
        return calibrated_safely(lambda q: cls(k, 1 - q, q), lowest, safe=0.5, epsilon=epsilon)

    @classmethod
    def optimised(cls, k: int, epsilon: float) -> Self:
        """Return the mechanism with ``p = 1/2`` and ``q = 1 / (e^epsilon + 1)``.

        It has the smallest variance of a label that few users have (Wang, Blocki, Li & Jha 2017).

        Parameters
        ----------
        k : int
            Number of labels.
        epsilon : float
            Largest pure epsilon, in nats.

        Returns
        -------
        UnaryEncoding
            Its epsilon is at most ``epsilon``, to rounding.
        """
        epsilon = POSITIVE.check("epsilon", epsilon)
        lowest = 1 / (1 + math.exp(min(epsilon, 600.0)))
        return calibrated_safely(lambda q: cls(k, 0.5, q), lowest, safe=0.5, epsilon=epsilon)

    @classmethod
    def _closed_form(cls, epsilon: float, delta: float, fields: Any) -> float | None:
        # epsilon = ln(odds of p / odds of q), the odds of a probability being p / (1 - p)
        odds_of_q = math.exp(-epsilon) * (fields.p / (1 - fields.p))
        return None if delta else odds_of_q / (1 + odds_of_q)

    @property
    def own_label_probability(self) -> float:
        """The probability ``p``."""
        return self.p

    @property
    def other_label_probability(self) -> float:
        """The probability ``q``."""
        return self.q

    @property
    def exclusive_support(self) -> tuple[float, float]:
        """The probabilities of a 1 at the user's label and a 0 at the other one, and of 0 and 1."""
        return self.p * (1 - self.q), self.q * (1 - self.p)

    @property
    def report_layout(self) -> tuple[tuple[int, ...], Any]:
        """A 0 or 1 for every label."""
        return (self.k,), np.uint8

    def packed(self, value: ArrayLike, rng: Rng = None) -> Any:
        """Return releases with eight labels to a byte, as `numpy.packbits` packs them.

        Parameters
        ----------
        value : array_like
            Labels in 0 .. ``k - 1``.
        rng : numpy.random.Generator, int or None
            Source of randomness or a seed; None draws from the operating system's entropy.

        Returns
        -------
        numpy.ndarray of uint8
            Of shape (..., ceil(k / 8)); unpacked reports are never in memory.
        """
        labels, source = self.values.check(value), generator(rng)
        width = -(-self.k // 8)
        return randomise_in_blocks(
            lambda block: self._packed_reports(block, source), labels, (width,), np.uint8, width
        )

    def decode_packed(self, packed: ArrayLike) -> Array:
        """Return the estimate of `decode` from packed reports.

        Parameters
        ----------
        packed : array_like of uint8
            One packed report for each user, of shape (users, ceil(k / 8)).

        Returns
        -------
        numpy.ndarray of shape (k,)
            Unbiased estimates of the shares.

        Raises
        ------
        ParameterError
            If ``packed`` has another shape.
        """
        rows = np.asarray(packed)
        if rows.dtype != np.uint8 or rows.shape[1:] != (-(-self.k // 8),) or not rows.size:
            raise ParameterError("packed", f"shape {rows.shape}", f"packed reports of {self!r}")
        total = np.zeros(self.k, dtype=np.int64)
        for at in cache_blocks(rows, self.k):
            total += self._unpacked_reports(rows[at]).sum(axis=0, dtype=np.int64)
        return self.estimate(total, len(rows))

    def randomise(self, labels: NDArray[np.intp], rng: np.random.Generator) -> Reports:
        """Return one row of bits for each label."""
        return self._unpacked_reports(self._packed_reports(labels, rng))

    def supports(self, reports: Reports, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether the label's bit is 1."""
        true_bits = np.equal(labels[..., None], np.arange(self.k))
        return np.asarray((true_bits & (reports != 0)).any(axis=-1))

    def supported_labels(self, reports: ArrayLike) -> NDArray[np.bool_]:
        """Return the bits, as bools."""
        return np.asarray(reports).astype(bool)

    def is_report(self, reports: Reports) -> NDArray[np.bool_]:
        """Return whether rows of whole numbers consist of bits."""
        return np.asarray(((reports >= 0) & (reports <= 1)).all(axis=-1))

    def log_probabilities_by_support(self, reports: Reports) -> tuple[Array, Array]:
        """Return log-probabilities: independent bits, with ``p`` at the label itself."""
        log_one, log_zero = math.log(self.q), math.log1p(-self.q)
        ones = reports.sum(axis=-1)
        all_q = ones * log_one + (self.k - ones) * log_zero
        return all_q + math.log(self.p) - log_one, all_q + math.log1p(-self.p) - log_zero

    @property
    def support(self) -> FiniteRows:
        """All rows of bits."""
        return FiniteRows(1 << self.k, lambda: bit_rows(self.k))

    def _packed_reports(
        self, labels: NDArray[np.intp], rng: np.random.Generator
    ) -> NDArray[np.uint8]:
        """Return reports of shape (users, ceil(k / 8)), with the bits of eight labels in a byte."""
        # All bits are drawn as for a wrong label; then the bit of the true label is drawn again.
        users, width = labels.size, -(-self.k // 8)
        packed_bits = bernoulli_words(self.q, -(-users * width // 8), rng)
        rows = packed_bits.view(np.uint8)[: users * width].reshape(users, width)
        rows[:, -1] &= 256 - (1 << -self.k % 8)  # the last -k mod 8 bits belong to no label
        byte, true_bit = labels >> 3, (128 >> (labels & 7)).astype(np.uint8)
        byte_index = np.arange(0, users * width, width) + byte
        flat = rows.reshape(-1)
        flat[byte_index] = (flat[byte_index] & ~true_bit) | (
            true_bit * bernoulli(self.p, (users,), rng)
        )
        return rows

    def _unpacked_reports(self, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.unpackbits(rows, axis=-1, count=self.k)
