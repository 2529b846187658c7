"""One run of a plan: it is paid for as a whole, and a named one is resumed after a crash.

A book is a log on disk.  A *plan* lists the releases of a program in order; each is a *step*.  The
entry that reserves a run pays for all its steps.  A step is then recorded twice: before the data
are read, and with its answer.  A run with a name can be opened again, also by another process:
steps that are recorded give their stored answers, and the others are made.

Where two processes follow one run at once, the one that comes second to a step waits for its
answer, as for a release under a label (`accountant.book.label_claim`).  A step is made, and paid
for, again where its process has ended without an answer, or gives none for the book's ``wait``: the
data may have been read for it.

| the step | the next process |
| --- | --- |
| was not begun | makes it |
| has an answer | returns that; a process that does not wait refuses it |
| is being made | looks again; a process that does not wait refuses it |
| has no answer, and its process ended, or ``wait`` is over | makes it again |
"""

from __future__ import annotations

import os
import random
import time
from typing import Any, NamedTuple

from accountant.book.chain.entries import LogEntry, answer_key, run_key, step_key
from accountant.book.label_claim import LabelClaim, LabelTaken, is_gone, process_here
from accountant.book.reservations import STEPS_IN_PROGRESS, FreshnessCheck, Reservations
from accountant.book.stored_values import encode_users
from accountant.errors import OffPlan, ParameterError
from accountant.ledger.interfaces import Releasable
from accountant.ledger.plan_cursor import PlanCursor
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan
from accountant.proofs.checked_proof import Proof
from accountant.serialisation.plan_json import to_dict

BEGUN_ELSEWHERE = "another process of this run has made this step, or makes it"


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

    ``coins`` are the words that seed the public random choices of the program: in a run with a
    ``name`` that is resumed, those of the first process.  ``stated`` are further facts of the entry
    that pays for the plan, and ``proof`` is one of its cost, which ``verified`` asks for.
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
        questions = [facts["question"] for facts in (opened.facts, stated) if "question" in facts]
        if len({*questions}) > 1:
            allowed = f"one under which no other question was asked, such as {questions[0]!r}"
            raise ParameterError("label", name, allowed)
        paying_buckets = sorted(opened.facts.get("buckets", ()))
        if paying_buckets != stated.get("buckets", []):
            payers = ", ".join(paying_buckets) or "none"
            allowed = f"a run that these buckets paid for: those of this one are {payers}"
            raise ParameterError("run", name, allowed)
        self._seq, self._named = opened.seq, name is not None
        # Steps are looked up among the entries up to this number.  At first these are the entries
        # of earlier processes.  0: no further step is recorded, and nothing is looked up.
        self._looked_up_to = 0
        if self._named:
            self._look_again()
        # Whether a step that another process has begun is waited for, and its answer returned.
        # `BookLedger` refuses such steps instead while it releases blocks of its own.
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
    def is_next_step_recorded(self) -> bool:
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

        The table at the head of this file says which.
        """
        step = len(self._charged)
        facts = {**facts, "run": self._seq, "step": step}
        if not self._named:  # a run without a name is never resumed, so its steps need no keys
            entry = self._reservations.reserve_step(
                mechanism, who, facts, freshness_check, named=False
            )
            return ReservedRelease(entry)
        key, key_of_answer = step_key(self._seq, step), answer_key(self._seq, step)
        # The time from which on no process is waited for, and the hash of the entry of a step whose
        # process had ended without an answer at the last look.
        give_up, hash_of_abandoned = time.monotonic() + self._log.wait, ""
        while True:
            last_entry, answer = self._recorded(step)
            try:
                if last_entry is None:  # no process has made the step yet
                    entry = self._reservations.reserve_step(
                        mechanism, who, facts, freshness_check, named=True
                    )
                    return ReservedRelease(entry, key_of_answer, key)
                self._refuse_another_step(last_entry, mechanism, who)
                if answer is not None and self.waits:
                    return ReservedRelease(last_entry, key_of_answer, stored=answer)
                is_late = time.monotonic() >= give_up
                if answer is None and (is_late or self._is_over(last_entry)):
                    # The answer may have come after the look, so a second look decides.
                    if is_late or hash_of_abandoned == last_entry.hash:
                        # The data may have been read for no answer, so a second read is paid.  It
                        # is reserved as under a label, here "": only the first process succeeds.
                        claim = LabelClaim("", key, last_entry.seq, process_here(os.getpid()))
                        entry = self._reservations.reserve(
                            mechanism, who, facts, freshness_check, claim
                        )
                        return ReservedRelease(entry, key_of_answer, key)
                    hash_of_abandoned = last_entry.hash
                elif self.waits:
                    # Seconds, at random so that processes that wait do not look all at once.
                    time.sleep(random.uniform(1e-3, 2e-2))
                else:
                    raise OffPlan(mechanism, None, BEGUN_ELSEWHERE)
            except LabelTaken:  # another process was first to make the step: look what it did
                if not self.waits:
                    raise OffPlan(mechanism, None, BEGUN_ELSEWHERE) from None
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
        """Look up steps in all that was written by now, by any process."""
        with self._log.reading():
            self._looked_up_to = self._log.head.seq

    def _refuse_another_step(
        self, last_entry: LogEntry, mechanism: Releasable, who: Users | None
    ) -> None:
        """Raise `OffPlan` unless the recorded step is this one."""
        stated = last_entry.facts
        if last_entry.kind == "failed":  # its fact "of" is the number of the reservation
            with self._log.reading():
                stated = self._log.entry(stated["of"]).facts
        requested = {
            "mechanism": self._reservations.account.description_of(mechanism),
            **encode_users(who).facts(),
        }
        if any(stated[name] != value for name, value in requested.items()):
            raise OffPlan(mechanism, None, "this run released something else here")

    def _recorded(self, step: int) -> tuple[LogEntry | None, LogEntry | None]:
        """Return the entries of a step and of its answer; None if not among those looked up."""
        if not self._looked_up_to:
            return None, None

        def recorded(key: str) -> LogEntry | None:
            entry = self._log.entry_with_key(key)
            return None if entry is None or entry.seq > self._looked_up_to else entry

        with self._log.reading():
            step_entry = recorded(step_key(self._seq, step))
            answer = recorded(answer_key(self._seq, step))
        if step_entry is None:  # steps are recorded in order: no later one needs to be looked up
            self._looked_up_to = 0
        return step_entry, answer
