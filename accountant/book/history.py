"""The status and the history of a data set, as a book records them."""

from __future__ import annotations

from typing import Any, NamedTuple

from accountant.accountants.budget import Budget
from accountant.book.account import Account
from accountant.book.answer_codec import decode_answer
from accountant.book.hash_chain import LogEntry
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.formats.plan_json import from_dict
from accountant.ledger.totals import CompositionNotion, Spending, Total


class Status(NamedTuple):
    """A data set: ``total`` of ``limit`` in the unit ``counts``, ``epsilon`` at its delta.

    ``sums`` are all sums that its notion keeps, exactly; ``after_plan`` says that epsilons are
    added to that of a plan.
    """

    name: str
    budget: Budget
    notion: str
    order: float | None
    unit: str
    users: int | None
    counts: str
    total: float
    limit: float
    epsilon: float
    opened: str
    relation: str | None
    sums: tuple[str, ...]
    after_plan: bool


class Line(NamedTuple):
    """One spend.  ``outcome``: answered, failed, or reserved (no answer yet, or none ever).

    ``what`` describes a mechanism or a plan in words, ``facts`` the same as plain values.
    ``total`` is the sum after it, in the unit ``counts``, which can change from line to line;
    ``epsilon`` the same at the budget's delta; ``who`` the number of users, None for all.
    ``undeclared`` names the class of a mechanism that is not declared, ``executor`` that of workers
    which the gate did not start itself: both were trusted.
    """

    seq: int
    time: str
    author: str
    kind: str
    what: str
    facts: dict[str, Any]
    loss: str
    total: float
    epsilon: float
    who: int | None
    label: str | None
    run: str | None
    seeded: bool
    outcome: str
    answer: int | None
    undeclared: str = ""
    executor: str = ""
    counts: str = ""


def status_of(account: Account) -> Status:
    """Return the status of a data set; call it inside a transaction."""
    notion, total = account.standing()
    last, shown = account.log.last_charge(account.name), shown_total(account, notion, total)
    return Status(
        account.name, account.budget, account.notion.name, account.notion.order, account.unit,
        account.users, *shown, min(notion.epsilon(total), largest_epsilon(account)),
        account.opened, None if last is None else last.facts["relation"],
        tuple(notion.encode(total)), notion is not account.notion,
    )  # fmt: skip


def largest_epsilon(account: Account) -> float:
    """Return the epsilon that no user's total exceeds; coordinates are of different users."""
    return account.budget.admitted_epsilon


def shown_total(account: Account, notion: CompositionNotion[Any], total: Total[Any]) -> Spending:
    """Return a total as people read it: no user has spent more."""
    if notion.exceeds(total):  # its sums are of different users, each of whom fits by one of them
        return Spending("epsilon", account.budget.epsilon, account.budget.epsilon)
    return notion.shown(total)


def history_lines(account: Account) -> list[Line]:
    """Return every plan, reservation and step of a data set with its outcome."""
    charges: list[LogEntry] = []
    outcomes: dict[int, LogEntry] = {}
    for entry in account.log.entries(account.name):
        if entry.kind in {"release", "failed"}:
            outcomes[entry.facts["of"]] = entry
        elif entry.kind in {"plan", "reserve", "step"}:
            charges.append(entry)
    reader = LineReader(account)
    return [reader.line(entry, outcomes.get(entry.seq)) for entry in charges]


def stored_answer(log: Log, line: Line) -> Any:
    """Return the stored answer of a line; call it inside a transaction."""
    if not isinstance(line, Line):
        raise ParameterError("line", line, "a line of the history")
    if line.answer is None:
        return None
    entry = log.entry(line.answer)
    if entry.kind != "release":
        raise ParameterError("line", line.answer, "a line of the history of this book")
    try:
        return decode_answer(log.attachment(entry, entry.facts["answer"]))
    except ValueError:
        raise LedgerCorrupt(log.name, "holds an answer of no known form", entry.seq) from None


class LineReader:
    """Converts entries to lines; caches the text of repeated mechanisms."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._spendings: dict[str, tuple[Spending, float]] = {}
        self._words: dict[str, str] = {}
        self._runs: dict[int, str | None] = {}
        self._last = Spending("", 0.0, 0.0), 0.0

    def line(self, entry: LogEntry, outcome: LogEntry | None) -> Line:
        """Return the history line of an entry."""
        facts = entry.facts
        what = facts["plan"] if entry.kind == "plan" else facts["mechanism"]
        if "total" in facts:  # a step was paid for by its plan
            self._last = self._spent(facts)
        if entry.kind == "plan":
            self._runs[entry.seq] = run = facts["run"]
        else:
            run = self._runs.get(facts.get("run", 0))
        (counts, total, _), epsilon = self._last
        answered = outcome is not None and outcome.kind == "release"
        came = "reserved" if outcome is None else "answered" if answered else "failed"
        return Line(
            entry.seq, facts["time"], facts["author"], entry.kind, self._shown(what), what,
            self._shown(facts["loss"]) if "loss" in facts else "", total, epsilon,
            _count_of_users(facts.get("who")), facts.get("label"), run, facts.get("seeded", False),
            "planned" if entry.kind == "plan" else came,
            outcome.seq if outcome and answered else None,
            facts.get("undeclared", ""), facts.get("executor", ""), counts,
        )  # fmt: skip

    def _spent(self, facts: dict[str, Any]) -> tuple[Spending, float]:
        key = str(facts["total"])
        if key not in self._spendings:
            notion = self._account.notion_in(facts)
            total = notion.decode(facts["total"])
            epsilon = min(notion.epsilon(total), largest_epsilon(self._account))
            self._spendings[key] = shown_total(self._account, notion, total), epsilon
        return self._spendings[key]

    def _shown(self, plain: dict[str, Any]) -> str:
        key = str(plain)
        if key not in self._words:
            self._words[key] = printed_form(plain)
        return self._words[key]


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
