"""Ends of intervals of quantiles: scores by another road, and what their parts stand for."""

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
