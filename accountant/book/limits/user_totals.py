"""What each user of a data set has spent: a total for every user, stored by classes.

A total is the sum of the privacy costs that a user has paid.  Users with equal totals form one
class, so that memory and time depend on the few different totals and an index for each user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.private_data import Users
from accountant.ledger.totals import Total, largest_total

Spend = Callable[[Total[Any]], Total[Any]]  # returns the total after a spend from that before


class UserTotals:
    """The total of each user; one spend costs one pass over the users it names.

    A spend that all users pay changes the totals of the classes, and no user's class.
    """

    def __init__(self, users: int, zero: Total[Any]) -> None:
        self._class = np.zeros(users, dtype=np.int32)  # the number of each user's class
        self._totals = [zero]  # the total of each class
        self._sizes = [users]  # how many users each class has
        self._number = {zero: 0}  # the number of the class of each total
        self._empty: list[int] = []  # numbers of classes without users, which new classes take

    def totals_after(self, who: Users | None, spend: Spend) -> dict[int, Total[Any]]:
        """Return the new total of each class that has users in ``who`` (None: all users).

        Nothing is changed here, and an error that ``spend`` raises is passed on.
        """
        sizes = self._sizes_within(who)
        return {
            class_number: spend(self._totals[class_number])
            for class_number, size in enumerate(sizes)
            if size
        }

    def add(self, who: Users | None, spend: Spend) -> None:
        """Give the users in ``who`` the totals that `totals_after` returns for their classes."""
        ends = self.totals_after(who, spend)
        # if all users pay, and no two classes reach the same total, no user changes the class
        if who is None and len(set(ends.values())) == len(ends):
            for class_number, total in ends.items():
                self._totals[class_number] = total
            self._number = {total: class_number for class_number, total in ends.items()}
            return
        moved = self._sizes_within(who)
        table = np.arange(len(self._totals), dtype=np.int32)  # the new class of each class's users
        for class_number, total in ends.items():
            table[class_number] = self._class_of(total)
        moved_users = slice(None) if who is None else who
        self._class[moved_users] = table[self._class[moved_users]]
        for class_number in ends:
            self._sizes[class_number] -= moved[class_number]
            self._sizes[table[class_number]] += moved[class_number]
        for class_number in ends:
            if not self._sizes[class_number]:
                del self._number[self._totals[class_number]]
                self._empty.append(class_number)

    def _sizes_within(self, who: Users | None) -> list[int]:
        """Return how many users of each class are in ``who``."""
        if who is None:
            return list(self._sizes)
        sizes: list[int] = np.bincount(self._class[who], minlength=len(self._totals)).tolist()
        return sizes

    def _class_of(self, total: Total[Any]) -> int:
        """Return the class of a total; a new total gets a class without users."""
        number = self._number.get(total)
        if number is None:
            if not self._empty:
                self._empty.append(len(self._totals))
                self._totals.append(total)
                self._sizes.append(0)
            number = self._number[total] = self._empty.pop()
            self._totals[number] = total
        return number

    def per_user(self, of: Callable[[Total[Any]], float]) -> NDArray[np.float64]:
        """Return ``of(total)`` for every user."""
        pairs = zip(self._totals, self._sizes, strict=True)
        return np.array([of(total) if size else 0.0 for total, size in pairs])[self._class]

    @property
    def totals(self) -> list[Total[Any]]:
        """Return the different totals that users have."""
        return [self._totals[class_number] for class_number, size in enumerate(self._sizes) if size]

    def worst_total(self) -> Total[Any]:
        """Return, for each coordinate, the largest total of any user."""
        return largest_total(self.totals)
