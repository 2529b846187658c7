"""The bench of estimators does no work twice."""

from functools import partial

import numpy as np
import pytest

from benchmarks.bench_estimators import measured, scores_of
from benchmarks.estimator_rows import (
    Kind,
    Method,
    Split,
    Task,
    package_data,
    regression,
    simulators,
)


def counted(calls, data, epsilon, seed):
    calls.append((data, epsilon, seed))
    return seed + epsilon


def task_of(load, *kinds):
    calls = {kind: [] for kind in kinds}
    methods = tuple(Method(kind.value, kind, partial(counted, calls[kind])) for kind in kinds)
    return Task("made up", "score", 10.0, load, methods), calls


def test_data_are_loaded_once_a_seed():
    loads = []

    def load(seed, quick):
        loads.append((seed, quick))
        return [seed]

    task, calls = task_of(load, Kind.OURS, Kind.PEER, Kind.FREE)
    table = measured(task, range(100, 103), False)
    assert loads == [(seed, False) for seed in (100, 101, 102)]
    assert [call[2] for call in calls[Kind.OURS]] == [s for s in (100, 101, 102) for _ in range(3)]
    means = [{epsilon: mean for epsilon, (mean, _) in row.items()} for row in table.values()]
    assert means == [{0.1: pytest.approx(101.1), 1.0: 102.0, 4.0: 105.0}] * 2 + [{4.0: 105.0}]
    assert [row[4.0][1] for row in table.values()] == pytest.approx([3**-0.5] * 3)


def test_a_fit_without_privacy_is_made_once_on_the_same_data():
    data = [0]
    task, calls = task_of(lambda seed, quick: data, Kind.OURS, Kind.FREE)
    found = scores_of(task, range(4), False)
    assert [len(found) for found in calls.values()] == [12, 1]
    assert found[task.methods[1]] == {4.0: [4.0] * 4}


def test_a_method_that_cannot_run_is_asked_once():
    calls = []

    def missing(data, epsilon, seed):
        calls.append(seed)

    task = Task("made up", "score", 1.0, lambda seed, quick: seed,
                (Method("missing", Kind.PEER, missing),))  # fmt: skip
    assert measured(task, range(3), False) == {task.methods[0]: {}}
    assert calls == [0]


@pytest.mark.parametrize("name", ["diabetes", "irises"])
def test_a_seed_has_its_own_split_which_is_loaded_once(name):
    first, other = (package_data.parts(name, seed, False) for seed in (0, 1))
    assert package_data.parts(name, 0, False) is first
    assert len(first.test[1]) == len(other.test[1]) > 0
    assert not np.array_equal(first.test[0], other.test[0])
    assert all(np.abs(x).max() <= 1 for x in (first.train[0], first.test[0]))


@pytest.mark.parametrize("name", simulators.FAMILIES)
def test_simulated_records_are_within_their_bounds_and_are_drawn_anew(name):
    first, other = (simulators.parts(name, seed, True, classes=False) for seed in (0, 1))
    assert np.abs(first.train[0]).max() <= 1 >= np.abs(first.train[1]).max()
    assert not np.array_equal(first.train[1], other.train[1])


def test_tukey_em_is_close_to_least_squares_on_many_records():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (12_000, 2))
    data = Split.last_fifth(x, x @ [0.5, -0.3] + 0.05 * rng.normal(size=12_000), 12_000)
    free = regression.least_squares(data, 1.0, 0)
    assert free - 0.01 < regression.tukey_em(data, 10.0, 0) <= free
    # at a small epsilon its check of distance fails, and it is the constant
    assert regression.tukey_em(data, 0.01, 0) == regression.constant(data, 0.01, 0)
