"""The history of a data set in a book: its charges, and changes and proposals of its terms.

It is read page by page, in little memory and in short transactions.  There may be millions of
lines, so a page is decoded into few objects, and lines share equal values.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from accountant.book.account import Account
from accountant.book.chain.entries import PROPOSAL, TERMS, LogEntry
from accountant.book.databases.storage import ROWS_PER_PAGE
from accountant.book.entry_pages import Outcome, ReadEntry, Spend, read_page
from accountant.book.limits.second_curator import outcome_of, proposed_words
from accountant.book.limits.terms import Terms, changed_words, utc_time
from accountant.book.log import Log
from accountant.book.status import shown_total
from accountant.book.stored_values import decode_answer
from accountant.domains import IntegerRange
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.ledger.totals import CompositionNotion, Spending
from accountant.serialisation.plan_json import from_dict
from accountant.table_display import Table, TableDisplay

NUMBER, COUNT = IntegerRange(0), IntegerRange(1)
# The kinds of entries that make a line, and those that say what came of a reserved release.
SPENDS, OUTCOMES = ("plan", "reserve", "step"), ("release", "failed")
LINES = (*SPENDS, TERMS, PROPOSAL)
# The outcome of a spend that has no answer, and the number of the answer's entry.
NO_OUTCOME: tuple[str, int | None] = ("reserved", None)
Converted = TypeVar("Converted")


class Line(NamedTuple):
    """One charge of the budget, or a change of the terms: what the entry ``seq`` of the log states.

    ``kind`` is that of the entry: "plan", "reserve" (a release), "step" (of a plan), "terms", or
    "proposal" (of other terms, where they need two curators);
    ``time`` and ``author`` say when and by whom it was written.  ``loss`` is the privacy loss in
    words, ``label`` the name of the answer, ``run`` that of the plan's run, if there are any;
    ``seeded`` says that the noise can be made again from a seed.

    ``outcome`` is "answered", "failed" or "reserved" (no answer yet, or none ever); for a plan it
    is "planned" or "set aside", and for a change of the terms it says what changed.  For a proposal
    it is "open", "seconded", by whom ``what`` says, or "lapsed".

    ``what`` describes a mechanism or a plan in words, ``facts`` the same as plain values; ``spent``
    is the total after this line, as the log states it, and ``total`` the same in the unit
    ``counts``, which can change from line to line; ``who`` the number of users, None for all.
    ``undeclared`` names the class of a mechanism that is not declared, ``executor`` that of workers
    which the gate did not start itself: both were trusted.  ``buckets`` are those of people who
    paid.  ``proof`` is the SHA-256 digest of the proof with which a plan was opened.  ``question``
    is what was asked, in words, where the program or a fit said so (`Gate.answering`), and ``cost``
    what the release or the plan alone costs, encoded as ``spent`` is.
    """

    seq: int
    time: str
    author: str
    kind: str
    what: str
    facts: dict[str, Any]
    loss: str
    spent: list[str]
    who: int | None
    label: str | None
    run: str | None
    seeded: bool
    outcome: str
    answer: int | None
    undeclared: str
    executor: str
    notion: CompositionNotion[Any]
    buckets: tuple[str, ...] = ()
    proof: str = ""
    question: str = ""
    cost: list[str] | None = None

    @property
    def is_spend(self) -> bool:
        """Return whether the line is a spend: no change of the terms, and no proposal of one."""
        return self.kind in SPENDS

    @property
    def title(self) -> str:
        """Return the question that was answered, or the mechanism or plan in words."""
        return self.question or self.what

    @property
    def price(self) -> float | None:
        """Return the epsilon of a release or a plan alone, rounded up; None of steps of a plan."""
        return None if self.cost is None else price_of(self.notion, tuple(self.cost))

    @property
    def total(self) -> float:
        """Return the total after this line, in the unit `counts`."""
        return self._spending.amount

    @property
    def counts(self) -> str:
        """Return the unit of the total."""
        return self._spending.unit

    @property
    def epsilon(self) -> float:
        """Return the total after this line as an epsilon at the budget's delta, rounded up."""
        epsilon_upper = self.notion.epsilon(self.notion.decode(self.spent))
        return min(epsilon_upper, self.notion.budget.admitted_epsilon)

    @property
    def _spending(self) -> Spending:
        return shown_total(self.notion.budget, self.notion, self.notion.decode(self.spent))


@lru_cache(maxsize=1000)  # lines of a history mostly cost what earlier ones do
def price_of(notion: CompositionNotion[Any], cost: tuple[str, ...]) -> float:
    """Return the epsilon of an encoded cost at the budget's delta, rounded up."""
    return notion.epsilon(notion.decode([*cost]))


class History(TableDisplay, list[Line]):
    """The spends of a data set, in order."""

    def __repr__(self) -> str:
        return f"<History: {sum(line.is_spend for line in self)} spends>"

    def _table(self) -> Table:
        columns = (
            "number", "time", "author", "what", "price", "total", "counts", "epsilon", "outcome",
        )  # fmt: skip
        rows = [
            (line.seq, line.time, line.author, line.title, line.price, line.total, line.counts,
             line.epsilon, line.outcome)
            for line in self
        ]  # fmt: skip
        return Table(columns, rows, upper=("price", "total", "epsilon"))


class Selection(NamedTuple):
    """Which lines of a history are wanted; None, 0 and "" exclude nothing.  See `Book.history`."""

    after: int  # lines of entries with larger numbers than this
    since: str  # from this time on
    last: int | None  # of the lines that are selected otherwise, this many at the end
    author: str | None
    run: str | None
    upto: int | None  # lines of entries with at most this number
    until: str | None  # up to this time

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
        after, start = _number_or_time("since", since)
        upto, end = _number_or_time("until", until)
        return cls(after or 0, start or "", line_count, author, run, upto, end)

    @property
    def names_lines(self) -> bool:
        """Return whether lines are selected by their time, author or run, not only by numbers."""
        return bool(self.since) or (self.author, self.run, self.until) != (None, None, None)

    def has(self, line: Line) -> bool:
        """Return whether a line is wanted, apart from its number."""
        return (
            line.time >= self.since
            and self.author in (None, line.author)
            and self.run in (None, line.run)
            and (self.until is None or line.time <= self.until)
        )


def _number_or_time(argument: str, value: object) -> tuple[int | None, str | None]:
    """Return (number of an entry, None) or (None, time), as the value is one or the other."""
    if value is None:
        return None, None
    if hasattr(value, "__index__"):  # an int, or a whole number of numpy
        return NUMBER.check(argument, value), None
    return None, utc_time(argument, value, "the number of an entry, or ")


def read_history(account: Account, wanted: Selection) -> Iterator[Line]:
    """Yield lines of the history in order, as the log is at the start.

    Each page has a transaction of its own, so no one waits while the caller looks at a line.
    """
    log, name = account.log, account.name
    with log.reading():
        head, after = log.head.seq, wanted.after
        upto = head if wanted.upto is None else min(head, wanted.upto)
        if wanted.last is not None and not wanted.names_lines:
            rows = log.storage.ask(
                "SELECT seq FROM entries WHERE dataset = :d AND seq <= :upto AND "
                f"kind IN {LINES} "
                "ORDER BY seq DESC LIMIT 1 OFFSET :passed",
                d=name,
                upto=upto,
                passed=wanted.last - 1,
            )
            after = max(after, rows[0][0] - 1 if rows else 0)
        lines = LineReader(account, after)

    def pages(
        entry_type: type[ReadEntry],
        kinds: tuple[str, ...],
        convert: Callable[[list[ReadEntry]], list[Converted]],
    ) -> Iterator[Converted]:
        """Yield what ``convert`` makes of each page of entries of some kinds, one after another."""
        start = after
        while True:
            with log.reading():
                # The outcome of a wanted spend may come after ``upto``.
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
    selected_lines = pages(Spend, LINES, lines.lines)
    if wanted.names_lines:
        selected_lines = filter(wanted.has, selected_lines)
    yield from selected_lines if wanted.last is None else deque(selected_lines, wanted.last)


# --- entries as lines


class LineReader:
    """Converts entries to lines in the order of the log; repeated mechanisms are printed once."""

    def __init__(self, account: Account, after: int) -> None:
        self._account, self._log = account, account.log
        # The name and the question of each run, by the number of the entry that opened its plan.
        self._runs: dict[int, tuple[str | None, str]] = {}
        self._printed_forms: dict[str, str] = {}
        # The cost of each plan, as the log states it.  No change of the terms changes a cost, and
        # after a certified plan all costs are epsilons: that plan is the first charge.
        self._plan_costs: dict[str, list[str] | None] = {}
        # The mechanism or plan, the loss and the cost of the latest line, with their texts, which
        # later lines share.
        self._described: tuple[dict[str, Any] | None, str] = None, ""
        self._loss: tuple[dict[str, Any] | None, str] = None, ""
        self._cost: list[str] | None = None
        # The numbers of the spends that have an outcome, and of their answers; 0 for a failure.
        self._spend_numbers, self._answer_numbers = array("q"), array("q")
        self._counting: str | None = None  # how entries name the notion; None for the usual one
        changed = self._last_until(after, "'terms'") if after else None
        terms = account.opening if changed is None else Terms.of(changed.facts)
        self._budget = terms.budget
        self._change_notion(None)
        self._spent = self._notion.encode(self._notion.zero)
        self._charge = 0  # the number of the last charge
        charging_kinds = "'plan', 'reserve'" + ("" if account.window is None else ", 'terms'")
        charge = self._last_until(after, charging_kinds) if after else None
        while charge is not None and not charge.states_charges:
            charge = self._last_until(charge.seq - 1, charging_kinds)
        if charge is not None:
            self._spent, self._charge = charge.facts["total"], charge.seq
            self._change_notion(charge.facts.get("counting"))

    def _last_until(self, seq: int, kinds: str) -> LogEntry | None:
        """Return the data set's last entry of some kinds, up to this number."""
        rows = self._log.storage.ask(
            "SELECT seq FROM entries WHERE dataset = :d AND seq <= :seq AND "
            f"kind IN ({kinds}) ORDER BY seq DESC LIMIT 1",
            d=self._account.name,
            seq=seq,
        )
        return self._log.entry(rows[0][0]) if rows else None

    def _change_notion(self, counting: str | None) -> None:
        """Take the notion of composition under the present terms.

        If ``counting`` is not None, it is the notion for what is spent after a certified plan.
        """
        self._counting = counting
        self._notion = self._account.shown_notion(self._budget, counting is not None)

    def add_outcome(self, outcome: Outcome) -> None:
        """Note the outcome of a spend, in 16 bytes."""
        self._spend_numbers.append(outcome.of)
        self._answer_numbers.append(outcome.seq if outcome.kind == "release" else 0)

    def sort_outcomes(self) -> None:
        """Sort the outcomes by the numbers of their spends, for a search by bisection."""
        order = np.argsort(self._spend_numbers, kind="stable")
        self._spend_numbers, self._answer_numbers = (
            array("q", np.asarray(column)[order].tobytes())
            for column in (self._spend_numbers, self._answer_numbers)
        )

    def lines(self, spends: list[Spend]) -> list[Line]:
        """Return the lines of a page; call it in the order of the log, inside a transaction."""
        if not spends:
            return []
        in_this_page = slice(
            bisect_left(self._spend_numbers, spends[0].seq),
            bisect_right(self._spend_numbers, spends[-1].seq),
        )
        outcomes = {
            spend_number: ("answered", answer_number) if answer_number else ("failed", None)
            for spend_number, answer_number in zip(
                self._spend_numbers[in_this_page], self._answer_numbers[in_this_page], strict=True
            )
        }
        return [self._line(spend, *outcomes.get(spend.seq, NO_OUTCOME)) for spend in spends]

    def _line(self, spend: Spend, outcome: str, answer: int | None) -> Line:
        """Return the line of a spend, and note the total and the notion after it."""
        kind, run, who, described = spend.kind, spend.run, spend.who, spend.mechanism
        if kind in (TERMS, PROPOSAL):
            return self._line_of_change(spend)
        if kind == "plan":
            described, outcome = spend.plan, "planned" if spend.runs is None else "set aside"
            # A plan states its run by name, and its steps state it by the number of the plan.
            self._runs[spend.seq], run = (run, spend.question), spend.seq
        if kind != "step":  # Its plan paid for a step.
            if spend.total is None:
                raise LedgerCorrupt(self._log.name, "an entry does not say what it must", spend.seq)
            self._spent, self._charge = spend.total, spend.seq
            if spend.counting != self._counting:
                self._change_notion(spend.counting)
        if described != self._described[0]:
            self._described = described, self._printed(described)
        if spend.loss != self._loss[0]:
            self._loss = spend.loss, self._printed(spend.loss)
        facts, description = self._described
        user_count: int | None = None  # if all users pay
        if who is not None:
            user_count = len(range(*who)) if isinstance(who, list) else int(who)
        if run is not None and run not in self._runs:  # the entry that opened it was not read here
            opened = self._log.entry(run).facts
            self._runs[run] = opened.get("run"), opened.get("question", "")
        run_name, run_question = (None, "") if run is None else self._runs[run]
        cost = self.plan_cost(spend) if kind == "plan" else spend.cost
        if cost != self._cost:
            self._cost = cost
        # By place, not by name: a long history is read a twentieth faster.
        return Line(
            spend.seq, spend.time, spend.author, kind, description, facts or {}, self._loss[1],
            self._spent, user_count, spend.label, run_name, spend.seeded, outcome, answer,
            spend.undeclared, spend.executor, self._notion, tuple(spend.buckets or ()),
            "" if spend.proof is None else str(spend.proof.get("sha256")),
            spend.question or run_question,
            self._cost,
        )  # fmt: skip

    def plan_cost(self, spend: Spend) -> list[str] | None:
        """Return what a plan alone costs, encoded; None if its class is not installed here."""
        if spend.paid is not None:  # it was set aside, and paid for, before
            return self._notion.encode(self._notion.zero)
        if spend.certified is not None:  # a plan that is charged its exact cost is the first charge
            return spend.total
        key = str(spend.plan)
        if key not in self._plan_costs:
            try:
                plan = from_dict(spend.plan)
                cost = self._notion.encode(self._notion.after(self._notion.zero, plan))
            except ParameterError:
                cost = None
            self._plan_costs[key] = cost
        return self._plan_costs[key]

    def _line_of_change(self, spend: Spend) -> Line:
        """Return the line of a change of the terms, or of a proposal; take the budget of a change.

        An earlier proposal may have had a second curator since, or may have lapsed.
        """
        entry = self._log.entry(spend.seq)
        facts, account, spent = entry.facts, self._account, self._spent
        if entry.kind == TERMS:
            self._budget = Terms.of(facts).budget
            self._change_notion(self._counting)
            what, outcome = changed_words(facts), facts["change"]
        else:
            account.follow_terms()
            outcome, seconded_by = outcome_of(self._log, entry, account.terms_seq)
            what = f"proposal of {proposed_words(self._log, entry)}"
            what += f", seconded by {seconded_by}" if seconded_by else ""
        if entry.states_charges:
            self._charge = entry.seq
        # At the time of this entry another window may be open than at the last charge.
        if account.window is not None and self._charge:
            last_charge = self._log.entry(self._charge)
            spent = self._notion.encode(
                account.standing_after(last_charge, entry.window_time).total
            )
        return Line(
            seq=spend.seq,
            time=spend.time,
            author=spend.author,
            kind=spend.kind,
            what=what,
            facts={},
            loss="",
            spent=spent,
            who=None,
            label=None,
            run=None,
            seeded=False,
            outcome=outcome,
            answer=None,
            undeclared="",
            executor="",
            notion=self._notion,
        )

    def _printed(self, plain: dict[str, Any] | None) -> str:
        key = str(plain)
        if key not in self._printed_forms:
            self._printed_forms[key] = "" if plain is None else printed_form(plain)
        return self._printed_forms[key]


def printed_form(plain: dict[str, Any]) -> str:
    """Return the repr of a mechanism, loss or plan of the log."""
    if set(plain) == {"repr"}:
        return str(plain["repr"])
    try:
        return repr(from_dict(plain))
    except ParameterError:  # its class is of a package that is not installed here
        return str(plain)


def stored_answer(log: Log, line: Line) -> Any:
    """Return the stored answer of a line; call it inside a transaction."""
    if not isinstance(line, Line):
        raise ParameterError("line", line, "a line of the history")
    if line.answer is None:
        return None
    entry = log.entry(line.answer)
    if entry.kind != "release" or entry.facts["of"] != line.seq:
        raise ParameterError("line", line.answer, "a line of the history of this book")
    try:
        return decode_answer(log.attachment(entry, entry.facts["answer"]))
    except ValueError:
        raise LedgerCorrupt(log.name, "holds an answer of no known form", entry.seq) from None
