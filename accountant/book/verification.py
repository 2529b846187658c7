"""Verification of a whole book: hashes, totals of all users, answers, and the head."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from accountant.accountants.tight import Tight
from accountant.book.account import Account
from accountant.book.account_state import PAID, Standing
from accountant.book.chain.hash_chain import FIRST_PREDECESSOR, ChainHead, LogEntry, digest
from accountant.book.chain.signing_key import parse_head
from accountant.book.index_check import IndexCheck, RowCheck
from accountant.book.limits.terms import exceeds_every_way
from accountant.book.limits.user_totals import Spend, UserTotals
from accountant.book.limits.windows import decoded, encoded
from accountant.book.log import Log
from accountant.book.log_reader import CHARGING_KINDS, TERMS
from accountant.book.terms_check import TermsCheck
from accountant.errors import LedgerCorrupt, ParameterError
from accountant.formats.plan_json import PlanFileError, from_dict
from accountant.ledger.totals import CompositionNotion, Total, largest_total
from accountant.plans.plan import as_plan

CERTIFIED_ROUND_OFF = 1e-6  # of an epsilon that another version of the libraries computed
BYTES_PER_READ = 1 << 24  # bytes of answers that are read at a time


class Verified(NamedTuple):
    """The result for an intact book: the number of entries, and the head to keep."""

    entries: int
    head: str


def verify_log(log: Log, head: str | None) -> Verified:
    """Return the verified head of the log, or raise `LedgerCorrupt`; as `Book.verify`."""
    known = None if head is None else parse_head(head, log.signing_key)
    with log.reading():
        if known is not None:
            log.refuse_unless_there(known, log.head)
        log.storage.check_integrity()
        log.forget_entries()
        check, index, rows = _LogCheck(log), IndexCheck(log), RowCheck(log)
        try:
            for entry in log.entries_after(ChainHead(0, FIRST_PREDECESSOR)):
                check.check_entry(entry)
                index.check_entry(entry)
                rows.note_entry(entry)
            check.check_attachments()
            index.check_end()
            rows.check_rows()
        except PlanFileError as error:
            if error.path[-1:] != ("kind",):
                words = "an entry holds no plan, mechanism or loss"
                raise LedgerCorrupt(log.name, words, check.seq) from None
            allowed = f"declared here: import what declares it, for entry {check.seq} names it"
            raise ParameterError("kind", error.value, allowed) from None
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            words = f"an entry does not say what it must: {type(error).__name__}"
            raise LedgerCorrupt(log.name, words, check.seq) from None
        found = Verified(log.head.seq, log.signed_head())
    log.advance_pin()
    return found


class _LogCheck:
    """Reads along the log and recomputes what each data set spent."""

    def __init__(self, log: Log) -> None:
        self._log, self.seq = log, 0
        self._terms = TermsCheck(log.name)
        self._accounts: dict[str, Account] = {}
        self._standings: dict[str, Standing] = {}
        self._users: dict[str, UserTotals | None] = {}
        self._charged: dict[str, int] = {}
        self._last_charge: dict[str, LogEntry] = {}  # of data sets with windows
        self._buckets: defaultdict[str, dict[str, Total[Any]]] = defaultdict(dict)
        self._runs: dict[str, tuple[LogEntry, int]] = {}  # what was set aside, and how much is made
        self._costs: dict[tuple[str, str | None, str], tuple[list[str], Total[Any]]] = {}
        self._last: Any = None
        self._known: tuple[list[str], Total[Any]] = ([], Total(0, 0))
        self._attached: dict[int, str] = {}
        self._reserved: set[int] = set()

    def check_entry(self, entry: LogEntry) -> None:
        """Check one entry whose hash is right."""
        self.seq, facts = entry.seq, entry.facts
        name, kind = facts["dataset"], facts["kind"]
        self._terms.check_time(entry)
        if kind == "dataset":
            self._accounts[name] = account = Account(self._log, entry)
            self._standings[name] = account.standing_after(None)
            self._users[name] = account.unspent_users()
        elif kind == TERMS:
            account = self._accounts[name]
            self._standings[name] = self._terms.check_change(
                account, entry, self._standings[name], self._each_total(account),
                self._last_charge.get(name),
            )  # fmt: skip
        elif kind in CHARGING_KINDS:
            if facts.get("before", self._charged.get(name, 0)) != self._charged.get(name, 0):
                self._refuse("does not name the charge before it")
            self._add(self._accounts[name], facts, entry)
            self._charged[name] = entry.seq
            if self._accounts[name].window is not None:
                self._last_charge[name] = entry
        if kind in {*CHARGING_KINDS, "step"}:
            self._terms.check_spend(self._accounts[name], entry)
        if kind in {"reserve", "step"}:
            self._reserved.add(entry.seq)
            if facts["block"] is not None:
                self._attached[entry.seq] = facts["block"]
        elif kind in {"release", "failed"}:
            if facts["of"] not in self._reserved:
                self._refuse("answers what was not reserved, or was answered before")
            self._reserved.discard(facts["of"])
            if kind == "release":
                self._attached[entry.seq] = facts["answer"]

    def _add(self, account: Account, facts: dict[str, Any], entry: LogEntry) -> None:
        """Check that the total an entry states is the previous total plus its cost."""
        name, users = account.name, self._users[account.name]
        before_notion, before = self._standing_before(account, entry)
        notion = before_notion if account.window else account.notion_in(facts)
        changes = notion is not before_notion
        if changes != ("certified" in facts) or (changes and before != before_notion.zero):
            self._refuse("counts what was spent in another way than the entry before")
        if changes:
            before = notion.zero
            self._check_certified(account, facts)
        cost = self._cost(account, facts) if facts["kind"] == "reserve" else notion.zero

        def spend(total: Total[Any]) -> Total[Any]:
            if PAID in facts:
                return total
            if facts["kind"] == "plan":
                return account.total_after_plan(notion, total, from_dict(facts["plan"]), facts)
            return notion.add(total, cost)

        self._check_runs(account, facts, entry)
        if users is not None:
            account.apply(users, entry)
            after = largest_total([users.worst_total(), before])
        elif account.buckets is not None:
            after = largest_total([before, *self._check_buckets(name, notion, facts, spend)])
        else:
            after = spend(before)
        if account.window is not None:
            self._check_parts(account, entry, spend)
        # the words first, which are quick to compare; decimals have several for one number
        stated = facts["total"]
        if stated != notion.encode(after) and notion.decode(stated) != after:
            self._refuse("its total is not the sum of what was spent")
        if exceeds_every_way(notion, after, self._each_total(account)):
            self._refuse("spends more than the budget")
        self._standings[name] = Standing(notion, after)

    def _standing_before(self, account: Account, entry: LogEntry) -> Standing:
        """Return what was spent before an entry: with windows, in the one that was open then."""
        if account.window is None:
            return self._standings[account.name]
        return account.standing_after(self._last_charge.get(account.name), entry.latest)

    def _each_total(self, account: Account) -> list[Total[Any]] | None:
        """Return the totals of users or buckets that have budgets of their own; else None."""
        if account.buckets is not None:
            return list(self._buckets[account.name].values())
        users = self._users[account.name]
        return None if users is None else users.totals

    def _check_buckets(
        self, name: str, notion: CompositionNotion[Any], facts: dict[str, Any], spend: Spend
    ) -> list[Total[Any]]:
        """Check what a charge says of each bucket that paid, and return their totals."""
        held, stated = self._buckets[name], facts["buckets"]
        ends = {one: spend(held.get(one, notion.zero)) for one in stated}
        if not ends or ends != {one: notion.decode(words) for one, words in stated.items()}:
            self._refuse("its total is not the sum of what a bucket spent")
        held.update(ends)
        return list(ends.values())

    def _check_parts(self, account: Account, entry: LogEntry, spend: Spend) -> None:
        """Check what a charge says of each month, or of each day."""
        last, notion = self._last_charge.get(account.name), account.notion
        held = {} if last is None else decoded(notion, last.facts["parts"])
        ends = account.parts_after(notion, held, entry.latest, spend)
        stated = entry.facts["parts"]
        if stated != encoded(notion, ends) and decoded(notion, stated) != ends:
            self._refuse("its parts are not the sums of what was spent in them")

    def _check_runs(self, account: Account, facts: dict[str, Any], entry: LogEntry) -> None:
        """Check that no more runs of a plan were free than were set aside and paid for."""
        first, made = self._runs.get(account.name, (None, 0))
        aside = account.aside
        if "runs" in facts:
            if aside is None or first is not None or aside["runs"] != facts["runs"]:
                self._refuse("sets other runs aside than its data set was opened with")
            self._runs[account.name] = entry, 0
        elif PAID in facts:
            paid = first is not None and aside is not None
            if not paid or (facts[PAID], facts["plan"]) != (first.seq, aside["plan"]):
                self._refuse("is a run of a plan that was not set aside")
            if facts["nth"] != made + 1 or made >= aside["runs"]:
                self._refuse("is one run more than was set aside")
            self._runs[account.name] = first, made + 1

    def _check_certified(self, account: Account, facts: dict[str, Any]) -> None:
        """Check the epsilon that a plan was charged, up to the round-off of another machine."""
        stated = float(facts["certified"]) * (1 + CERTIFIED_ROUND_OFF)
        if not Tight().epsilon(from_dict(facts["plan"]), account.budget.delta) <= stated:
            self._refuse("its total is less than what its plan costs")

    def _cost(self, account: Account, facts: dict[str, Any]) -> Total[Any]:
        """Return the cost of an entry's loss, cached; as stated where it cannot be recomputed."""
        notion, loss = account.notion_in(facts), facts["loss"]
        if "repr" in loss:
            return notion.decode(facts["cost"])
        asked = (account.name, facts.get("counting"), loss)
        if asked != self._last:  # its words take longer to make than to compare
            key = (account.name, facts.get("counting"), str(loss))
            if key not in self._costs:
                made: Any = from_dict(loss)
                words = notion.encode(notion.cost(as_plan(made)))
                self._costs[key] = words, notion.decode(words)
            self._last, self._known = asked, self._costs[key]
        words, cost = self._known
        if words != facts["cost"]:
            self._refuse("its cost is not what its loss costs")
        return cost

    def check_attachments(self) -> None:
        """Check the attachments of the log."""
        for first, last in self._ranges():
            asked = "SELECT seq, body FROM blobs WHERE seq BETWEEN :first AND :last ORDER BY seq"
            for seq, raw in self._log.storage.ask(asked, first=first, last=last):
                self.seq = seq
                if self._attached.pop(seq, None) != digest(raw):
                    self._refuse("its bytes are others than were stored")
        if self._attached:
            self.seq = min(self._attached)
            self._refuse("its bytes are missing")
        for name in self._accounts:
            spend = self._log.last_charge(name)  # as spends find it
            if self._charged.get(name, 0) != (0 if spend is None else spend.seq):
                raise LedgerCorrupt(self._log.name, "an index does not lead to the last spends")

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of attachment numbers, each small enough for memory."""
        sizes = self._log.storage.ask("SELECT seq, length(body) FROM blobs ORDER BY seq")
        first, held = None, 0
        for seq, size in sizes:
            first, held = seq if first is None else first, held + size
            if held > BYTES_PER_READ:
                yield first, seq
                first, held = None, 0
        if first is not None:
            yield first, sizes[-1][0]

    def _refuse(self, why: str) -> None:
        raise LedgerCorrupt(self._log.name, why, self.seq)
