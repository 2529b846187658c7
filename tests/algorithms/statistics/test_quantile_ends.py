"""Ends of intervals of quantiles: scores by another road, and what their parts stand for."""

import itertools
import math

import numpy as np
import pytest

from algorithms.statistics.quantile_ends import (
    EVEN,
    GAP,
    REACH,
    EndPart,
    end_parts,
    end_runs,
    end_scores,
    ends_found,
    ends_of,
)

PLACES = np.array([2, 2, 5, 6, 9, 9, 14])
LAST = 20


def scores(part, scale):
    """The score of every place of a part, and of what is beyond it."""
    found, lengths = end_runs(PLACES, part, scale)
    assert lengths.sum() == abs(part.far - part.near) + 1 + part.beyond
    return np.repeat(found, lengths.astype(int))


def expected(part, scale):
    """Half of the records less those between; or half of the distance from so many."""
    step = 1 if part.far >= part.near else -1
    reach = math.ceil(40 * scale * 1024 / part.weight) * (2 if part.records else 1)
    low, high = sorted((part.near, part.far))
    within = int(((low <= PLACES) & (high > PLACES)).sum())
    found = []
    for place in [*range(part.near, part.far + step, step)] + [None] * part.beyond:
        near, far = sorted((part.near, place if place is not None else part.far))
        between = int(((near <= PLACES) & (far > PLACES)).sum())
        if part.records:
            distance = min(abs(between - part.records), reach)
            found.append(-(part.weight // 2) / 1024 * distance)
        else:
            found.append(part.weight / 1024 * (within / 2 - min(between, reach)))
    return found


@pytest.mark.parametrize("scale", [1 / 40, 1 / 20, 5.0])
@pytest.mark.parametrize("records", [0, 1, 4, 30])
@pytest.mark.parametrize("ends", [(10, 0), (10, LAST), (2, 9), (9, 2), (6, 6), (0, 0), (0, LAST)])
def test_scores_count_records_between(ends, records, scale):
    for weight, beyond in ((1024, 0), (700, 3)):
        part = EndPart(*ends, weight, records, beyond)
        assert scores(part, scale).tolist() == expected(part, scale)


def test_an_index_is_a_place_or_beyond():
    lower, upper = EndPart(10, 4, 1024), EndPart(10, 13, 1024)
    assert [lower.place(i) for i in (0, 6, 7)] == [10, 4, None]
    assert [upper.place(i) for i in (0, 3, 4)] == [10, 13, None]
    assert EndPart(3, 3, 1024).place(0) is None  # of no width


def test_one_quantile_needs_the_share_of_what_is_missed():
    for level in (0.5, 0.9, 0.95, 0.99):
        missed = EVEN * (1 - level)
        assert ends_of((0.5,), level, False).ratio == pytest.approx(1 / missed - 1, rel=1e-3)
    beside = ends_of((0.1, 0.5, 0.9), 0.95, False)
    assert beside.ratio == beside.ratios[1]  # of the top, without what others inherit
    assert beside.releases == 2
    assert min(beside.ratios[0], beside.ratios[2]) > beside.ratio


def test_the_scale_of_the_tree_leaves_what_the_ends_take():
    for shares, levels in (((0.5,), 1), ((0.1, 0.5, 0.9), 2)):
        beside = ends_of(shares, 0.95, False)
        for budget in (1e-4, 1.0, 1e4):
            scale = beside.tree_scale(levels, budget)
            taken = levels / scale + beside.releases / beside.scale(scale)
            assert taken == pytest.approx(budget, rel=1e-9)


def test_a_quantile_near_the_last_record_ends_at_the_bound():
    beside, places = ends_of((0.9,), 0.5, False), 1000
    few = 10 * REACH * beside.own[0]
    for records, bound in ((few - 1, True), (few + 1, False)):
        parts = end_parts([700], [0.9], beside, 1.0, 0.5, records, places)
        given = parts, [0.9], beside, 1.0, records, places
        low, high = ends_found([[3], [4]], *given)[0]
        assert (high == places - 1) == bound
        assert (parts[0][0].records > 0) == bound
        assert low == 697


def test_ends_beyond_a_part_are_those_of_the_quantile_beside():
    shares, places = [0.4, 0.5, 0.6], 1000
    beside = ends_of(tuple(shares), 0.95, False)
    parts = end_parts([400, 500, 600], shares, beside, 1.0, 0.95, 1e4, places)
    far = [[10**9] * 3, [10**9] * 3]
    given = parts, shares, beside, 1.0, 1e4, places
    assert ends_found(far, *given) == [(0, places - 1)] * 3
    mixed = [[5, 10**9, 7], [1, 10**9, 2]]
    assert ends_found(mixed, *given) == [(395, 401), (395, 602), (593, 602)]
    assert parts[0][1].beyond == math.ceil(beside.ratios[1] * (1 + GAP) / 1000 * 100)


CENTRES, PLACES_OF_GRID, TREE_SCALE = [100, 500, 510], 1000, 2.0
BESIDE = {  # where each part ends: the place, and the quantile that is there
    "lower": [(0, 0.0), (100, 0.002), (500, 0.5)],
    "upper": [(500, 0.5), (510, 0.9), (999, 1.0)],
}


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_an_end_near_the_opposite_end_of_the_data_is_sought_further_on(confidence):
    quantiles, kinds = [0.002, 0.5, 0.9], set()
    ends = ends_of(tuple(quantiles), confidence, False)
    for records, side in itertools.product((30.0, 100.0, 300.0, 1000.0, 1e4), BESIDE):
        given = CENTRES, quantiles, ends, TREE_SCALE, confidence, records, PLACES_OF_GRID
        parts = end_parts(*given)[side == "upper"]
        for i, (part, (far, far_quantile)) in enumerate(zip(parts, BESIDE[side], strict=True)):
            mean = ends.ratios[i] * (TREE_SCALE + GAP)
            assert part.near == CENTRES[i]
            # A smaller weight makes a larger mean of the least one.
            assert part.weight == math.floor(1024 * min(ends.ratios) / ends.ratios[i])
            lost = records * (quantiles[i] if side == "upper" else 1 - quantiles[i])
            within = records * abs(far_quantile - quantiles[i])
            further = lost - 2 * mean * math.log(1 - confidence)
            if lost >= REACH * ends.own[i] * TREE_SCALE:
                kind, expected = "far from it", (far, 0)
            elif further > within:
                kind, expected = "beyond the part", (part.near, 0)
            else:
                kind, expected = "further on", (far, math.ceil(further))
            assert (part.far, part.records) == expected
            kinds.add(kind)
            width = max(abs(part.far - part.near), 1)
            assert part.beyond == math.ceil(mean / within * width)
    assert len(kinds) == 3


@pytest.mark.parametrize("scale", [1 / 40, 0.2])
def test_scores_of_all_cells_are_as_long_whatever_the_data(scale):
    parts = [[EndPart(10, 0, 1024), EndPart(2, 9, 700, 0, 5)], [EndPart(0, LAST, 1024, 4, 3)]]
    width = 2 + max(
        math.ceil(40 * scale * 1024 / part.weight) * (4 if part.records else 1)
        for part in itertools.chain(*parts)
    )
    for cells in ([PLACES, PLACES[:3]], [PLACES[:0], PLACES]):
        found = end_scores(cells, parts, scale)
        assert found.shape == (3, 2, width)
        by_part = [(cells[0], parts[0][0]), (cells[0], parts[0][1]), (cells[1], parts[1][0])]
        for row, (places, part) in zip(found, by_part, strict=True):
            runs = end_runs(places, part, scale)
            assert row[:, : runs.shape[1]].tolist() == runs.tolist()
            assert not row[:, runs.shape[1] :].any()
