"""Running totals of privacy costs, and the base class of the notions of privacy that add them up.

A notion says what number a release costs (its epsilon, its rho, ...), how costs add up while the
answers may choose what comes next, and which total a budget allows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from accountant.accountants.basic import DECIMAL_CONTEXT, float_floor, printed_decimal
from accountant.accountants.budget import TOLERANCE, Budget
from accountant.errors import BudgetExceeded, ParameterError, UnsupportedPlan
from accountant.losses.loss import Loss, single_loss
from accountant.numerics.search import (
    geometric_mean,
    grow_until,
    least_float_that,
    least_integer_that,
)
from accountant.plans.declared_releases import MOST_REMEMBERED, undeclared_part
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Repeat

Amount = TypeVar("Amount")
MOST_REPEATS = 10**9  # the largest number of repetitions that `remaining` returns
LARGEST_NOISE_FACTOR = 1e6  # a refusal suggests at most this many times the noise
FACTOR_PRECISION = 1e-6  # relative precision of the suggested factor


class Total(NamedTuple, Generic[Amount]):
    """The sum of the costs, and that of the masses at infinity, so far.

    The mass at infinity of a loss is the probability of outcomes that are impossible on the
    neighbour.  Both sums are decimals in pure privacy, floats or arrays in other notions.
    """

    spent: Amount  # the sum of what a notion adds up: epsilons, rhos, ...
    infinity: Any


class Spending(NamedTuple):
    """A total as a person reads it: its unit, the amount spent, and the limit."""

    unit: str
    amount: float
    limit: float


def largest_total(totals: Iterable[Total[Any]]) -> Total[Any]:
    """Return, for each coordinate, the largest total; the first of equal ones."""
    first_total, *others = totals
    if not others:
        return first_total
    spent, infinity = zip(first_total, *others, strict=True)
    if isinstance(spent[0], tuple):
        return Total(type(spent[0])(*map(max, *spent, spent[0])), max(infinity))
    if isinstance(spent[0], np.ndarray):
        return Total(np.maximum.reduce(spent), max(infinity))
    return Total(max(spent), max(infinity))


def is_at_least(total: Total[Any], other: Total[Any]) -> bool:
    """Return whether a total is in each sum at least another one; NaN is at least nothing."""
    sums, other_sums = (
        [
            *(amounts.spent if isinstance(amounts.spent, tuple) else (amounts.spent,)),
            amounts.infinity,
        ]
        for amounts in (total, other)
    )
    return all(np.all(x >= y) for x, y in zip(sums, other_sums, strict=True))


@dataclass(frozen=True, slots=True)
class CompositionNotion(ABC, Generic[Amount]):
    """A notion of privacy in which costs add up, with a budget.

    ``limit`` is the largest total, the tolerance for round-off included.  ``order`` is a Rényi
    order, for the notions that have one.  A notion is immutable: totals are passed in and returned.
    """

    budget: Budget
    limit: Total[Amount]
    order: float | None = None
    # the results of `cost`, which every spend asks for
    _costs: dict[tuple[int, Plan], Total[Amount]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    # A total of this size leaves nothing to spend.  The tolerance may complete the last spend, but
    # nothing can be spent from it alone.
    full: Any = field(default=None, init=False, repr=False, compare=False)

    name: ClassVar[str]
    zero: ClassVar[Total[Any]]

    @abstractmethod
    def add(self, total: Total[Amount], cost: Total[Amount]) -> Total[Amount]:
        """Return the sum, which may exceed the limit."""

    @abstractmethod
    def times(self, cost: Total[Amount], count: int) -> Total[Amount]:
        """Return the cost of ``count`` releases of one cost."""

    @abstractmethod
    def epsilon(self, total: Total[Amount]) -> float:
        """Return the epsilon of a fixed plan of this total, rounded up, at the budget's delta."""

    @abstractmethod
    def shown(self, total: Total[Amount], unit: str | None = None) -> Spending:
        """Return the total as people read it; in ``unit``, where the notion keeps several."""

    @abstractmethod
    def how_often(self, cost: Total[Amount], total: Total[Amount]) -> int | None:
        """Return how many more releases of ``cost`` surely fit; None for no limit."""

    @abstractmethod
    def left(self, total: Total[Amount]) -> Amount:
        """Return what remains of each sum, without the tolerance, rounded down; at least 0."""

    def epsilon_left(self, total: Total[Amount]) -> float:
        """Return the epsilon at the budget's delta that a further plan may have; at least 0.

        It is what the epsilon of the total leaves of the budget, rounded down.  Where more than
        this could be spent, the epsilons of both parts would add up to more than the budget.
        """
        unspent = DECIMAL_CONTEXT.subtract(
            printed_decimal(self.budget.epsilon), printed_decimal(self.epsilon(total))
        )
        if total == self.zero:
            return float_floor(unspent)
        # In Gaussian privacy a small total has an epsilon of 0, and leaves less than the budget.
        return max(0.0, min(float_floor(unspent), self.largest_epsilon(self.left(total))))

    def largest_epsilon(self, unspent: Amount) -> float:
        """Return the largest epsilon of a plan that spends what `left` returned.

        The round-off of this epsilon is within the tolerance, which `left` leaves out.
        """
        return self.epsilon(Total(unspent, self.zero.infinity))

    @abstractmethod
    def with_more(self, increase: Amount) -> CompositionNotion[Amount]:
        """Return the notion whose limit is larger by ``increase``, and the budget that it keeps.

        Costs stay what they are; masses at infinity keep their limit.
        """

    @abstractmethod
    def encode(self, total: Total[Amount]) -> list[str]:
        """Return the total as strings that keep every bit."""

    @abstractmethod
    def decode(self, encoded: list[str]) -> Total[Amount]:
        """Return the total that `encode` encoded."""

    def exceeds(self, total: Total[Amount]) -> bool:
        """Return whether the total, or its mass at infinity, is above the limit."""
        spent: Any = total.spent
        return not (spent <= self.limit.spent and total.infinity <= self.limit.infinity)

    def refuses(self, before: Total[Amount], after: Total[Amount]) -> bool:
        """Return whether a spend must be refused: it is too large, or nothing remained before."""
        return self.exceeds(after) or (self.is_full(before) and after.spent != before.spent)

    def is_full(self, total: Total[Amount]) -> bool:
        """Return whether nothing remains."""
        return bool(total.spent >= self.full)

    def fails_by_infinity(self, total: Total[Amount]) -> bool:
        """Return whether the mass at infinity alone is above its limit."""
        without: Total[Amount] = Total(total.spent, self.zero.infinity)
        return self.exceeds(total) and not self.exceeds(without)

    def cost(self, plan: Plan) -> Total[Amount]:
        """Return the cost of a release or plan; raise `UnsupportedPlan` where it has none."""
        key = id(type(plan)), plan  # with the class, because another class may claim equality
        total_cost = self._costs.get(key)
        if total_cost is None:
            total_cost = self._cost(plan) if isinstance(plan, Loss) else self._plan_cost(plan)
            if len(self._costs) >= MOST_REMEMBERED:
                self._costs.clear()
            if undeclared_part(plan) is None:
                self._costs[key] = total_cost
        return total_cost

    def charge(self, total: Total[Amount], release: Plan) -> Total[Amount]:
        """Return the total after one release; raise `BudgetExceeded` above the limit."""
        cost = self._costs.get((id(type(release)), release)) or self.cost(release)
        after = self.add(total, cost)
        if self.refuses(total, after):
            raise self.refusal(total, cost, release)
        return after

    def remaining(self, total: Total[Amount], plan: Plan) -> int:
        """Return how many more times all of ``plan`` fits, up to `MOST_REPEATS`."""

        def exceeds(count: int) -> bool:
            return self.refuses(total, self.after(total, Repeat(plan, count)))

        low, high = grow_until(exceeds, 1, MOST_REPEATS)
        return least_integer_that(exceeds, low, min(high, MOST_REPEATS + 1)) - 1

    def after(self, total: Total[Amount], plan: Plan) -> Total[Amount]:
        """Return the total after all of ``plan``, which may exceed the limit."""
        if isinstance(plan, Loss):
            return self.add(total, self.cost(plan))
        for item, count in plan.losses():
            if count:
                total = self._after_item(total, item)
            # Repetitions are multiplied and not added one by one, which would take long while other
            # writers wait.
            if count > 1:
                single_cost = (
                    self._after_item(self.zero, item) if isinstance(item, Parallel) else None
                )
                single_cost = single_cost or self.cost(single_loss(item))
                total = self.add(total, self.times(single_cost, count - 1))
        return total

    @abstractmethod
    def _cost(self, loss: Loss) -> Total[Amount]:
        """Return the cost of one release of ``loss``."""

    def _plan_cost(self, plan: Plan) -> Total[Amount]:
        items = list(plan.losses())
        if len(items) == 1 and items[0][1] == 1 and isinstance(items[0][0], Loss):
            return self.cost(items[0][0])
        return self.after(self.zero, plan)

    def _after_item(self, total: Total[Amount], item: Item) -> Total[Amount]:
        if isinstance(item, Parallel):
            # Each user is in one of the parts, so the largest total over the parts counts.
            ends: list[Total[Amount]] = [self.after(total, part) for part in item.distinct]
            return largest_total([total, *ends])
        return self.add(total, self.cost(single_loss(item)))

    def refusal(self, total: Total[Amount], cost: Total[Amount], plan: Plan) -> RuntimeError:
        """Return the error for a plan, or a mechanism, that does not fit."""
        unit, _, limit = self.shown(self.add(total, cost))
        spent, requested = self.shown(total, unit).amount, self.shown(cost, unit).amount
        # Users may not spend the tolerance for round-off, so where only that is left the message
        # shows what was spent as the limit.
        if limit * (1 - 4 * TOLERANCE) <= spent <= limit - requested:
            limit = spent
        return BudgetExceeded(spent, requested, self.budget, unit, limit, self._remedy(total, plan))

    def _remedy(self, total: Total[Amount], plan: Plan) -> str:
        """Return a message on what would fit."""

        def fits(candidate: Plan) -> bool:
            return not self.refuses(total, self.after(total, candidate))

        if self.is_full(total):
            return "nothing more fits"
        wider = with_noise_that_fits(plan, fits)
        remedies = [wider or "only a release that costs less than what is left fits"]
        return "; ".join([*remedies, *self._other_notions(plan)])

    def _other_notions(self, plan: Plan) -> list[str]:
        """Return messages on notions in which the plan costs less."""
        del plan
        return []


def worse_direction(loss: Loss, cost_of: Callable[[Loss], float]) -> float:
    """Return the larger of both directions; refuse negative values and NaN."""
    costs = cost_of(loss), cost_of(loss.reversed)
    if not all(cost >= 0 for cost in costs):
        raise UnsupportedPlan(
            loss, "a filter", "it states a cost below 0, or none that is a number"
        )
    return max(costs)


def with_noise_that_fits(plan: Any, fits: Callable[[Plan], bool]) -> str:
    """Return words that name the same mechanism with enough noise; empty if there is none."""
    change = getattr(plan, "with_noise_factor", None)
    if change is None:
        return ""

    def fits_at(factor: float) -> bool:
        try:
            return fits(change(factor))
        # there is no such noise, or it has no cost, or the mechanism declares no parameter
        except (ParameterError, UnsupportedPlan, TypeError):
            return False

    if not fits_at(LARGEST_NOISE_FACTOR):
        return ""
    factor = least_float_that(
        fits_at, 1.0, LARGEST_NOISE_FACTOR, relative=FACTOR_PRECISION, mean=geometric_mean
    )
    return f"{change(factor)!r} fits"
