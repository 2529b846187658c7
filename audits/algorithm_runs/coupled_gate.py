"""One of two coupled runs: its own data, and the output that both runs receive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.ledger.gate import Gate
from accountant.ledger.immutable_arrays import fresh_view
from accountant.ledger.interfaces import Releasable, ShapedQuery, drawing_mechanism
from accountant.ledger.private_data import Users
from accountant.plans.plan import Plan, Sampler


@final
@dataclass(frozen=True, slots=True)
class PendingRelease:
    """A release that one of the runs asked for: its value and an output drawn for it, or an error.

    ``who`` are the users of the local model.
    """

    mechanism: Any
    who: Users | None
    value: Any = None
    output: Any = None
    error: Exception | None = None


class CoupledGate(Gate):
    """The gate of one run, which answers with the output that both runs share."""

    def __init__(
        self,
        data: Any,
        plan: Plan,
        public: Any,
        coin_words: Sequence[int],
        noise: np.random.Generator,
        samples: list[Users],
        exchange: Callable[[PendingRelease], Any],
    ) -> None:
        super().__init__(data, plan, public, coin_words)
        self.transcript: tuple[
            Any, ...
        ] = ()  # a fit stores the attribute; coupled runs never read it
        self._noise, self._samples, self._exchange = noise, samples, exchange

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        request = self._pending_release(mechanism, query, who)
        output = self._exchange(request)
        if request.error is not None:  # the algorithm sees the same error on the other data
            raise request.error
        return fresh_view(output)

    def _pending_release(
        self, mechanism: Releasable, query: ShapedQuery, who: Users | None
    ) -> PendingRelease:
        try:
            # a copy: a query may hand out its own working memory
            value = np.array(self._query_value(mechanism, query, who))
            output = drawing_mechanism(mechanism).release(value, self._noise)
        except Exception as error:  # a query may raise any exception
            return PendingRelease(mechanism, who, error=error)
        return PendingRelease(mechanism, who, value, output)

    def _sample(self, sampler: Sampler) -> Users:
        # the run that comes second takes the sample that the first one drew
        if self._samples:
            return self._samples.pop()
        drawn = sampler.select(self._users, self._noise)
        self._samples.append(drawn)
        return drawn
