"""Lines of a history from the bodies of entries: there may be millions, so few objects a line."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import numpy as np

from accountant.book.account import Account
from accountant.book.chain.entries import TERMS, LogEntry
from accountant.book.history import Line
from accountant.book.limits.terms import Terms, changed_words
from accountant.book.log import UNDECODED, Log
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.serialisation.plan_json import from_dict

SPENDS, OUTCOMES = ("plan", "reserve", "step", TERMS), ("release", "failed")
NO_OUTCOME: tuple[str, int | None] = ("reserved", None)


class Facts(msgspec.Struct, gc=False):
    """What every entry has; facts without a field are passed over while a body is decoded."""

    seq: int
    dataset: str | None
    kind: str
    key: str | None


class Outcome(Facts, gc=False):
    """What came of a spend."""

    of: int


class Spend(Facts, gc=False):
    """A spend, a step that a plan paid for, or a change of the terms."""

    time: str
    author: str
    mechanism: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    loss: dict[str, Any] | None = None
    total: list[str] | None = None
    counting: str | None = None
    who: Any = None
    label: str | None = None
    run: Any = None
    seeded: bool = False
    undeclared: str = ""
    executor: str = ""
    runs: int | None = None  # runs of a plan that is set aside
    proof: dict[str, Any] | None = None
    buckets: Any = None  # names, or what each has spent after it


Read = TypeVar("Read", bound=Facts)


def read_page(
    log: Log, dataset: str, entry_type: type[Read], kinds: tuple[str, ...], after: int, upto: int
) -> Iterator[Read]:
    """Yield the next page of entries of some kinds, each checked; inside a transaction."""
    decode = msgspec.json.Decoder(entry_type).decode
    for seq, body in log.bodies(dataset, kinds, after, upto):
        try:
            entry = decode(body)
        except UNDECODED:
            facts = log.parse_entry(seq, body)
            entry = entry_type(
                **{name: facts[name] for name in entry_type.__struct_fields__ if name in facts}
            )
        if entry.seq != seq:
            raise LedgerCorrupt(log.name, "an entry is no entry", seq)
        if entry.dataset != dataset or entry.kind not in kinds:
            raise LedgerCorrupt(log.name, "a column does not say what its entry says", seq)
        yield entry


class LineReader:
    """Converts spends to lines; caches the words of repeated mechanisms."""

    def __init__(self, account: Account, after: int) -> None:
        self._account, self._log = account, account.log
        self._runs: dict[int, str | None] = {}
        self._printed_forms: dict[str, str] = {}
        # of the latest line; later lines share equal values
        self._mechanism: tuple[dict[str, Any] | None, str] = None, ""
        self._loss: tuple[dict[str, Any] | None, str] = None, ""
        # numbers of spends, and of their answers; 0 for a failure
        self._spend_numbers, self._answer_numbers = array("q"), array("q")
        self._counting: str | None = None  # how the notion is named in entries
        changed = self._last_until(after, "'terms'") if after else None
        terms = account.opening if changed is None else Terms.of(changed.facts)
        self._budget = terms.budget
        self._change_notion(None)
        self._spent = self._notion.encode(self._notion.zero)
        self._charge = 0  # the number of the last charge
        before = self._last_until(after, "'plan', 'reserve'") if after else None
        if before is not None:
            self._spent, self._charge = before.facts["total"], before.seq
            self._change_notion(before.facts.get("counting"))

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
        """Take the notion under the terms in force, or the one next to a certified plan."""
        self._counting = counting
        self._notion = self._account.shown_notion(self._budget, counting is not None)

    def add_outcome(self, outcome: Outcome) -> None:
        """Note the outcome of a spend, in a few bytes."""
        self._spend_numbers.append(outcome.of)
        self._answer_numbers.append(outcome.seq if outcome.kind == "release" else 0)

    def sort_outcomes(self) -> None:
        """Sort what was noted, so that the outcomes of a page are found by bisection."""
        order = np.argsort(self._spend_numbers, kind="stable")
        self._spend_numbers, self._answer_numbers = (
            array("q", np.asarray(column)[order].tobytes())
            for column in (self._spend_numbers, self._answer_numbers)
        )

    def lines(self, spends: list[Spend]) -> list[Line]:
        """Return the lines of a page; call it in the order of the log, inside a transaction."""
        if not spends:
            return []
        outcomes = self._outcomes(spends[0].seq, spends[-1].seq)
        return [self._line(spend, *outcomes.get(spend.seq, NO_OUTCOME)) for spend in spends]

    def _line(self, spend: Spend, outcome: str, answer: int | None) -> Line:
        kind, run, who, released = spend.kind, spend.run, spend.who, spend.mechanism
        if kind == TERMS:
            return self._line_of_terms(spend)
        if kind == "plan":
            released, outcome = spend.plan, "planned" if spend.runs is None else "set aside"
            self._runs[spend.seq], run = run, spend.seq
        if kind != "step":  # a step was paid for by its plan
            if spend.total is None:
                raise LedgerCorrupt(self._log.name, "an entry does not say what it must", spend.seq)
            self._spent, self._charge = spend.total, spend.seq
            if spend.counting != self._counting:
                self._change_notion(spend.counting)
        if released != self._mechanism[0]:
            self._mechanism = released, self._printed(released)
        if spend.loss != self._loss[0]:
            self._loss = spend.loss, self._printed(spend.loss)
        facts, description = self._mechanism
        return Line(
            spend.seq, spend.time, spend.author, kind, description, facts or {}, self._loss[1],
            self._spent, None if who is None else _count_of_users(who), spend.label,
            None if run is None else self._run(run), spend.seeded, outcome, answer,
            spend.undeclared, spend.executor, self._notion, tuple(spend.buckets or ()),
            "" if spend.proof is None else str(spend.proof.get("sha256")),
        )  # fmt: skip

    def _line_of_terms(self, spend: Spend) -> Line:
        entry = self._log.entry(spend.seq)
        facts, account, spent = entry.facts, self._account, self._spent
        self._budget = Terms.of(facts).budget
        self._change_notion(self._counting)
        # another window may be open at the time of this entry
        if account.window is not None and self._charge:
            last_charge = self._log.entry(self._charge)
            spent = self._notion.encode(account.standing_after(last_charge, entry.latest).total)
        return Line(
            spend.seq, spend.time, spend.author, TERMS, changed_words(facts), {}, "", spent, None,
            None, None, False, facts["change"], None, "", "", self._notion,
        )  # fmt: skip

    def _outcomes(self, first_seq: int, last_seq: int) -> dict[int, tuple[str, int | None]]:
        """Return the outcomes of the spends between two numbers."""
        part = slice(
            bisect_left(self._spend_numbers, first_seq), bisect_right(self._spend_numbers, last_seq)
        )
        pairs = zip(self._spend_numbers[part], self._answer_numbers[part], strict=True)
        return {of: ("answered", by) if by else ("failed", None) for of, by in pairs}

    def _run(self, plan: int) -> str | None:
        """Return the name of the run that an entry opened."""
        if plan not in self._runs:
            self._runs[plan] = self._log.entry(plan).facts.get("run")
        return self._runs[plan]

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


def _count_of_users(encoded_users: Any) -> int:
    return len(range(*encoded_users)) if isinstance(encoded_users, list) else int(encoded_users)
