"""Reading the history of a data set page by page: in little memory, and in short transactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple, TypeVar

from accountant.book.account import Account
from accountant.book.history import Line
from accountant.book.history_lines import (
    OUTCOMES,
    SPENDS,
    LineReader,
    Outcome,
    Read,
    Spend,
    read_page,
)
from accountant.book.limits.terms import utc_time
from accountant.book.log import ROWS_PER_PAGE
from accountant.domains import IntegerRange
from accountant.errors import ParameterError

NUMBER, COUNT = IntegerRange(0), IntegerRange(1)
Transaction = Callable[[], AbstractContextManager[None]]
Made = TypeVar("Made")


class Selection(NamedTuple):
    """Which lines of a history are wanted; see `Book.history`."""

    after: int
    since: str
    last: int | None
    author: str | None
    run: str | None
    upto: int | None
    until: str | None

    @classmethod
    def of(
        cls,
        since: int | str | datetime | None,
        last: int | None,
        author: str | None,
        run: str | None,
        until: int | str | datetime | None,
    ) -> Selection:
        """Return the selection of the arguments, each checked."""
        for argument, name in (("author", author), ("run", run)):
            if name is not None and not isinstance(name, str):
                raise ParameterError(argument, name, "a name, as the lines of a history have it")
        line_count = None if last is None else COUNT.check("last", last)
        after, start = _place("since", since)
        upto, end = _place("until", until)
        return cls(after or 0, start or "", line_count, author, run, upto, end)

    @property
    def names_lines(self) -> bool:
        """Return whether lines are selected by more than their numbers."""
        return bool(self.since) or (self.author, self.run, self.until) != (None, None, None)

    def has(self, line: Line) -> bool:
        """Return whether a line is wanted, apart from its number."""
        return (
            line.time >= self.since
            and self.author in (None, line.author)
            and self.run in (None, line.run)
            and (self.until is None or line.time <= self.until)
        )


def _place(argument: str, value: object) -> tuple[int | None, str | None]:
    """Return the number of an entry, or a time."""
    if value is None:
        return None, None
    if isinstance(value, int):
        return NUMBER.check(argument, value), None
    return None, utc_time(argument, value, "the number of an entry, or ")


def read_history(
    account: Account, wanted: Selection, transaction: Transaction | None = None
) -> Iterator[Line]:
    """Yield lines of the history in order, as the log is at the start.

    Each page has a transaction of its own, so no one waits while the caller looks at a line; with
    ``transaction=contextlib.nullcontext`` all is read in the one that is open.
    """
    reading, log, name = transaction or account.log.reading, account.log, account.name
    with reading():
        head, after = log.head.seq, wanted.after
        upto = head if wanted.upto is None else min(head, wanted.upto)
        if wanted.last is not None and not wanted.names_lines:
            after = max(after, _entry_before_last(account, wanted.last, upto))
        lines = LineReader(account, after)

    def pages(
        entry_type: type[Read], kinds: tuple[str, ...], convert: Callable[[list[Read]], list[Made]]
    ) -> Iterator[Made]:
        start = after
        while True:
            with reading():
                # the outcome of a wanted spend may come after ``upto``
                end = head if entry_type is Outcome else upto
                entries = list(read_page(log, name, entry_type, kinds, start, end))
                page = convert(entries)
            yield from page
            if len(entries) < ROWS_PER_PAGE:
                return
            start = entries[-1].seq

    for outcome in pages(Outcome, OUTCOMES, list):
        lines.add_outcome(outcome)
    lines.sort_outcomes()
    spend_lines = pages(Spend, SPENDS, lines.lines)
    if wanted.names_lines:
        spend_lines = filter(wanted.has, spend_lines)
    yield from spend_lines if wanted.last is None else deque(spend_lines, wanted.last)


def _entry_before_last(account: Account, lines: int, upto: int) -> int:
    """Return the number of the entry before the last ``lines`` lines; 0 if there are fewer."""
    rows = account.log.storage.ask(
        "SELECT seq FROM entries WHERE dataset = :d AND seq <= :upto AND "
        "kind IN ('plan', 'reserve', 'step', 'terms') ORDER BY seq DESC LIMIT 1 OFFSET :passed",
        d=account.name,
        upto=upto,
        passed=lines - 1,
    )
    return rows[0][0] - 1 if rows else 0
