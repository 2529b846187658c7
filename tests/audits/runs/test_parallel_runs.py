"""The runs of one audit on any executor: same seed, same bits."""

import dataclasses
import functools
import multiprocessing
import os
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from accountant import GaussianLoss, ParameterError, PureLoss
from audits import audit
from audits.classifiers.output_features import ReadDraw
from audits.classifiers.scored_outputs import ScoredDraw
from audits.runs.parallel_runs import MAX_PIECE_RUNS, RunPlan, collect_both, map_pieces
from audits.runs.release_functions import CHUNK, RaisedOutcome, calls_once_a_run, vectorised
from mechanisms import Gaussian, Laplace, RandomizedResponse

ONE = PureLoss(1.0)
RUNS = 40_000


def number(value, rng, size):
    return value + rng.laplace(size=size)


def gaussian(value, rng, size):
    return value + rng.normal(scale=3.73, size=size)


def vector(value, rng, size):
    return value + rng.laplace(scale=3.0, size=(size, 3))


def label(value, rng, size):
    return np.where(rng.random(size) < 0.7, value, "?")


def shifting(value, rng, size):
    return np.array([value] * 2)[rng.integers(0, 2, size)] + 5 * (rng.random((size, 2)) < 0.3)


def looped(value, rng):
    if rng.random() < 0.1:
        raise OSError("no disk")
    return [value, None][int(rng.random() < 0.4)]


class Bound:
    """Shows its data where it is printed or pickled."""

    def __init__(self, records):
        self.records = records

    def __repr__(self):
        return self.records

    def __reduce__(self):
        raise TypeError(f"no pickle of {self.records}")


def inner_of(records):
    def partly_bound(value, rng, size, scale, bound):
        return value + rng.laplace(scale=scale, size=size)

    return functools.partial(partly_bound, bound=Bound(records))


def raising(value, rng, size):
    raise RuntimeError("no luck")


def dying(value, rng, size):
    if multiprocessing.parent_process() is None:  # only where it is another process
        raise AssertionError("a worker was to do this")
    os._exit(3)


AUDITS = {
    "declared": (Laplace(1.0),),
    "declared, few outcomes": (RandomizedResponse(k=4, keep=0.5),),
    "declared, delta": (Gaussian(3.73),),
    "declared, a looser claim": (Laplace(1.0), None, PureLoss(0.9)),
    "a number": (number, (0.0, 1.0), ONE),
    "a number, delta": (gaussian, (0.0, 1.0), GaussianLoss(1 / 3.73)),
    "a vector": (vector, (np.zeros(3), np.ones(3)), ONE),
    "a word": (label, ("yes", "no"), ONE, 8000),
    "few vectors": (shifting, (np.zeros(2), np.ones(2)), ONE),
    "a loop that raises": (looped, (0, 1), ONE, 3000),
}
EVERY = pytest.mark.parametrize("name", AUDITS)


def found(name, executor=None, **more):
    arguments = dict(
        zip(("release", "pair", "claim", "runs"), AUDITS[name], strict=False), rng=5, **more
    )
    arguments.setdefault("runs", RUNS)
    return repr(dataclasses.replace(audit(**arguments, executor=executor), seconds=0.0))


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as local,
        distributed.Client(local) as client,
        client.get_executor() as pool,
    ):
        yield pool


class Backwards(Executor):
    """Does the last of eight pieces first."""

    def __init__(self):
        self.left, self.done = [], 0

    def submit(self, work, *arguments):
        future = _Lazy(self)
        self.left.append((future, work, arguments))
        return future

    def work(self):
        while self.left:
            future, work, arguments = self.left.pop()
            future.set_result(work(*arguments))
            self.done += 1


class _Lazy(Future):
    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    def result(self, timeout=None):
        self.pool.work()
        return super().result(timeout)


@EVERY
def test_threads_and_the_order_of_pieces_change_no_bit(name):
    expected = found(name)
    assert found(name) == expected
    backwards = Backwards()
    assert found(name, backwards) == expected
    assert backwards.done >= 4
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(3) as three:
        assert found(name, one) == expected
        assert found(name, three) == expected


@EVERY
def test_other_processes_change_no_bit(name, processes):
    assert found(name, processes) == found(name)


def test_a_cluster_changes_no_bit(cluster):
    for name in AUDITS:
        assert found(name, cluster) == found(name)


@pytest.mark.parametrize("name", ["declared", "a number", "a loop that raises"])
def test_an_early_stop_is_at_the_same_run(name, processes):
    claim = {"claim": PureLoss(0.8)} if name == "declared" else {}
    arguments = dict(
        zip(("release", "pair", "claim", "runs"), AUDITS[name], strict=False), rng=5, early=True
    )
    arguments = {"runs": 4000, **arguments, **claim}
    here, there = (audit(**arguments, executor=one) for one in (None, processes))
    assert dataclasses.replace(here, seconds=0.0) == dataclasses.replace(there, seconds=0.0)


def test_many_workers_have_work():
    seen = set()
    gate = threading.Barrier(4, timeout=20)  # passed only if four pieces are under way at once

    def slow(value, rng, size):
        seen.add(threading.get_ident())
        if size > 20 and gate.n_waiting < 4 and not passed:
            gate.wait()
            passed.append(1)
        return np.full(size, value)

    passed = []
    with ThreadPoolExecutor(4) as pool:
        collect_both(slow, (0.0, 1.0), 20_000, np.random.default_rng(0), pool)
    assert len(seen) == 4


def sizes(runs, run_by_run=False):
    every = RunPlan(_counted, (0, 1), runs, 1, np.random.PCG64, run_by_run)
    return [
        [len(a) + len(b) for a, b in every.draw_piece(place)] for place in range(every.piece_count)
    ]


def _counted(value, rng, size):
    return np.full(size, value)


@pytest.mark.parametrize("runs", [1, 10, 1023, 1025, 33_000, 32 * CHUNK, 32 * MAX_PIECE_RUNS + 1])
def test_pieces_are_all_runs_once(runs):
    found = sizes(runs)
    assert sum(map(sum, found)) == runs
    assert max(map(max, found)) <= CHUNK
    assert len({sum(one) for one in found[:-1]}) <= 1


@pytest.mark.parametrize("runs", [1, 15, 33, 200, 800, 20_000, 32 * MAX_PIECE_RUNS + 1])
def test_a_function_called_once_a_run_has_small_pieces(runs):
    found = sizes(runs, run_by_run=True)
    assert sum(map(sum, found)) == runs
    assert max(map(max, found)) <= CHUNK
    assert min(runs // 16, 28) <= len(found) + 3
    if runs in {200, 800}:  # a quarter of the runs for each of four workers, up to two pieces
        assert -(-len(found) // 4) * sum(found[0]) <= runs / 4 + 8
    assert all(sum(one) >= min(16, runs) for one in found[:-1])


def test_four_workers_share_a_thousand_slow_runs():
    """Four workers have calls at the same time, however the release is wrapped."""
    workers, gate = set(), threading.Barrier(4, timeout=20)
    main = threading.current_thread()  # it makes calls of its own, to see what comes out

    def slow(value, rng):
        me = threading.current_thread()
        if me is not main and me not in workers:
            workers.add(me)
            gate.wait()  # passed only if four pieces are under way at once
        return value + rng.laplace()

    with ThreadPoolExecutor(4) as pool:
        audit(slow, (0.0, 1.0), ONE, runs=1000, rng=1, executor=pool)
    assert not gate.broken
    assert len(workers) == 4


def test_pieces_depend_on_the_signature_alone():
    """Not on what was measured: a function that sleeps has the pieces of one that does not."""
    read = ReadDraw(vectorised(looped))
    assert calls_once_a_run(read)
    assert calls_once_a_run(ScoredDraw(read, np.ones(1)))
    assert not calls_once_a_run(ReadDraw(vectorised(number)))
    assert not calls_once_a_run(Laplace(1.0).release)


def test_pieces_have_generators_of_their_own():
    drawn = collect_both(number, (0.0, 0.0), 20_000, np.random.default_rng(0))
    assert np.unique(np.concatenate(drawn)).size == 20_000


def test_a_function_that_returns_outputs_late_is_no_function_that_always_raises():
    sizes = []

    def late(value, rng, size):
        sizes.append(size)
        outcome = RaisedOutcome("KeyError") if sum(sizes) < 10_000 else "an output"
        outputs = np.empty(size, dtype=object)
        outputs[:] = [outcome] * size
        return outputs

    first, second = collect_both(late, (0.0, 1.0), 20_000, np.random.default_rng(0))
    assert "an output" in first
    assert "an output" in second


def test_any_bit_generator_is_kept():
    """Whoever audits with a generator of a kind gets pieces of that kind."""
    kinds = []

    def seen(value, rng, size):
        kinds.append(type(rng.bit_generator))
        return rng.random(size)

    for bits in (np.random.Philox, np.random.SFC64, np.random.MT19937):
        kinds.clear()
        list(map_pieces(lambda a, b: None, seen, (0, 1), 10, np.random.Generator(bits(1))))
        assert set(kinds) == {bits}


def test_a_closure_goes_to_threads_and_is_refused_by_processes(processes):
    scale = 1.0

    def inner(value, rng, size):
        return value + scale * rng.laplace(size=size)

    with pytest.raises(ParameterError, match=r"release must be what pickle takes.*threads run"):
        audit(inner, (0.0, 1.0), ONE, executor=processes)
    hidden = functools.partial(inner_of("Alice, 42"), scale=1.0)
    with pytest.raises(ParameterError, match="must be what pickle takes") as refused:
        audit(hidden, (0.0, 1.0), ONE, executor=processes)
    assert "Alice" not in str(refused.value)
    assert "partly_bound" in str(refused.value)
    with ThreadPoolExecutor(2) as pool:
        assert audit(inner, (0.0, 1.0), ONE, rng=1, executor=pool).runs == 200_000


@pytest.mark.parametrize("kind", ["here", "threads", "processes"])
def test_a_release_that_raises_is_named(kind, processes):
    with ThreadPoolExecutor(2) as threads:
        pool = {"here": None, "threads": threads, "processes": processes}[kind]
        with pytest.raises(
            ParameterError, match=r"release must be a .*RuntimeError at test_parallel"
        ):
            audit(raising, (0.0, 1.0), ONE, executor=pool)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_piece_raises_in_a_thread_is_raised(workers):
    """A piece that is lost would be runs that were never made."""
    done = []

    def work(first, second):
        done.append(first.size + second.size)
        if len(done) == 3:
            raise ZeroDivisionError
        return first.size

    rng = np.random.default_rng(1)
    with ThreadPoolExecutor(workers) as pool, pytest.raises(ZeroDivisionError):
        list(map_pieces(work, number, (0, 1), RUNS, rng, pool))
    assert len(done) >= 3


def test_a_worker_that_dies_is_named():
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        pytest.raises(ParameterError, match=r"executor must be .*BrokenProcessPool"),
    ):
        audit(dying, (0.0, 1.0), ONE, executor=pool)


@pytest.mark.parametrize("pool", [3, "threads", ThreadPoolExecutor])
def test_what_is_no_executor_is_refused(pool):
    with pytest.raises(ParameterError, match=r"executor must be a concurrent"):
        audit(Laplace(1.0), executor=pool)
