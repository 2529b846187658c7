"""Looking at a book: where data sets stand, what was spent, and whether the log is intact."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from accountant.book.book_status import BookStatus
from accountant.book.history import (
    History,
    Line,
    stored_answer,
)
from accountant.book.history_reader import Selection, read_history
from accountant.book.verification import Verified, verify_log


class BookHistory(BookStatus):
    """What the log says of each spend, and whether it is intact; nothing here writes.

    Parameters
    ----------
    log : Log
        What `Book.open` opens.
    """

    def history(
        self,
        name: str,
        *,
        since: int | str | datetime | None = None,
        last: int | None = None,
        author: str | None = None,
        run: str | None = None,
        until: int | str | datetime | None = None,
    ) -> History:
        """Return the spends of a data set, and the changes of its terms, in order.

        A number as ``since``, and ``last`` alone, read only what they return, so ``since`` the
        number of the last line of a page begins the next page.

        Parameters
        ----------
        name : str
            Name of the data set.
        since : int, str or datetime, optional
            Only lines after the entry of this number, or from this time on: ISO 8601, UTC where it
            states no time zone.
        last : int, optional
            Of these lines, only so many at the end.
        author : str, optional
            Only lines of this author.
        run : str, optional
            Only the plan and the steps of this run.
        until : int, str or datetime, optional
            Only lines up to the entry of this number, or up to this time.

        Returns
        -------
        History of Line
            The oldest first; epsilons are rounded up.
        """
        lines = self.iter_history(name, since=since, last=last, author=author, run=run, until=until)
        return History(lines)

    def iter_history(
        self,
        name: str,
        *,
        since: int | str | datetime | None = None,
        last: int | None = None,
        author: str | None = None,
        run: str | None = None,
        until: int | str | datetime | None = None,
    ) -> Iterator[Line]:
        """Return the lines of `history` one by one: a million of them fit into memory.

        Parameters
        ----------
        name : str
            Name of the data set.
        since : int, str or datetime, optional
            As in `history`.
        last : int, optional
            As in `history`.
        author : str, optional
            As in `history`.
        run : str, optional
            As in `history`.
        until : int, str or datetime, optional
            As in `history`.

        Returns
        -------
        iterator of Line
            The oldest first, up to the last one at the start; epsilons are rounded up.
        """
        return read_history(self._account(name), Selection.of(since, last, author, run, until))

    def answer(self, line: Line) -> Any:
        """Return the stored answer of a line of the history.

        Parameters
        ----------
        line : Line
            One of `history`.

        Returns
        -------
        Any
            The answer; None where there is none.
        """
        with self._log.reading():
            return stored_answer(self._log, line)

    def verify(self, head: str | None = None) -> Verified:
        """Check every hash, total, user, answer, index and page, and pin the end.

        Parameters
        ----------
        head : str, optional
            What `head` or an earlier check gave: the log must go on from it.  With a key it must
            be signed, ``NUMBER:HASH:SIGNATURE``, and the entries too.

        Returns
        -------
        Verified
            Number of entries, and the head to note.

        Raises
        ------
        LedgerCorrupt
            If something was changed, cut off, removed or put back.
        """
        return verify_log(self._log, head)

    @property
    def head(self) -> str:
        """Return the end of the log, to note elsewhere: NUMBER:HASH, signed if there is a key."""
        with self._log.reading():
            return self._log.signed_head()
