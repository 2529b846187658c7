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

from accountant.composition.composed_loss import loss_of_item, loss_of_plan, losses_of_items
from accountant.composition.composition import Composition
from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.loss_outline import PROFILE_POINTS, Outline
from accountant.composition.pld_grid import spread_of
from accountant.composition.profile_curve import ProfileCurve
from accountant.composition.profile_ends import PlanProfile
from accountant.composition.profile_pairs import pairs_at_knots, places_by_weight
from accountant.composition.tilted_law import GridLaw
from accountant.composition.value_function import LEAST_CELLS, ValueFunction, greatest
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.connect_the_dots import pair_above
from accountant.losses.loss import Loss
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.rounding import ULP
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

MAX_RELEASES = 20_000  # that a path through a plan may have, neighbours of one pair counted once
# Products of two numbers, about 1 ns each, that one side of V may take.
MAX_WORK = 1e8
# What the lattice adds to epsilon, relative to it: as little as FINEST where the time allows, and
# no more than COARSEST.
FINEST, COARSEST = 1e-6, 0.02
# What is left out of V, and of each law, as shares of delta.
LEFT_OUT, CUT = 1e-9, 1e-10
POINTS = 12.0  # deviations of the whole loss that V covers, about
SPARSE_POINTS = 40  # of a law with mass, outside of a row of neighbouring ones, about
KNOTS = 1200  # points at which the profile of several releases is evaluated
SUITED_STEPS = 2000  # steps that are tried, so that losses are on the lattice
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
    """Return neighbouring releases as one, if their profile is quick, else one by one."""
    composition = Composition(losses_of_items(items))
    if composition.has_exact_cgf and ProfileCurve(composition, COARSEST).is_exact:
        return [OnePair(Sequential(count * item for item, count in items), 1)]
    return [OnePair(item, count) for item, count in items]


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
    step = _step(stages)
    if step is None:
        return None
    variance, _ = _size(stages)
    tilt = math.sqrt(-2 * math.log(delta) / variance)
    return _before(stages, ValueFunction.after_all(step, LEFT_OUT * delta), tilt)


def _before(stages: Stages, value: ValueFunction, tilt: float) -> ValueFunction:
    """Return V before these stages, from that after them."""
    for stage in reversed(stages):
        match stage:
            case OnePair(plan, count):
                pairs = _pairs(plan, value.step, value.negligible / LEFT_OUT * CUT, tilt)
                for _ in range(count):
                    value = value.before_release(*pairs)
            case Ranges(e0, count):
                value = value.before_ranges(e0, count)
            case Choices(parts, count):
                for _ in range(count):
                    value = greatest([_before(part, value, tilt) for part in parts])
    return value


@functools.lru_cache(maxsize=512)
def _pairs(
    plan: Plan, step: float, tail: float, tilt: float
) -> tuple[PairOnGrid, PairOnGrid]:
    """Return pairs below and above a plan of one pair on the lattice."""
    loss = PlanProfile(plan)
    outline = Outline(loss, 1)
    (low, _), (_, high) = (
        outline.component(0.0, math.inf, 0.0, left_out, 1e-300).ends for left_out in (1e-10, tail)
    )
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    lattice = GridLaw(step, first, 0.0, np.zeros(last - first + 1), 1)
    # Laws with the tilts from 0 to that of the whole plan matter.
    _, high_values = loss.profile_bounds(PROFILE_POINTS)
    pair = pair_above(lambda _: high_values, PROFILE_POINTS)
    weights = []
    for a in (0.0, tilt / 2, tilt):
        log_weight = np.log(np.maximum(pair.mass, 1e-300)) + a * pair.loss
        weights.append(log_weight - logsumexp(log_weight))
    knots = places_by_weight(lattice.points, pair.loss, np.max(weights, axis=0), 3.0)
    if not isinstance(plan, Loss):  # the profile of several is smooth, and takes long
        stride = -(-knots.size // KNOTS)
        knots = np.union1d(knots[::stride], knots[[0, -1]])
    return pairs_at_knots(loss, lattice, knots)


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


def _variance(plan: Plan) -> float:
    losses = [(loss_of_item(item), count) for item, count in plan.losses()]
    return math.fsum(count * deviation**2 for deviation, count in spread_of(losses))


def _step(stages: Stages) -> float | None:
    """Return the step of the lattice, None where even a coarse one takes too long.

    A step h adds about h^2 / 4 to the variance of each release, and epsilon gets half of the share.
    """
    variance, releases = _size(stages)
    if not 0 < variance < math.inf:
        return None
    sizes = _largest_losses(stages)
    error = FINEST
    while error <= COARSEST:
        step = math.sqrt(8 * error * variance / releases)
        if sizes:
            step = _suited(step, sizes)
        if _work(stages, step, POINTS * math.sqrt(variance) / step) <= MAX_WORK:
            return step
        error *= 1.25
    return None


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
                work += count * sum(_work(part, step, points) for part in parts)
    return work
