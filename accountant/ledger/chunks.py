"""Users' data that are read a piece at a time: only one piece is in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import numpy as np

from accountant.domains import Whole
from accountant.errors import ParameterError
from accountant.ledger.private_data import Users, checked_data, first_array, rows


@final
class Chunks:
    """Users in pieces of any length: arrays, or tuples of arrays with one row a user.

    ``pieces`` is an iterable, or a function that starts one anew wherever the data are read more
    than once: the same every time.  ``shape`` is that of all users' first array, known in advance.
    Every piece is checked when it is read, which is after its users were charged.
    """

    checked_as_read = True

    def __init__(
        self, pieces: Iterable[Any] | Callable[[], Iterable[Any]], shape: tuple[int, ...]
    ) -> None:
        if not callable(pieces) and not isinstance(pieces, Iterable):
            raise ParameterError(
                "pieces", type(pieces), "an iterable, or a function that gives one"
            )
        if not isinstance(shape, tuple) or not shape:
            raise ParameterError("shape", shape, "(users, features)")
        self.shape = tuple(Whole(1).check("shape", size) for size in shape)
        self._pieces = pieces
        self.restarts = callable(pieces)
        self._begun = False
        self._sparse: bool | None = None
        self._reader: Iterator[Any] | None = None  # of checked pieces, once it was started
        self._at = 0  # users that were handed out or passed over
        self._held: Any = None  # what was read beyond them
        self._none: Any = None  # no rows, of the right kind

    def __repr__(self) -> str:
        return f"Chunks(shape={self.shape})"

    @property
    def sparse(self) -> bool:
        """Whether the first array is a sparse matrix, as the first piece shows."""
        if self._sparse is None:
            if self._held is None:
                self._held = self._next()
            self._sparse = hasattr(first_array(self._held), "tocsr")
        return self._sparse

    def mapped(self, function: Callable[[Any], Any], shape: tuple[int, ...]) -> Chunks:
        """A function of every piece, of ``shape`` in all."""
        found = Chunks(lambda: map(function, self._started()), shape)
        found.restarts = self.restarts
        return found

    def __getitem__(self, who: Users) -> Any:
        """The rows of some users, read forwards; going back starts anew."""
        if isinstance(who, np.ndarray):
            return self._some(who)
        start, stop, step = who.indices(self.shape[0])
        if start < self._at:
            self._reader, self._at, self._held = None, 0, None
        self._forward(start)
        taken = self._forward(stop)
        if stop == self.shape[0] and self._more():
            warnings.warn(f"{self!r}: the pieces hold more users; they were not read", stacklevel=2)
        return rows(taken, slice(None, None, step))

    def _some(self, who: np.ndarray[Any, Any]) -> Any:
        """The rows of users with these indices, picked piece by piece."""
        order = np.argsort(who, kind="stable")
        rising, found, start, taken = who[order], [], 0, 0
        for piece in self._checked(self._started()):
            stop = start + first_array(piece).shape[0]
            low, high = np.searchsorted(rising, (start, stop))
            found.append(rows(piece, rising[low:high] - start))
            start, taken = stop, int(high)
        if taken < who.size:
            raise ParameterError("pieces", f"{start} users", f"the {self.shape[0]} of the shape")
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return rows(joined(found), back)

    def _started(self) -> Iterator[Any]:
        if callable(self._pieces):
            return iter(self._pieces())
        if self._begun:
            allowed = "a function that starts anew: these data are read more than once"
            raise ParameterError("pieces", type(self._pieces), allowed)
        self._begun = True
        return iter(self._pieces)

    def _forward(self, end: int) -> Any:
        """Users up to ``end`` and from where the reader is."""
        found = []
        while self._at < end:
            if self._held is None:
                self._held = self._next()
            length = min(first_array(self._held).shape[0], end - self._at)
            found.append(rows(self._held, slice(length)))
            rest = rows(self._held, slice(length, None))
            self._held = rest if first_array(rest).shape[0] else None
            self._at += length
        if not found and self._none is None:  # nobody is asked for, and nothing was read yet
            self._held = self._next()
        return joined(found) if found else self._none

    def _next(self) -> Any:
        if self._reader is None:
            self._reader = self._checked(self._started())
        for piece in self._reader:
            return piece
        raise ParameterError("pieces", f"{self._at} users", f"the {self.shape[0]} of the shape")

    def _checked(self, pieces: Iterator[Any]) -> Iterator[Any]:
        """All pieces that are not empty."""
        for piece in pieces:
            first = first_array(piece)
            if first.shape[1:] != self.shape[1:]:
                raise ParameterError("piece", f"of shape {first.shape}", f"rows as in {self.shape}")
            if first.shape[0]:
                self._none = rows(piece, slice(0))
                yield checked_data("piece", piece)

    def _more(self) -> bool:
        return self._held is not None or next(self._reader or iter(()), None) is not None


def joined(pieces: list[Any]) -> Any:
    """Pieces one below the other."""
    if len(pieces) == 1:
        return pieces[0]
    if isinstance(pieces[0], tuple):
        return tuple(joined(list(parts)) for parts in zip(*pieces, strict=True))
    if hasattr(pieces[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(pieces, format="csr")
    return np.concatenate(pieces)
