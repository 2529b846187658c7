"""Parts of numbers and of texts that a release may keep: last digits, fractions, bits, letters.

Noise of whole tens leaves the last digit of a count, noise of whole days the clock of a date, noise
of whole weeks its weekday, and a random token with one fixed letter keeps that letter.  A score
that is smooth in the number does not see such a leak.  Here each part is a function of the output
alone, so a claim about the release holds for it.

Most releases keep no part.  So a part becomes a candidate only if its law clearly depends on the
value in the first learning runs; then it costs the other candidates no power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.output_walk import TEXT_END

# A remainder by these shows a last digit in base 2, 3, 4, 8, 10, 16, 100 or 1,000, what is left of
# days after whole weeks, of hours after whole days, and of seconds after whole minutes, hours, days
# or weeks.
MODULI = (2, 3, 4, 7, 8, 10, 16, 24, 60, 100, 1000, 3600, 86_400, 604_800)
# A number is cut into whole multiples of these units and a fraction.
UNITS = (1.0, 0.1, 0.01, 0.001)
FRACTION_STEPS = 1e6  # a fraction is rounded to so many steps of its unit, above its round-off
LOW_BITS = 8  # the last bits of a float's mantissa that are read together
FIRST_BIT, WORD_BITS = 4, 63  # of a whole number, whose remainders show the bits before the first
# The learning runs of each value that are looked at: so many numbers in all, within these limits.
LOOKED_NUMBERS, MIN_LOOKED, MAX_LOOKED = 1 << 18, 512, 4096
# Parts whose laws are the same on both values pass with at most this probability, all together.
FALSE_PASS = 0.01
MAX_PARTS = 3  # candidates at most: the parts that differ most
MIN_EXPECTED = 5.0  # runs that a value of a part needs for the chi-square law of its counts
# A part that has more different values in FEW_RUNS runs than this share of them is noise.
FEW_RUNS, MAX_DISTINCT = 128, 0.5
WHOLE = 2.0**53  # whole numbers up to this size are exact as floats


class Part(Protocol):
    """A function of single numbers, and what it is called."""

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The part of each number."""
        ...

    def describe(self, what: str) -> str:
        """The part in words; ``what`` names the number."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Remainder:
    """The remainder of whole numbers by a modulus; infinite for other numbers."""

    modulus: int

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The remainders, as floats."""
        if numbers.dtype.kind in "iu":
            wide = numbers.astype(np.int64 if numbers.dtype.kind == "i" else np.uint64)
            remainders: Array = np.mod(wide, wide.dtype.type(self.modulus)).astype(float)
            return remainders
        is_whole = (np.abs(numbers) <= WHOLE) & (numbers == np.floor(numbers))
        return np.where(is_whole, np.mod(np.where(is_whole, numbers, 0.0), self.modulus), np.inf)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"{what} modulo {self.modulus:,}"


@final
@dataclass(frozen=True, slots=True)
class Fraction:
    """What numbers exceed a whole multiple of a unit by, in units; infinite for other outputs."""

    unit: float

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The fractions, from 0 to 1, rounded to `FRACTION_STEPS` steps."""
        with np.errstate(invalid="ignore", over="ignore"):
            multiples = numbers.astype(float) / self.unit
            steps = np.round((multiples - np.floor(multiples)) * FRACTION_STEPS)
        return np.where(np.isfinite(steps), np.mod(steps, FRACTION_STEPS) / FRACTION_STEPS, np.inf)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"the fraction of {what} beyond multiples of {self.unit:g}"


@final
@dataclass(frozen=True, slots=True)
class LowBits:
    """The last `LOW_BITS` bits of the mantissas of floats, as a whole number."""

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The bits, as floats."""
        bit_patterns = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
        return (bit_patterns & np.uint64((1 << LOW_BITS) - 1)).astype(float)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"the last {LOW_BITS} bits of {what}"


@final
@dataclass(frozen=True, slots=True)
class Bit:
    """One bit of whole numbers; infinite for other numbers."""

    number: int  # 0 for the lowest

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The bits; those of numbers below 0 are of their two's complement."""
        if numbers.dtype.kind in "iu":
            return ((numbers.astype(np.int64) >> self.number) & 1).astype(float)
        is_whole = (np.abs(numbers) < 2.0**WORD_BITS) & (numbers == np.floor(numbers))
        values = np.where(is_whole, numbers, 0).astype(np.int64)
        return np.where(is_whole, (values >> self.number) & 1, np.inf)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"bit {self.number} of {what}"


@final
@dataclass(frozen=True, slots=True)
class Mantissa:
    """What is left of numbers after division by a power of two, rounded; NaN is its own."""

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The mantissas, from 1/2 to 1 with the sign of the number."""
        mantissas, _ = np.frexp(numbers.astype(float))
        rounded: Array = np.round(mantissas * FRACTION_STEPS) / FRACTION_STEPS
        return np.where(np.isfinite(rounded), rounded, np.inf)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"the mantissa of {what}"


@final
@dataclass(frozen=True, slots=True)
class ZeroSign:
    """The sign of what has no size, 0 or NaN; infinite for other numbers."""

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """1 for a negative zero or NaN, 0 for a positive one."""
        values = numbers.astype(float)
        return np.where((values == 0) | np.isnan(values), np.signbit(values), np.inf)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"the sign of {what} where it is 0 or no number"


@final
@dataclass(frozen=True, slots=True)
class NoNumber:
    """Whether a number is infinite or NaN, which also stands for one that an output lacks."""

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """1 for these, 0 for others."""
        return np.where(np.isfinite(numbers), 0.0, 1.0)

    def describe(self, what: str) -> str:
        """The part in words."""
        return f"whether {what} is missing or infinite"


@final
@dataclass(frozen=True, slots=True)
class Letter:
    """A letter itself."""

    def __call__(self, numbers: NDArray[Any]) -> Array:
        """The letters."""
        return numbers.astype(float)

    def describe(self, what: str) -> str:
        """The part in words."""
        return what


WHOLE_PARTS: tuple[Part, ...] = (*map(Remainder, MODULI), Mantissa(), ZeroSign())
FLOAT_PARTS: tuple[Part, ...] = (*map(Fraction, UNITS), LowBits(), Mantissa(), ZeroSign())


def letter_name(column: int) -> str:
    """The name of a column of letters: both ends of the first texts, each of `TEXT_END` letters."""
    text, index = divmod(column, 2 * TEXT_END)
    if index < TEXT_END:
        return f"letter {index + 1} of text {text + 1}"
    return f"letter {2 * TEXT_END - index} from the end of text {text + 1}"


def differing_parts(
    first: NDArray[Any], second: NDArray[Any], parts: Sequence[Part] | None = None
) -> list[tuple[int, Part]]:
    """Columns and parts of their numbers whose law depends on the value, the clearest first.

    ``first`` and ``second`` have a row for each learning run on either value.  ``parts`` are those
    that are looked for; None takes remainders and bits of columns of whole numbers, and fractions
    and last bits of others.
    """
    rows = min(max(LOOKED_NUMBERS // max(first.shape[1], 1), MIN_LOOKED), MAX_LOOKED)
    if min(len(first), len(second)) < 2:
        return []
    pooled = np.concatenate([first[:rows], second[:rows]])
    labels = np.repeat([0, 1], [len(first[:rows]), len(second[:rows])])
    tested: list[tuple[float, int, int, Part]] = []
    for columns, part in _looked_at(pooled, parts):
        values = part(pooled[:, columns])
        for column, column_values in zip(columns.tolist(), values.T, strict=True):
            statistic, freedom = _chi_square(column_values, labels)
            tested.append((statistic, freedom, column, part))
    if parts is None:
        tested += missing_number_tests(first, second)
    if not tested:
        return []
    from scipy.special import chdtri

    # A statistic above this one has, under equal laws, a probability of FALSE_PASS over all tests.
    by_chance = FALSE_PASS / len(tested)
    clear = [test for test in tested if test[0] > chdtri(test[1], by_chance)]
    # The statistic over the number of runs is 1 if the part tells the value with certainty.  Of
    # parts that tell as much, the one with the fewest values is the simplest.
    clear.sort(key=lambda test: (-round(test[0] / len(pooled), 2), test[1]))
    return [(column, part) for _, _, column, part in clear[:MAX_PARTS]]


def missing_number_tests(
    first: NDArray[Any], second: NDArray[Any]
) -> list[tuple[float, int, int, Part]]:
    """Chi-square tests of what is no number, by column: statistic, freedom, column and part.

    What is missing in few runs may tell all, and is counted at once: all learning runs count.
    """
    missing = [np.count_nonzero(~np.isfinite(side), axis=0) for side in (first, second)]
    runs, total = len(first) + len(second), missing[0] + missing[1]
    expected = total * len(first) / runs
    columns = np.flatnonzero((expected >= MIN_EXPECTED / 2) & (total < runs))
    tests: list[tuple[float, int, int, Part]] = []
    for column in columns.tolist():
        share = total[column] / runs
        variance = share * (1 - share) * len(first) * len(second) / runs
        excess = missing[0][column] - expected[column]
        tests.append((float(excess**2 / variance), 1, column, NoNumber()))
    return tests


def _looked_at(
    pooled: NDArray[Any], parts: Sequence[Part] | None
) -> Iterator[tuple[NDArray[np.intp], Part]]:
    """The columns that each part is looked for in, with this part."""
    varies = (pooled != pooled[0]).any(axis=0)
    if parts is not None:
        yield from ((np.flatnonzero(varies), part) for part in parts)
        return
    with np.errstate(invalid="ignore"):
        is_whole = ((pooled == np.floor(pooled)) | ~np.isfinite(pooled)).all(axis=0)
        sizes = np.where(np.isfinite(pooled), np.abs(pooled.astype(float)), 0.0).max(axis=0)
    if pooled.dtype.kind == "f":  # zeros of either sign are equal
        varies |= (np.signbit(pooled) != np.signbit(pooled[0])).any(axis=0)
    yield from ((np.flatnonzero(is_whole & varies), part) for part in WHOLE_PARTS)
    for number in range(FIRST_BIT, WORD_BITS):
        has_bit = is_whole & varies & (sizes >= 2.0**number)
        if not has_bit.any():
            break
        yield np.flatnonzero(has_bit), Bit(number)
    floats = np.flatnonzero(~is_whole)
    for part in FLOAT_PARTS if floats.size else ():
        # In a few runs a part that is kept repeats, and one that is noise seldom does.
        few_runs = np.sort(part(pooled[:: max(len(pooled) // FEW_RUNS, 1), floats]), axis=0)
        distinct = 1 + np.count_nonzero(few_runs[1:] != few_runs[:-1], axis=0)
        yield floats[distinct <= MAX_DISTINCT * len(few_runs)], part


def _chi_square(values: Array, labels: NDArray[np.int64]) -> tuple[float, int]:
    """The chi-square statistic of the counts of a part on both values, and its degrees of freedom.

    Values of few runs count together as one value.
    """
    distinct, index = np.unique(values, return_inverse=True)
    counts = np.bincount(2 * index + labels, minlength=2 * distinct.size).reshape(-1, 2)
    totals, runs = counts.sum(axis=1), counts.sum(axis=0)
    is_frequent = totals * runs.min() >= MIN_EXPECTED * runs.sum()
    rare = counts[~is_frequent].sum(axis=0, keepdims=True)
    counts = np.concatenate([counts[is_frequent], rare[rare.sum(axis=1) > 0]])
    expected = counts.sum(axis=1, keepdims=True) * runs / runs.sum()
    return float(((counts - expected) ** 2 / expected).sum()), max(len(counts) - 1, 1)
