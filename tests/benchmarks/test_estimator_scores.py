"""The bench of estimators does no work twice."""

from functools import partial

import pytest

from benchmarks.bench_estimators import measured, scores_of
from benchmarks.estimator_rows import Kind, Method, Task, regression


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


def test_seeds_of_a_fixed_split_share_its_data():
    assert regression.california(0, False) is regression.california(1, False)
