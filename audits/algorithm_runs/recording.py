"""A ledger for audits that also keeps what a ledger never shows of a run.

A ledger is the gate between an algorithm and private data: it draws the noisy answers of a plan's
mechanisms, and charges for them.  This one answers in the same way, and keeps the private values
that it released, the secret samples and the refused requests.  `ReplayGate` gives the recorded
answers again on other data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from accountant.errors import OffPlan, ParameterError
from accountant.ledger.gate import Gate
from accountant.ledger.interfaces import (
    Query,
    Releasable,
    Shape,
    ShapedQuery,
)
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan, Sampler


class Refusal(NamedTuple):
    """A request that a gate refused."""

    position: int  # after how many releases
    error: str  # the class of the error
    mechanism: Any  # the mechanism that was asked for, or its class; None for a request of users
    who: Users | None  # the users that were asked, in the local model


class GateWithRefusals(Gate):
    """A gate that records the requests it refuses, also if the algorithm catches the error.

    Whether a request is refused may depend on the data, so it must be the same in a replay.
    """

    def _admitted(
        self, mechanism: Releasable, query: Query, shape: Shape | None
    ) -> tuple[Any, ShapedQuery]:
        with self._refusals_kept(type(mechanism)):
            return super()._admitted(mechanism, query, shape)

    def _refuse_secret_sample(self, mechanism: Releasable) -> None:
        with self._refusals_kept(mechanism):
            super()._refuse_secret_sample(mechanism)

    def _checked_users(self, who: Any) -> Users:
        with self._refusals_kept(None):
            return super()._checked_users(who)

    def _refuse_within_a_query(self, mechanism: Releasable | Plan) -> None:
        with self._refusals_kept(mechanism):
            super()._refuse_within_a_query(mechanism)

    def _charge(self, mechanism: Releasable, who: Users | None) -> None:
        with self._refusals_kept(mechanism, who):
            super()._charge(mechanism, who)

    @contextmanager
    def _refusals_kept(self, mechanism: Any, who: Users | None = None) -> Iterator[None]:
        """Record an error that refuses a request, and let it pass."""
        try:
            yield
        except (OffPlan, ParameterError) as error:
            self._keep_refusal(type(error).__name__, mechanism, who)
            raise

    @abstractmethod
    def _keep_refusal(self, error: str, mechanism: Any, who: Users | None) -> None:
        """Record a refused request: the error's name, the mechanism or its class, the users."""


class RecordingLedger(GateWithRefusals, Ledger):
    """A ledger that also keeps the private values it released; for audits only."""

    def __init__(
        self, data: Any, plan: Any, rng: Any, public: Any, undeclared: bool = False
    ) -> None:
        super().__init__(data, plan, rng=rng, public=public, undeclared=undeclared)
        self.records = self._data
        self.values: list[Any] = []  # one for each entry of the transcript
        self.samples: list[Users] = []  # the secret samples, in the order in which they were drawn
        self.refusals: list[Refusal] = []
        self.takes_undeclared = undeclared

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        try:
            return super()._answer(mechanism, query, who)
        finally:
            # A release whose query failed has an entry in the transcript, and None as its value.
            self.values += [None] * (len(self._entries) - len(self.values))

    def _answer_blocks(
        self,
        mechanism: Releasable,
        query: ShapedQuery,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Any]:
        # The blocks are answered in this thread, which records their values; each block has its
        # own generator, as in the ledger.
        del executor
        stream = self._noise
        try:
            for who in charged:
                self._noise = np.random.default_rng(self._block_seed())
                yield self._answer(mechanism, query, who)
                self._noise = stream
        finally:
            self._noise = stream

    def _draw(self, mechanism: Releasable, value: Any) -> Any:
        # A copy is kept, as a query may return an array that it later changes.
        self.values.append(np.array(value))
        return super()._draw(mechanism, value)

    def _sample(self, sampler: Sampler) -> Users:
        self.samples.append(super()._sample(sampler))
        return self.samples[-1]

    def _keep_refusal(self, error: str, mechanism: Any, who: Users | None) -> None:
        self.refusals.append(Refusal(len(self._entries), error, mechanism, who))


def same_users(one: Users | None, other: Users | None) -> bool:
    """Whether two requests name the same users; None is a release of all at once."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and np.array_equal(one, other)
        )
    return one == other
