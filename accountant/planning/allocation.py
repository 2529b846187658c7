"""The allocation of a budget to releases: how much noise each should have.

It is planned before the data are used.  Lagrange multipliers give the proportions of the scales
with the least weighted error (`lagrangian_scales`).  Then all are multiplied by one factor, at
which the epsilon of an exact accountant is that of the budget.

Release i is released n_i times, has the weight w_i and the error E_i, and costs K_i(a): a times its
Rényi divergence of order a + 1, its cumulant.  One order a decides delta (see `_excess`).  Where
sum n_i w_i E_i is least at a given delta, two derivatives by ln scale_i have the same ratio for all
i, the multiplier:

    saving   -n_i dK_i / d ln scale_i   (how much cost a larger scale saves)
    harm     n_i w_i dE_i / d ln scale_i   (how much error it adds)

K_i and E_i are nearly powers of the scale, with the exponents -fall_i and rise_i.  So each step of
the search solves for powers with the present exponents.

Exact accountants are faster with few different losses.  So if there are many different scales, they
are rounded to a logarithmic grid: each of its points is 9 % above the last one, so that no scale
moves by more than 4.4 %, and not all move one way.  The error is least at the exact scales, so that
only the squares of the relative moves matter.  Where the error is a multiple of the scale and the
cost a sum of 1 / scale^2, as of Gaussians, it grows by 3/2 of their mean, about 0.1 %.

Reference: Boyd & Vandenberghe (2004), Sections 4.5 (geometric programs) and 5.5 (multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import cast, final

import numpy as np

from accountant.accountants.budget import Budget
from accountant.accountants.direction import CHOSEN
from accountant.accountants.tight import Tight
from accountant.composition.plan_totals import fold_plan, infinity_mass
from accountant.errors import BudgetExceeded, ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot, ordered_sum
from accountant.numerics.search import least_float_that
from accountant.planning.allocation_table import Allocation, sequential_plan
from accountant.planning.calibration import calibrate
from accountant.planning.calibration_search import PlanCost
from accountant.planning.requests import Wanted
from accountant.plans.plan import Plan, Sequential, directions

MAX_EXACT_RELEASES = 64  # kinds of releases whose scales are not moved to the grid
LOG_GRID_STEP = math.log(2) / 8  # in ln scale, between neighbouring points of the grid
SEARCH_ACCOUNTANT = Tight(width=1e-6)  # a plan that it admits is admitted by a sharper one too
MARGIN = 1e-7  # relative to the budget's epsilon: the search aims at so much less
MAX_SECANT_STEPS = 8  # secant steps for the common factor before a calibration searches for it
# How much of the budget may be unused, relative to epsilon: with exact scales, and with scales on
# the grid, whose error is larger anyway.
UNUSED, UNUSED_ON_GRID = 1e-6, 1e-4
# Slopes of ln cost by ln factor: the first guess, and the flattest one that is believed.
USUAL_SLOPE, FLATTEST_SLOPE = -1.2, -0.1
# A scale of at least this share of the largest allowed one means that no budget is left.
ALL_OF_DOMAIN = 0.999
ULPS_TRIED = 4  # floats above a scale that are tried for one whose loss equals an earlier loss
# Of the search by Lagrange multipliers:
LOG_INFINITY = 700.0  # larger logarithms are replaced by this, as e^700 is still a float
# Multiples of the a at which delta is decided for Gaussian releases: the grid of orders.
ORDER_FACTORS = np.geomspace(0.02, 200.0, 56)
LOG_SCALE_STEP = 0.02  # in ln scale: differences over this step stand for derivatives
# Steps at most; in ln scale, the largest move of the last step, and the largest of any step.  The
# error of the scales is about the square of the last move.
MAX_LAGRANGIAN_STEPS, MOVE_TOLERANCE, MAX_MOVE = 30, 0.03, 3.0
# Distances in ln scale, both ways, at which a mechanism is sought where none is known yet.
JUMPS = (0.5, 1, 2, 4, 8, 16, 32)
FLATTEST = 1e-3  # smallest exponent of the powers of the scale


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

    def in_order(shared_scales: Sequence[float]) -> Plan:
        shared = dict(zip(free, shared_scales, strict=True))
        return sequential_plan(wanted, tuple(shared.get(i, scales[i]) for i in range(len(wanted))))

    shared_scales, epsilon = _shared_scales(sharing, settled, budget, in_order)
    for i, scale in zip(free, shared_scales, strict=True):
        # The remaining budget is within the round-off of accounting.
        if scale >= ALL_OF_DOMAIN * wanted[i].domain.high:
            remedy = "what is left would need more noise than the mechanism allows"
            raise BudgetExceeded(spent, 0.0, budget, remedy=remedy)
        scales[i] = scale
    return Allocation(wanted, tuple(scales), budget, epsilon)


def _shared_scales(
    requests: list[Wanted],
    fixed_plan: Plan,
    budget: Budget,
    in_order: Callable[[Sequence[float]], Plan],
) -> tuple[tuple[float, ...], float]:
    """Return the scales of the requests that share the rest of the budget, and epsilon of all.

    ``in_order`` returns the whole plan from these scales.

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
        merged = merged_losses(distinct, counts, fixed_plan, scales)
        # What is chosen with the answers before it costs by its place among them.
        is_chosen = any(isinstance(item, CHOSEN) for item, _ in merged.losses())
        return in_order([scales[i] for i in kind_of]) if is_chosen else merged

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
    for _ in range(MAX_SECANT_STEPS):
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


def lagrangian_scales(
    wanted: Sequence[Wanted], counts: Sequence[float], fixed_plan: Plan, budget: Budget
) -> Array:
    """Return a noise scale for each of ``wanted``, up to a common factor.

    Each is released as often as ``counts`` says, and ``fixed_plan`` is released too.  The caller
    finds the common factor.
    """
    orders = RenyiOrderGrid(counts, fixed_plan, budget)
    counts_array = np.array(counts, dtype=float)
    weights = np.array([request.weight for request in wanted], dtype=float)
    logs = np.array([orders.initial_log_scale + math.log(request.unit) for request in wanted])
    low, high = (
        np.log([getattr(request.domain, end) for request in wanted]) for end in ("low", "high")
    )
    valid_logs = np.full(logs.shape, np.nan)
    for _ in range(MAX_LAGRANGIAN_STEPS):
        logs = np.clip(logs, low, high)
        costs, falls, errors, rises = _costs_and_errors(wanted, orders, logs, valid_logs)
        valid_logs = logs.copy()
        # First all scales are multiplied by one factor that meets delta.
        log_factor, order = orders.common_log_factor(costs, falls)
        fall = falls[:, order]
        # The derivative of a power c scale^p by ln scale is p times the power.
        log_saving = np.log(counts_array * fall) + costs[:, order] - fall * log_factor
        log_harm = np.log(counts_array * weights * rises) + errors + rises * log_factor
        # Then each scale moves to where its log ratio is that of the multiplier.  The log ratio
        # falls by ``closing`` where ln scale grows by 1, so move = (log_ratio - log_multiplier) /
        # closing.  The cost falls by sum saving move, to first order.  That is to be 0, since delta
        # is met: so log_multiplier is the mean of the log ratios, weighted by saving / closing.
        log_ratio, closing = log_saving - log_harm, fall + rises
        share = np.exp(log_saving - log_saving.max()) / closing
        log_multiplier = ordered_dot(log_ratio, share) / share.sum()
        move = np.clip((log_ratio - log_multiplier) / closing, -MAX_MOVE, MAX_MOVE)
        logs = logs + log_factor + move
        # After a large common move the exponents are not those of the scales that were reached.
        if np.abs(move).max() < MOVE_TOLERANCE and abs(log_factor) < 1:
            break
    scales: Array = np.exp(np.clip(logs, low, high))
    return scales


def _costs_and_errors(
    wanted: Sequence[Wanted], orders: RenyiOrderGrid, logs: Array, valid_logs: Array
) -> tuple[Array, Array, Array, Array]:
    """Return (ln K, fall, ln E, rise) at each of ``logs``, the logarithms of the scales.

    The first two are matrices with a row for each release and a column for each order.  Where no
    mechanism has such a scale, ``logs`` is moved in place towards the last valid one, in
    ``valid_logs``, which is NaN before the first step.
    """
    rows = []
    for i, request in enumerate(wanted):
        # Some scales may have no mechanism.  Then others are tried, nearer to the last valid one.
        way_back = valid_logs[i] - logs[i]
        offsets = [0.0, way_back / 2, 0.9 * way_back, way_back]
        if math.isnan(way_back):  # none is known yet
            offsets = [0.0, *(sign * jump for jump in JUMPS for sign in (1, -1))]
        for offset in offsets:
            try:
                scales = math.exp(logs[i] + offset), math.exp(logs[i] + offset + LOG_SCALE_STEP)
                plans = [request.plan(s) for s in scales]
                log_cost, log_cost_after = map(orders.log_cost, plans)
                error, error_after = map(request.error_of, plans, scales)
            except ParameterError as wrong:
                if wrong.argument in {"error", "plan"}:  # no other scale helps
                    raise
                continue  # no mechanism has this noise
            logs[i] += offset
            break
        else:
            allowed = "mechanisms that exist at some scale"
            raise ParameterError("releases", request.label, allowed)
        if log_cost.min() >= LOG_INFINITY:
            allowed = "releases with a cost at this delta"
            raise ParameterError("releases", request.label, allowed)
        if not 0 < error <= error_after:
            raise ParameterError("error", error, "a positive number that grows with the scale")
        fall = (log_cost - log_cost_after) / LOG_SCALE_STEP
        rise = math.log(error_after / error) / LOG_SCALE_STEP
        rows.append((log_cost, fall, math.log(error), rise))
    costs, falls, errors, rises = (np.array(column) for column in zip(*rows, strict=True))
    return costs, np.maximum(falls, FLATTEST), errors, np.maximum(rises, FLATTEST)


@final
class RenyiOrderGrid:
    """A grid of Rényi orders a + 1 around the one at which a budget's delta is decided.

    ``counts`` are the numbers of the releases whose costs are given later; ``fixed_plan`` is
    released too.  ``initial_log_scale`` is the logarithm of a noise scale, in units of the
    sensitivity, from which the search for all scales starts.
    """

    def __init__(self, counts: Sequence[float], fixed_plan: Plan, budget: Budget) -> None:
        self._counts, self._budget = np.array(counts, float), budget
        # Gaussians with the total rho cost about epsilon = rho + 2 sqrt(rho nats), which is decided
        # at a = sqrt(nats / rho).  `root` is the sqrt(rho) that solves this, nats = ln(1 / delta).
        nats = -math.log(budget.delta) if budget.delta else 1.0
        root = budget.epsilon / (math.sqrt(nats + budget.epsilon) + math.sqrt(nats))
        self._orders_minus_one = (
            ORDER_FACTORS * math.sqrt(nats) / root if budget.delta else np.ones(1)
        )
        self.initial_log_scale = math.log(math.sqrt(float(self._counts.sum()) / 2) / root)
        self._fixed_cost = np.exp(self.log_cost(fixed_plan))
        if budget.delta:
            # The part of delta that the masses at infinity leave; at least a half, as the search
            # needs some.  The caller computes the cost of the scales anew.
            remaining_delta = max(budget.delta - infinity_mass(fixed_plan), budget.delta / 2)
            self._log_remaining_delta = math.log(remaining_delta)

    @np.errstate(all="ignore")  # some orders are beyond the range of floats
    def log_cost(self, plan: Plan) -> Array:
        """Return ``ln K`` of the worse direction at every order; ``ln epsilon`` if delta is 0."""
        a, pure = self._orders_minus_one, not self._budget.delta

        def fact(loss: Loss) -> Array | float:
            return loss.max_loss if pure else loss.renyi(a + 1)

        items = list(plan.losses())
        if all(isinstance(item, Loss) and item.reversed is item for item, _ in items):
            direction_costs = [sum(n * fact(cast("Loss", item)) for item, n in items) * a]
        else:
            direction_costs = [fold_plan(direction, fact) * a for direction in directions(plan)]
        worst = np.maximum.reduce(direction_costs) * np.ones_like(a)
        logs: Array = np.clip(np.log(np.nan_to_num(worst, nan=np.inf)), -LOG_INFINITY, LOG_INFINITY)
        return logs

    def common_log_factor(self, costs: Array, falls: Array) -> tuple[float, int]:
        """Return ln of the factor of all scales that meets delta, and the deciding order's index.

        ``costs`` and ``falls`` are the ln K and their slopes of `_costs_and_errors`.
        """

        def is_within(log_factor: float) -> bool:
            excess, _ = self._excess(costs, falls, log_factor)
            return excess <= 0

        # 27 halvings of 120 nats leave 1e-6.
        log_factor = least_float_that(is_within, low=-60.0, high=60.0, steps=27)
        _, order = self._excess(costs, falls, log_factor)
        return log_factor, order

    def _excess(self, costs: Array, falls: Array, log_factor: float) -> tuple[float, int]:
        """Return how far ln delta is above its target, and the index of the deciding order.

        With a delta of 0 it is how far the sum of the epsilons is above that of the budget.
        """
        a, epsilon = self._orders_minus_one, self._budget.epsilon
        total_cost = self._fixed_cost + ordered_sum(
            self._counts, np.exp(np.minimum(costs - falls * log_factor, LOG_INFINITY))
        )
        if not self._budget.delta:
            return float(total_cost[0] - epsilon), 0
        # With K the total cost, delta is about e^h / sqrt(2 pi h'') at the saddle point, which is
        # the a with the least h(a) = K(a) - a epsilon - ln a - ln(1 + a).
        h = total_cost - a * epsilon - np.log(a) - np.log1p(a)
        saddle = min(max(int(np.argmin(h)), 1), a.size - 2)  # an index with two neighbours
        around = slice(saddle - 1, saddle + 2)
        slopes = np.diff(h[around]) / np.diff(a[around])
        bend = max(2 * float(slopes[1] - slopes[0]) / (a[saddle + 1] - a[saddle - 1]), 1e-300)
        log_delta = float(h[saddle]) - math.log(2 * math.pi * bend) / 2
        return log_delta - self._log_remaining_delta, saddle
