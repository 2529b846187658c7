"""The runs of one audit in pieces, over any executor: the same seed gives the same bits.

Each piece has a generator of its own, seeded by a common root and the piece's place, so it is the
same piece in any thread, process or order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.ledger.ordered_map import map_in_order
from audits.runs.release_functions import (
    CHUNK,
    Draw,
    RaisedOutcome,
    calls_once_a_run,
    concatenate_outputs,
    release_name,
    underlying_release,
)

PIECES_PER_TEST = 32  # pieces of a test, so that slow functions keep many workers busy
# Least and most runs of a piece.  The generator of a piece costs as much as 500 draws of a function
# that takes a size, so smaller pieces would mostly make generators.
MIN_PIECE_RUNS, MAX_PIECE_RUNS = 1 << 10, 8 * CHUNK
MIN_PIECE_CALLS = 16  # least runs of a piece of a function that makes one run per call
# The number of pieces of such a function is a multiple of this, if it is larger, so that two or
# four workers end together.
WORKERS = 4
MAX_TASKS = 64  # largest number of groups in which pieces are sent to workers
OutputPair = tuple[NDArray[Any], NDArray[Any]]  # outputs of the first and of the second value
Result = TypeVar("Result")


@final
@dataclass(frozen=True, slots=True)
class RunPlan:
    """``runs`` runs of a release on a pair; ``root`` and the bit generator seed every piece.

    ``run_by_run`` says that the release is called once a run.  The pieces depend on no measured
    time, so they are the same on any machine.
    """

    draw: Draw
    pair: tuple[Any, Any]
    runs: int
    root: int
    bit_generator: type[np.random.BitGenerator]
    run_by_run: bool = False

    @property
    def piece_size(self) -> int:
        """The number of runs of every piece but the last."""
        if self.run_by_run:
            count = min(max(self.runs // MIN_PIECE_CALLS, 1), PIECES_PER_TEST)
            count -= count % WORKERS if count > WORKERS else 0
            runs_per_piece = -(-self.runs // count)  # rounded up
            return min(max(runs_per_piece, 1), MAX_PIECE_RUNS)
        return min(max(self.runs // PIECES_PER_TEST, MIN_PIECE_RUNS), MAX_PIECE_RUNS)

    @property
    def piece_count(self) -> int:
        """The number of pieces."""
        return -(-self.runs // self.piece_size)

    def draw_piece(self, place: int) -> Iterator[OutputPair]:
        """Yield outputs of both values in one piece, a fair coin per run, in chunks."""
        piece_runs = min(self.piece_size, self.runs - place * self.piece_size)
        seed: Any = np.random.SeedSequence(self.root, spawn_key=(place,))
        rng = np.random.Generator(self.bit_generator(seed))
        for done in range(0, piece_runs, CHUNK):
            size = min(CHUNK, piece_runs - done)
            # Bin(size, 1/2) runs of the first value are as good as a coin for each run, since the
            # order of the runs does not matter.
            ones = int(rng.binomial(size, 0.5))
            yield self.draw(self.pair[0], rng, ones), self.draw(self.pair[1], rng, size - ones)


@final
@dataclass(frozen=True, slots=True)
class _Task(Generic[Result]):
    """The work of one task: some pieces of a run plan."""

    work: Callable[[NDArray[Any], NDArray[Any]], Result]
    runs: RunPlan

    def __call__(self, places: range) -> list[Result]:
        return [self.work(*outputs) for piece in places for outputs in self.runs.draw_piece(piece)]


def map_pieces(
    work: Callable[[NDArray[Any], NDArray[Any]], Result],
    draw: Draw,
    pair: tuple[Any, Any],
    runs: int,
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> Iterator[Result]:
    """Yield ``work(outputs of the first value, outputs of the second)``, chunk by chunk.

    Without an executor it runs in this thread.  Only the root of the pieces is drawn from ``rng``.
    """
    root = int.from_bytes(rng.bytes(16), "little")
    run_plan = RunPlan(draw, pair, runs, root, type(rng.bit_generator), calls_once_a_run(draw))
    task, count = _Task(work, run_plan), run_plan.piece_count
    if executor is None:
        yield from (
            work(*outputs) for piece in range(count) for outputs in run_plan.draw_piece(piece)
        )
        return
    if not isinstance(executor, Executor):
        raise ParameterError("executor", executor, "a concurrent.futures.Executor, or None")
    _check_picklable(task, executor)
    group_size = -(-count // MAX_TASKS)
    groups = [range(start, min(start + group_size, count)) for start in range(0, count, group_size)]
    try:
        for results in map_in_order(task, groups, executor):
            yield from results
    except ParameterError:
        raise
    except Exception as error:
        if isinstance(executor, ThreadPoolExecutor):
            raise
        shown = f"a {type(executor).__name__}: {type(error).__name__}: {error}"
        allowed = "one whose workers can be sent the release, its outputs and its values"
        raise ParameterError("executor", shown, allowed) from error


def draw_both(
    draw: Draw,
    pair: tuple[Any, Any],
    runs: int,
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> Iterator[OutputPair]:
    """Yield outputs of the first and of the second value, a fair coin per run, in chunks."""
    return map_pieces(_as_pair, draw, pair, runs, rng, executor)


def collect_both(
    draw: Draw,
    pair: tuple[Any, Any],
    runs: int,
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> OutputPair:
    """All outputs of the first and of the second value, to learn a rule from."""
    drawn = list(draw_both(draw, pair, runs, rng, executor))
    first_outputs = concatenate_outputs([first for first, _ in drawn])
    second_outputs = concatenate_outputs([second for _, second in drawn])
    outcomes = []
    if first_outputs.dtype == object:
        outcomes = [*first_outputs.ravel(), *second_outputs.ravel()]
    # Exceptions that differ are outcomes like others; one that is always the same tells nothing.
    if outcomes and isinstance(outcomes[0], RaisedOutcome) and len(set(map(repr, outcomes))) == 1:
        shown = f"{outcomes[0].kind} in every run, {outcomes[0].place}".removesuffix(", ")
        raise ParameterError("release", shown, "a function that returns outputs")
    return first_outputs, second_outputs


def _as_pair(first: NDArray[Any], second: NDArray[Any]) -> OutputPair:
    return first, second


def _check_picklable(task: _Task[Any], executor: Executor) -> None:
    """Raise `ParameterError` before any run if a process pool cannot pickle the task."""
    from concurrent.futures import ProcessPoolExecutor

    if not isinstance(executor, ProcessPoolExecutor):  # a cluster pickles tasks in its own way
        return
    try:
        pickle.dumps(task)
    except Exception as error:  # a value's own pickling may raise any error
        shown = f"{release_name(underlying_release(task.runs.draw))} ({type(error).__name__})"
        allowed = "what pickle takes, as a function at the top level of a module is, to be run in "
        raise ParameterError(
            "release", shown, f"{allowed}other processes (threads run anything)"
        ) from error
