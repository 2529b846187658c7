"""The allocation of a budget to releases: how much noise each should have.

It is planned before the data are used.  Lagrange multipliers give the proportions of the scales
with the least weighted error.  Then all are multiplied by one factor, at which the epsilon of an
exact accountant is that of the budget.

Exact accountants are faster with few different losses.  So if there are many different scales, they
are rounded to a logarithmic grid: each of its points is 9 % above the last one, so that no scale
moves by more than 4.4 %, and not all move one way.  The error is least at the exact scales, so that
only the squares of the relative moves matter.  Where the error is a multiple of the scale and the
cost a sum of 1 / scale^2, as of Gaussians, it grows by 3/2 of their mean, about 0.1 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.errors import BudgetExceeded, ParameterError
from accountant.numerics import Array
from accountant.planning.allocation_table import Allocation, sequential_plan
from accountant.planning.calibration import calibrate
from accountant.planning.calibration_search import PlanCost
from accountant.planning.lagrangian import lagrangian_scales
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan, Sequential

MAX_EXACT_RELEASES = 64  # kinds of releases whose scales are not moved to the grid
LOG_GRID_STEP = math.log(2) / 8  # in ln scale, between neighbouring points of the grid
SEARCH_ACCOUNTANT = Tight(width=1e-6)  # a plan that it admits is admitted by a sharper one too
MARGIN = 1e-7  # relative to the budget's epsilon: the search aims at so much less
MAX_STEPS = 8  # secant steps for the common factor before a calibration searches for it
# How much of the budget may be unused, relative to epsilon: with exact scales, and with scales on
# the grid, whose error is larger anyway.
UNUSED, UNUSED_ON_GRID = 1e-6, 1e-4
# Slopes of ln cost by ln factor: the first guess, and the flattest one that is believed.
USUAL_SLOPE, FLATTEST_SLOPE = -1.2, -0.1
# A scale of at least this share of the largest allowed one means that no budget is left.
ALL_OF_DOMAIN = 0.999
ULPS_TRIED = 4  # floats above a scale that are tried for one whose loss equals an earlier loss


def allocate(releases: Iterable[Wanted], budget: Budget) -> Allocation:
    """Return the noise scales of least weighted error whose exact cost is within the budget.

    It minimises the sum of count times weight times error.  Releases with a scale or a target
    come first; the rest share what is left, equal ones equally.  Where more than 64 kinds of
    releases share, scales are moved by up to 4.4 % to fewer different ones.  Never sees data.

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
    >>> shares = allocate([Wanted(Gaussian, Deviation(), weight=1.0, count=4)], Budget(1.0, 1e-6))
    >>> round(shares.scales[0], 2), shares.epsilon <= 1.0
    (8.45, True)
    """
    wanted = checked_requests(releases)
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
        if scale >= ALL_OF_DOMAIN * wanted[i].domain.high:
            remedy = "what is left would need more noise than the mechanism allows"
            raise BudgetExceeded(spent, 0.0, budget, remedy=remedy)
        scales[i] = scale
    return Allocation(wanted, tuple(scales), budget, epsilon)


def _shared_scales(
    requests: list[Wanted], fixed_plan: Plan, budget: Budget
) -> tuple[tuple[float, ...], float]:
    """Return the scales of the requests that share the rest of the budget, and epsilon of all.

    Requests of one kind, which agree in all but name and count, have the same scale.  A relative
    scale is over the request's unit.
    """
    # ``kind_of`` has the number of each request's kind; the search looks at one request of a kind.
    kinds: dict[Hashable, int] = {}
    kind_of = [kinds.setdefault(request.kind, len(kinds)) for request in requests]
    counts = np.bincount(kind_of, [request.count for request in requests]).tolist()
    distinct = [requests[kind_of.index(i)] for i in range(len(kinds))]
    optimal_scales = lagrangian_scales(distinct, counts, fixed_plan, budget)
    units = [request.unit for request in distinct]
    relative_scales = optimal_scales / units
    is_exact = len(kinds) <= MAX_EXACT_RELEASES
    if not is_exact:
        grid_points = np.round(np.log(relative_scales) / LOG_GRID_STEP)
        relative_scales = np.exp(LOG_GRID_STEP * grid_points)

    def plan(factor: float) -> Plan:
        scales = scales_at(distinct, relative_scales, factor)
        return merged_losses(distinct, counts, fixed_plan, scales)

    factor, epsilon = common_factor(plan, budget, UNUSED if is_exact else UNUSED_ON_GRID)
    scales = scales_at(distinct, relative_scales, factor)
    return tuple(scales[i] for i in kind_of), epsilon


def common_factor(
    plan_of: Callable[[float], Plan], budget: Budget, tolerance: float
) -> tuple[float, float]:
    """Return a factor near 1 and the plan's epsilon, at most ``tolerance`` below the budget's.

    A secant in logarithms of factor and epsilon finds it; where that fails, `calibrate` does.
    """
    target = budget.epsilon * (1 - MARGIN)
    cost = PlanCost(plan_of, lambda plan: SEARCH_ACCOUNTANT.epsilon(plan, budget.delta))
    aim = math.log(target * (1 - tolerance / 2))
    # The cost falls with the factor, about as 1 / factor; `slope` is that of ln cost by ln factor.
    log_factor, slope = 0.0, USUAL_SLOPE
    for _ in range(MAX_STEPS):
        epsilon = cost(math.exp(log_factor))
        if (1 - tolerance) * target <= epsilon <= target:
            return math.exp(log_factor), epsilon
        if not 0 < epsilon < math.inf:
            break
        log_excess = math.log(epsilon) - aim
        log_step = max(-1.0, min(1.0, -log_excess / slope))
        next_epsilon = cost(math.exp(log_factor + log_step))
        if not 0 < next_epsilon < math.inf or next_epsilon == epsilon or log_step == 0:
            break
        slope = min(math.log(next_epsilon / epsilon) / log_step, FLATTEST_SLOPE)
        log_factor += log_step
    factor = calibrate(plan_of, epsilon=target, delta=budget.delta, accountant=SEARCH_ACCOUNTANT)
    return factor, cost(factor)


def scales_at(wanted: Sequence[Wanted], relative_scales: Array, factor: float) -> tuple[float, ...]:
    """Return the scales of all of ``wanted``: unit times relative scale times the common factor.

    Equal losses of one mechanism come out as equal floats, so that accountants merge them.
    """
    losses_by_key: dict[Hashable, Hashable] = {}
    try:
        return tuple(
            _mergeable_scale(release, scale * factor, losses_by_key)
            for release, scale in zip(wanted, relative_scales.tolist(), strict=True)
        )
    except ParameterError as error:
        raise ParameterError("factor", factor, str(error)) from None


def _mergeable_scale(
    release: Wanted, relative_scale: float, losses_by_key: dict[Hashable, Hashable]
) -> float:
    """Return the scale, or a float just above it that has the loss of an earlier release."""
    nominal_scale = float(
        min(max(release.unit * relative_scale, release.domain.low), release.domain.high)
    )
    if not isinstance(release.family, type):
        return nominal_scale
    # A loss depends on the scale over the sensitivity: two releases of one relative scale may have
    # equal losses though their sensitivities differ.
    other_fields = tuple(pair for pair in release.fields if pair[0] != "sensitivity")
    key = (release.family, other_fields, relative_scale)
    scale = nominal_scale
    for _ in range(ULPS_TRIED):
        losses = tuple(release.plan(scale).losses())
        if losses_by_key.setdefault(key, losses) == losses:
            return scale
        scale = math.nextafter(scale, math.inf)
    return nominal_scale


def merged_losses(
    distinct: Sequence[Wanted], counts: Sequence[float], fixed_plan: Plan, scales: Sequence[float]
) -> Plan:
    """Return all releases as losses with counts, since their cost is computed many times."""
    total = dict(fixed_plan.losses())
    for release, scale, count in zip(distinct, scales, counts, strict=True):
        for item, times in release.plan(scale).losses():
            total[item] = total.get(item, 0) + times * int(count)  # a count is a whole float
    return Sequential([item * n for item, n in total.items()])


def checked_requests(releases: Iterable[Wanted]) -> tuple[Wanted, ...]:
    """Return the requests as a tuple, or raise `ParameterError`."""
    if not isinstance(releases, Iterable):
        raise ParameterError("releases", releases, "a list of Wanted releases")
    requests = tuple(releases)
    for request in requests:
        if not isinstance(request, Wanted):
            raise ParameterError("releases", request, "a list of Wanted releases")
    if not requests:
        raise ParameterError("releases", requests, "at least one Wanted release")
    return requests
