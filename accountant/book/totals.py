"""What was spent as exact numbers that a log can hold, and what they amount to."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, NamedTuple

from accountant.accountants.basic import DECIMAL_CONTEXT, float_ceiling
from accountant.accountants.budget import Budget
from accountant.errors import BudgetExceeded
from accountant.ledger.composition_notions import INFINITY_SHARE, PureDPTotal, notion_of
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, single_loss
from accountant.losses.zcdp import ZCDPLoss
from accountant.numerics.rounding import round_up
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan


class Total(NamedTuple):
    """What was added up, and the masses at infinity: decimals when pure, floats otherwise."""

    spent: Any
    infinity: Any


class Totals:
    """Adds up one notion within one budget; it holds no total of its own."""

    def __init__(self, notion: str, budget: Budget, order: float | None = None) -> None:
        self.notion, self.budget = notion, budget
        if notion == "rdp" and order is None:  # the one that `notion_of` takes
            order = 1 + 2 * -math.log(budget.delta * (1 - INFINITY_SHARE)) / budget.epsilon
        self.order = order
        self._notion_total: Any = notion_of(notion, budget, order)
        self.unit = str(self._notion_total.unit)
        self.pure = isinstance(self._notion_total, PureDPTotal)
        self.zero = Total(Decimal(0), Decimal(0)) if self.pure else Total(0.0, 0.0)

    @property
    def limit(self) -> float:
        """The most that may be spent, in units of the notion."""
        return float(self.exact_limit)

    @property
    def exact_limit(self) -> Any:
        """The same as it is compared."""
        return self._notion_total._limit[0] if self.pure else self._notion_total.limit

    @property
    def infinity_limit(self) -> Any:
        """The most that the masses at infinity may add up to."""
        return self._notion_total._limit[1] if self.pure else self.budget.delta * INFINITY_SHARE

    def spend(self, total: Total, asked: Plan) -> Total:
        """The total after ``asked``; raises `BudgetExceeded` where the notion does."""
        self._set(total)
        self._spend(asked)
        return self._get()

    def cost(self, loss: Loss) -> Total:
        """What one release of ``loss`` adds; asked after it was spent."""
        known = self._notion_total._known[loss]
        if self.pure:
            return Total(*known)
        return Total(known, max(loss.infinity, loss.reversed.infinity))

    def add(self, total: Total, cost: Total) -> Total:
        """The same sum by the log alone, whatever the limit."""
        if self.pure:
            return Total(*(DECIMAL_CONTEXT.add(a, b) for a, b in zip(total, cost, strict=True)))
        return Total(math.nextafter(total.spent + cost.spent, math.inf), total[1] + cost[1])

    def epsilon(self, total: Total) -> float:
        """The epsilon at the budget's delta that a fixed plan of this total has, rounded up."""
        if self.pure:
            return float_ceiling(total.spent)
        spent, delta = total.spent, self.budget.delta * (1 - INFINITY_SHARE)
        if spent == 0:
            return 0.0
        if self.notion == "zcdp":
            return ZCDPLoss(spent).epsilon_at(delta)
        if self.notion == "gdp":
            return GaussianLoss(round_up(math.sqrt(spent))).epsilon_at(delta)
        a = float(self.order or 0) - 1
        # eps = divergence + [ln(1/delta) - a ln(1 + 1/a) - ln(1 + a)] / a
        rest = (-math.log(delta) - a * math.log1p(1 / a) - math.log1p(a)) / a
        return max(0.0, round_up(spent + rest, 16))

    def encode_total(self, total: Total) -> list[str]:
        """The total in words that give it back to the last bit."""
        if self.pure:
            return [str(total.spent), str(total.infinity)]
        return [float(total.spent).hex(), float(total.infinity).hex()]

    def decode_total(self, words: Any) -> Total:
        """What `encode_total` wrote."""
        kind = Decimal if self.pure else float.fromhex
        spent, infinity = words
        return Total(kind(spent), kind(infinity))

    def _spend(self, asked: Plan) -> None:
        if isinstance(asked, Loss):
            self._notion_total.spend(asked, self.budget)
            return
        for item, count in asked.losses():
            if not count:
                continue
            if isinstance(item, Parallel):
                self._spend_parallel(item)
            else:
                self._notion_total.spend(item, self.budget)
            if count > 1:
                self._spend_repeated(self._item_cost(item), count - 1)

    def _item_cost(self, item: Item) -> Total:
        if not isinstance(item, Parallel):
            return self.cost(single_loss(item))
        kept = self._get()
        self._set(self.zero)
        self._spend_parallel(item)
        cost = self._get()
        self._set(kept)
        return cost

    def _spend_repeated(self, cost: Total, times: int) -> None:
        # at once: others wait for the book meanwhile
        before = self._get()
        if self.pure:
            more = Total(*(DECIMAL_CONTEXT.multiply(one, times) for one in cost))
        else:  # each product is rounded up, and so is the sum
            more = Total(*(round_up(one * float(times), 4) for one in cost))
        after = self.add(before, more)
        if not after.spent <= self.exact_limit:
            raise BudgetExceeded(float(before.spent), float(more.spent), self.budget, self.unit)
        if not after.infinity <= self.infinity_limit:
            raise BudgetExceeded(float(before.infinity), float(more.infinity), self.budget, "delta")
        self._set(after)

    def _spend_parallel(self, node: Parallel) -> None:
        # a user pays for one part: the greatest of what any of them comes to
        start, ends = self._get(), []
        for part in node.distinct:
            self._set(start)
            self._spend(part)
            ends.append(self._get())
        self._set(Total(*(max(one) for one in zip(start, *ends, strict=True))))

    def _get(self) -> Total:
        adding = self._notion_total
        if self.pure:
            return Total(adding._total, adding._delta)
        return Total(adding.spent, adding._infinity)

    def _set(self, total: Total) -> None:
        adding = self._notion_total
        if self.pure:
            adding._total, adding._delta = total
            adding.spent = float(total.spent)
        else:
            adding.spent, adding._infinity = total
