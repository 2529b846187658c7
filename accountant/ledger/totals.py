"""Running totals as values, and the base class of the notions that add them up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from accountant.accountants.budget import Budget
from accountant.errors import BudgetExceeded, UnsupportedPlan
from accountant.losses.loss import Loss, single_loss
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan

Amount = TypeVar("Amount", Decimal, float)


class Total(NamedTuple, Generic[Amount]):
    """The sum so far, and the masses at infinity: decimals when pure, floats otherwise."""

    spent: Amount
    infinity: Amount


def largest_total(totals: Iterable[Total[Any]]) -> Total[Any]:
    """Return, for each coordinate, the largest total; the first of equal ones."""
    spent, infinity = zip(*totals, strict=True)
    return Total(max(spent), max(infinity))


@dataclass(frozen=True, slots=True)
class CompositionNotion(ABC, Generic[Amount]):
    """The cost of a loss, the sum of costs, and the ``limit`` of their total.

    Immutable: totals are passed in and returned.  ``order`` is a Rényi order, for the notion that
    has one.
    """

    budget: Budget
    limit: Total[Amount]
    order: float | None = None
    # what `cost` worked out; it is asked for at every spend
    _costs: dict[Loss, Total[Amount]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    name: ClassVar[str]
    zero: ClassVar[Total[Any]]
    adds_exactly: ClassVar[bool]  # if not, every sum is rounded up

    @property
    @abstractmethod
    def unit(self) -> str:
        """Return the unit of the total."""

    @abstractmethod
    def add(self, total: Total[Amount], cost: Total[Amount]) -> Total[Amount]:
        """Return the sum, whatever the limit."""

    @abstractmethod
    def times(self, cost: Total[Amount], count: int) -> Total[Amount]:
        """Return the cost of ``count`` releases of one cost."""

    @abstractmethod
    def epsilon(self, total: Total[Amount]) -> float:
        """Return the epsilon of a fixed plan of this total, rounded up, at the budget's delta."""

    @abstractmethod
    def encode(self, total: Total[Amount]) -> list[str]:
        """Return the total as two strings that keep every bit."""

    @abstractmethod
    def decode(self, words: list[str]) -> Total[Amount]:
        """Return the total that `encode` encoded."""

    def cost(self, loss: Loss) -> Total[Amount]:
        """Return the cost of one ``loss``; raise `UnsupportedPlan` where it has none."""
        known = self._costs.get(loss)
        if known is None:
            known = self._costs[loss] = self._cost(loss)
        return known

    def exceeds(self, total: Total[Amount]) -> bool:
        """Return whether the total, or its mass at infinity, is above the limit."""
        (spent, infinity), (most, most_infinity) = total, self.limit
        return not (spent <= most and infinity <= most_infinity)

    def charge(self, total: Total[Amount], loss: Loss) -> Total[Amount]:
        """Return the total after one ``loss``; raise `BudgetExceeded` above the limit."""
        cost = self._costs.get(loss) or self.cost(loss)
        after = self.add(total, cost)
        if self.exceeds(after):
            raise self._refusal(loss, total, cost)
        return after

    def spend(self, total: Total[Amount], plan: Plan) -> Total[Amount]:
        """Return the total after all of ``plan``; raise `BudgetExceeded` above the limit."""
        if isinstance(plan, Loss):
            return self.charge(total, plan)
        for item, count in plan.losses():
            if count:
                total = self._spend_item(total, item)
            if count > 1:  # at once: others wait for the book meanwhile
                more = self.times(self._item_cost(item), count - 1)
                after = self.add(total, more)
                if self.exceeds(after):
                    raise self._budget_exceeded(total, more)
                total = after
        return total

    @abstractmethod
    def _cost(self, loss: Loss) -> Total[Amount]:
        """Return the cost of one release of ``loss``."""

    def _refusal(self, loss: Loss, total: Total[Amount], cost: Total[Amount]) -> RuntimeError:
        """Return the error for one release of ``loss`` that does not fit."""
        del loss
        return self._budget_exceeded(total, cost)

    def _budget_exceeded(self, total: Total[Amount], cost: Total[Amount]) -> BudgetExceeded:
        if self.add(total, cost).spent <= self.limit.spent:
            return BudgetExceeded(float(total.infinity), float(cost.infinity), self.budget, "delta")
        return BudgetExceeded(float(total.spent), float(cost.spent), self.budget, self.unit)

    def _spend_item(self, total: Total[Amount], item: Item) -> Total[Amount]:
        if isinstance(item, Parallel):
            # a user pays for one part: the largest of what any of them comes to
            ends: list[Total[Amount]] = [self.spend(total, part) for part in item.distinct]
            return largest_total([total, *ends])
        return self.charge(total, single_loss(item))

    def _item_cost(self, item: Item) -> Total[Amount]:
        if isinstance(item, Parallel):
            return self._spend_item(self.zero, item)
        return self.cost(single_loss(item))


def worse_direction(loss: Loss, cost_of: Callable[[Loss], float]) -> float:
    """Return the larger of both directions; refuse negative values and NaN."""
    facts = cost_of(loss), cost_of(loss.reversed)
    if not all(one >= 0 for one in facts):
        raise UnsupportedPlan(
            loss, "a filter", "it states a cost below 0, or none that is a number"
        )
    return max(facts)
