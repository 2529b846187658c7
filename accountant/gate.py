"""What an algorithm sees: a gate to data it never holds.

The ledger is the gate that spends; an audit's replay is one that hands back what was recorded.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from accountant.data import Users, checked_data, checked_users, first_array, number, rows
from accountant.errors import OffPlan, ParameterError, PrivateValueError
from accountant.plan import Plan, Sequential, as_plan
from accountant.protocols import Meter, Query, Releasable
from accountant.sampled import PoissonSampled
from accountant.walk import Walk


class Gate(ABC):
    """Data, plan, public facts and public coins; every gate charges its meter first.

    ``coins`` is public randomness, made from ``coin_words`` alone.
    """

    def __init__(
        self,
        data: Any,
        plan: Plan | None,
        public: Any,
        coin_words: Sequence[int],
        meter: Meter | None = None,
    ) -> None:
        self._data = checked_data("data", data)
        self._users = first_array(self._data).shape[0]
        # a plan is walked; without one, whatever is asked must fit the meter
        self._meter = Walk(as_plan(plan), self._users) if meter is None else meter
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._answering = False
        self.plan: Plan = Sequential(()) if plan is None else plan
        self.public = public
        self.coin_words = tuple(coin_words)
        self.coins = np.random.default_rng(np.random.SeedSequence(self.coin_words))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the public array where there is one, else of the data."""
        return first_array(self._data if self.public is None else self.public).shape

    @property
    def next(self) -> Plan | None:
        """The leaf of the plan that may be released next; None when all is spent."""
        return self._meter.next

    @final
    def release(self, mechanism: Releasable, query: Query) -> Any:
        """Charge ``mechanism`` to the plan, then look at the data and release ``query(data)``.

        Raises `OffPlan` before anything is spent, looked at or drawn.  A query that fails is
        charged; one that asks the gate itself is refused.  The answer is read-only.  The query of
        a `PoissonSampled` mechanism gets the rows of a secret sample, none at all now and then.
        """
        return self._pass(mechanism, query, None)

    @final
    def release_each(self, mechanism: Releasable, query: Query, who: Any = None) -> Any:
        """Let every user in ``who`` (all by default) randomise their own row of ``query(rows)``.

        ``who`` holds distinct indices, a mask or a slice; the query gets only their rows.  See
        `release`.
        """
        return self._pass(mechanism, query, checked_users(who, self._users))

    @abstractmethod
    def _answer(self, mechanism: Releasable, query: Query, who: Users | None) -> Any:
        """Answer a request that was charged."""

    @abstractmethod
    def _sample(self, mechanism: PoissonSampled) -> Users:
        """The users in the secret sample of one release."""

    def _pass(self, mechanism: Releasable, query: Query, who: Users | None) -> Any:
        # not isinstance of the protocol: such a check costs as much as the draw
        if not (isinstance(mechanism, Plan) and hasattr(released(mechanism), "release")):
            allowed = "a mechanism: it has a loss and can release"
            raise ParameterError("mechanism", mechanism, allowed)
        if who is not None and sampled(mechanism) is not None:
            raise ParameterError("mechanism", mechanism, "released at once: the sample is secret")
        if not callable(query):
            raise ParameterError("query", query, "a function of the data")
        if os.getpid() != self._process:
            # two children would spend the plan twice, with the same noise
            raise OffPlan(mechanism, self.next, "this gate belongs to the process that forked")
        with self._lock:
            if self._answering:
                raise OffPlan(mechanism, self.next, "a query may not ask the gate itself")
            # Charge first, then look: whatever happens from here on, the release is spent.
            self._meter.charge(mechanism, who)
            self._answering = True
            try:
                return self._answer(mechanism, query, who)
            finally:
                self._answering = False

    def _value(self, mechanism: Releasable, query: Query, who: Users | None) -> Any:
        """The query's value: one that a single release pays for, or one for each user."""
        sample = sampled(mechanism)
        seen = who if sample is None else self._sample(sample)
        asked = query(self._data if seen is None else rows(self._data, seen))
        try:  # the mechanism gets the very array whose shape is checked here
            value = np.asarray(asked)
        except ValueError:
            raise PrivateValueError("value", "rectangular, not ragged") from None
        axes, shape = released(mechanism).value_axes, np.shape(value)
        if who is None:
            if axes is not None and len(shape) != axes:
                raise PrivateValueError("value", f"a single one, with {axes} axes")
        elif shape[:1] != (number(who),) or (axes is not None and len(shape) != axes + 1):
            raise PrivateValueError("value", f"one for each of {number(who)} users")
        return value


def sampled(mechanism: object) -> PoissonSampled | None:
    """The mechanism, if it is one that sees a sample."""
    return mechanism if isinstance(mechanism, PoissonSampled) else None


def released(mechanism: Any) -> Any:
    """What draws the noise: the mechanism itself, or the one that sees a sample."""
    sample = sampled(mechanism)
    return mechanism if sample is None else sample.part
