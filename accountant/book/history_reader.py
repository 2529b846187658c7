"""Reading the history of a data set page by page: in little memory, and in short transactions."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from accountant.book.account import Account
from accountant.book.hash_chain import LogEntry
from accountant.book.history import Line
from accountant.book.log_reader import ROWS_PER_PAGE
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.formats.plan_json import from_dict

SPENDS, OUTCOMES = ("plan", "reserve", "step"), ("release", "failed")
NUMBER, COUNT = IntegerRange(0), IntegerRange(1)
Transaction = Callable[[], AbstractContextManager[None]]


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
    reading = transaction or account.log.reading
    with reading():
        upto, after = account.log.head.seq, wanted.after
        if wanted.last is not None and wanted == Selection(after, "", wanted.last, None):
            after = max(after, _entry_before_last(account, wanted.last))
        lines = _LineReader(account, after)

    def pages(kinds: tuple[str, ...], made: Callable[[list[LogEntry]], Any]) -> Iterator[Any]:
        start = after
        while True:
            with reading():
                entries = account.log.entries(account.name, kinds, start, upto)
                page = made(entries)
            yield page
            if len(entries) < ROWS_PER_PAGE:
                return
            start = entries[-1].seq

    for _ in pages(OUTCOMES, lines.add_outcomes):
        pass
    lines.sort_outcomes()
    found = (line for page in pages(SPENDS, lines.page) for line in page if wanted.has(line))
    yield from found if wanted.last is None else deque(found, wanted.last)


def _entry_before_last(account: Account, lines: int) -> int:
    """Return the number of the entry before the last so many spends; 0 if there are fewer."""
    rows = account.log.storage.ask(
        "SELECT seq FROM entries WHERE dataset = :d AND kind IN ('plan', 'reserve', 'step') "
        "ORDER BY seq DESC LIMIT 1 OFFSET :passed", d=account.name, passed=lines - 1,
    )  # fmt: skip
    return rows[0][0] - 1 if rows else 0


class _LineReader:
    """Converts entries to lines; caches the words of repeated mechanisms."""

    def __init__(self, account: Account, after: int) -> None:
        self._log, self._notion = account.log, account.notion
        self._runs: dict[int, str | None] = {}
        self._words: dict[str, str] = {}
        self._known: dict[str, tuple[dict[str, Any], str]] = {}  # the latest of each field
        self._of, self._by = array("q"), array("q")  # a spend, and its answer; 0: it failed
        self._spent = self._total_at(account.name, after)

    def _total_at(self, dataset: str, after: int) -> list[str]:
        rows = self._log.storage.ask(
            "SELECT max(seq) FROM entries WHERE dataset = :d AND seq <= :after AND "
            "kind IN ('plan', 'reserve')", d=dataset, after=after,
        )  # fmt: skip
        if not after or rows[0][0] is None:
            return self._notion.encode(self._notion.zero)
        found: list[str] = self._log.entry(rows[0][0]).facts["total"]
        return found

    def add_outcomes(self, entries: list[LogEntry]) -> None:
        """Note what came of the spends, a few bytes for each."""
        self._of.extend(entry.facts["of"] for entry in entries)
        self._by.extend(entry.seq if entry.kind == "release" else 0 for entry in entries)

    def sort_outcomes(self) -> None:
        """Sort what was noted, so that a spend's outcome is found by bisection."""
        order = np.argsort(self._of, kind="stable")
        self._of, self._by = (
            array("q", np.asarray(one)[order].tobytes()) for one in (self._of, self._by)
        )

    def page(self, entries: list[LogEntry]) -> list[Line]:
        """Return the lines of entries in order; inside a transaction."""
        return [self._line(*entry) for entry in entries]

    def _line(self, seq: int, _: str, facts: dict[str, Any]) -> Line:
        kind = facts["kind"]
        if kind == "plan":
            self._runs[seq] = facts["run"]
        if kind != "step":  # a step was paid for by its plan
            self._spent = facts["total"]
        plain, what = self._shown("what", facts["plan" if kind == "plan" else "mechanism"])
        loss = self._shown("loss", facts["loss"])[1] if "loss" in facts else ""
        outcome, answer = self._outcome(seq)
        return Line(
            seq, facts["time"], facts["author"], kind, what, plain, loss, self._spent,
            _count_of_users(facts.get("who")), facts.get("label"),
            self._run(seq if kind == "plan" else facts.get("run")), facts.get("seeded", False),
            "planned" if kind == "plan" else outcome, answer, self._notion,
        )  # fmt: skip

    def _outcome(self, seq: int) -> tuple[str, int | None]:
        place = bisect_right(self._of, seq) - 1
        if place < 0 or self._of[place] != seq:
            return "reserved", None
        answer = self._by[place]
        return ("answered", answer) if answer else ("failed", None)

    def _run(self, plan: int | None) -> str | None:
        """Return the name of the run that an entry opened."""
        if plan is None:
            return None
        if plan not in self._runs:
            self._runs[plan] = self._log.entry(plan).facts.get("run")
        return self._runs[plan]

    def _shown(self, field: str, plain: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return plain values, the same object for equal ones in a row, and their words."""
        known = self._known.get(field)
        if known is None or known[0] != plain:  # comparing them is quicker than printing them
            key = str(plain)
            if key not in self._words:
                self._words[key] = printed_form(plain)
            known = self._known[field] = plain, self._words[key]
        return known


def printed_form(plain: dict[str, Any]) -> str:
    """Return the repr of a mechanism, loss or plan of the log."""
    if set(plain) == {"repr"}:
        return str(plain["repr"])
    try:
        return repr(from_dict(plain))
    except ParameterError:  # of a package that is not installed here
        return str(plain)


def _count_of_users(words: Any) -> int | None:
    if isinstance(words, list):
        return len(range(*words))
    return None if words is None else int(words)
