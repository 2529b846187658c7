"""How many more releases of a kind fit into what is left of a budget."""

from __future__ import annotations

from accountant.accountants.budget import Budget
from accountant.plans.plan import Plan, Repeat, Sequential

MOST = 10**6


def room(plan: Plan, extra: Plan, budget: Budget) -> int:
    """How many of ``extra`` fit beside ``plan`` by its exact cost, up to a million."""

    def fits(count: int) -> bool:
        return budget.admits(Sequential([plan, Repeat(extra, count)]))

    low, high = 0, 1
    while fits(high):
        if high >= MOST:
            return MOST
        low, high = high, min(4 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
