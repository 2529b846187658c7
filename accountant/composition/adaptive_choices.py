"""Plans in which pairs are chosen with all earlier answers, as one game.

A plan's releases are of three kinds: those of one pair, of which neighbouring ones are one release
here; exponential mechanisms, whose pair is any of a range; and parallel parts, of which each time
any may be the user's.  `ValueFunction` goes through them backwards, in the order of their release.
This file chooses the lattice: as fine as the time allows.  Any lattice is right.

Proof: `docs/proofs/choices.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from accountant.composition.composed_loss import loss_of_item, loss_of_plan
from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.loss_outline import PROFILE_POINTS, Outline
from accountant.composition.pld_grid import spread_of
from accountant.composition.plan_profile import PlanProfile, has_quick_ends
from accountant.composition.profile_pairs import bounds_at_knots, pairs_at_knots, places_by_weight
from accountant.composition.tilted_law import GridLaw
from accountant.composition.value_function import LEAST_CELLS, NEGLIGIBLE, ValueFunction, greatest
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.connect_the_dots import lower_hull, pair_above
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.rounding import ULP
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

MAX_RELEASES = 20_000  # that a path through a plan may have, neighbours of one pair counted once
# Products of two numbers, about 1 ns each, that one side of V may take.
USUAL_WORK, MOST_WORK = 1e8, 2e9
# What the lattice adds to epsilon, relative to it: as little as FINEST where the time allows, and
# no more than COARSEST.
FINEST, USUAL, COARSEST = 1e-6, 2e-3, 0.02
# What is left out of V, and of each law, as shares of delta.
LEFT_OUT, CUT = 1e-9, 1e-10
POINTS = 12.0  # deviations of the whole loss that V covers, about
SPARSE_POINTS = 40  # of a law with mass, outside of a row of neighbouring ones, about
KNOTS = 1200  # points at which the profile of several releases is evaluated
SUITED_STEPS = 2000  # steps that are tried, so that losses are on the lattice
NO_TILT = 1e-300
MANY = 3
DENSE = 2.5
SHARES, RAISES, MOST_RAISED = 41, 8, 0.05
LEAST_STEPS = 8  # of the lattice in the range of exponential mechanisms that matters most


@dataclass(frozen=True, slots=True)
class OnePair:
    """Releases of one pair: neighbouring ones together, or ``count`` times the same loss."""

    plan: Plan
    count: int


@dataclass(frozen=True, slots=True)
class Ranges:
    """Exponential mechanisms of range ``e0``, one after another."""

    e0: float
    count: int


@dataclass(frozen=True, slots=True)
class Choices:
    """A choice of one of several parts, each a sequence of releases, made ``count`` times."""

    parts: tuple[Stages, ...]
    count: int


Stages = tuple[OnePair | Ranges | Choices, ...]


def stages_of(plan: Plan) -> Stages | None:
    """Return the releases of a plan in order; None where they are too many."""
    items = list(islice(_in_order(plan), MAX_RELEASES + 1))
    if len(items) > MAX_RELEASES:
        return None
    stages: list[OnePair | Ranges | Choices] = []
    for is_one_pair, row in groupby(items, lambda item: _is_one_pair(item[0])):
        if is_one_pair:
            stages += _of_one_pair(list(row))
            continue
        for item, count in row:
            if isinstance(item, BoundedRangeLoss):
                stages.append(Ranges(item.epsilon, count))
                continue
            assert isinstance(item, Parallel)
            parts = [stages_of(part) for part in _undominated(item)]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            stages.append(Choices(known, count))
    return tuple(stages)


def _in_order(plan: Plan) -> Iterator[tuple[Item, int]]:
    """Yield the losses in order; the losses of a part that dominates all others in its place."""
    for item, count in plan.losses_in_order():
        if isinstance(item, Parallel) and len(parts := _undominated(item)) == 1:
            inner = list(islice(_in_order(parts[0]), MAX_RELEASES + 1))
            if len(inner) == 1:
                yield inner[0][0], inner[0][1] * count
            else:
                yield from (pair for _ in range(count) for pair in inner)
        else:
            yield item, count


def _of_one_pair(items: list[tuple[Item, int]]) -> list[OnePair]:
    """Return neighbouring releases as one, or bounded losses one by one where that is quicker."""
    losses = [loss_of_item(item) for item, _ in items]
    is_bounded = all(max(loss.max_loss, loss.reversed.max_loss) < math.inf for loss in losses)
    if is_bounded and not has_quick_ends(items):
        return [OnePair(item, count) for item, count in items]
    return [OnePair(Sequential(count * item for item, count in items), 1)]


def _is_one_pair(item: Item) -> bool:
    return not isinstance(item, Parallel | BoundedRangeLoss)


def _undominated(parallel: Parallel) -> list[Plan]:
    """Return the parts that no other is known to dominate."""
    parts = {loss_of_plan(part): part for part in parallel.distinct}
    return [
        part
        for loss, part in parts.items()
        if not any(rival is not loss and rival.dominates(loss) for rival in parts)
    ]


def has_choices(stages: Stages) -> bool:
    """Return whether a plan with these stages stands for several pairs."""
    return any(not isinstance(stage, OnePair) for stage in stages)


@functools.lru_cache(maxsize=64)
def value_of(plan: Plan, decade: int) -> ValueFunction | None:
    """Return V of a plan with choices, for deltas of at least ``10^-decade``; None where it is not.

    It is None where no release is chosen, and where that takes too long.
    """
    stages = stages_of(plan)
    if stages is None or not has_choices(stages):
        return None
    delta = 10.0**-decade
    variance, _ = _size(stages)
    step = _step(stages, CUT * delta) if 0 < variance < math.inf else None
    if step is None:
        return None
    tilt = math.sqrt(-2 * math.log(delta) / variance)
    return _before(stages, ValueFunction.after_all(step, LEFT_OUT * delta), tilt)


def _before(stages: Stages, value: ValueFunction, tilt: float) -> ValueFunction:
    """Return V before these stages, from that after them."""
    tail = value.negligible / LEFT_OUT * CUT
    for stage in reversed(stages):
        match stage:
            case OnePair(plan, count):
                ((below, above),) = _pairs((plan,), value.step, tail, tilt)
                for _ in range(count):
                    value = value.before_release(below, above)
            case Ranges(e0, count):
                value = value.before_ranges(e0, count)
            case Choices(parts, count) if (plans := _single_plans(parts)) is not None:
                pairs = _pairs(plans, value.step, tail, tilt)
                for _ in range(count):
                    value = greatest([value.before_release(*pair) for pair in pairs])
            case Choices(parts, count):
                for _ in range(count):
                    value = greatest([_before(part, value, tilt) for part in parts])
    return value


def _outer(parts: tuple[Stages, ...]) -> tuple[Stages, ...]:
    """Return the parts that are not left out where means of two are above the others."""
    is_long = len(parts) > MANY and _single_plans(parts) is not None
    return (parts[0], parts[-1]) if is_long else parts


def _single_plans(parts: tuple[Stages, ...]) -> tuple[Plan, ...] | None:
    """Return the plans of parts of which each is one release of one pair; None for others."""
    plans = [
        stage.plan
        for part in parts
        for stage in part
        if len(part) == 1 and isinstance(stage, OnePair) and stage.count == 1
    ]
    return tuple(plans) if len(plans) == len(parts) else None


@functools.lru_cache(maxsize=512)
def _ends(plan: Plan, tail: float) -> tuple[float, float]:
    """Return losses beyond which a plan of one pair has so little mass that it is left out."""
    outline = Outline(PlanProfile(plan), 1)
    (low, _), (_, high) = (
        outline.component(0.0, math.inf, 0.0, left_out, NO_TILT).ends
        for left_out in (NEGLIGIBLE, tail)
    )
    return low, high


def _knots(loss: Loss, lattice: GridLaw, tilt: float) -> NDArray[np.intp]:
    """Return indices of points, dense where laws have mass with tilts from 0 to ``tilt``."""
    _, high = loss.profile_bounds(PROFILE_POINTS)
    pair = pair_above(lambda _: high, PROFILE_POINTS)
    weights = []
    for a in (0.0, tilt / 2, tilt):
        log_weight = np.log(np.maximum(pair.mass, 1e-300)) + a * pair.loss
        weights.append(log_weight - logsumexp(log_weight))
    return places_by_weight(lattice.points, pair.loss, np.max(weights, axis=0), DENSE)


@functools.lru_cache(maxsize=256)
def _pairs(
    plans: tuple[Plan, ...], step: float, tail: float, tilt: float
) -> list[tuple[PairOnGrid, PairOnGrid]]:
    """Return pairs below and above the plans, each of one pair, on the same points of the lattice.

    Of more than two plans only the first and the last stay where a little more than a mean of these
    is above each of the others: from above they are raised by as much as that takes.
    """
    losses = [PlanProfile(plan) for plan in plans]
    outer = losses[:: max(len(losses) - 1, 1)]
    lows, highs = zip(*[_ends(plan, tail) for plan in plans], strict=True)
    first, last = math.floor(min(lows) / step) - 1, math.ceil(max(highs) / step) + 1
    lattice = GridLaw(step, first, 0.0, np.zeros(last - first + 1), 1)
    knots = functools.reduce(np.union1d, [_knots(loss, lattice, tilt) for loss in outer])
    if not all(isinstance(plan, Loss) for plan in plans):  # smooth profiles, which take long
        knots = np.union1d(knots[:: -(-knots.size // KNOTS)], knots[[0, -1]])
    bounds = [bounds_at_knots(loss, lattice, knots) for loss in losses]
    if len(losses) > 2 and (raised := _two_above(bounds)) is not None:
        losses, bounds = outer, raised
    return [
        pairs_at_knots(loss, lattice, knots, *at_knots)
        for loss, at_knots in zip(losses, bounds, strict=True)
    ]


def _two_above(bounds: list[tuple[Array, ...]]) -> list[tuple[Array, ...]] | None:
    """Return bounds on two profiles of which a mean is above each of the others, or None.

    They are the first and the last of ``bounds``, raised where a mean of them is below another.
    What is greatest under a mean of two pairs is no greater than under the better of the two.
    """
    (x, first_low, first), *others, (_, last_low, last) = bounds
    size = first + last - 2 * np.maximum(1 - x, 0.0)
    size = np.maximum(size, 1e-10 * np.max(size))
    # For each of the others the share of the first that leaves the least excess.
    shares = np.linspace(0.0, 1.0, SHARES)[:, None]
    means = shares * first + (1 - shares) * last
    best = [np.argmin(np.max((high - means) / size, axis=1)) for _, _, high in others]
    first_raised, last_raised = first, last
    for _ in range(RAISES):
        excess = np.zeros(x.size)
        for i, (_, _, high) in zip(best, others, strict=True):
            mean = shares[i] * first_raised + (1 - shares[i]) * last_raised
            # What is within round-off is covered by the slack of `ValueFunction.before_release`.
            excess = np.maximum(excess, np.where(high > mean * (1 + 8 * ULP), high - mean, 0.0))
        if not excess.any():
            return [(x, first_low, first_raised), (x, last_low, last_raised)]
        first_raised, last_raised = (
            _convex(x, np.minimum(high + 1.01 * excess, 1.0))
            for high in (first_raised, last_raised)
        )
        if np.max((first_raised - first) / size) > MOST_RAISED:
            return None
    return None


def _convex(x: Array, values: Array) -> Array:
    """Return the lower convex hull of values, at the same places."""
    corners = lower_hull(x, values)
    hull: Array = np.interp(x, x[corners], values[corners])
    return hull


def _size(stages: Stages) -> tuple[float, int]:
    """Return the greatest variance of the loss over all paths, roughly, and the most releases.

    Neighbouring releases of one pair count as one.
    """
    variance, releases = 0.0, 0
    for stage in stages:
        match stage:
            case OnePair(plan, count):
                variance, releases = variance + count * _variance(plan), releases + count
            case Ranges(e0, count):
                variance, releases = variance + count * e0 * e0 / 4, releases + count
            case Choices(parts, count):
                sizes = [_size(part) for part in parts]
                variance += count * max(size for size, _ in sizes)
                releases += count * max(number for _, number in sizes)
    return variance, releases


@functools.lru_cache(maxsize=512)
def _variance(plan: Plan) -> float:
    losses = [(loss_of_item(item), count) for item, count in plan.losses()]
    return math.fsum(count * deviation**2 for deviation, count in spread_of(losses))


def _step(stages: Stages, tail: float) -> float | None:
    """Return the step of the lattice, None where even a coarse one takes too long.

    A step h adds about h^2 / 4 to the variance of each release, and epsilon gets half of the share.
    """
    variance, releases = _size(stages)
    sizes = _largest_losses(stages)
    width = POINTS * math.sqrt(variance) + _width(stages, tail)
    error = FINEST
    while error <= COARSEST:
        step = math.sqrt(8 * error * variance / releases)
        if sizes:
            step = _suited(step, sizes)
        if _work(stages, step, width / step) <= (USUAL_WORK if error < USUAL else MOST_WORK):
            return step
        error *= 1.25
    return None


def _width(stages: Stages, tail: float) -> float:
    """Return the widest range of losses of one release."""
    widths = [0.0]
    for stage in stages:
        match stage:
            case OnePair(plan):
                low, high = _ends(plan, tail)
                widths.append(high - low)
            case Choices(parts):
                used = _outer(parts)
                widths += [_width(part, tail) for part in used]
    return max(widths)


def _largest_losses(stages: Stages) -> dict[float, int]:
    """Return ranges of exponential mechanisms and finite largest losses, with their counts."""
    total: dict[float, int] = {}
    for stage in stages:
        match stage:
            case OnePair(Loss() as loss, count) if 0 < loss.max_loss < math.inf:
                total[loss.max_loss] = total.get(loss.max_loss, 0) + count
            case Ranges(e0, count):
                total[e0] = total.get(e0, 0) + count
            case Choices(parts, count):
                for part in parts:
                    for size, number in _largest_losses(part).items():
                        total[size] = total.get(size, 0) + count * number
    return total


def _suited(step: float, sizes: dict[float, int]) -> float:
    """Return a step of at most this size of which the given losses are nearly whole numbers.

    From below a range is rounded down to a whole number of steps, and a mass off the lattice moves.
    """
    size = np.array(list(sizes))
    weight = np.array(list(sizes.values())) * size**2
    largest = float(size[np.argmax(weight)])
    fewest = max(math.ceil(largest / step), LEAST_STEPS)
    steps = largest / np.arange(fewest, 2.0 * fewest + 1)
    steps = np.append(steps, np.linspace(steps[-1], steps[0], SUITED_STEPS))
    # A few ulps less than a whole number is that number.
    whole = np.floor(size[:, None] / steps * (1 + 4 * ULP))
    lost = 1 - np.minimum(whole * steps / size[:, None], 1.0)
    return float(steps[np.argmin(ordered_sum(weight, lost))])


def _work(stages: Stages, step: float, points: float) -> float:
    """Return about how many products V on so many points takes, before these stages."""
    work = 0.0
    for stage in stages:
        match stage:
            case OnePair(plan, count):
                reach = POINTS * math.sqrt(_variance(plan))
                if isinstance(plan, Loss):
                    reach = min(reach, plan.max_loss + plan.reversed.max_loss)
                work += count * points * (min(reach / step, points) + SPARSE_POINTS)
            case Ranges(e0, count):
                steps = max(e0 / step, LEAST_CELLS)
                work += count * points * 3 * steps * max(1.0, steps * step / e0)
            case Choices(parts, count):
                used = _outer(parts)
                work += count * sum(_work(part, step, points) for part in used)
    return work
