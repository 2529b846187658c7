"""Many members of a schedule by few cells, and how fast their transforms decay."""

import numpy as np
import pytest

from accountant.amplification import truncated_schedule
from accountant.amplification.sampled_gaussian import schedule_decay, similar_below_cut
from accountant.amplification.sampled_gaussian.merged_members import (
    MergedMembers,
    cells_of_similar,
)
from accountant.amplification.truncated_schedule import SampledSchedule


def members(seed, size=0.005):
    """Rows of which some are alike, counts, and what they are multiplied by."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 1, (2, 400))
    columns = np.array([np.exp(-places[0]), places[1], places[0] * places[1], 1 + places[1] ** 3]).T
    inner = size * (rng.normal(size=(4, 50)) + 1j * rng.normal(size=(4, 50)))
    return columns, places, rng.uniform(1, 5, 400), inner


def missed(seed, **changed):
    """How far a sum over cells is from that over members, and what it is said to miss."""
    columns, places, counts, inner = members(seed)
    cell = cells_of_similar(columns.T, places, counts, 60)
    merged = MergedMembers.of(columns, counts, cell)
    for name, factor in changed.items():
        object.__setattr__(merged, name, factor * getattr(merged, name))
    total, most, error = merged.log_sum(inner)
    product = columns @ inner
    assert changed or np.all(np.abs(product).max(axis=0) <= most)
    return np.abs(total - counts @ np.log1p(product)), error


@pytest.mark.parametrize("seed", range(5))
def test_cells_are_within_their_error_of_all_members(seed):
    away, error = missed(seed)
    assert np.all(away <= error)
    assert np.max(error) < 0.3 * np.max(missed(seed, square=0.0)[0])


@pytest.mark.parametrize("changed", [{"square": 0.0}, {"square": 0.5}, {"columns": 1 + 1e-4}])
def test_cells_without_second_order_or_with_other_means_are_further_off(changed):
    away, error = missed(0, **changed)
    assert np.any(away > error)


def test_where_members_are_too_great_the_error_is_unknown():
    columns, places, counts, inner = members(1, size=1.0)
    merged = MergedMembers.of(columns, counts, cells_of_similar(columns.T, places, counts, 60))
    assert np.isinf(merged.log_sum(inner)[2]).any()


def a_schedule(size):
    rng = np.random.default_rng(size)
    mu, rate = rng.uniform(1.05, 1.95, size), 10 ** rng.uniform(-5.3, -4.7, size)
    return SampledSchedule(mu, np.log(rate) - np.log1p(-rate), np.ones(size))


def transforms(schedule, frequencies, epsilon=0.1, tilt=60.0):
    found = schedule.without_sure_events(epsilon)
    step = frequencies[1] - frequencies[0]
    z = tilt + 1j * step * np.arange(frequencies.size).reshape(-1, 10)
    return found.cf_ratio(z), found


@np.errstate(over="ignore", invalid="ignore")
def test_a_schedule_by_cells_is_that_of_all_its_members(monkeypatch):
    u = np.linspace(0.0, 3000.0, 40)
    (ratio, error), found = transforms(a_schedule(900), u)
    assert found.points < 900 + 4 * 900
    monkeypatch.setattr(similar_below_cut, "MIN_MERGED", 10**9)
    (plain, own), whole = transforms(a_schedule(900), u)
    assert whole.points > 4 * 900
    assert np.all(np.abs(ratio - plain) <= error + own)
    assert error[0, 0] < 1e-7


@np.errstate(over="ignore", invalid="ignore")
def test_the_decay_of_differences_is_above_the_truth_and_near_it(monkeypatch):
    monkeypatch.setattr(truncated_schedule, "MAX_ON_CURVES", 0)
    u = np.linspace(0.0, 12_000.0, 400)
    (ratio, error), found = transforms(a_schedule(250), u)
    size, bound = np.log(np.abs(ratio.ravel())), found.log_cf_bound(60.0, u)
    known = error.ravel() < 1e-2 * np.abs(ratio.ravel())
    highest = np.maximum.accumulate(np.where(known, size, -np.inf)[::-1])[::-1]
    assert np.all(highest <= bound + 1e-2)
    last = np.flatnonzero(known)[-1]
    assert bound[last] <= 0.3 * size[last] < -2
    monkeypatch.setattr(schedule_decay, "BULK", 6 * schedule_decay.BULK)
    _, other = transforms(a_schedule(250), u)
    assert np.any(highest > other.log_cf_bound(60.0, u) + 1e-2)
