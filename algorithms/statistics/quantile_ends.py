"""Ends of confidence intervals around released quantiles, each by one more private release.

An end lies a random number G of records further on than the quantile: a place t of the grid is
drawn with probability proportional to ``exp(score(t) / scale)``, and the score falls by a weight
for every record between the quantile and t.  If records lie evenly, G is exponential, and the
interval misses where the error E of the quantile's rank is larger: P(|E| > G) = 1 - confidence.

A place is a point of the grid together with one of its finer steps, see `quantile_scores`.  A
*part* is the range of places in which one end is drawn, from its quantile to the quantile beside
it.  Places between two neighbouring records have one score; they are a *run*.  Scales are in
records, unless said otherwise.

References: Smith (2011) for the mechanism; proof in docs/proofs/quantiles.md, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import least_float_that
from algorithms.base.intervals import laplace_normal_tail
from algorithms.statistics.quantile_scores import WEIGHT_BITS, IndexArray, padded
from algorithms.statistics.quantile_tree import rank_noise

UNITS = 1 << WEIGHT_BITS  # whole units of the weight 1
FAR = 40  # scores this many scales below the best have probability e^-40 and are not distinguished
MOST_PLACES = 1 << 52  # the most places of a part, those that stand for the region beyond included
# A quantile that lies nearer to the least or the greatest record than this, in its own scales, may
# fall into the empty part of the grid beyond that record.  At this distance the probability is e^-4
# if the empty part is 400 times as wide as the places of the two scales around the quantile.
REACH = math.log(400) + 4
NODES = 2000  # nodes of the midpoint rule in `_ratio`
# The next two numbers make intervals a little longer, as records do not lie evenly.  A released
# quantile lies more often in a wide gap between records than in a narrow one, and so do its ends:
# for gaps of exponential widths and noise of 1/4 to 10 records, intervals miss 1.1 to 1.4 times as
# often as for even ones.  They concern coverage, and no privacy rests on them.
EVEN = 0.85  # factor of the probability 1 - confidence to miss, where gaps are even
GAP = 0.35  # records that are added to the scale of the noise: gaps decide where noise is smaller


@dataclass(frozen=True, slots=True)
class EndPart:
    """The part of the grid in which an end is drawn: places from a quantile ``near`` to ``far``.

    Parameters
    ----------
    near, far : int
        Places; ``far`` is below ``near`` for a lower end.
    weight : int
        What a record takes off the score, in units of 2^-10, at most 2^10.
    records : int
        The number of records beyond ``near`` at which the score is largest.  At 0, the usual case,
        the nearest place has the largest score.
    beyond : int
        How many places stand for the whole region beyond ``far``.
    """

    near: int
    far: int
    weight: int
    records: int = 0
    beyond: int = 0

    def place(self, index: int) -> int | None:
        """Return the place that a drawn index stands for.

        It is None where the index is one of those ``beyond``, and in a part of a single place.
        """
        if index > abs(self.far - self.near) or self.far == self.near:
            return None
        return self.near + (index if self.far >= self.near else -index)


def end_runs(places: IndexArray, part: EndPart, scale: float) -> Array:
    """Return scores and lengths of the runs of places from ``near`` to ``far``, then beyond.

    ``places`` are those of all records, sorted.  With c(p) records between ``near`` and a place p,
    c records in the whole part, and the weight w, the score is w (c / 2 - min(c(p), F)), where F is
    `_greatest_distance`.  If the score is to be largest at k > 0 ``records``, it is
    -(w / 2) min(|c(p) - k|, F).  One record more or less moves every score by at most 1/2.
    """
    low, high = sorted((part.near, part.far))
    # An end at a place is as many records away as lie between, counting one at the lower place.
    begin, end = np.searchsorted(places, [low, high]).tolist()
    within = end - begin
    distinguished = _greatest_distance(part, scale)
    weight = part.weight if not part.records else part.weight // 2
    # The numbers of records at which scores differ: all others have the lowest score.
    low_count = max(0, part.records - distinguished)
    high_count = min(within, part.records + distinguished)
    if high_count < low_count:  # then all places of the part have the lowest score
        low_count = high_count = within
    counts = np.arange(low_count, high_count + 1, dtype=np.int64)
    scores = -weight * np.minimum(np.abs(counts - part.records), distinguished)
    beyond = -weight * min(abs(within - part.records), distinguished)
    # A run ends at a record.  ``run_ends`` are the distances of these records from ``near``.
    if part.far >= part.near:
        run_ends = places[begin + low_count : begin + high_count] + 1 - part.near
    else:
        run_ends = part.near - places[end - high_count : end - low_count][::-1]
    lengths = np.diff(np.concatenate([[0], run_ends, [high - low + 1]]))
    # The term w c / 2: with it one more record moves all scores up by half a weight, and those of
    # places beyond that record down by a whole weight, so that no score moves by more than half.
    middle = weight * within / 2 if not part.records else 0.0
    unit_scores = np.append(scores, beyond) + middle
    length = min(part.beyond, MOST_PLACES - (high - low + 1))
    return np.stack([np.ldexp(unit_scores, -WEIGHT_BITS), np.append(lengths, length)])


def _greatest_distance(part: EndPart, scale: float) -> int:
    """Return F: the distance, in records, from which on scores are not distinguished."""
    return math.ceil(FAR * scale * UNITS / part.weight) * (2 if part.records else 1)


def end_scores(
    places: Sequence[IndexArray], parts: Sequence[Sequence[EndPart]], scale: float
) -> Array:
    """Return the scores and lengths of runs for the parts of all cells: (parts, 2, runs).

    ``places`` has the sorted places of the records of each cell.
    """
    runs = [
        end_runs(numbers, part, scale)
        for numbers, cell_parts in zip(places, parts, strict=True)
        for part in cell_parts
    ]
    # A list has at most F + 2 runs, or 2 F + 2 where the largest score is at k > 0 records.
    width = 2 + max(
        (1 + (part.records > 0)) * _greatest_distance(part, scale)
        for cell_parts in parts
        for part in cell_parts
    )
    return padded(runs, width)


@dataclass(frozen=True, slots=True)
class Ends:
    """How far ends lie from quantiles, in units of the scale of the tree that released those.

    Parameters
    ----------
    own : tuple of float
        The scale of each quantile's own noise.
    ratios : tuple of float
        The mean of G, which is the scale of its ends' noise, for each quantile.
    """

    own: tuple[float, ...]
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The least ratio; ends with other ratios get smaller weights."""
        return min(self.ratios)

    def scale(self, tree: float) -> float:
        """Return the scale of the release of ends, for the scale ``tree`` of the tree."""
        return self.ratio * (tree + GAP)

    def tree_scale(self, levels: int, budget: float) -> float:
        """Return the scale x of the tree with ``levels / x + releases / scale(x) = budget``.

        A release of a scale costs its reciprocal, in the unit of ``budget``.
        """
        r = self.releases / self.ratio
        # x > 0 solves budget x (x + GAP) = levels (x + GAP) + r x, which is
        # x^2 - 2 half x - levels GAP / budget = 0.  Neither form of the root cancels.
        half = (levels + r - budget * GAP) / (2 * budget)
        root = math.sqrt(half * half + levels * GAP / budget)
        return half + root if half > 0 else levels * GAP / budget / (root - half)

    @property
    def releases(self) -> int:
        """How many releases find all ends: lower and upper ends of one quantile do not meet."""
        return 1 if len(self.own) == 1 else 2


@lru_cache(maxsize=256)
def ends_of(quantiles: tuple[float, ...], confidence: float, replaced: bool) -> Ends:
    """Return the ends with which the intervals of ascending quantiles have this confidence.

    An end is a number G of records further on, exponential with the scale of the release, so the
    interval misses where the error of the rank of its quantile is larger:
    P(|error| > G) = 1 - confidence, where records lie evenly.
    """
    noise = rank_noise(quantiles, 1.0, replaced)
    scales = noise.own.tolist(), np.sqrt(noise.rest).tolist()
    ratios = (
        _ratio(laplace_scale, normal_deviation, confidence)
        for laplace_scale, normal_deviation in zip(*scales, strict=True)
    )
    return Ends(tuple(noise.own.tolist()), tuple(ratios))


def _ratio(laplace_scale: float, normal_deviation: float, confidence: float) -> float:
    """Return the least mean of G with ``P(|E| > G) <= EVEN (1 - confidence)``.

    E is the sum of Laplace noise and normal noise, and G is exponential.  The mean is at least a
    quarter of ``laplace_scale``: more than is needed only for a confidence below 6 %.
    """
    step, outside = 40 * (laplace_scale + normal_deviation) / NODES, EVEN * (1 - confidence)
    x: Array = (np.arange(NODES, dtype=np.float64) + 0.5) * step
    tail = laplace_normal_tail(x, laplace_scale, np.full(NODES, normal_deviation, dtype=np.float64))

    def holds(ratio: float) -> bool:
        # P(|E| > G) is the integral of P(|E| > x) e^{-x / ratio} / ratio over x.
        return float(np.exp(-x / ratio) @ tail) * step <= outside * ratio

    # As e^{-x / ratio} <= 1, `holds` is true from tail.sum() step / outside on.
    upper_end = 2 * float(tail.sum()) * step / outside
    return least_float_that(holds, laplace_scale / 4, upper_end, relative=1e-9)


def end_parts(
    centres: Sequence[int],
    quantiles: Sequence[float],
    ends: Ends,
    scale: float,
    confidence: float,
    records: float,
    places: int,
) -> tuple[list[EndPart], list[EndPart]]:
    """Return where the lower and the upper ends of ascending quantiles are sought.

    ``centres`` are the places of the quantiles, ``scale`` is the scale of the tree that released
    them, and ``records`` is about the number of records.  A lower end is sought between its
    quantile and the quantile before it, an upper end between its quantile and the next one; the
    first and the last place of the grid stand for the quantiles 0 and 1.
    """
    parts: tuple[list[EndPart], list[EndPart]] = ([], [])
    border_shares, border_places = [0.0, *quantiles, 1.0], [0, *centres, places - 1]
    for i, (own_noise, ratio) in enumerate(zip(ends.own, ends.ratios, strict=True), 1):
        # The release has the least scale that any quantile needs.  A larger one is the same with a
        # smaller weight, in units of 2^-10; it is at least 2, as a half of it is taken in
        # `end_runs`.
        weight = max(2, math.floor(UNITS * ends.ratio / ratio))
        end_scale, near = ratio * (scale + GAP), border_places[i]
        for side, opposite in ((-1, 1), (1, -1)):
            far = border_places[i + side]
            records_lost = _records_lost(quantiles[i - 1], opposite, own_noise * scale, records)
            # A quantile near the opposite end of the data may be wrong by all records that lie
            # there, so that its end is sought so many records further on, and two scales more for
            # each factor e of the probability to miss.
            further = 0
            if records_lost:
                further = math.ceil(records_lost + 2 * end_scale * math.log(1 / (1 - confidence)))
            # 1e-9 keeps the quotient below finite where two quantiles are equal.
            in_part = max(abs(border_shares[i + side] - border_shares[i]) * records, 1e-9)
            if further > in_part:  # the end lies beyond this part
                far = near
            # The exponential law continues beyond a part: this many places hold one scale of it.
            beyond = min(end_scale / in_part * max(abs(far - near), 1), MOST_PLACES / 2)
            part = EndPart(near, far, weight, 0 if far == near else further, math.ceil(beyond))
            parts[side > 0].append(part)
    return parts


def _records_lost(quantile: float, side: int, own_noise: float, records: float) -> float:
    """Return about how many records lie beyond a quantile near the end of the data; else 0.

    ``side`` is 1 for the greatest record and -1 for the least.
    """
    records_beyond = (1 - quantile if side > 0 else quantile) * records
    return max(records_beyond, 1e-9) if records_beyond < REACH * own_noise else 0.0


def ends_found(
    indices: Sequence[Sequence[int]],
    parts: tuple[list[EndPart], list[EndPart]],
    quantiles: Sequence[float],
    ends: Ends,
    scale: float,
    records: float,
    places: int,
) -> list[tuple[int, int]]:
    """Return the places of the lower and upper end of each quantile, from the drawn indices.

    An end that lies beyond its part is that of the next quantile outwards; of the outermost one it
    is the first or last place of the grid, as it is where a quantile lies near the end of the data.
    """
    count = len(quantiles)
    lower, upper = 0, places - 1
    end_places = [[lower] * count, [upper] * count]
    for side, order in ((0, range(count)), (1, reversed(range(count)))):
        outer = upper if side else lower
        for i in order:
            own_noise = ends.own[i] * scale
            if not _records_lost(quantiles[i], 1 if side else -1, own_noise, records):
                end_place = parts[side][i].place(indices[side][i])
                outer = outer if end_place is None else end_place
            else:
                outer = upper if side else lower
            end_places[side][i] = outer
    return list(zip(*end_places, strict=True))
