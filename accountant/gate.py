"""What an algorithm sees: a gate to data it never holds.

The ledger is the gate that spends; an audit's replay is one that hands back what was recorded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from accountant.data import Users, checked_data, first_array
from accountant.loss import Loss
from accountant.plan import Plan

Query = Callable[[Any], Any]


class Releasable(Protocol):
    """A mechanism, as far as a ledger must know: it has a loss and can release a value."""

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        ...

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """Release the value with noise."""
        ...


class Gate(ABC):
    """Data, plan, public facts and public coins; what `release` does is each gate's own."""

    def __init__(self, data: Any, plan: Plan, public: Any, coins: np.random.SeedSequence) -> None:
        self._data = checked_data("data", data)
        self.plan = plan
        self.public = public
        self.coins_seed = coins
        self.coins = np.random.default_rng(coins)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the public array where there is one, else of the data."""
        return first_array(self._data if self.public is None else self.public).shape

    @abstractmethod
    def release(self, mechanism: Releasable, query: Query) -> Any:
        """Charge ``mechanism`` to the plan, then look at the data and release ``query(data)``.

        Raises `OffPlan` before anything is spent, looked at or drawn.  A query that fails is
        charged.  The answer is read-only.
        """

    @abstractmethod
    def release_each(self, mechanism: Releasable, query: Query, who: Any = None) -> Any:
        """Let every user in ``who`` (all by default) randomise their own row of ``query(rows)``.

        ``who`` holds distinct indices, a mask or a slice; the query gets only their rows.
        """


class Entry(NamedTuple):
    """One line of a transcript; ``output`` is the answer, its digest, None if it failed."""

    mechanism: Releasable
    who: Users | None
    output: Any
