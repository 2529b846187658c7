"""The meter of a book's gate: charges as entries on disk, and reservations still unanswered."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from accountant.book.account import Account, FreshnessCheck
from accountant.book.label_claim import LabelClaim
from accountant.book.plan_runs import PlanRun, ReservedRelease
from accountant.errors import OffPlan
from accountant.ledger.interfaces import Releasable
from accountant.ledger.private_copies import name_of_undeclared
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan


class BookMeter:
    """The meter of a `BookLedger`: a charge is an entry on disk.

    ``fingerprint`` returns the fingerprint of fresh noise; ``is_answering`` returns whether the
    gate is computing an answer.  ``run`` is set while a plan is followed, ``label`` during a
    labelled release.
    """

    def __init__(
        self,
        account: Account,
        fingerprint: FreshnessCheck,
        is_answering: Callable[[], bool],
        seeded: bool,
        buckets: tuple[str, ...] = (),
    ) -> None:
        self.account, self.seeded, self.buckets = account, seeded, buckets
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

    def charge(self, mechanism: Releasable, who: Users | None) -> None:
        """Write the reservation; an error leaves the state unchanged."""
        if self._closed:
            raise OffPlan(mechanism, None, "this ledger was closed")
        if not self.is_answering():  # an interrupted reservation must not take this answer
            self.fail_waiting()
        label = self.label
        facts: dict[str, Any] = {
            "label": None if label is None else label.label,
            "seeded": self.seeded,
            **self.bucket_facts,
        }
        undeclared = name_of_undeclared(mechanism)
        if undeclared:
            facts["undeclared"] = undeclared
        if self.executor:
            facts["executor"] = self.executor
        if self.run is not None:
            reserved = self.run.charge(mechanism, who, facts, self.fingerprint)
        else:
            entry = self.account.reserve(mechanism, who, facts, self.fingerprint, label)
            reserved = ReservedRelease(entry, None if label is None else label.key)
        self.waiting.append(reserved)

    def fail_waiting(self) -> None:
        """Record for every open reservation that it has no answer."""
        while self.waiting:
            self.fail(self.waiting.popleft())

    def fail(self, reserved: ReservedRelease) -> None:
        """Record that a release has no answer, unless it was answered before."""
        if reserved.stored is not None:
            return
        # without this entry the reservation stays spent; the first error is the one that is raised
        with contextlib.suppress(RuntimeError, OSError):
            key = reserved.key if reserved.entry.facts.get("label") is not None else None
            self.account.fail(reserved.entry, key)

    def close(self) -> None:
        """Close the meter; it refuses further charges."""
        self._closed = True
