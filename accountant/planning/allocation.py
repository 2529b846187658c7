"""How much noise each release should have: planned before the data are used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from accountant.accountants.budget import Budget
from accountant.errors import BudgetExceeded, ParameterError
from accountant.planning.allocation_table import Allocation, sequential_plan
from accountant.planning.common_factor import common_factor
from accountant.planning.lagrangian import lagrangian_scales
from accountant.planning.requests import Wanted
from accountant.planning.scale_grid import MAX_EXACT_RELEASES, scales_at, snap_to_grid
from accountant.plans.plan import Plan, Sequential


def allocate(releases: Iterable[Wanted], budget: Budget) -> Allocation:
    """Return the noise scales of least weighted error whose exact cost is within the budget.

    It minimises the sum of count times weight times error.  Releases with a scale or a target
    come first; the rest share what is left, equal ones equally.  Where more than 64 share,
    scales are moved by up to 4.4 % to fewer different ones.  Never sees data.

    Parameters
    ----------
    releases : iterable of Wanted
        What is to be released.
    budget : Budget
        What it may cost in all.

    Returns
    -------
    Allocation
        The scales; its ``epsilon`` is rounded up and never above the budget's.

    Raises
    ------
    BudgetExceeded
        If the releases whose noise is settled cost more than the budget.

    Examples
    --------
    >>> from accountant import Budget, Deviation, Wanted, allocate
    >>> from mechanisms import Gaussian
    >>> found = allocate([Wanted(Gaussian, Deviation(), weight=1.0, count=4)], Budget(1.0, 1e-6))
    >>> round(found.scales[0], 2), found.epsilon <= 1.0
    (8.45, True)
    """
    wanted = _checked_requests(releases)
    if not isinstance(budget, Budget):
        raise ParameterError("budget", budget, "a Budget")
    scales: list[float | None] = [release.settled for release in wanted]
    free = [i for i, release in enumerate(wanted) if release.weight is not None]
    fixed = [i for i, release in enumerate(wanted) if release.weight is None]
    settled = sequential_plan(tuple(wanted[i] for i in fixed), tuple(scales[i] for i in fixed))
    spent = budget.check(settled)
    if not free:
        return Allocation(wanted, tuple(scales), budget, spent)
    if spent >= budget.epsilon:
        remedy = "the releases of fixed noise leave nothing for those that share the rest"
        raise BudgetExceeded(spent, 0.0, budget, remedy=remedy)
    sharing = [wanted[i] for i in free]
    shared_scales, epsilon = _shared_scales(sharing, settled, budget)
    for i, scale in zip(free, shared_scales, strict=True):
        # The remaining budget is within the round-off of accounting.
        if scale >= 0.999 * wanted[i].domain.high:
            remedy = "what is left would need more noise than the mechanism allows"
            raise BudgetExceeded(spent, 0.0, budget, remedy=remedy)
        scales[i] = scale
    return Allocation(wanted, tuple(scales), budget, epsilon)


def _shared_scales(
    requests: list[Wanted], fixed_plan: Plan, budget: Budget
) -> tuple[tuple[float, ...], float]:
    """Return shared scales, in proportion and then multiplied by one factor, and their cost."""
    kinds: dict[Hashable, int] = {}
    kind_of = [kinds.setdefault(request.kind, len(kinds)) for request in requests]
    counts = np.bincount(kind_of, [request.count for request in requests]).tolist()
    distinct = [requests[kind_of.index(i)] for i in range(len(kinds))]
    optimal_scales = lagrangian_scales(distinct, counts, fixed_plan, budget)
    units = [request.unit for request in distinct]
    is_exact = len(kinds) <= MAX_EXACT_RELEASES
    relative_scales = optimal_scales / units if is_exact else snap_to_grid(optimal_scales, units)

    def plan(factor: float) -> Plan:
        scales = scales_at(distinct, relative_scales, factor)
        return merged_losses(distinct, counts, fixed_plan, scales)

    factor, epsilon = common_factor(plan, budget, 1e-6 if is_exact else 1e-4)
    scales = scales_at(distinct, relative_scales, factor)
    return tuple(scales[i] for i in kind_of), epsilon


def merged_losses(
    distinct: Sequence[Wanted], counts: Sequence[float], fixed_plan: Plan, scales: Sequence[float]
) -> Plan:
    """Return all releases as losses with counts, since their cost is computed many times."""
    total = dict(fixed_plan.losses())
    for release, scale, count in zip(distinct, scales, counts, strict=True):
        for item, times in release.plan(scale).losses():
            total[item] = total.get(item, 0) + times * int(count)
    return Sequential([item * n for item, n in total.items()])


def _checked_requests(releases: Iterable[Wanted]) -> tuple[Wanted, ...]:
    if not isinstance(releases, Iterable):
        raise ParameterError("releases", releases, "a list of Wanted releases")
    requests = tuple(releases)
    for request in requests:
        if not isinstance(request, Wanted):
            raise ParameterError("releases", request, "a list of Wanted releases")
    if not requests:
        raise ParameterError("releases", requests, "at least one Wanted release")
    return requests
