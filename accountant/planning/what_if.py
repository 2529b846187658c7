"""What would another plan cost, or how exact would it be: questions that need no data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import final

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.amplification.group_privacy import Grouped
from accountant.domains import POSITIVE, RECORDS, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics.search import grow_until
from accountant.planning.allocation import allocate
from accountant.planning.allocation_table import Allocation
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan

MAX_RECORDS = 2**50


def with_more_records(releases: Iterable[Wanted], factor: float) -> tuple[Wanted, ...]:
    """The same releases of means over ``factor`` times as many records.

    The sensitivity of a mean is divided by ``factor``. Every release must be of a class with a
    sensitivity, and its noise must be wanted: fixed noise does not know what it is for.
    """
    factor = POSITIVE.check("factor", factor)
    return tuple(_with_larger_data(one, factor) for one in releases)


def _with_larger_data(one: Wanted, factor: float) -> Wanted:
    fields = dict(one.fields)
    if "sensitivity" not in fields:
        raise ParameterError("releases", one.label, "of a class that is given its sensitivity")
    fields["sensitivity"] = fields["sensitivity"] / factor
    return Wanted(
        one.family, one.error, count=one.count, scale=one.scale, target=one.target,
        weight=one.weight, name=one.name, **fields,
    )  # fmt: skip


def one_more(found: Allocation, release: Wanted) -> Allocation:
    """The same budget, shared with one release more; raises `BudgetExceeded` as `allocate`."""
    return allocate((*found.releases, release), found.budget)


def at_deltas(plan: Plan, deltas: Iterable[float]) -> tuple[tuple[float, float], ...]:
    """Pairs (delta, epsilon): what the plan costs at each delta."""
    return tuple((delta, Tight().epsilon(plan, delta)) for delta in deltas)


def for_groups(plan: Plan, delta: float, sizes: Iterable[int]) -> tuple[tuple[int, float], ...]:
    """Pairs (size, epsilon): what the plan promises to groups of people who all are in the data."""
    return tuple((size, Tight().epsilon(Grouped(plan, size), delta)) for size in sizes)


@final
@dataclass(frozen=True, slots=True)
class Needed:
    """``records`` suffice for the error; with fewer than ``lower`` no private algorithm has it.

    ``lower`` is None where nobody stated a lower bound.
    """

    records: int
    error: float
    lower: int | None = None

    def __str__(self) -> str:
        words = f"{self.records:,} records suffice for an error of {self.error:.6g}"
        if self.lower is None:
            return words
        return f"{words}; no private algorithm has it with fewer than {self.lower:,}"


def records_needed(
    releases: Sequence[Wanted],
    budget: Budget,
    which: int,
    target: float,
    records: int,
    lower_bound: Callable[[float, Budget], int] | None = None,
) -> Needed:
    """How many records bring the error of release number ``which`` down to ``target``.

    All ``releases`` are means whose sensitivities are stated for ``records``; the budget is shared
    anew for each number tried. ``lower_bound(target, budget)`` says what anybody would need.
    """
    target, records = POSITIVE.check("target", target), RECORDS.check("records", records)
    which = IntegerRange(0, len(releases) - 1).check("which", which)

    @functools.cache
    def error(n: int) -> float:
        found = allocate(with_more_records(releases, n / records), budget).errors[which]
        if found is None:
            raise ParameterError("which", which, "a release with an error measure")
        return found

    low, high = grow_until(lambda n: error(n) <= target, records, MAX_RECORDS)
    if error(high) > target:
        raise ParameterError("target", target, "an error that 2^50 records reach")
    while high - low > max(1, high // 10**6):
        # errors fall about as 1 / n: the guess is a little above what would suffice
        guess = int(high * error(high) / target * (1 + 1e-6)) + 1
        middle = guess if low < guess < high else (low + high) // 2
        low, high = (low, middle) if error(middle) <= target else (middle, high)
    bound = None if lower_bound is None else lower_bound(target, budget)
    return Needed(high, error(high), bound)
