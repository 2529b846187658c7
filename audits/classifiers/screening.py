"""Screening of wide outputs: two-sample statistics of every number, in one pass over runs.

It tells which numbers of an output depend on the audited value.  Each number x becomes
``z = (x - median) / quartile range``, with both from a few runs, and is clipped, so that heavy
tails do no harm.  What is kept are sums over runs, a row for each kind of sum and a column for each
number of an output.  Sums over pieces of runs are added up in a fixed order, so memory does not
grow with the runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.output_features import extract_features

BLOCK_NUMBERS = 1 << 16  # numbers that are read at a time, so that they stay in the cache
# In quartile ranges from the median: z is clipped to [-CLIP, CLIP], and its step, a smooth sign, is
# z clipped to [-STEP, STEP].  For Gaussian noise these are 8 and 0.5 standard deviations.
CLIP, STEP = 6.0, 0.4
MAX_REFERENCE_ROWS = 256  # medians and quartile ranges are taken from at most this many runs
# The numbers that differ most have columns of their own, so they need no weighted sum.
CLEAREST = 16
# The rows of sums: of z, |z|, z^2, the step, its square, the runs in which the number is missing,
# and all runs.
KINDS_OF_SUMS = 7
Z, SIZE, SQUARE, STEPPED, STEPPED_SQUARE, MISSING, RUNS = range(KINDS_OF_SUMS)


def block_rows(width: int) -> int:
    """Runs of outputs of ``width`` numbers that are read at a time."""
    return max(BLOCK_NUMBERS // max(width, 1), 1)


def number_rows(outputs: NDArray[Any], width: int) -> NDArray[Any]:
    """The numbers of each output, ``width`` of them; NaN where an output has fewer."""
    if outputs.dtype.kind in "biuf" and outputs[:1].size == width * len(outputs[:1]):
        flat = outputs.reshape(len(outputs), width)
        return flat if flat.dtype.kind == "f" else flat.astype(float)
    numbers = extract_features(outputs).numbers[:, :width]
    rows = np.full((len(outputs), width), np.nan)
    rows[:, : numbers.shape[1]] = numbers
    return rows


@final
@dataclass(frozen=True, slots=True)
class Reference:
    """The middle and the quartile range of each number, from a few runs."""

    middle: Array
    spread: Array

    @property
    def width(self) -> int:
        """The number of numbers in an output."""
        return self.middle.size

    def of(self, places: NDArray[np.intp]) -> Reference:
        """The reference of the numbers at these places of an output."""
        return Reference(self.middle[places], self.spread[places])


def reference_of(rows: NDArray[Any]) -> Reference:
    """The reference of some rows.

    A number whose quartiles are equal has its standard deviation as spread, or 1 where that is 0.
    """
    few = rows[:MAX_REFERENCE_ROWS].astype(float)
    x = np.nan_to_num(few, nan=0.0, posinf=1e300, neginf=-1e300)
    x = np.sort(x, axis=0)
    low, middle, high = (x[int(share * (len(x) - 1))] for share in (0.25, 0.5, 0.75))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = high - low
        deviation = np.clip(x, -1e150, 1e150).std(axis=0)
    spread = np.where(spread > 0, spread, np.where(deviation > 0, deviation, 1.0))
    return Reference(middle.astype(float), np.where(np.isfinite(spread), spread, 1e300))


@final
@dataclass(frozen=True, slots=True)
class ScreeningSums:
    """A draw that returns `screening_sums` of its runs in place of their outputs."""

    draw: Any
    reference: Reference

    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> Array:
        """The sums over ``size`` runs, drawn and read in blocks."""
        width = self.reference.width
        sums, block = np.zeros((KINDS_OF_SUMS, width)), block_rows(width)
        for done in range(0, size, block):
            outputs = self.draw(value, rng, min(block, size - done))
            sums += screening_sums(number_rows(outputs, width), self.reference)
        return sums


def screening_sums(rows: NDArray[Any], reference: Reference) -> Array:
    """Sums over runs, whose numbers are ``rows``: a row for each kind of sum, see `RUNS`."""
    sums, block = np.zeros((KINDS_OF_SUMS, reference.width)), block_rows(reference.width)
    sums[RUNS] = len(rows)
    # The arrays are made once and written to again for each block, which is faster.
    centred = np.empty((min(block, len(rows)), reference.width))
    z, term = (np.empty(centred.shape, np.float32) for _ in range(2))
    for done in range(0, len(rows), block):
        part = rows[done : done + block]
        centred, z, term = centred[: len(part)], z[: len(part)], term[: len(part)]
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(part, reference.middle, out=centred)
            np.divide(centred, reference.spread, out=z, casting="same_kind")
        np.clip(z, -CLIP, CLIP, out=z)
        total = z.sum(axis=0)
        if np.isnan(total).any():
            gone = np.isnan(z)
            sums[MISSING] += gone.sum(axis=0)
            z[gone] = 0.0
            total = z.sum(axis=0)
        sums[Z] += total
        np.clip(z, -STEP, STEP, out=term)
        sums[STEPPED] += term.sum(axis=0)
        np.multiply(term, term, out=term)
        sums[STEPPED_SQUARE] += term.sum(axis=0)
        np.multiply(z, z, out=term)
        sums[SQUARE] += term.sum(axis=0)
        np.abs(z, out=z)
        sums[SIZE] += z.sum(axis=0)
    return sums


@final
@dataclass(frozen=True, slots=True)
class Contrast:
    """How a feature of each number differs between the two values."""

    weights: Array  # of each number in the best weighted sum: difference of means / variance
    z_scores: Array  # the difference of means in its standard errors


def contrasts(first: Array, second: Array) -> dict[str, Contrast]:
    """The contrasts of the mean, of the step and of the size of each number, and of its absence.

    ``first`` and ``second`` are the sums of runs on either value.
    """
    runs = np.maximum(np.array([first[RUNS, 0], second[RUNS, 0]]), 1.0)
    return {
        name: _contrast(first[moment], second[moment], first[square], second[square], runs)
        for name, moment, square in (
            ("mean", Z, SQUARE),
            ("step", STEPPED, STEPPED_SQUARE),
            ("size", SIZE, SQUARE),  # |z|^2 = z^2
            ("absence", MISSING, MISSING),  # 0 and 1 are their own squares
        )
    }


def _contrast(
    first_sum: Array, second_sum: Array, first_squares: Array, second_squares: Array, runs: Array
) -> Contrast:
    """The difference of means over the variance of one run, and over its own standard error.

    The arguments are the sums of a feature over the runs on either value, those of its squares, and
    the numbers of these runs.
    """
    gap = first_sum / runs[0] - second_sum / runs[1]
    total = runs.sum()
    mean = (first_sum + second_sum) / total
    variance = (first_squares + second_squares) / total - mean**2
    # The variance of a number that is nearly constant may be wrong by the effect of one run.
    variance = np.where(variance > 0, variance + 1.0 / total**2, 0.0)
    weights = np.divide(gap, variance, out=np.zeros_like(gap), where=variance > 0)
    error = np.sqrt(variance * (1 / runs[0] + 1 / runs[1]))
    return Contrast(weights, np.divide(gap, error, out=np.zeros_like(gap), where=error > 0))


def worthwhile_runs(first: Array, second: Array, most: int, all_runs: int) -> int:
    """How many runs in all, up to ``most``, to screen, judged by the sums of the runs so far.

    Let the means of d numbers of standard deviation 1 differ by a vector of norm mu.  From n runs,
    half of each value, the difference of each mean has the variance 4 / n.  A sum weighted by these
    differences separates the values by about

        mu^2 / (1 + 4 d / (n mu^2)),

    in place of the mu^2 of the best weights.  The numbers that differ most are columns
    by themselves and need no weights.

    The runs of ``all_runs`` that do not screen are tested.  The n with the largest product of
    tested runs and the square of the separation is taken.  A test proves what exceeds the claim,
    and near it a better sum is worth more than more runs, so the separation is squared.
    """
    runs, width = int(first[RUNS, 0] + second[RUNS, 0]), first.shape[1]
    squares = np.stack([contrast.z_scores**2 for contrast in contrasts(first, second).values()])
    # The square of a z-score is 1 + (runs / 4) (difference of the mean)^2 on average, which gives
    # mu^2 by the sum over all numbers.  Of d numbers without a difference the largest square is
    # about 2 ln d, which is taken off those of the numbers that differ most.
    dense = 4 / runs * max(float(np.max(squares.sum(axis=1))) - width, 1.0)
    largest_squares = np.sort(squares.max(axis=0))[-CLEAREST:]
    sparse = 4 / runs * float(np.maximum(largest_squares - 2 * math.log(width), 0.0).sum())
    # 64 counts are tried: a better one between two of them would be hardly better.
    counts = np.unique(np.linspace(min(runs, most), most, 64).astype(int))
    reached = dense / (1 + 4 * width / (counts * dense))
    return int(counts[np.argmax((all_runs - counts) * np.maximum(sparse, reached) ** 2)])
