"""Numbers on a public grid, and the scores of its points as quantiles.

Private quantiles are found level by level: at each level the records are in *parts*, ranges of the
grid between two quantiles that are known, and one quantile of each part is selected by the
exponential mechanism.  Its candidates are the *places* of a public grid: every point of the grid
has 2^16 places, so that equal numbers can lie apart.  A place scores higher the nearer its rank,
the number of the part's records before it, is to the wanted one.  `QuantileScores` is the query of
one level.  All places between neighbouring records have the same score, so the scores are given as
*runs*: (score, number of places).

References: Smith (2011); Kaplan, Schnapp & Stemmer (2022); proof in docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant.domains import POSITIVE, REAL
from accountant.errors import ParameterError
from accountant.numerics import Array

IndexArray = NDArray[np.int64]
PLACE_BITS = 16  # a point of the grid has 2^16 places, and equal numbers are spread over them
DEFAULT_STEPS = 1 << 24  # steps of a grid between the bounds, if none is asked for
MOST_POINTS = 1 << 36  # a grid has fewer points than this
WEIGHT_BITS = 10  # weights of scores are multiples of 2^-10
LONGEST = 1 << 17  # the longest list of runs that is padded to a length independent of the data
# Ranks more than this many scales off the wanted one are not distinguished.  A rank takes at least
# half a unit off the score, so they score at least 80 scales below the best: 2^52 such candidates
# have probability 2^52 e^-80 = e^-44 together.
FAR = 160


class SortedPlaces(ABC):
    """Sorted places that are not in memory, with the search and the slices of a sorted array."""

    @abstractmethod
    def searchsorted(self, places: Any, side: str = "left", sorter: Any = None) -> IndexArray:
        """Return how many of the stored places lie below each given place."""

    @abstractmethod
    def __getitem__(self, ranks: slice) -> IndexArray:
        """Return the stored places of these ranks."""


@dataclass(frozen=True, slots=True)
class ValueGrid:
    """The points ``lower, lower + step, ...`` up to ``upper``; numbers move to the nearest one."""

    lower: float
    upper: float
    step: float

    @classmethod
    def of(cls, low: float, high: float, step: float | None) -> ValueGrid:
        """Return the grid of checked bounds; without a step, one of 2^24 steps."""
        low, high = REAL.check("low", low), REAL.check("high", high)
        if not (low < high and math.isfinite(high - low)):
            raise ParameterError("high", high, f"above low, which is {low:g}")
        width = (high - low) / DEFAULT_STEPS if step is None else POSITIVE.check("grid_step", step)
        if not 1 <= (high - low) / width < MOST_POINTS:
            allowed = "at most the distance of the bounds, and at least 2^-36 of it"
            raise ParameterError("grid_step", step, allowed)
        return cls(low, high, width)

    @property
    def points(self) -> int:
        """The number of points.

        The factor keeps the last point where a quotient that should be whole is rounded down.
        """
        return math.floor((self.upper - self.lower) / self.step * (1 + 1e-12)) + 1

    @property
    def places(self) -> int:
        """The number of places of all points: candidates of a quantile."""
        return self.points << PLACE_BITS

    def points_of(self, numbers: Array) -> IndexArray:
        """Return the point of every number; numbers beyond the bounds move to them."""
        steps = np.rint((np.clip(numbers, self.lower, self.upper) - self.lower) / self.step)
        return np.minimum(steps.astype(np.int64), self.points - 1)

    def places_of(self, numbers: Any) -> Any:
        """Return the sorted places of the numbers; a `SortedPlaces` is returned unchanged."""
        if isinstance(numbers, SortedPlaces):
            return numbers
        point = np.sort(self.points_of(numbers))
        if not point.size:
            return point
        # The j-th of equal numbers goes to the j-th place of van der Corput's sequence.  One more
        # number takes one more place and moves no other number.
        run_starts = np.flatnonzero(np.append(True, point[1:] != point[:-1]))
        ranks = np.arange(point.size) - np.repeat(
            run_starts, np.diff(np.append(run_starts, point.size))
        )
        places = (point << PLACE_BITS) + SPREAD[(ranks + 1) % SPREAD.size]
        return np.sort(places) if run_starts.size < point.size else places

    def value_at(self, place: Any) -> Array:
        """Return the point of a place."""
        steps: Any = np.asarray(place) >> PLACE_BITS
        value: Array = np.minimum(self.lower + steps * self.step, self.upper)
        return value


# The numbers of `PLACE_BITS` bits, each with its bits in reverse order: van der Corput's sequence.
SPREAD: IndexArray = np.zeros(1 << PLACE_BITS, dtype=np.int64)
for _bit in range(PLACE_BITS):
    SPREAD |= ((np.arange(1 << PLACE_BITS) >> _bit) & 1) << (PLACE_BITS - 1 - _bit)


@dataclass(frozen=True, slots=True)
class Part:
    """Places from ``start`` to before ``end``, and the quantile sought among its records.

    ``share`` is the share of the records that lie below this quantile.
    """

    start: int
    end: int
    share: float


@dataclass(frozen=True, slots=True)
class QuantileScores:
    """The query of a level: for each part, how well each of its places fits as its quantile.

    The score of a place is minus the weighted distance of its rank from ``share`` of the part's
    records, in whole multiples of a power of 2: no float is rounded.  ``scale`` is that of the
    mechanism.  ``column`` takes the numbers from the rows.  ``whole`` says that the single part
    holds all records, of which one is replaced: the rank moves by 1 at most.
    """

    grid: ValueGrid
    parts: Sequence[Part]
    scale: float
    column: Callable[[Any], Array]
    whole: bool = False

    def __call__(self, rows: Any) -> Array:
        """Return the runs of every part's scores: (parts, 2, runs)."""
        places = self.grid.places_of(self.column(rows))
        return part_scores(places, self.parts, self.scale, self.whole)


def part_scores(places: IndexArray, parts: Sequence[Part], scale: float, whole: bool) -> Array:
    """Return the runs of every part's scores: (parts, 2, runs); see `QuantileScores`."""
    units = [share_units(part.share, scale, whole) for part in parts]
    runs = [_runs(places, part, unit) for part, unit in zip(parts, units, strict=True)]
    # Ranks within F of the wanted one, and one run on either side.  The size does not depend on the
    # data, unless the list would be very long.
    return padded(runs, 3 + 2 * max(unit.far >> unit.bits for unit in units))


def padded(lists: Sequence[Array], width: int) -> Array:
    """Return lists of runs filled up to ``width`` with empty runs.

    If that is longer than `LONGEST`, they are filled up to a power of 2 that suffices.
    """
    if width > LONGEST:
        width = 1 << max(runs.shape[1] for runs in lists).bit_length()
    filled = np.zeros((len(lists), 2, width))
    for row, runs in zip(filled, lists, strict=True):
        row[:, : runs.shape[1]] = runs
    return filled


def _runs(places: IndexArray, part: Part, units: ShareUnits) -> Array:
    """Return scores and lengths of the runs of places between neighbouring records."""
    if part.end <= part.start:
        # Both neighbours are at one place, so the quantile between them is there too.
        return np.array([[0.0], [1.0]])
    bits, far, share, weight = units  # ranks are multiples of 2^-bits here
    begin, end = np.searchsorted(places, [part.start, part.end])
    records = int(end - begin)
    # Only ranks from low to high have a score above the lowest one.
    target = share * records
    low = max(0, (target - far) >> bits)
    high = min(records, ((target + far) >> bits) + 1)
    distance = (np.arange(low, high + 1, dtype=np.int64) << bits) - target
    scores = np.minimum(np.abs(distance), far) * (-weight)
    # Places after record r - 1 and up to record r have rank r.
    inner = places[begin + low : begin + high] + 1
    ends = np.concatenate([[part.start], inner, [part.end]])
    return np.stack([np.ldexp(scores.astype(float), -bits - WEIGHT_BITS), np.diff(ends)])


class ShareUnits(NamedTuple):
    """The units in which scores are whole numbers.

    Ranks are multiples of 2^-``bits``, weights of 2^-WEIGHT_BITS.  ``far`` (F) is the largest
    distance of ranks that is distinguished and ``share`` the share of the records below the
    quantile, both in units of 2^-bits.  ``weight_units`` is by how much a distance of one rank
    lowers the score, in units of 2^-WEIGHT_BITS.
    """

    bits: int
    far: int
    share: int
    weight_units: int

    @property
    def weight(self) -> float:
        """By how much a distance of one rank lowers the score."""
        return self.weight_units / (1 << WEIGHT_BITS)


def share_units(share: float, scale: float, whole: bool) -> ShareUnits:
    """Return the units of a part's scores.

    One record changes a score by at most 1/2, or by at most 1 if the part is ``whole``.
    """
    # A score is exact as a float: F = 2^log_far ranks of a weight of at most 1 are a whole number
    # of units, at most 2^(bits + log_far + WEIGHT_BITS) <= 2^52.
    log_far = min(max(0, math.ceil(math.log2(FAR * scale))), 52 - WEIGHT_BITS)
    bits = min(30, 52 - WEIGHT_BITS - log_far)
    unit = 1 << bits
    whole_share = min(max(round(math.ldexp(share, bits)), 0), unit)
    # One record more or less moves (rank - share) by max(share, 1 - share); an exchanged record
    # moves it by 1.
    weight = (unit << (WEIGHT_BITS - 1)) // max(whole_share, unit - whole_share)
    return ShareUnits(
        bits, 1 << (bits + log_far), whole_share, 1 << WEIGHT_BITS if whole else weight
    )
