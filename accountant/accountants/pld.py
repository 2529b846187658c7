"""Privacy-loss distributions on a grid: tight composition of any losses of a fixed plan.

The distribution of each loss is replaced by one on the multiples of a step, which has a larger
profile for an upper bound on epsilon, and a smaller one for a lower bound.  Independent losses add,
so their distributions are convolved, by the fast Fourier transform.  Mass beyond the ends of a grid
is moved to infinity, where it counts as delta.

References: Koskela, Jälkö & Honkela (2020); Doroshenko et al. (2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.accountants.rdp import RDP
from accountant.accountants.zcdp import ZCDP
from accountant.composition.loss_outline import Outline
from accountant.composition.plan_totals import all_losses, fold_plan, infinity_mass
from accountant.composition.pld_grid import (
    INTERVAL,
    MAX_GRID_POINTS,
    LawOnGrid,
    PLDGrid,
    convolve,
    spread_of,
    usual_step,
)
from accountant.composition.pld_of_many import grid_of_many, widest_sum
from accountant.domains import DELTA, EPSILON, Interval, each_checked
from accountant.errors import UnsupportedPlan
from accountant.losses.connect_the_dots import Profile
from accountant.losses.finite import dominated_pair, dominating_pair
from accountant.losses.loss import Loss, single_loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up
from accountant.numerics.search import smallest_root
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, as_plan, directions

GRID_DELTA = 1e-12  # a grid that serves all deltas is made for this one
# relative: so much above the mass at infinity a delta is raised that may be this mass itself
RAISED = 1e-9
WIDE = 100  # nats: where the bound by rho is above this, the sharper Rényi curve is asked as well
# nats: added to bounds on the width of the sum, so that a grid also holds narrow sums.  A grid that
# is too short would only move more mass to infinity.
ROOM = 1.0
FARTHEST = 1e6  # nats: the end of a parallel part is cut here
TAIL_SHARE = 1e-5  # of delta: at most this share is moved to infinity as the tail
TAIL_FLOOR = 1e-300  # the least tail, as its logarithm is taken: deltas below it get no epsilon
FAR = 30.0  # nats: a larger end of a loss may be round-off of its profile; RDP then bounds it too
# Share of the error of delta on a grid: upper points with less mass in all are left out of a part.
NEGLIGIBLE = 1e-2
# From so many different losses on, the law of each is taken at few points (`pld_of_many`).
MANY_LOSSES = 50


@final
@dataclass(frozen=True, slots=True)
class PLD(Accountant):
    """Privacy-loss distributions on a grid: numerical composition of a plan fixed in advance.

    Both parameters change how loose the bound is, never whether it holds.

    Parameters
    ----------
    interval : float
        Widest grid step in epsilon, in [1e-12, 1]; finer where the losses are small.
    tail : float
        Mass that may be moved to infinity, in (0, 1e-3).

    References
    ----------
    Koskela, Jälkö & Honkela (2020); Doroshenko, Ghazi, Kamath, Kumar & Manurangsi (2022).

    Examples
    --------
    >>> from accountant import GaussianLoss, PLD
    >>> round(PLD().epsilon(100 * GaussianLoss(0.1), delta=1e-6), 3)
    4.887
    """

    interval: float = INTERVAL
    tail: float = 1e-15

    def __post_init__(self) -> None:
        Interval(1e-12, 1.0).check("interval", self.interval)
        Interval(0.0, 1e-3, "()").check("tail", self.tail)

    def bracket(self, plan: Plan, delta: float) -> tuple[float, float]:
        """Return an interval around the epsilon of the losses' own pairs at ``delta``.

        Parameters
        ----------
        plan : Plan
            A plan, a loss or a mechanism.
        delta : float
            In [0, 1).

        Returns
        -------
        tuple of float
            Lower end, rounded down, and upper end, rounded up.  The lower end is 0 where a loss is
            an envelope, or the maximum of parallel parts, that no single pair attains.
        """
        plan, delta = as_plan(plan), DELTA.check("delta", delta)
        # Epsilon falls with delta, so its lower end at a larger delta is one at this delta.
        lower, grid_delta = 0.0, max(delta, GRID_DELTA)
        for direction in directions(plan):
            grid = self._grid(direction, grid_delta, upper=False)
            raised_delta = grid_delta + grid.delta_error
            # Where round-off decides whether delta is above the mass at infinity, it is raised.
            if abs(raised_delta - grid.infinity) <= RAISED * raised_delta:
                raised_delta = grid.infinity * (1 + RAISED)
            lower = max(lower, grid.epsilon(raised_delta) if raised_delta < 1 else 0.0)
        has_parts = any(
            isinstance(item, Parallel) and len(item.distinct) > 1 for item, _ in plan.losses()
        )
        if has_parts or any(loss.numerics.is_upper_envelope for loss, _ in all_losses(plan)):
            lower = 0.0
        return lower, self.epsilon(plan, delta)

    def epsilons(self, plan: Plan, deltas: Sequence[float] | Array) -> Array:
        """Return upper bounds on epsilon at many deltas, from the grid the smallest one needs."""
        plan, checked_deltas = as_plan(plan), each_checked(DELTA, "deltas", deltas)
        epsilon_at_zero = self.epsilon(plan, 0.0) if 0.0 in checked_deltas else math.inf
        smallest = min((delta for delta in checked_deltas if delta > 0), default=1.0)
        grids = [self._grid(direction, smallest, upper=True) for direction in directions(plan)]
        return np.array(
            [
                max(round_up(grid.epsilon(delta - grid.delta_error)) for grid in grids)
                if delta
                else epsilon_at_zero
                for delta in checked_deltas
            ]
        )

    def deltas(self, plan: Plan, epsilons: Array) -> Array:
        """Return `delta` at each of many epsilons, from one grid for each direction."""
        grids = [
            self._grid(direction, GRID_DELTA, upper=True) for direction in directions(as_plan(plan))
        ]
        checked = np.array(each_checked(EPSILON, "epsilons", epsilons))
        upper: Array = np.max([grid.delta(checked) + grid.delta_error for grid in grids], axis=0)
        capped: Array = np.minimum(upper * (1 + 4 * ULP), 1.0)
        return capped

    def epsilon(self, plan: Plan, delta: float) -> float:
        """Return `Accountant.epsilon`; a direction that RDP shows to cost less has no grid."""
        plan, delta = as_plan(plan), DELTA.check("delta", delta)
        first_direction, *others = directions(plan)
        uppers = [self.one_way_epsilon(first_direction, delta)]
        for direction in others:
            # The grid of many different losses takes longer than their Rényi curves.
            has_slow_grid = delta > 0 and len(list(direction.losses())) >= MANY_LOSSES
            if not (has_slow_grid and RDP().one_way_epsilon(direction, delta) <= uppers[0]):
                uppers.append(self.one_way_epsilon(direction, delta))
        return math.inf if any(map(math.isnan, uppers)) else max(0.0, *uppers)

    def one_way_epsilon(self, plan: Plan, delta: float) -> float:
        """Return the epsilon of one direction, from a grid made for this delta."""
        if delta == 0:
            return Basic().one_way_epsilon(plan, 0.0)
        grid = self._grid(plan, delta, upper=True)
        return round_up(grid.epsilon(delta - grid.delta_error))

    def one_way_delta(self, plan: Plan, epsilon: float) -> float:
        """Return the delta of one direction, from one grid."""
        grid = self._grid(plan, GRID_DELTA, upper=True)
        return round_up(float(grid.delta(np.array(epsilon))) + grid.delta_error)

    def _grid(self, plan: Plan, delta: float, *, upper: bool) -> PLDGrid:
        """Return the grid distribution of the plan's loss in one direction.

        With ``upper`` its profile is at least the plan's, else at most.
        """
        items = [(item, count) for item, count in plan.losses() if count]
        tail = min(self.tail, max(delta * TAIL_SHARE, TAIL_FLOOR))
        outlines = _outlines_of_many(items)
        if outlines:
            step = self._step(plan, tail, widest_sum(outlines, tail))
            return grid_of_many(outlines, step, delta, tail, upper=upper)
        ends, step = self._ends_and_step(plan, tail)
        laws = []
        for (item, count), (item_high, item_low) in zip(items, ends, strict=True):
            high, low = item_high, item_low
            if isinstance(item, Parallel):
                grids = [self._grid(part, GRID_DELTA, upper=upper) for part in item.distinct]
                profile, item_infinity = _greatest(grids, upper), 0.0
                reaches = [_reach(grid, tail) for grid in grids]  # mostly less than the item's ends
                high = min(high, max(up for up, _ in reaches))
                low = min(low, max(down for _, down in reaches))
            else:
                loss = single_loss(item)
                profile, item_infinity = loss.profile_any_epsilon, loss.infinity
            first_index, last_index = -math.ceil(low / step), max(math.ceil(high / step), 1)
            points: Array = step * np.arange(first_index, last_index + 1, dtype=float)
            pair = (
                dominating_pair(profile, points)
                if upper
                else dominated_pair(profile, item_infinity, points)
            )
            laws.append(LawOnGrid.of_pair(pair, points, first_index, count))
        return convolve(laws, step, tail, upper=upper)

    def _ends_and_step(self, plan: Plan, tail: float) -> tuple[list[tuple[float, float]], float]:
        """Return how far each loss of one direction reaches, (up, down), and the grid's step.

        The masses beyond these ends are together about ``tail``.
        """
        items = [(item, count) for item, count in plan.losses() if count]
        share = tail / max(sum(count for _, count in items), 1)
        ends = [_loss_range(item, share) for item, _ in items]
        widest = sum(max(end) * count for end, (_, count) in zip(ends, items, strict=True))
        step = self._step(plan, tail, widest)
        # the bound on the range of one loss may be far beyond that of the sum
        farthest = MAX_GRID_POINTS * step
        return [(min(high, farthest), min(low, farthest)) for high, low in ends], step

    def _step(self, plan: Plan, tail: float, widest: float) -> float:
        """Return a fiftieth of the smallest loss's deviation, or more if memory requires it."""
        spread = spread_of(all_losses(plan))
        step = usual_step(spread, self.interval)
        # But for about ``tail`` of its mass, the sum of the losses is within +-``half_reach``.
        half_reach = min(widest, ZCDP().one_way_epsilon(plan, tail) + ROOM)
        if 2 * half_reach > WIDE:  # below that, the sharper bound is not worth its time
            half_reach = min(half_reach, RDP().one_way_epsilon(plan, tail) + ROOM)
        losses = [loss for loss, _ in all_losses(plan)]
        max_points = min([MAX_GRID_POINTS, *(loss.numerics.grid_points for loss in losses)])
        step = max(step, 2 * half_reach / max_points, 1e-12)  # the last is the least `interval`
        # A discretisation with a step wider than the loss adds about step * deviation of variance.
        # More than the variance of the plan itself would make the bound useless.
        added = sum(count * step * min(step, deviation) for deviation, count in spread)
        if added > max(1e-12, sum(count * deviation**2 for deviation, count in spread)):
            instead = (
                f"its losses are too small for {MAX_GRID_POINTS:,} grid points; ask RDP or ZCDP"
            )
            raise UnsupportedPlan(plan, self.name, instead)
        return step


def _greatest(grids: list[PLDGrid], upper: bool) -> Profile:
    """Return the profile of parallel parts: the greatest of the composed parts at each epsilon."""
    sign = 1 if upper else -1

    def greatest_profile(epsilon: Array) -> Array:
        deltas = [grid.delta(epsilon) + sign * grid.delta_error for grid in grids]
        # Any profile is at least 0 and at least 1 - e^epsilon.
        result: Array = np.maximum.reduce([*deltas, -np.expm1(np.minimum(epsilon, 0.0))])
        return result

    return greatest_profile


def _reach(grid: PLDGrid, tail: float) -> tuple[float, float]:
    """Return how far a grid reaches, (up, down), without upper points of negligible mass."""
    negligible = max(tail, NEGLIGIBLE * grid.delta_error)
    from_here_on = np.cumsum(grid.mass[::-1])[::-1]  # of each point, the mass of it and those above
    is_negligible = from_here_on <= negligible
    last_index = int(np.argmax(is_negligible)) if is_negligible[-1] else grid.mass.size - 1
    return float(grid.loss[last_index]), -float(grid.loss[0])


def step_of_grid(plan: Plan, delta: float) -> float:
    """Return the step of `PLD` for one direction of a plan of fewer than `MANY_LOSSES` losses."""
    # With the default settings of PLD: its grid is the one that `Tight` must not be worse than.
    accountant = PLD()
    tail = min(accountant.tail, max(delta * TAIL_SHARE, TAIL_FLOOR))
    _, step = accountant._ends_and_step(plan, tail)  # noqa: SLF001
    return step


def _outlines_of_many(items: list[tuple[Item, int]]) -> list[Outline]:
    """Return outlines of losses that can share a transform; an empty list if not all can.

    An outline is the rough law of a loss, from its masses between fixed edges, called a ladder.  A
    loss that is too small for these edges is not on the ladder.
    """
    losses = [(item, count) for item, count in items if isinstance(item, Loss)]
    # A loss with atoms cannot: they lie between the few points at which its law would be taken.
    if not MANY_LOSSES <= len(losses) == len(items) or any(loss.loss_pmf for loss, _ in losses):
        return []
    outlines = [Outline(loss, count) for loss, count in losses]
    return outlines if all(outline.is_on_ladder for outline in outlines) else []


def _loss_range(item: Item, tail: float) -> tuple[float, float]:
    """Return bounds on the loss and on its reverse, beyond which delta is about ``tail``."""
    if isinstance(item, Parallel):
        parts = [(part, part.reversed) for part in item.distinct]
        sides = [
            [_composed_loss_quantile(part, tail) for part in side]
            for side in zip(*parts, strict=True)
        ]
        return max(sides[0]), max(sides[1])
    loss = single_loss(item)
    high = _loss_quantile(loss, tail)
    return high, high if loss.reversed == loss else _loss_quantile(loss.reversed, tail)


def _loss_quantile(loss: Loss, tail: float) -> float:
    """Return a loss at which delta, without the mass at infinity, is about ``tail``.

    It is an end of a grid, and any end gives valid bounds.
    """
    beyond = loss.infinity + tail
    end = smallest_root(loss.profile, min(beyond, 1.0), loss.max_loss)
    end = min(end, loss.max_loss, 700.0)  # e^700 is still a float
    if end > FAR and beyond < 1:  # round-off may keep a profile above `tail`
        end = min(end, RDP().one_way_epsilon(loss, beyond))
    return end


def _composed_loss_quantile(plan: Plan, tail: float) -> float:
    """Return a bound beyond which delta, without the mass at infinity, is ``tail`` at most."""
    # The mass at infinity is counted apart; ``tail`` more may be moved there.
    beyond = min(tail + infinity_mass(plan), 1.0)
    by_rho = ZCDP().one_way_epsilon(plan, beyond)
    if by_rho > WIDE:  # some losses have a Rényi curve and no finite rho
        by_rho = min(by_rho, RDP().one_way_epsilon(plan, beyond))
    return min(by_rho, float(fold_plan(plan, lambda loss: loss.pure)), FARTHEST)
