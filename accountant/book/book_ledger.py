"""The gate of a book: it reserves on disk before it reads data, and stores before it answers.

A book is a log on disk of what has been released from data sets, and what it cost; a gate is the
object by which a program releases from one data set.  Every release is two entries of the log: a
reservation, written before the data are read, which charges the budget or names the plan that has
paid; and the answer, or a note that there is none.  So a crash can lose an answer, but never the
record of its cost.

`BookLedger` is the gate, and `BookMeter` the meter that it charges.  A meter may follow one run of
a plan, which is paid for as a whole (`accountant.book.plan_run`).
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, Self, final

import numpy as np

from accountant.book.account import Account
from accountant.book.chain.entries import (
    LogEntry,
    checked_name,
)
from accountant.book.label_claim import (
    LabelClaim,
    LabelTaken,
    await_label,
)
from accountant.book.plan_run import PlanRun, ReservedRelease
from accountant.book.reservations import STEPS_IN_PROGRESS, FreshnessCheck, Reservations
from accountant.book.stored_values import decode_answer, encode_answer
from accountant.domains import warn_of_large_delta
from accountant.errors import (
    LedgerCorrupt,
    OffPlan,
    ParameterError,
    UnhealthyRandomness,
)
from accountant.ledger.gate import QUESTION
from accountant.ledger.immutable_arrays import immutable_output
from accountant.ledger.interfaces import Releasable, ShapedQuery
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_copies import name_of_undeclared
from accountant.ledger.private_data import Users, checked_users
from accountant.plans.plan import Plan, as_plan
from accountant.proofs.checked_proof import Proof
from accountant.randomness import Rng


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
            undeclared,
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
            if run is not None and run.is_next_step_recorded:
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
        """Return the answer of an entry; refuse that of another mechanism or question."""
        log = self._book_meter.account.log
        with log.reading():
            raw = log.attachment(entry, entry.facts["answer"])
            charge_facts = log.entry(entry.facts["of"]).facts
        if charge_facts["mechanism"] != mechanism:
            allowed = "one that no other mechanism was released under"
            raise ParameterError("label", charge_facts["label"], allowed)
        question, stored_question = QUESTION.get(), charge_facts.get("question")
        if question and stored_question not in (None, question):
            allowed = f"one under which no other question was asked, such as {stored_question!r}"
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
    gate is computing an answer; ``undeclared`` whether the gate takes mechanisms of classes that
    were not declared.  ``run`` is set while a plan is followed, ``label`` during a
    labelled release.  ``waiting`` holds the releases that were charged and have no answer yet, in
    order; ``buckets`` are the names of the buckets that pay, none for a data set without buckets.
    """

    def __init__(
        self,
        reservations: Reservations,
        fingerprint: FreshnessCheck,
        is_answering: Callable[[], bool],
        seeded: bool,
        undeclared: bool,
        buckets: tuple[str, ...] = (),
    ) -> None:
        self.reservations, self.account = reservations, reservations.account
        self.seeded, self.undeclared, self.buckets = seeded, undeclared, buckets
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
        if self._closed:
            return self.refuse_closed
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
        if self.undeclared and (undeclared := name_of_undeclared(mechanism)):
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
