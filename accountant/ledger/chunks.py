"""Users' data in pieces that are read one after another, so that few of them are in memory.

The pieces are rows of users in order.  Reading goes forward; a request for earlier users, or for
users by their indices, starts again from the first piece, which needs a function that gives the
pieces anew.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import numpy as np

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.ledger.immutable_arrays import fresh_view
from accountant.ledger.private_data import (
    CHUNK_READERS,
    Users,
    checked_data,
    first_array,
    take_rows,
)

# Users of so many bytes at most, by the shape of their first array, are read once into memory by a
# fit that reads them more than once.
HELD_BYTES = 1 << 28
# A function of pieces gets so many numbers of an array at a time, which stay in a core's cache.
PART_ENTRIES = 1 << 17
# A reading asks for so many bytes once, and gives them back untouched.  The allocator of glibc then
# keeps up to twice as many for later, where it would return every block to the system, and get new
# memory page by page for the next one.
KEPT_BYTES = 31 << 20


@final
class Chunks:
    """Users in pieces of any length: data too large for memory.

    Every piece is checked when it is read, which is after its users were charged.  ``restarts``
    says whether the pieces can be read more than once.

    Parameters
    ----------
    pieces : iterable or callable
        Arrays, or tuples of arrays, with one row a user; or a function that starts an iterable
        anew wherever the data are read more than once, the same every time.
    shape : tuple of int
        Shape of all users' first array, known in advance.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import Chunks
    >>> parts = [np.zeros((3, 2)), np.ones((2, 2))]
    >>> Chunks(lambda: iter(parts), shape=(5, 2)).shape
    (5, 2)
    """

    def __init__(
        self, pieces: Iterable[Any] | Callable[[], Iterable[Any]], shape: tuple[int, ...]
    ) -> None:
        if not callable(pieces) and not isinstance(pieces, Iterable):
            raise ParameterError(
                "pieces", type(pieces), "an iterable, or a function that gives one"
            )
        if not isinstance(shape, tuple) or not shape:
            raise ParameterError("shape", shape, "(users, features)")
        self.shape = tuple(IntegerRange(1).check("shape", size) for size in shape)
        self._pieces = pieces
        self.restarts = callable(pieces)
        self._was_started = False
        # An iterator over checked pieces; None before the reading starts.
        self._reader: Iterator[Any] | None = None
        # The number of users that were returned or skipped, and the rows of the piece that the
        # reader returned last which belong to later users; None if there are none.
        self._position = 0
        self._unread_rows: Any = None
        # An empty selection of rows, to return where no user is asked for: it shows their type.
        self._no_rows: Any = None
        # Whether queries of all users take arrays too: few users are then read once, and held.
        self.takes_arrays = False
        self._held_rows: Any = None

    def __repr__(self) -> str:
        return f"Chunks(shape={self.shape})"

    @property
    def sparse(self) -> bool:
        """Return whether the first array is a sparse matrix, as the first piece shows."""
        if self._no_rows is None:
            self._unread_rows = self._next()
        return hasattr(first_array(self._no_rows), "tocsr")

    def fresh(self) -> Any:
        """Return what a query reads.

        Returns
        -------
        numpy.ndarray, scipy.sparse.spmatrix, tuple or Chunks
            Arrays of few users, which are read once; else these chunks.
        """
        size = math.prod(self.shape) * np.dtype(float).itemsize
        if not self.takes_arrays or not self.restarts or size > HELD_BYTES:
            return self
        if self._held_rows is None:
            self._held_rows = checked_data("pieces", self[0 : self.shape[0]])
            self._reader, self._unread_rows = None, None
        return fresh_view(self._held_rows)

    def mapped(self, function: Callable[[Any], Any], shape: tuple[int, ...]) -> Chunks:
        """Return the users with a function of every piece in place of the piece.

        Parameters
        ----------
        function : callable
            Keeps one row a user.
        shape : tuple of int
            Shape of all users' first array afterwards.

        Returns
        -------
        Chunks
            Read when asked.
        """

        def mapped_piece(piece: Any) -> Any:
            rows = function(piece)
            counts = [first_array(part).shape[0] for part in (rows, piece)]
            if counts[0] != counts[1]:
                raise ParameterError("function", f"{counts[0]} rows of {counts[1]}", "one a user")
            return rows

        mapped_chunks = Chunks(lambda: map(mapped_piece, parts_of(self._start_reading())), shape)
        # it was made from a function, so it would else seem to be readable more than once
        mapped_chunks.restarts = self.restarts
        mapped_chunks.takes_arrays = self.takes_arrays
        return mapped_chunks

    def beside(self, column: Any) -> Chunks:
        """Return the users with an array in memory as the last one of every piece.

        Parameters
        ----------
        column : numpy.ndarray of shape (users,)
            One number a user, in order.

        Returns
        -------
        Chunks
            Pieces that are tuples; read when asked.
        """

        def pieces() -> Iterator[Any]:
            start = 0
            for piece in self._start_reading():
                rows = piece if isinstance(piece, tuple) else (piece,)
                stop = start + first_array(piece).shape[0]
                beyond = max(0, stop - max(start, len(column)))  # users that are never read
                yield *rows, np.append(column[start:stop], np.zeros(beyond))
                start = stop

        chunks = Chunks(pieces, self.shape)
        chunks.restarts, chunks.takes_arrays = self.restarts, self.takes_arrays
        return chunks

    def __getitem__(self, who: Users) -> Any:
        """Return the rows of a slice of users, or of an array of their indices.

        A slice goes on from the last one, or restarts the reading if it begins before that one's
        end.  An array starts a reading of its own.
        """
        if isinstance(who, np.ndarray):
            rows = self.fresh()
            return self._rows_at(who) if rows is self else take_rows(rows, who)
        start, stop, step = who.indices(self.shape[0])
        if step < 0:
            raise ParameterError("who", who, "a slice in rising order: the pieces are read forward")
        if start < self._position:
            self._reader, self._position, self._unread_rows = None, 0, None
        self._read_to(start)
        taken = self._read_to(stop)
        # after the last user of the shape, one more piece is read to see whether the shape is wrong
        has_more_rows = stop == self.shape[0] and (
            self._unread_rows is not None or next(self._reader or iter(()), None) is not None
        )
        if has_more_rows:
            warnings.warn(f"{self!r}: the pieces hold more users; they were not read", stacklevel=2)
        return take_rows(taken, slice(None, None, step))

    def _rows_at(self, who: np.ndarray[Any, Any]) -> Any:
        """Return the rows of the users with these indices, collected piece by piece."""
        order = np.argsort(who, kind="stable")
        rising, row_parts, start, taken = who[order], [], 0, 0
        for piece in self._checked(self._start_reading()):
            stop = start + first_array(piece).shape[0]
            low, high = np.searchsorted(rising, (start, stop))
            row_parts.append(take_rows(piece, rising[low:high] - start))
            start, taken = stop, int(high)
        if taken < who.size:
            raise ParameterError("pieces", f"{start} users", f"the {self.shape[0]} of the shape")
        inverse_order = np.empty_like(order)
        inverse_order[order] = np.arange(order.size)
        return take_rows(checked_rows(concatenate_rows(row_parts)), inverse_order)

    def _start_reading(self) -> Iterator[Any]:
        """Return an iterator from the first piece on; refuse to if it cannot be had again."""
        np.empty(KEPT_BYTES, np.uint8)
        if callable(self._pieces):
            return iter(self._pieces())
        if self._was_started:
            allowed = "a function that starts anew: these data are read more than once"
            raise ParameterError("pieces", type(self._pieces), allowed)
        self._was_started = True
        return iter(self._pieces)

    def _read_to(self, end: int) -> Any:
        """Return the rows from the reader's position up to user ``end``."""
        row_parts = []
        while self._position < end:
            if self._unread_rows is None:
                self._unread_rows = self._next()
            length = min(first_array(self._unread_rows).shape[0], end - self._position)
            row_parts.append(take_rows(self._unread_rows, slice(length)))
            unread_rows = take_rows(self._unread_rows, slice(length, None))
            self._unread_rows = unread_rows if first_array(unread_rows).shape[0] else None
            self._position += length
        # If no user is asked for, one piece is read to know the type of the rows; `_checked` sets
        # ``_no_rows`` when it is read.
        if not row_parts and self._no_rows is None:
            self._unread_rows = self._next()
        # Rows are checked here, a block at a time, because these are still in a core's cache.
        return checked_rows(concatenate_rows(row_parts)) if row_parts else self._no_rows

    def _next(self) -> Any:
        """Return the next checked piece; refuse data that end before the last user."""
        if self._reader is None:
            self._reader = self._checked(self._start_reading())
        for piece in self._reader:
            return piece
        raise ParameterError(
            "pieces", f"{self._position} users", f"the {self.shape[0]} of the shape"
        )

    def _checked(self, pieces: Iterator[Any]) -> Iterator[Any]:
        """Yield all pieces that are not empty, of the right shape; arrays are checked when cut."""
        for piece in pieces:
            array = first_array(piece)
            if array.shape[1:] != self.shape[1:]:
                raise ParameterError("piece", f"of shape {array.shape}", f"rows as in {self.shape}")
            if array.shape[0]:
                rows = piece if are_arrays(piece) else checked_data("piece", piece)
                self._no_rows = take_rows(rows, slice(0))
                yield rows


CHUNK_READERS.add(Chunks)  # `checked_data` then leaves these data to check themselves


def are_arrays(piece: Any) -> bool:
    """Return whether a piece is an array, or a tuple of arrays of as many rows."""
    arrays = piece if isinstance(piece, tuple) else (piece,)
    return all(type(array) is np.ndarray and array.ndim for array in arrays) and (
        len({array.shape[0] for array in arrays}) == 1
    )


def checked_rows(rows: Any) -> Any:
    """Return rows of pieces; arrays are checked here, other rows were when they were read."""
    return checked_data("piece", rows) if are_arrays(rows) and len(first_array(rows)) else rows


def parts_of(pieces: Iterable[Any]) -> Iterator[Any]:
    """Yield the pieces; arrays of many numbers in parts, one after the other."""
    for piece in pieces:
        if not are_arrays(piece):
            yield piece
            continue
        array = first_array(piece)
        length = max(1, PART_ENTRIES * array.shape[0] // max(array.size, 1))
        for start in range(0, max(array.shape[0], 1), length):
            yield take_rows(piece, slice(start, start + length))


def concatenate_rows(pieces: list[Any]) -> Any:
    """Return the pieces concatenated by rows; pieces that are tuples, array by array."""
    if len(pieces) == 1:
        return pieces[0]
    if isinstance(pieces[0], tuple):
        return tuple(concatenate_rows(list(parts)) for parts in zip(*pieces, strict=True))
    if hasattr(pieces[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(pieces, format="csr")
    width, types = pieces[0].shape[1:], {piece.dtype for piece in pieces}
    dtype = types.pop()
    if types or dtype.kind not in "biufc":
        return np.concatenate(pieces)
    # The copy is one of immutable memory, so that a check makes no other.
    rows = sum(len(piece) for piece in pieces)
    return np.ndarray(
        (rows, *width), dtype, b"".join(np.ascontiguousarray(piece).data for piece in pieces)
    )
