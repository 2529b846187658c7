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
    again when a worker died, or may take two equal blocks for one.  So all blocks that an executor
    gets have a seed or a key.
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

    cuts: list[Cut]  # of the task's first piece, and of the next ones that the block goes on in
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
        loaded_pieces, answers = [loaded(piece) for piece in pieces], []
        for block in self.blocks:
            rows = self.reader.rows(loaded_pieces, block.cuts)
            users = sum(cut.users for cut in block.cuts)
            outputs = UserBlock(self.mechanism, self.query, rows, users, block.noise).answer()
            answers.append(
                Answer(outputs)
                if self.reduce is None
                else Answer(None, digest(outputs), self.reduce(outputs))
            )
        return answers


def answers_of_held_blocks(
    data: WorkerChunks,
    task: HeldBlocks,
    blocks: Iterable[tuple[Users, Noise]],
    executor: Executor | None,
) -> Iterator[Answer]:
    """Yield the answers of blocks of users in order.

    ``task`` is a task without blocks; it has all else that the tasks of these blocks share.
    """
    if executor is None:
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from answers_of_held_blocks(data, task, blocks, threads)
        return
    sent = (
        executor.submit(task._replace(blocks=task_blocks).answers, *pieces)
        for pieces, task_blocks in _tasks(data, blocks)
    )
    try:
        for answers in results_in_order(sent, TASKS_AHEAD):
            yield from answers
    except CancelledError:  # an executor cancels what it cannot run, for want of the pieces
        raise RuntimeError(LOST) from None


def _tasks(
    data: WorkerChunks, blocks: Iterable[tuple[Users, Noise]]
) -> Iterator[tuple[list[Any], list[HeldBlock]]]:
    """Yield pieces and the blocks that begin in the first of them, which are sent together.

    The last block may end in other pieces, from which its rows alone are sent.
    """
    task_blocks: list[HeldBlock] = []
    task_piece = -1
    for users, noise in blocks:
        if not isinstance(users, slice) or users.step != 1:  # the gate gives every slice its step
            allowed = "a slice of neighbouring users: the data lie on workers, in order"
            raise ParameterError("blocks", type(users), allowed)
        (first_piece, first_cut), *further = data.located(users.start, users.stop)
        if task_blocks and (first_piece != task_piece or len(task_blocks) == BLOCKS_PER_TASK):
            yield [data.pieces[task_piece]], task_blocks
            task_blocks = []
        task_piece = first_piece
        further_pieces, further_cuts = data.cut_out(further)
        task_blocks.append(HeldBlock([first_cut, *further_cuts], noise))
        if further:
            yield [data.pieces[task_piece], *further_pieces], task_blocks
            task_blocks = []
    if task_blocks:
        yield [data.pieces[task_piece]], task_blocks


def refuse_impossible_outputs(mechanism: Any, outputs: Any, users: int) -> None:
    """Refuse what the workers of an executor cannot have drawn from the mechanism."""
    requirement = f"an array with an output for each of {users} users"
    if type(outputs) is np.ndarray and outputs.shape[:1] == (users,):
        # A mechanism of an undeclared class may not say what it can release; then its author is
        # trusted.  The text is empty where the outputs are possible.
        check = getattr(mechanism, "outputs_fault", None)
        requirement = "" if check is None else check(outputs, users)
    if requirement:
        raise PrivateValueError(
            "the executor's result", f"a release of {mechanism!r}: {requirement}"
        )


def digest(output: Any) -> str:
    """Return the SHA-256 of an answer's type, shape and bytes; a number counts as a vector."""
    array = np.ascontiguousarray(output)
    hasher = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    hasher.update(array.reshape(-1).view(np.uint8).data)  # a view, without a copy
    return hasher.hexdigest()
