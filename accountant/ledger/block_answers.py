"""Answers of local mechanisms for blocks of users, made by the workers of an executor.

A local mechanism lets each user randomise the own value.  A block is some neighbouring users; the
worker that holds their rows draws their outputs, and sends them back, or only their digest and what
a function makes of them (a reduction, such as their sum).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from accountant.errors import ParameterError, PrivateValueError
from accountant.ledger.interfaces import Releasable, ShapedQuery
from accountant.ledger.ordered_map import results_in_order
from accountant.ledger.private_data import Users
from accountant.ledger.worker_chunks import Cut, RowReader, WorkerChunks, loaded
from accountant.randomness import generator, keyed_generator

Reduction = Callable[[Any], Any]
# A task, which one worker does at once, has at most this many blocks.  They all begin in one piece
# of the data.
BLOCKS_PER_TASK = 64
# Number of tasks that are sent before the first result is read.  Neighbouring pieces often lie on
# one worker, so it must be large for the other workers to get some too.
TASKS_AHEAD = 256
LOST = (
    "pieces of the data are lost with their workers, after their users were charged; make pieces "
    "from a source, as client.map(load, files) does: then they are made again"
)


class Noise(NamedTuple):
    """What the noise of one block is drawn from: seed words, or a cipher's key, or fresh entropy.

    With neither a seed nor a key, a second run draws other noise.  An executor may run a block
    again when a worker died, or may take two equal blocks for one: it gets blocks with a seed or a
    key alone.
    """

    seed: list[int] | None
    key: int | None

    def generator(self) -> np.random.Generator:
        """Return the generator of the noise."""
        if self.seed is not None:
            return np.random.default_rng(self.seed)
        return generator(None) if self.key is None else keyed_generator(self.key)


class UserBlock(NamedTuple):
    """The data that a worker needs to let the users of one block randomise their values."""

    mechanism: Releasable
    query: ShapedQuery  # makes one value of each user's row
    rows: Any  # of the users of the block
    users: int  # how many they are
    noise: Noise

    def answer(self) -> Any:
        """Return one output for each user."""
        value = self.query.value(self.rows, self.users)
        return self.mechanism.release(value, self.noise.generator())


class Answer(NamedTuple):
    """What a worker sends back for a block: its outputs, or their digest and a reduction."""

    outputs: Any  # one for each user; None where they are reduced
    digest: str = ""  # of the outputs, where they are reduced
    reduced: Any = None  # what the caller's function made of the outputs


class HeldBlock(NamedTuple):
    """The places of a block's rows in the pieces of a task, and its noise."""

    cuts: list[Cut]  # one for each of the task's pieces that it has rows of, from the first on
    noise: Noise


class HeldBlocks(NamedTuple):
    """Blocks of users whose rows a worker holds; an `Answer` comes back for each, never rows."""

    mechanism: Releasable
    query: ShapedQuery
    reader: RowReader  # makes the rows of a block out of pieces
    blocks: list[HeldBlock]
    # What comes back of a block: its result on the outputs, with their digest; or if it is None the
    # outputs themselves.
    reduce: Reduction | None

    def answers(self, *pieces: Any) -> list[Answer]:
        """Return the answers of the blocks, whose rows lie in these pieces."""
        here, answers = [loaded(piece) for piece in pieces], []
        for block in self.blocks:
            rows = self.reader.rows(here, block.cuts)
            users = sum(cut.stop - cut.start for cut in block.cuts)
            outputs = UserBlock(self.mechanism, self.query, rows, users, block.noise).answer()
            answers.append(
                Answer(outputs)
                if self.reduce is None
                else Answer(None, digest(outputs), self.reduce(outputs))
            )
        return answers


def answers_of_held_blocks(
    data: WorkerChunks,
    like: HeldBlocks,
    blocks: Iterable[tuple[Users, Noise]],
    executor: Executor | None,
) -> Iterator[Answer]:
    """Yield the answers of blocks of users in order; ``like`` has the mechanism and the query."""
    if executor is None:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from answers_of_held_blocks(data, like, blocks, threads)
        return
    sent = (
        executor.submit(like._replace(blocks=task_blocks).answers, *pieces)
        for pieces, task_blocks in _tasks(data, blocks)
    )
    try:
        for answers in results_in_order(sent, TASKS_AHEAD):
            yield from answers
    except CancelledError:
        raise RuntimeError(LOST) from None


def _tasks(
    data: WorkerChunks, blocks: Iterable[tuple[Users, Noise]]
) -> Iterator[tuple[list[Any], list[HeldBlock]]]:
    """Yield pieces and the blocks that begin in the first of them, which are sent together.

    The last block may end in other pieces, from which its rows alone are sent.
    """
    together: list[HeldBlock] = []
    first_piece = -1
    for who, noise in blocks:
        if not isinstance(who, slice) or who.step != 1:  # the gate gives every slice its step
            allowed = "a slice of neighbouring users: the data lie on workers, in order"
            raise ParameterError("blocks", type(who), allowed)
        located = data.located(who.start, who.stop)
        (at, own_cut), others = located[0], located[1:]
        if together and (at != first_piece or len(together) == BLOCKS_PER_TASK):
            yield [data.pieces[first_piece]], together
            together = []
        first_piece = at
        pieces, cuts = data.cut_out(others)
        together.append(HeldBlock([own_cut, *cuts], noise))
        if others:
            yield [data.pieces[first_piece], *pieces], together
            together = []
    if together:
        yield [data.pieces[first_piece]], together


def refuse_impossible_outputs(mechanism: Any, outputs: Any, users: int) -> None:
    """Refuse what the workers of an executor cannot have drawn from the mechanism."""
    fault = f"an array with an output for each of {users} users"
    if type(outputs) is np.ndarray and outputs.shape[:1] == (users,):
        # A mechanism of an undeclared class may not say what it can release; then its author is
        # trusted.
        check = getattr(mechanism, "outputs_fault", None)
        fault = "" if check is None else check(outputs, users)
    if fault:
        raise PrivateValueError("the executor's result", f"a release of {mechanism!r}: {fault}")


def digest(output: Any) -> str:
    """Return the SHA-256 of an answer's type, shape and bytes."""
    array = np.ascontiguousarray(output)
    hasher = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    hasher.update(array.reshape(-1).view(np.uint8).data)  # a view, without a copy
    return hasher.hexdigest()
