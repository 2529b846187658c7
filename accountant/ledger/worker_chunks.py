"""Users' data in pieces that lie on the workers of an executor, and stay there.

A private query over blocks of users is sent to the workers that hold their rows.  `WorkerChunks`
says which piece holds which users, `Cut` which rows of a piece are meant, and a `RowReader` goes
with each task to a worker, where it makes the checked array of a block out of pieces and cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.ledger.chunks import concatenate_rows
from accountant.ledger.private_data import (
    CHUNK_READERS,
    Users,
    checked_data,
    first_array,
    take_rows,
)


class Cut(NamedTuple):
    """Rows of a piece: numbers ``start`` to ``stop - 1`` of the ``length`` that it must have."""

    start: int
    stop: int
    length: int

    def taken(self, piece: Any) -> Any:
        """Return these rows of the piece."""
        for part in piece if isinstance(piece, tuple) else (piece,):
            length = first_array(part).shape[0]
            if length != self.length:
                raise ParameterError("piece", f"{length} users", f"the {self.length} of its length")
        return take_rows(piece, slice(self.start, self.stop))

    @property
    def whole(self) -> Cut:
        """Return the cut that takes all rows of what `taken` returns."""
        return Cut(0, self.users, self.users)

    @property
    def users(self) -> int:
        """Return the number of rows, each of which is a user's."""
        return self.stop - self.start


@final
class WorkerChunks:
    """Users in pieces that workers hold; rows are read there, and come here only by indexing.

    A worker checks the rows of a block when it reads them, after its users were charged.  Rows move
    between workers only if a block lies in several pieces: they then go to one of their workers.

    Parameters
    ----------
    pieces : sequence
        Futures of a Dask client, such as those of ``client.map(load, files)``: a piece whose worker
        dies is made again.  With other executors, functions without arguments that give a piece,
        called whenever it is read.  A piece is an array, or a tuple of arrays, with one row a user.
    lengths : sequence of int
        Number of users in each piece.
    shape : tuple of int
        Shape of all users' first array.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import WorkerChunks
    >>> pieces = [lambda: np.zeros((3, 2)), lambda: np.ones((2, 2))]
    >>> data = WorkerChunks(pieces, lengths=[3, 2], shape=(5, 2))
    >>> data[2:4].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(
        self, pieces: Sequence[Any], lengths: Sequence[int], shape: tuple[int, ...]
    ) -> None:
        if not isinstance(shape, tuple) or not shape:
            raise ParameterError("shape", shape, "(users, features)")
        self.shape = tuple(IntegerRange(1).check("shape", size) for size in shape)
        self.pieces = list(pieces)
        self._lengths = [IntegerRange(1).check("lengths", length) for length in lengths]
        if len(self.pieces) != len(self._lengths):
            allowed = f"one for each of the {len(self.pieces)} pieces"
            raise ParameterError("lengths", f"{len(self._lengths)} numbers", allowed)
        self._ends = np.cumsum(self._lengths)
        if sum(self._lengths) != self.shape[0]:
            allowed = f"numbers whose sum is the {self.shape[0]} users of the shape"
            raise ParameterError("lengths", f"{sum(self._lengths)} users", allowed)
        self._functions: tuple[Callable[[Any], Any], ...] = ()

    def __repr__(self) -> str:
        return f"WorkerChunks(shape={self.shape})"

    def mapped(self, function: Callable[[Any], Any], shape: tuple[int, ...]) -> WorkerChunks:
        """Return the same users with other rows, which a function makes of theirs on the workers.

        Parameters
        ----------
        function : callable
            Keeps one row a user; workers call it.
        shape : tuple of int
            Shape of all users' first array afterwards.

        Returns
        -------
        WorkerChunks
            Over the same pieces.
        """
        mapped_chunks = WorkerChunks(self.pieces, self._lengths, shape)
        mapped_chunks._functions = (*self._functions, function)
        return mapped_chunks

    def __getitem__(self, who: Users) -> Any:
        """Return the rows of a slice of users, at least one; they are brought here."""
        if not isinstance(who, slice):
            raise ParameterError("who", type(who), "a slice: the data lie on workers, in order")
        start, stop, step = who.indices(self.shape[0])
        if start >= stop or step < 0:
            raise ParameterError("who", who, "a slice of one user or more, in rising order")
        pieces, cuts = self.cut_out(self.located(start, stop))
        loaded_pieces = [piece.result() if is_future(piece) else loaded(piece) for piece in pieces]
        return take_rows(self.reader.rows(loaded_pieces, cuts), slice(None, None, step))

    @property
    def reader(self) -> RowReader:
        """Return what a worker needs to read rows."""
        return RowReader(self.shape[1:], self._functions)

    def located(self, start: int, stop: int) -> list[tuple[int, Cut]]:
        """Return the pieces that hold some users, and where their rows are.

        Parameters
        ----------
        start, stop : int
            The first of the users, and the one after the last.

        Returns
        -------
        list of tuple
            The number of a piece, and the rows of these users in it.
        """
        first_piece = int(np.searchsorted(self._ends, start, side="right"))
        last_piece = max(first_piece, int(np.searchsorted(self._ends, stop, side="left")))
        cuts = []
        for number in range(first_piece, last_piece + 1):
            length = self._lengths[number]
            first_user = int(self._ends[number]) - length
            cut = Cut(max(start - first_user, 0), min(stop - first_user, length), length)
            cuts.append((number, cut))
        return cuts

    def cut_out(self, located: list[tuple[int, Cut]]) -> tuple[list[Any], list[Cut]]:
        """Return pieces with some rows, and the cut of each piece.

        A worker cuts the piece that it holds, so that only these rows can be sent to another
        worker; a future of them is then in place of the piece, and its cut takes all its rows.

        Parameters
        ----------
        located : list of tuple
            What `located` returned.

        Returns
        -------
        tuple of list
            The pieces, and the rows that are meant in each.
        """
        pieces, cuts = [], []
        for number, cut in located:
            piece = self.pieces[number]
            on_worker = is_future(piece)
            pieces.append(piece.client.submit(cut.taken, piece) if on_worker else piece)
            cuts.append(cut.whole if on_worker else cut)
        return pieces, cuts


CHUNK_READERS.add(WorkerChunks)


class RowReader(NamedTuple):
    """What a worker needs to read the rows of a block: their checks, and functions of them.

    ``width`` is the shape of a row of the first array after all ``functions``.
    """

    width: tuple[int, ...]
    functions: tuple[Callable[[Any], Any], ...]

    def rows(self, pieces: Sequence[Any], cuts: Sequence[Cut]) -> Any:
        """Return the checked rows of a block, immutable: one for each user of the cuts."""
        # There may be more pieces than cuts: one task may read several blocks, of which only the
        # last has rows in all pieces.
        rows = concatenate_rows(
            [cut.taken(piece) for piece, cut in zip(pieces, cuts, strict=False)]
        )
        for function in self.functions:
            rows = function(rows)
        shape = first_array(rows).shape
        if shape != (sum(cut.users for cut in cuts), *self.width):
            raise ParameterError(
                "piece", f"of shape {shape}", f"one a user, rows as in {self.width}"
            )
        return checked_data("piece", rows)


def is_future(piece: Any) -> bool:
    """Return whether a piece is the future of a client, which an executor turns into data."""
    return hasattr(piece, "client")


def loaded(piece: Any) -> Any:
    """Return the data of a piece, or of a function that gives them."""
    return piece() if callable(piece) else piece
