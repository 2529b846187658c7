"""The gate of a book: it reserves on disk before it reads data, and stores before it answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, Self, final

import numpy as np

from accountant.book.account import Account
from accountant.book.answer_codec import decode_answer, encode_answer
from accountant.book.book_meter import BookMeter
from accountant.book.chain.hash_chain import LogEntry
from accountant.book.dataset_opening import checked_name
from accountant.book.label_claim import LabelTaken, await_label
from accountant.book.plan_runs import PlanRun, ReservedRelease
from accountant.errors import LedgerCorrupt, ParameterError, UnhealthyRandomness
from accountant.ledger.immutable_arrays import immutable_output
from accountant.ledger.interfaces import Releasable, ShapedQuery
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users, checked_users
from accountant.ledger.remedies import warn_of_large_delta
from accountant.plans.plan import Plan
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
        self._book_meter = meter = BookMeter(
            account, self._noise_fingerprint, lambda: self._answering, rng is not None, buckets
        )
        super().__init__(data, plan, rng, public, "full", undeclared, meter)
        if account.users not in (None, self._users):
            raise ParameterError("data", f"{self._users} rows", f"of {account.users} users")
        self._last_noise_words = b""
        if self._seeded:
            account.mark_seed(self._noise_fingerprint())
        else:
            warn_of_large_delta(account.budget.delta, self._users)
        if self._plan is not None:
            meter.run = PlanRun(
                account,
                self._plan,
                run,
                self._users,
                self.coin_words,
                meter.bucket_facts,
                proof,
                verified,
            )
            self.coin_words = meter.run.coins
            self.coins = np.random.default_rng(np.random.SeedSequence(self.coin_words))

    def _release_once(self, mechanism: Releasable, query: ShapedQuery, label: str) -> Any:
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
            self._book_meter.waiting.clear()

    def close(self) -> None:
        """Close the gate; it refuses further releases."""
        self._book_meter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_arithmetic(self, plan: Any) -> None:
        # other data sets refuse idealised noise when it is reserved
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
            if (
                run is not None and run.has_recorded_steps
            ):  # stored answers and new ones, one after another
                yield from (self._answer(mechanism, query, who) for who in charged)
                return
            for output in super()._answer_blocks(mechanism, query, charged, executor):
                yield self._store_answer(waiting.popleft(), output)
        finally:
            self._book_meter.executor = ""
            self._book_meter.fail_waiting()

    def _store_answer(self, reserved: ReservedRelease, output: Any) -> Any:
        """Store and return the output, or return the earlier one of its label or step."""
        entry = self._book_meter.account.answer(reserved.entry, encode_answer(output), reserved.key)
        if entry.facts["of"] == reserved.entry.seq:
            return output
        return self._stored_answer(entry, reserved.entry.facts["mechanism"])

    def _stored_answer(self, entry: LogEntry, mechanism: dict[str, Any]) -> Any:
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
        """Return a hash of four fresh words; two releases share one with chance below 2^-60."""
        noise_words = self._noise.integers(0, 1 << 64, size=4, dtype=np.uint64)
        raw = noise_words.tobytes()
        if len(set(noise_words.tolist())) < 4 or raw == self._last_noise_words:
            raise UnhealthyRandomness("the generator gives the same words again")
        self._last_noise_words = raw
        return hashlib.sha256(raw).hexdigest()[:32]
