"""Exact selections: an index whose probability is exactly the stated function of its score.

The exponential mechanism chooses index r with probability in proportion to e^{-gap_r}, and
permute-and-flip by coins of probability e^{-gap_r}, where gap_r is how far score r is below the
best one, over the scale.  Scores are floats taken as they are, as rational numbers; those of a
mechanism lie on its grid.  Floats decide where a proved interval lies on one side, otherwise
decimals with fresh random bits decide: `docs/proofs/exact_selection.md`.

References: Canonne, Kamath & Steinke (2020) for exact coins; Devroye (1986) for rejection from a
table; McKenna & Sheldon (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from mechanisms.exact_noise.exponential_coins import (
    HEIGHT_ERROR,
    Bits,
    WordArray,
    below_exponential,
    compare_to_height,
    exponential_coins,
    random_words,
)

IndexArray = NDArray[np.intp]

ENTRIES_PER_CHUNK = 1 << 15  # entries of a chunk of rows, which fit into the processor's cache
# How many of the 2^63 words the ranges of a table add up to before their lengths are rounded up.
# The 2^-20 of them that is left is room for this; words in it are drawn again.
WORDS_USED = 2.0**63 * (1 - 2.0**-20)


def gaps_to_best(scores: Array, scale: float) -> Array:
    """Return the gap of each score of a row to the best, over the scale, with two roundings."""
    with np.errstate(over="ignore"):  # An infinite gap has weight 0; decimals decide if it matters.
        gaps: Array = (scores.max(axis=-1, keepdims=True) - scores) / scale
    return gaps


def exact_gap(best: float, score: float, scale: float) -> Fraction:
    """Return ``(best - score) / scale`` without rounding."""
    return (Fraction(best) - Fraction(score)) / Fraction(scale)


@final
@dataclass(frozen=True, slots=True)
class WeightTable:
    """For each row of scores, the ranges of random words that propose its candidates.

    A word from ``ends[r - 1]`` to ``ends[r]`` proposes candidate r of the row.  At position p of
    this range it is accepted where ``p + uniform fraction < top count exp(-gap)``.  This number is
    ``heights[r]`` in floats, and no more than the length of the range.
    """

    scores: Array  # (rows, candidates)
    scale: float
    counts: NDArray[Any] | None  # whole numbers, (rows, candidates); None if all are 1
    tops: Array  # the ``top`` of each row
    heights: Array  # (rows, candidates)
    ends: WordArray  # (rows, candidates)

    @classmethod
    def of(cls, scores: Array, scale: float, counts: NDArray[Any] | None = None) -> WeightTable:
        """Return the table of rows of scores; a candidate may stand for ``counts`` equal ones."""
        heights = gaps_to_best(scores, scale)
        np.exp(np.negative(heights, out=heights), out=heights)
        if counts is not None:
            heights *= counts
        tops = WORDS_USED / heights.sum(axis=-1)
        heights *= tops[:, None]
        # A length is rounded up by more than the error of floats.
        lengths = (heights * (1 + HEIGHT_ERROR)).astype(np.uint64)
        lengths += np.uint64(1)
        return cls(scores, scale, counts, tops, heights, np.cumsum(lengths, axis=-1))

    @property
    def table(self) -> dict[str, Any]:
        """The ranges of the only row, in plain numbers."""
        return {
            "table": "WeightTable",
            "scores": self.scores[0].tolist(),
            "scale": self.scale,
            "height": float(self.tops[0]),
            "ends": self.ends[0].tolist(),
        }

    def draw(self, size: int | None, rng: np.random.Generator) -> IndexArray:
        """Return one winner of each row, or ``size`` winners of the only row."""
        waiting = np.arange(len(self.scores) if size is None else size)
        winners = np.empty(waiting.size, dtype=np.intp)
        while waiting.size:
            uniform_words = random_words(waiting.size, rng) >> np.uint64(1)
            at, accepted = self.accept(uniform_words, None if size is not None else waiting, rng)
            winners[waiting[accepted]] = at[accepted]
            waiting = waiting[~accepted]
        return winners

    def accept(
        self, words: WordArray, rows: IndexArray | None, rng: np.random.Generator
    ) -> tuple[IndexArray, Bits]:
        """Return the candidate of each word, in its row or the only one, and whether it accepts."""
        if rows is None:
            rows = np.zeros(words.size, dtype=np.intp)
            candidate = np.searchsorted(self.ends[0], words, side="right")
        else:
            ends = self.ends if rows.size == len(self.ends) else self.ends[rows]
            candidate = np.count_nonzero(ends <= words[:, None], axis=1)
        at = np.minimum(candidate, self.ends.shape[1] - 1)
        places = words - np.where(at > 0, self.ends[rows, at - 1], np.uint64(0))
        accepted, unsure = compare_to_height(places.astype(float), self.heights[rows, at])
        inside = at == candidate  # words beyond the last candidate are drawn again
        accepted &= inside
        for i in np.flatnonzero(unsure & inside):
            height = Fraction(float(self.tops[rows[i]]))
            if self.counts is not None:
                height *= int(self.counts[rows[i], at[i]])
            row = self.scores[rows[i]]
            gap = exact_gap(float(row.max()), float(row[at[i]]), self.scale)
            accepted[i] = below_exponential(int(places[i]), gap, height, rng)
        return at, accepted


def draw_by_weights(
    scores: Array, scale: float, size: int | None, rng: np.random.Generator
) -> IndexArray:
    """Return winners with probability proportional to ``exp(score / scale)``, exactly.

    One of each row of ``scores``, or ``size`` of a single row.
    """
    if size is not None:
        return WeightTable.of(scores, scale).draw(size, rng)
    winners = np.empty(len(scores), dtype=np.intp)
    for rows in row_chunks(*scores.shape):
        winners[rows] = WeightTable.of(scores[rows], scale).draw(None, rng)
    return winners


def row_chunks(rows: int, columns: int) -> list[slice]:
    """Return slices of rows that hold about `ENTRIES_PER_CHUNK` entries each."""
    step = max(1, ENTRIES_PER_CHUNK // columns)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def draw_by_flips(
    scores: Array, scale: float, size: int | None, rng: np.random.Generator
) -> IndexArray:
    """Return winners of permute-and-flip: of all candidates whose coin shows heads, one at random.

    The mechanism takes the first candidate with heads in a random order.  Each candidate with heads
    is equally likely to be the first.
    """
    winners = np.empty(len(scores) if size is None else size, dtype=np.intp)
    gaps = gaps_to_best(scores, scale)
    low, high = digit_bounds(gaps)
    for rows in row_chunks(winners.size, scores.shape[1]):
        these = rows if size is None else slice(0, 1)
        row = scores[these]
        heads = flipped_heads(row, scale, gaps[these], low[these], high[these], rows, rng)
        number = np.count_nonzero(heads, axis=1)
        chosen = np.cumsum(number) - number + rng.integers(0, number)
        winners[rows] = np.flatnonzero(heads)[chosen] % scores.shape[1]
    return winners


def digit_bounds(gaps: Array) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return the numbers of 16 bits below which a coin is surely heads, and above which tails.

    A coin compares a uniform number with its probability; 16 bits of it are drawn first.
    """
    scaled = 2.0**16 * np.exp(-gaps)
    low, high = (
        np.minimum(scaled * factor, 2.0**16 - 1).astype(np.uint16)
        for factor in (1 - HEIGHT_ERROR, 1 + HEIGHT_ERROR)
    )
    return low, high


def flipped_heads(
    scores: Array,
    scale: float,
    gaps: Array,
    low: NDArray[np.uint16],
    high: NDArray[np.uint16],
    rows: slice,
    rng: np.random.Generator,
) -> Bits:
    """Return coins of heads with probability ``exp(-gap)`` for the rows of a chunk."""
    shape = (rows.stop - rows.start, scores.shape[1])
    # A word of 64 bits has four numbers of 16 bits.
    uniform_words = random_words(-(-shape[0] * shape[1] // 4), rng).view(np.uint16)
    digits = uniform_words[: shape[0] * shape[1]].reshape(shape)
    heads: Bits = digits < low
    unsure = np.flatnonzero((digits <= high) != heads)
    if unsure.size:
        row, column = np.divmod(unsure, shape[1])
        row %= len(scores)
        # 48 further digits follow the first 16.
        finer = random_words(unsure.size, rng) >> np.uint64(16)
        finer |= digits.ravel()[unsure].astype(np.uint64) << np.uint64(48)

        def exact(i: int) -> Fraction:
            row_scores = scores[row[i]]
            return exact_gap(float(row_scores.max()), float(row_scores[column[i]]), scale)

        heads.ravel()[unsure] = exponential_coins(finer, gaps[row, column], exact, rng)
    return heads
