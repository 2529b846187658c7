"""The gate of a book: it reserves on disk before it reads data, and stores before it answers.

A book is a log on disk of what has been released from data sets, and what it cost; a gate is the
object by which a program releases from one data set.  Every release is two entries of the log: a
reservation, written before the data are read, which charges the budget or names the plan that has
paid; and the answer, or a note that there is none.  So a crash can lose an answer, but never the
record of its cost.

`BookLedger` is the gate, and `BookMeter` the meter that it charges.  `PlanRun` is the one run of a
plan that the meter follows: its plan is paid for as a whole, and it is resumed after a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, NamedTuple, Self, final

import numpy as np

from accountant.book.account import Account
from accountant.book.chain.entries import (
    LogEntry,
    answer_key,
    checked_name,
    run_key,
    step_key,
)
from accountant.book.label_claim import (
    LabelClaim,
    LabelTaken,
    await_label,
    is_gone,
    process_here,
)
from accountant.book.reservations import STEPS_IN_PROGRESS, FreshnessCheck, Reservations
from accountant.book.stored_values import decode_answer, encode_answer, encode_users
from accountant.errors import LedgerCorrupt, OffPlan, ParameterError, UnhealthyRandomness
from accountant.ledger.gate import QUESTION
from accountant.ledger.immutable_arrays import immutable_output
from accountant.ledger.interfaces import Releasable, ShapedQuery
from accountant.ledger.ledger import Ledger, warn_of_large_delta
from accountant.ledger.plan_cursor import PlanCursor
from accountant.ledger.private_copies import name_of_undeclared
from accountant.ledger.private_data import Users, checked_users
from accountant.plans.plan import Plan, as_plan
from accountant.proofs.checked_proof import Proof
from accountant.randomness import Rng
from accountant.serialisation.plan_json import to_dict


@final
class BookLedger(Ledger):
    """A gate whose spends are entries of a book; made by `Book.ledger`.

    A release with a ``label``, or one that belongs to a named run of a plan, is made once.  Later
    calls return its stored answer: they charge no budget, read no data and draw no noise.  Calls
    at the same time wait for it (`label_claim`).
    """

    def __init__(
        self,
        account: Account,
        data: Any,
        plan: Plan | None,
        rng: Rng,
        public: Any,
        run: str | None,
        undeclared: bool = False,
        buckets: tuple[str, ...] = (),
        proof: Proof | None = None,
        verified: bool = False,
    ) -> None:
        reservations = Reservations(account)
        self._book_meter = meter = BookMeter(
            reservations,
            self._noise_fingerprint,
            lambda: self._answering,
            rng is not None,
            buckets,
        )
        super().__init__(data, plan, rng, public, "full", undeclared, meter)
        if account.users not in (None, self._users):
            raise ParameterError("data", f"{self._users} rows", f"of {account.users} users")
        self._last_noise_words = b""
        if self._seeded:
            reservations.mark_seed(self._noise_fingerprint())
        else:
            warn_of_large_delta(account.budget.delta, self._users)
        self._verified, self._one_plan_at_a_time = verified, threading.RLock()
        if self._plan is not None:
            self._follow(self._plan, run, proof)

    def _follow(self, plan: Plan, name: str | None, proof: Proof | None) -> None:
        """Charge a run of a plan, or resume it, and take its public coins."""
        meter = self._book_meter
        meter.run = PlanRun(
            meter.reservations,
            plan,
            name,
            self._users,
            self.coin_words,
            {**meter.bucket_facts, **meter.question_facts},
            proof,
            self._verified,
        )
        self.coin_words = meter.run.coins
        self.coins = np.random.default_rng(np.random.SeedSequence(self.coin_words))

    @contextlib.contextmanager
    def reserving(self, plan: Plan, label: str | None = None) -> Iterator[None]:
        """Charge a run of a plan for the releases inside the block; see `Gate.reserving`."""
        meter = self._book_meter
        if meter.run is not None:
            with super().reserving(plan, label):
                yield
            return
        copy = self._copies.of_plan(as_plan(plan))
        self._refuse_other_process(copy)
        with self._one_plan_at_a_time:  # and not the lock of releases: threads may make these
            with self._lock:
                self._refuse_within_a_query(copy)
                meter.refuse_closed(copy)
                meter.fail_waiting()
                name = None if label is None else checked_name("label", label)
                coin_words, coins = self.coin_words, self.coins
            try:
                self._follow(copy, name, None)
                yield
            finally:
                meter.run = None
                self.coin_words, self.coins = coin_words, coins

    def _release_once(self, mechanism: Releasable, query: ShapedQuery, label: str) -> Any:
        """Return the answer that is stored under a label, or claim the label and release.

        If another process is first to claim it, nothing was charged, and the stored answer is
        awaited again.
        """
        meter = self._book_meter
        if meter.run is not None:
            raise ParameterError("label", label, "absent: the steps of a plan have their places")
        with self._lock:
            self._refuse_within_a_query(mechanism)
            meter.fail_waiting()  # no other caller must wait for an interrupted reservation
            account, checked = meter.account, checked_name("label", label)
            described = account.description_of(mechanism)
            while True:
                answer_or_claim = await_label(
                    account.log, account.name, checked, described, meter.buckets
                )
                if isinstance(answer_or_claim, LogEntry):
                    return self._stored_answer(answer_or_claim, described)
                meter.label = answer_or_claim
                try:
                    return self._charge_and_answer(mechanism, query, None)
                except LabelTaken:
                    continue
                finally:
                    meter.label = None

    def spend(self, mechanism: Any, who: Any = None) -> None:
        """Charge a release, a loss or a plan that is spent elsewhere on the same data."""
        users = None if who is None else checked_users(who, self._users)
        copy = self._copies.of_spent(mechanism)
        self._refuse_other_process(copy)
        with self._lock:
            self._refuse_within_a_query(copy)
            self._charge(copy, users)
            waiting = self._book_meter.waiting
            while waiting:
                STEPS_IN_PROGRESS.discard(waiting.popleft().entry.hash)

    def close(self) -> None:
        """Close the gate; it refuses further releases."""
        self._book_meter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_arithmetic(self, plan: Any) -> None:
        # A data set that does not allow idealised noise refuses it when a release is reserved.
        if self._book_meter.account.idealised:
            super()._check_arithmetic(plan)

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        reserved = self._book_meter.waiting.popleft()
        if reserved.stored is not None:
            output = self._stored_answer(reserved.stored, reserved.entry.facts["mechanism"])
            self._record(mechanism, who, output)
            return output
        try:
            output = super()._answer(mechanism, query, who)
        except BaseException:
            self._book_meter.fail(reserved)
            raise
        return self._store_answer(reserved, output)

    def _answer_blocks(
        self,
        mechanism: Releasable,
        query: ShapedQuery,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Any]:
        waiting, run = self._book_meter.waiting, self._book_meter.run
        self._book_meter.executor = self._executor
        try:
            # A run with stored answers is read one step at a time, without the executor.
            if run is not None and run.has_recorded_steps:
                yield from (self._answer(mechanism, query, who) for who in charged)
                return
            if run is not None:
                run.waits = False  # the answers of another process would come between these blocks
            for output in super()._answer_blocks(mechanism, query, charged, executor):
                yield self._store_answer(waiting.popleft(), output)
        finally:
            if run is not None:
                run.waits = True
            self._book_meter.executor = ""
            self._book_meter.fail_waiting()

    def _store_answer(self, reserved: ReservedRelease, output: Any) -> Any:
        """Store and return the output, or return the earlier one of its label or step."""
        entry = self._book_meter.reservations.answer(
            reserved.entry, encode_answer(output), reserved.key
        )
        STEPS_IN_PROGRESS.discard(reserved.entry.hash)
        if entry.facts["of"] == reserved.entry.seq:
            return output
        return self._stored_answer(entry, reserved.entry.facts["mechanism"])

    def _stored_answer(self, entry: LogEntry, mechanism: dict[str, Any]) -> Any:
        """Return the answer of an entry; refuse one that another mechanism than this gave."""
        log = self._book_meter.account.log
        with log.reading():
            raw = log.attachment(entry, entry.facts["answer"])
            charge_facts = log.entry(entry.facts["of"]).facts
        if charge_facts["mechanism"] != mechanism:
            allowed = "one that no other mechanism was released under"
            raise ParameterError("label", charge_facts["label"], allowed)
        try:
            return immutable_output(decode_answer(raw))
        except ValueError:
            raise LedgerCorrupt(log.name, "holds an answer of no known form", entry.seq) from None

    def _noise_fingerprint(self) -> str:
        """Return a hash of four fresh words of the noise generator, equal if noise is repeated.

        Two releases with different noise share it with chance below 2^-60.
        """
        noise_words = self._noise.integers(0, 1 << 64, size=4, dtype=np.uint64)
        raw = noise_words.tobytes()
        if len(set(noise_words.tolist())) < 4 or raw == self._last_noise_words:
            raise UnhealthyRandomness("the generator gives the same words again")
        self._last_noise_words = raw
        return hashlib.sha256(raw).hexdigest()[:32]


class BookMeter:
    """The meter of a `BookLedger`: a charge is an entry on disk.

    ``fingerprint`` returns the fingerprint of fresh noise; ``is_answering`` returns whether the
    gate is computing an answer.  ``run`` is set while a plan is followed, ``label`` during a
    labelled release.  ``waiting`` holds the releases that were charged and have no answer yet, in
    order; ``buckets`` are the names of the buckets that pay, none for a data set without buckets.
    """

    def __init__(
        self,
        reservations: Reservations,
        fingerprint: FreshnessCheck,
        is_answering: Callable[[], bool],
        seeded: bool,
        buckets: tuple[str, ...] = (),
    ) -> None:
        self.reservations, self.account = reservations, reservations.account
        self.seeded, self.buckets = seeded, buckets
        self.fingerprint, self.is_answering = fingerprint, is_answering
        self.run: PlanRun | None = None
        self.executor = ""  # class name of an executor that the caller gave
        self.label: LabelClaim | None = None
        self.waiting: deque[ReservedRelease] = deque()
        self._closed = False

    @property
    def next(self) -> Plan | None:
        """Return the leaf of the plan that may be released next; None without a plan."""
        return None if self.run is None else self.run.next

    @property
    def check(self) -> Callable[[Plan], None] | None:
        """Return what checks the next releases of a plan; None without a plan."""
        return None if self.run is None else self.run.check

    @property
    def bucket_facts(self) -> dict[str, Any]:
        """Return the buckets that pay, as an entry names them; nothing without buckets."""
        return {"buckets": list(self.buckets)} if self.buckets else {}

    @property
    def question_facts(self) -> dict[str, str]:
        """Return what the releases answer in words, as an entry states it; nothing if unknown."""
        question = QUESTION.get()
        return {"question": question} if question else {}

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Write the reservation of a release of the users ``who``; None means all users.

        An error leaves the state unchanged.
        """
        self.refuse_closed(mechanism)
        if not self.is_answering():  # an interrupted reservation must not take this answer
            self.fail_waiting()
        label = self.label
        facts: dict[str, Any] = {
            "label": None if label is None else label.label,
            "seeded": self.seeded,
            **self.bucket_facts,
            **self.question_facts,
        }
        undeclared = name_of_undeclared(mechanism)
        if undeclared:
            facts["undeclared"] = undeclared
        if self.executor:
            facts["executor"] = self.executor
        if self.run is not None:
            reserved = self.run.charge(mechanism, who, facts, self.fingerprint)
        else:
            entry = self.reservations.reserve(mechanism, who, facts, self.fingerprint, label)
            label_key = None if label is None else label.key
            reserved = ReservedRelease(entry, label_key, label_key)
        self.waiting.append(reserved)

    def refuse_closed(self, plan: Plan | Releasable) -> None:
        """Raise `OffPlan` if the gate was closed."""
        if self._closed:
            raise OffPlan(plan, None, "this ledger was closed")

    def fail_waiting(self) -> None:
        """Record for every open reservation that it has no answer."""
        while self.waiting:
            self.fail(self.waiting.popleft())

    def fail(self, reserved: ReservedRelease) -> None:
        """Record that a release has no answer, unless it was answered before."""
        if reserved.stored is not None:
            return
        # The cost stays spent with this entry or without it, so an error in writing it is ignored:
        # the caller is to see the error that made the release fail.
        with contextlib.suppress(RuntimeError, OSError):
            self.reservations.fail(reserved.entry, reserved.failed_key)
        STEPS_IN_PROGRESS.discard(reserved.entry.hash)

    def close(self) -> None:
        """Close the meter; it refuses further charges."""
        self._closed = True


class ReservedRelease(NamedTuple):
    """A paid release: the entry of its reservation, and the key under which to store its answer.

    ``stored`` is the entry of its answer if it was released before.  ``failed_key`` is the key that
    a failure is found by: that of its label, or of its step in a named run.
    """

    entry: LogEntry
    key: str | None = None
    failed_key: str | None = None
    stored: LogEntry | None = None


class PlanRun:
    """The state of one run of a plan: its position, earlier releases and public coins.

    A step is one release of the plan.  A run with a ``name`` whose plan was paid for is resumed:
    recorded steps give their stored answers, and the public coins (the words that seed the public
    random choices of the program) are those of the first process.
    """

    def __init__(
        self,
        reservations: Reservations,
        plan: Plan,
        name: str | None,
        users: int,
        coins: tuple[int, ...],
        stated: dict[str, Any],
        proof: Proof | None = None,
        verified: bool = False,
    ) -> None:
        self._reservations, self._log = reservations, reservations.account.log
        self._plan, self._users = plan, users
        key = None if name is None else run_key(reservations.account.name, name)
        with self._log.reading():
            opened = None if key is None else self._log.entry_with_key(key)
        if opened is None:
            facts = {"run": name, "coins": list(coins), **stated}
            opened = reservations.reserve_plan(plan, facts, key, proof, verified)
        if opened.facts["plan"] != to_dict(plan):
            raise ParameterError("run", name, "a name that no run of another plan has")
        if sorted(opened.facts.get("buckets", ())) != stated.get("buckets", []):
            paid = ", ".join(sorted(opened.facts["buckets"]))
            raise ParameterError("run", name, f"a run that these buckets paid for, not {paid}")
        self._seq, self._named = opened.seq, name is not None
        # Entries up to this number are those of other processes; 0 for none.  Later ones in the
        # same run are this process's own, or those of one that runs at once.
        self._last_recorded = 0
        if self._named:
            self._look_again()
        # whether a step that another process makes is waited for
        self.waits = True
        self.coins: tuple[int, ...] = tuple(opened.facts["coins"])
        self._cursor = PlanCursor(plan, users)
        self._charged: list[tuple[Releasable, Users | None]] = []

    @property
    def next(self) -> Plan | None:
        """Return the leaf of the plan that may be released next."""
        return self._cursor.next

    def check(self, plan: Plan) -> None:
        """Refuse a plan whose releases are not the next ones of this run."""
        self._cursor.check(plan)

    @property
    def has_recorded_steps(self) -> bool:
        """Return whether the next step was reserved by an earlier process of this run."""
        return self._recorded(len(self._charged))[0] is not None

    def charge(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
    ) -> ReservedRelease:
        """Move on by one step: it was released before, its plan pays, or it is paid again.

        It is paid again if a crash came between its reservation and its answer.  After an error the
        position is as before.
        """
        self._cursor.charge(mechanism, who)
        try:
            reserved = self._reserved(mechanism, who, facts, freshness_check)
        except BaseException:
            self._cursor = PlanCursor(self._plan, self._users)
            for charged_step in self._charged:
                self._cursor.charge(*charged_step)
            raise
        self._charged.append((mechanism, who))
        return reserved

    def _reserved(
        self,
        mechanism: Releasable,
        who: Users | None,
        facts: dict[str, Any],
        freshness_check: FreshnessCheck,
    ) -> ReservedRelease:
        """Return the step as it was recorded, or a new reservation that its plan has paid for.

        A step that another process is making is waited for, at most for the book's ``wait``.
        """
        step = len(self._charged)
        facts = {**facts, "run": self._seq, "step": step}
        if not self._named:  # a run without a name is never resumed, so its steps need no keys
            entry = self._reservations.reserve_step(
                mechanism, who, facts, freshness_check, named=False
            )
            return ReservedRelease(entry)
        keys = step_key(self._seq, step), answer_key(self._seq, step)
        give_up, seen_over = time.monotonic() + self._log.wait, ""
        while True:
            last_entry, answer = self._recorded(step)
            try:
                if last_entry is None:
                    entry = self._reservations.reserve_step(
                        mechanism, who, facts, freshness_check, named=True
                    )
                    return ReservedRelease(entry, keys[1], keys[0])
                self._refuse_another_step(last_entry, mechanism, who)
                if answer is not None and self.waits:
                    return ReservedRelease(last_entry, keys[1], stored=answer)
                is_late = time.monotonic() >= give_up
                if answer is None and (is_late or self._is_over(last_entry)):
                    # The answer may have come after the look, so a second look decides.
                    if is_late or seen_over == last_entry.hash:
                        # The data may have been read for no answer, so a second read is paid.
                        claim = LabelClaim("", keys[0], last_entry.seq, process_here(os.getpid()))
                        entry = self._reservations.reserve(
                            mechanism, who, facts, freshness_check, claim
                        )
                        return ReservedRelease(entry, keys[1], keys[0])
                    seen_over = last_entry.hash
                elif not self.waits:
                    raise OffPlan(mechanism, None, "this run goes on in another process")
                else:
                    time.sleep(random.uniform(1e-3, 2e-2))  # seconds, as for labels
            except LabelTaken:
                if not self.waits:
                    raise OffPlan(mechanism, None, "this run goes on in another process") from None
            self._look_again()

    def _is_over(self, last_entry: LogEntry) -> bool:
        """Return whether no process makes the step any more: it failed, or was given up.

        Where the system does not say which process holds the step, it may still be made.
        """
        # Versions before steps were awaited state no holder.
        if last_entry.kind == "failed" or "holder" not in last_entry.facts:
            return True
        holder = last_entry.facts["holder"]
        if holder is not None and holder == process_here(os.getpid()):
            return last_entry.hash not in STEPS_IN_PROGRESS
        return is_gone(holder)

    def _look_again(self) -> None:
        """Take what other processes have recorded meanwhile for recorded."""
        with self._log.reading():
            self._last_recorded = self._log.head.seq

    def _refuse_another_step(
        self, last_entry: LogEntry, mechanism: Releasable, who: Users | None
    ) -> None:
        """Raise `OffPlan` unless the recorded step is this one."""
        stated = last_entry.facts
        if last_entry.kind == "failed":
            with self._log.reading():
                stated = self._log.entry(stated["of"]).facts
        requested = {
            "mechanism": self._reservations.account.description_of(mechanism),
            **encode_users(who).facts(),
        }
        if any(stated[name] != value for name, value in requested.items()):
            raise OffPlan(mechanism, None, "this run released something else here")

    def _recorded(self, step: int) -> tuple[LogEntry | None, LogEntry | None]:
        """Return the entries of a step and of its answer, None if not written at the opening."""
        if not self._last_recorded:
            return None, None

        def recorded(key: str) -> LogEntry | None:
            entry = self._log.entry_with_key(key)
            return None if entry is None or entry.seq > self._last_recorded else entry

        with self._log.reading():
            step_entry = recorded(step_key(self._seq, step))
            answer = recorded(answer_key(self._seq, step))
        if step_entry is None:  # steps are recorded in order: no later one needs to be looked up
            self._last_recorded = 0
        return step_entry, answer
