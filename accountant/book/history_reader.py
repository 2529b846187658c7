"""Reading the history of a data set page by page: in little memory, and in short transactions."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np

from accountant.book.account import Account
from accountant.book.hash_chain import LogEntry
from accountant.book.history import Line
from accountant.book.log_reader import ROWS_PER_PAGE
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.formats.plan_json import from_dict

SPENDS, OUTCOMES = ("plan", "reserve", "step"), ("release", "failed")
NO_OUTCOME: tuple[str, int | None] = ("reserved", None)
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
        lines = _LineReader(account, after)

    def entries(kinds: tuple[str, ...], made: Callable[[LogEntry], Made]) -> Iterator[Made]:
        start = after
        while True:
            with reading():
                page = [(one.seq, made(one)) for one in log.entries(name, kinds, start, upto)]
            for _, one in page:
                yield one
            if len(page) < ROWS_PER_PAGE:
                return
            start = page[-1][0]

    for outcome in entries(OUTCOMES, lambda one: (one.facts["of"], one.seq, one.kind)):
        lines.add_outcome(*outcome)
    lines.sort_outcomes()
    found = entries(SPENDS, lines.line)
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


class _LineReader:
    """Converts entries to lines; caches the words of repeated mechanisms."""

    def __init__(self, account: Account, after: int) -> None:
        self._account, self._log = account, account.log
        self._runs: dict[int, str | None] = {}
        self._words: dict[str, str] = {}
        # of the latest line; later ones share what is equal
        self._what: tuple[dict[str, Any], str] = {}, ""
        self._loss: tuple[dict[str, Any] | None, str] = None, ""
        self._of, self._by = array("q"), array("q")  # a spend, and its answer; 0: it failed
        self._notion = account.notion
        self._counting: str | None = None  # how the notion is named in entries
        self._spent = self._notion.encode(self._notion.zero)
        before = self._charge_until(after) if after else None
        if before is not None:
            self._note_total(before.facts)

    def _charge_until(self, seq: int) -> LogEntry | None:
        """Return the last entry that charged the data set, up to this number."""
        rows = self._log.storage.ask(
            "SELECT seq FROM entries WHERE dataset = :d AND seq <= :seq AND "
            "kind IN ('plan', 'reserve') ORDER BY seq DESC LIMIT 1", d=self._account.name, seq=seq,
        )  # fmt: skip
        return self._log.entry(rows[0][0]) if rows else None

    def _note_total(self, facts: dict[str, Any]) -> None:
        self._spent, self._counting = facts["total"], facts.get("counting")
        self._notion = self._account.notion_in(facts)

    def add_outcome(self, of: int, by: int, kind: str) -> None:
        """Note what came of a spend, in a few bytes."""
        self._of.append(of)
        self._by.append(by if kind == "release" else 0)

    def sort_outcomes(self) -> None:
        """Sort what was noted, so that a spend's outcome is found by bisection."""
        order = np.argsort(self._of, kind="stable")
        self._of, self._by = (
            array("q", np.asarray(one)[order].tobytes()) for one in (self._of, self._by)
        )

    def line(self, entry: LogEntry) -> Line:
        """Return the line of an entry; call it in their order, inside a transaction."""
        seq, _, facts = entry  # there may be millions: few calls, and no words made twice
        kind, run = facts["kind"], facts.get("run")
        if kind == "plan":
            self._runs[seq], run = run, seq
        if kind != "step":  # a step was paid for by its plan
            self._spent = facts["total"]
            if facts.get("counting") != self._counting:
                self._note_total(facts)
        said = facts["plan"] if kind == "plan" else facts["mechanism"]
        if said != self._what[0]:
            self._what = said, self._printed(said)
        if facts.get("loss") != self._loss[0]:
            self._loss = facts.get("loss"), self._printed(facts.get("loss"))
        who = facts.get("who")
        outcome, answer = self._outcome(seq) if self._of else NO_OUTCOME
        return Line(
            seq, facts["time"], facts["author"], kind, self._what[1], self._what[0], self._loss[1],
            self._spent, None if who is None else _count_of_users(who), facts.get("label"),
            None if run is None else self._run(run), facts.get("seeded", False),
            "planned" if kind == "plan" else outcome, answer, facts.get("undeclared", ""),
            facts.get("executor", ""), self._notion,
        )  # fmt: skip

    def _outcome(self, seq: int) -> tuple[str, int | None]:
        place = bisect_right(self._of, seq) - 1
        if place < 0 or self._of[place] != seq:
            return NO_OUTCOME
        answer = self._by[place]
        return ("answered", answer) if answer else ("failed", None)

    def _run(self, plan: int) -> str | None:
        """Return the name of the run that an entry opened."""
        if plan not in self._runs:
            self._runs[plan] = self._log.entry(plan).facts.get("run")
        return self._runs[plan]

    def _printed(self, plain: dict[str, Any] | None) -> str:
        key = str(plain)
        if key not in self._words:
            self._words[key] = "" if plain is None else printed_form(plain)
        return self._words[key]


def printed_form(plain: dict[str, Any]) -> str:
    """Return the repr of a mechanism, loss or plan of the log."""
    if set(plain) == {"repr"}:
        return str(plain["repr"])
    try:
        return repr(from_dict(plain))
    except ParameterError:  # of a package that is not installed here
        return str(plain)


def _count_of_users(words: Any) -> int:
    return len(range(*words)) if isinstance(words, list) else int(words)
