"""Reading the history of a data set page by page: in little memory, and in short transactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
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
from accountant.book.log_reader import ROWS_PER_PAGE
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

    @classmethod
    def of(
        cls, since: int | str | datetime | None, last: int | None, author: str | None
    ) -> Selection:
        """Return the selection of the arguments, each checked."""
        if author is not None and not isinstance(author, str):
            raise ParameterError("author", author, "a name, as the lines of a history have it")
        most = None if last is None else COUNT.check("last", last)
        if since is None or isinstance(since, int):
            return cls(0 if since is None else NUMBER.check("since", since), "", most, author)
        return cls(0, _utc(since), most, author)

    def has(self, line: Line) -> bool:
        """Return whether a line that is late enough is wanted."""
        return line.time >= self.since and self.author in (None, line.author)


def _utc(since: object) -> str:
    """Return a time as entries state it."""
    try:
        found = datetime.fromisoformat(since) if isinstance(since, str) else since
    except ValueError:
        found = None
    if not isinstance(found, datetime):
        allowed = "the number of an entry, or a time such as 2026-01-31T12:00 (UTC unless it says)"
        raise ParameterError("since", since, allowed)
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")


def read_history(
    account: Account, wanted: Selection, transaction: Transaction | None = None
) -> Iterator[Line]:
    """Yield lines of the history in order, as the log is at the start.

    Each page has a transaction of its own, so no one waits while the caller looks at a line; with
    ``transaction=contextlib.nullcontext`` all is read in the one that is open.
    """
    reading, log, name = transaction or account.log.reading, account.log, account.name
    with reading():
        upto, after = log.head.seq, wanted.after
        if wanted.last is not None and wanted == Selection(after, "", wanted.last, None):
            after = max(after, _entry_before_last(account, wanted.last))
        lines = LineReader(account, after)

    def pages(
        made: type[Read], kinds: tuple[str, ...], convert: Callable[[list[Read]], list[Made]]
    ) -> Iterator[Made]:
        start = after
        while True:
            with reading():
                read = list(read_page(log, name, made, kinds, start, upto))
                page = convert(read)
            yield from page
            if len(read) < ROWS_PER_PAGE:
                return
            start = read[-1].seq

    for one in pages(Outcome, OUTCOMES, list):
        lines.add_outcome(one)
    lines.sort_outcomes()
    found = pages(Spend, SPENDS, lines.lines)
    if wanted.since or wanted.author is not None:
        found = filter(wanted.has, found)
    yield from found if wanted.last is None else deque(found, wanted.last)


def _entry_before_last(account: Account, lines: int) -> int:
    """Return the number of the entry before the last so many spends; 0 if there are fewer."""
    rows = account.log.storage.ask(
        "SELECT seq FROM entries WHERE dataset = :d AND kind IN ('plan', 'reserve', 'step') "
        "ORDER BY seq DESC LIMIT 1 OFFSET :passed", d=account.name, passed=lines - 1,
    )  # fmt: skip
    return rows[0][0] - 1 if rows else 0
