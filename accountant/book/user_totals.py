"""A total for every user of a data set; users with equal totals form one class."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.private_data import Users
from accountant.ledger.totals import Total, largest_total

Spend = Callable[[Total[Any]], Total[Any]]


class UserTotals:
    """The total of each user; one spend costs one pass over the users it names."""

    def __init__(self, users: int, zero: Total[Any]) -> None:
        self._class = np.zeros(users, dtype=np.int32)
        self._totals = [zero]
        self._number = {zero: 0}

    def totals_after(self, who: Users | None, spend: Spend) -> dict[int, Total[Any]]:
        """Return the new total of each class in ``who``; changes nothing, raises as ``spend``."""
        seen = self._class if who is None else self._class[who]
        present = np.flatnonzero(np.bincount(seen, minlength=len(self._totals)))
        return {int(one): spend(self._totals[one]) for one in present}

    def assign_totals(self, who: Users | None, ends: dict[int, Total[Any]]) -> None:
        """Move the users to the classes that `totals_after` returned."""
        table = np.arange(len(self._totals), dtype=np.int32)
        for one, total in ends.items():
            if total not in self._number:
                # in this order an interruption between them does no harm
                self._totals.append(total)
                self._number[total] = len(self._totals) - 1
            table[one] = self._number[total]
        if who is None:
            self._class = table[self._class]
        else:
            self._class[who] = table[self._class[who]]

    def per_user(self, of: Callable[[Total[Any]], float]) -> NDArray[np.float64]:
        """Return ``of(total)`` for every user."""
        present = np.flatnonzero(np.bincount(self._class, minlength=len(self._totals)))
        values = np.zeros(len(self._totals))
        values[present] = [of(self._totals[one]) for one in present]
        return values[self._class]

    @property
    def totals(self) -> list[Total[Any]]:
        """Return the different totals that users have."""
        present = np.flatnonzero(np.bincount(self._class, minlength=len(self._totals)))
        return [self._totals[one] for one in present]

    def worst_total(self) -> Total[Any]:
        """Return, for each coordinate, the largest total of any user."""
        return largest_total(self.totals)


def encode_users(who: Users) -> tuple[Any, bytes | None]:
    """Return users as JSON values, and an attachment with a few bits for each user."""
    if isinstance(who, slice):
        return [who.start, who.stop, who.step], None
    index = np.asarray(who, dtype=np.int64)
    steps = np.diff(index, prepend=0)  # small where the indices rise
    width = (
        np.min_scalar_type(int(steps.min(initial=0))),
        np.min_scalar_type(int(steps.max(initial=0))),
    )
    file = io.BytesIO()
    np.lib.format.write_array(file, steps.astype(np.promote_types(*width)), allow_pickle=False)
    return index.size, zlib.compress(file.getvalue(), 1)


def decode_users(words: Any, raw: bytes | None) -> Users:
    """Return the users that `encode_users` encoded."""
    if isinstance(words, list):
        return slice(*words)
    if raw is None:
        raise ValueError("users without their bytes")
    steps = np.lib.format.read_array(io.BytesIO(zlib.decompress(raw)), allow_pickle=False)
    return np.cumsum(steps, dtype=np.intp)
