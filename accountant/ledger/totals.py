"""Running totals as values, and what all notions that add them up have in common."""

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
    """What was added up, and the masses at infinity: decimals when pure, floats otherwise."""

    spent: Amount
    infinity: Amount


def largest_total(totals: Iterable[Total[Any]]) -> Total[Any]:
    """Coordinate by coordinate the largest; the first of equal ones."""
    spent, infinity = zip(*totals, strict=True)
    return Total(max(spent), max(infinity))


@dataclass(frozen=True, slots=True)
class CompositionNotion(ABC, Generic[Amount]):
    """What a loss costs, how costs add up, and the ``limit`` of their total.

    A value: totals are passed to it and returned by it.  ``order`` is a Rényi order, for the
    notion that has one.
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
        """What the total counts."""

    @abstractmethod
    def add(self, total: Total[Amount], cost: Total[Amount]) -> Total[Amount]:
        """The sum, whatever the limit."""

    @abstractmethod
    def times(self, cost: Total[Amount], count: int) -> Total[Amount]:
        """What ``count`` releases of one cost add."""

    @abstractmethod
    def epsilon(self, total: Total[Amount]) -> float:
        """The epsilon at the budget's delta that a fixed plan of this total has, rounded up."""

    @abstractmethod
    def encode(self, total: Total[Amount]) -> list[str]:
        """The total as two strings that give it back to the last bit."""

    @abstractmethod
    def decode(self, words: list[str]) -> Total[Amount]:
        """What `encode` was given."""

    def cost(self, loss: Loss) -> Total[Amount]:
        """What one release of ``loss`` adds; raises `UnsupportedPlan` where it has no cost."""
        known = self._costs.get(loss)
        if known is None:
            known = self._costs[loss] = self._cost(loss)
        return known

    def exceeds(self, total: Total[Amount]) -> bool:
        """Whether the total is above the limit: what was spent, or its mass at infinity."""
        (spent, infinity), (most, most_infinity) = total, self.limit
        return not (spent <= most and infinity <= most_infinity)

    def charge(self, total: Total[Amount], loss: Loss) -> Total[Amount]:
        """The total after one release of ``loss``; raises `BudgetExceeded` above the limit."""
        cost = self._costs.get(loss) or self.cost(loss)
        after = self.add(total, cost)
        if self.exceeds(after):
            raise self._refusal(loss, total, cost)
        return after

    def spend(self, total: Total[Amount], plan: Plan) -> Total[Amount]:
        """The total after all of ``plan``; raises `BudgetExceeded` above the limit."""
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
        """See `cost`."""

    def _refusal(self, loss: Loss, total: Total[Amount], cost: Total[Amount]) -> RuntimeError:
        """Why one release of ``loss`` does not fit."""
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
    """The larger of both directions; what is negative would refund, what is NaN never ends."""
    facts = cost_of(loss), cost_of(loss.reversed)
    if not all(one >= 0 for one in facts):
        raise UnsupportedPlan(
            loss, "a filter", "it states a cost below 0, or none that is a number"
        )
    return max(facts)
