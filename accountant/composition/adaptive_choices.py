"""Plans in which pairs are chosen with all earlier answers: the costliest strategy of choices.

The releases of a plan are of three kinds, called stages here: those of one pair; exponential
mechanisms, whose pair is any of a range; and parallel parts, of which each time any may be the
user's.  `value_of` goes through them backwards, in the order of their release, with a
`ValueFunction`.  The lattice is as fine as the time allows; any lattice gives bounds.

Of many parts only two stay where the others are hardly worse.  A group that is split between the
two neighbours is such a case: the profile of a middle split is at most the mean of the two outer
ones, but for a little, and these two are raised by that.  What is greatest under a mean of two
pairs is no greater than under the better of the two.

Proof: `docs/proofs/choices.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np

from accountant.composition.composed_loss import loss_of_item, loss_of_plan, plans_of_users
from accountant.composition.composition import Composition
from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.loss_outline import PROFILE_POINTS, Outline
from accountant.composition.profile_ends import PlanProfile, deviation_of, has_quick_ends
from accountant.composition.profile_pairs import bounds_at_knots, pairs_at_knots, places_by_weight
from accountant.composition.tilted_law import GridLaw
from accountant.composition.value_function import CELLS, ValueFunction, greatest
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.connect_the_dots import lower_hull, pair_above
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.rounding import ULP
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

STAGES = 20_000  # stages that are gone through; a plan with more of them has no V
# Shares of delta: where V is less it need not be kept, and beyond a law's ends is no more mass.
LEFT_OUT, CUT = 1e-9, 1e-10
# What the lattice adds to epsilon, relative to it: at least FINEST, at most COARSEST.  WORK is what
# V may take, in products of two numbers, where that is less than USUAL, and elsewhere.
FINEST, USUAL, COARSEST = 1e-6, 2e-3, 0.02
WORK = 5e7, 2e9
STEP = 10.0  # nats: its exponential must be a float, and losses are at most some 700
FINER = 1.25  # the factor between the errors that are tried
POINTS = 12.0  # deviations of the sum of all losses that V covers, about
SPARSE_POINTS = 40  # places with mass in the tails of a law, about
ALONE = 64  # sampled releases in a row that may be gone through one by one
SUITED_STEPS = 2000  # steps that are tried, so that losses are whole numbers of them
COARSE_STEPS = 8  # in the largest of these losses

# All of these decide how sharp and how quick the pairs are; any choice is right.
LOWER_TAIL = 1e-10  # mass of P below the least loss of a lattice
NO_TILT = 1e-300  # so small that it does not limit the range of a lattice
DENSE = 2.5  # nats: points whose weight is that close to the greatest one are all knots
KNOTS = 1200  # points at which the profile of several releases is evaluated
SHARES = np.linspace(0.0, 1.0, 41)[:, None]  # means of two profiles that are tried
# How often the two profiles are raised at most, by how much more than is missing, and the share of
# themselves less (1 - x)_+ by which they may be raised in all.
RAISES, RAISED_BY, RAISE_LIMIT = 8, 1.01, 0.05


@dataclass(frozen=True, slots=True)
class OnePair:
    """Releases of one pair: neighbouring ones together, or ``count`` times the same loss."""

    plan: Plan
    count: int

    @property
    def variance(self) -> float:
        """The variance of the sum of the losses, roughly."""
        return self.count * deviation_of(self.plan) ** 2

    @property
    def releases(self) -> int:
        """How often V is computed anew."""
        return self.count

    @property
    def largest_losses(self) -> dict[float, int]:
        """Losses that should be on the lattice, and how often they occur."""
        if isinstance(self.plan, Loss) and 0 < self.plan.max_loss < math.inf:
            return {self.plan.max_loss: self.count}
        return {}

    def width(self, tail: float) -> float:
        """Return how wide the range of the loss of one release is."""
        low, high = ends_of_losses(self.plan, tail)
        return high - low

    def work(self, step: float, points: float) -> float:
        """Return about how many products V takes, on so many points."""
        reach = POINTS * deviation_of(self.plan)
        if isinstance(self.plan, Loss):
            reach = min(reach, self.plan.max_loss + self.plan.reversed.max_loss)
        return self.count * points * (min(reach / step, points) + SPARSE_POINTS)

    def before(self, value: ValueFunction, tail: float, tilt: float) -> ValueFunction:
        """Return V before these releases."""
        ((below, above),) = pairs_of_plans((self.plan,), value.step, tail, tilt)
        for _ in range(self.count):
            value = value.before_release(below, above)
        return value


@dataclass(frozen=True, slots=True)
class Ranges:
    """Exponential mechanisms of range ``e0``, one after another."""

    e0: float
    count: int

    @property
    def variance(self) -> float:
        """The variance of the sum of the losses, roughly."""
        return self.count * self.e0**2 / 4

    @property
    def releases(self) -> int:
        """How often V is computed anew."""
        return self.count

    @property
    def largest_losses(self) -> dict[float, int]:
        """The range, of which the lattice should have a whole number of steps."""
        return {self.e0: self.count}

    def width(self, tail: float) -> float:
        """Return how wide the range of the loss of one release is."""
        del tail
        return 2 * self.e0

    def work(self, step: float, points: float) -> float:
        """Return about how many products V takes, on so many points."""
        steps = max(self.e0 / step, CELLS)
        return self.count * points * 3 * steps * max(1.0, steps * step / self.e0)

    def before(self, value: ValueFunction, tail: float, tilt: float) -> ValueFunction:
        """Return V before these releases."""
        del tail, tilt
        return value.before_ranges(self.e0, self.count)


@dataclass(frozen=True, slots=True)
class Choices:
    """A choice of one of several parts, each a sequence of stages, made ``count`` times."""

    parts: tuple[Stages, ...]
    count: int

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the parts if each is one release of one pair; none otherwise."""
        stages = [part[0] for part in self.parts if len(part) == 1]
        plans = [stage.plan for stage in stages if isinstance(stage, OnePair) and stage.count == 1]
        return tuple(plans) if len(plans) == len(self.parts) else ()

    @property
    def timed_parts(self) -> tuple[Stages, ...]:
        """As many parts as take time: of those whose middle ones are left out, two."""
        plans = self.plans
        if len(plans) <= 2:
            return self.parts
        coarse = max(map(deviation_of, plans))
        return self.parts[: len(pairs_of_plans(plans, coarse, CUT, 0.0))]

    @property
    def variance(self) -> float:
        """The greatest variance of the sum of the losses, roughly."""
        return self.count * max(variance_of(part) for part in self.parts)

    @property
    def releases(self) -> int:
        """How often V is computed anew for the longest part."""
        return self.count * max(sum(stage.releases for stage in part) for part in self.parts)

    @property
    def largest_losses(self) -> dict[float, int]:
        """Those of all parts."""
        sizes = largest_losses_of([stage for part in self.parts for stage in part])
        return {size: number * self.count for size, number in sizes.items()}

    def width(self, tail: float) -> float:
        """Return how wide the range of the loss of one release is."""
        return max(stage.width(tail) for part in self.timed_parts for stage in part)

    def work(self, step: float, points: float) -> float:
        """Return about how many products V takes, on so many points."""
        stages = [stage for part in self.timed_parts for stage in part]
        return self.count * sum(stage.work(step, points) for stage in stages)

    def before(self, value: ValueFunction, tail: float, tilt: float) -> ValueFunction:
        """Return V before these choices."""
        pairs = pairs_of_plans(self.plans, value.step, tail, tilt) if self.plans else []
        for _ in range(self.count):
            if pairs:
                value = greatest([value.before_release(*pair) for pair in pairs])
            else:
                value = greatest([before(part, value, tail, tilt) for part in self.parts])
        return value


Stages = tuple[OnePair | Ranges | Choices, ...]


@functools.lru_cache(maxsize=64)
def value_of(plan: Plan, decade: int) -> ValueFunction | None:
    """Return V of one direction of a plan with choices, for deltas of at least ``10^-decade``.

    It is None where no release is chosen, and where it would take too long.
    """
    stages = stages_of(plan)
    if stages is None or all(isinstance(stage, OnePair) for stage in stages):
        return None
    variance = variance_of(stages)
    if not 0 < variance < math.inf or 10.0**-decade * CUT**2 == 0:
        return None
    delta = 10.0**-decade
    step = step_of(stages, CUT * delta)
    if step is None or step > STEP:
        return None
    value = ValueFunction.after_all(step, LEFT_OUT * delta)
    return before(stages, value, CUT * delta, math.sqrt(-2 * math.log(delta) / variance))


def before(stages: Stages, value: ValueFunction, tail: float, tilt: float) -> ValueFunction:
    """Return V before these stages, from that after them.

    ``tail`` is the mass beyond the ends of a law, and ``tilt`` about the order of Chernoff's bound.
    """
    for stage in reversed(stages):
        value = stage.before(value, tail, tilt)
    return value


def stages_of(plan: Plan) -> Stages | None:
    """Return the releases of a plan in order; None where they are too many."""
    items = list(islice(in_order(plan), STAGES + 1))
    if len(items) > STAGES:
        return None
    stages: list[OnePair | Ranges | Choices] = []
    for kind, row in groupby(items, lambda item: isinstance(item[0], Parallel | BoundedRangeLoss)):
        neighbours = list(row)
        if not kind and not are_quick_one_by_one(neighbours):
            stages.append(OnePair(Sequential(count * item for item, count in neighbours), 1))
            continue
        for item, count in neighbours:
            match item:
                case BoundedRangeLoss(e0):
                    stages.append(Ranges(e0, count))
                case Parallel():
                    parts = [stages_of(part) for part in undominated_parts(item)]
                    if any(part is None for part in parts):
                        return None
                    stages.append(Choices(tuple(part for part in parts if part), count))
                case _:
                    stages.append(OnePair(item, count))
    return tuple(stages)


def are_quick_one_by_one(items: list[tuple[Item, int]]) -> bool:
    """Return whether releases of one pair each are better gone through than joined to one.

    That is where no exact engine bounds what they cost together quickly: losses that are bounded,
    and few of those whose contour is quickly planned.
    """
    if has_quick_ends(items):
        return False
    losses = [(loss_of_item(item), count) for item, count in items]
    is_bounded = all(max(loss.max_loss, loss.reversed.max_loss) < math.inf for loss, _ in losses)
    are_few = sum(count for _, count in losses) <= ALONE and Composition(losses).is_quickly_planned
    return is_bounded or are_few


def in_order(plan: Plan) -> Iterator[tuple[Item, int]]:
    """Yield the losses in order; where a part dominates all others, its losses in their place."""
    for item, count in plan.losses_in_order():
        if isinstance(item, Parallel) and len(parts := undominated_parts(item)) == 1:
            inner = list(islice(in_order(parts[0]), STAGES + 1))
            times = count if len(inner) > 1 else 1
            for _ in range(times):
                yield from ((loss, number * (count // times)) for loss, number in inner)
        else:
            yield item, count


def undominated_parts(parallel: Parallel) -> list[Plan]:
    """Return the parts that no other is known to dominate."""
    parts = {loss_of_plan(part): part for part in plans_of_users(parallel)}
    return [
        part
        for loss, part in parts.items()
        if not any(rival is not loss and rival.dominates(loss) for rival in parts)
    ]


def variance_of(stages: Stages) -> float:
    """Return the greatest variance of the sum of all losses, roughly."""
    return math.fsum(stage.variance for stage in stages)


def largest_losses_of(stages: Stages | list[OnePair | Ranges | Choices]) -> dict[float, int]:
    """Return losses that should be on the lattice, and how often they occur."""
    total: dict[float, int] = {}
    for stage in stages:
        for size, number in stage.largest_losses.items():
            total[size] = total.get(size, 0) + number
    return total


def step_of(stages: Stages, tail: float) -> float | None:
    """Return the step of the lattice; None where even a coarse one takes too long.

    A step h adds about h^2 / 4 to the variance of each release, and epsilon grows by half the share
    that all of this is of the whole variance.  Of steps that are nearly as long the one is taken of
    which the largest losses are most nearly whole numbers: from below a range is rounded down to a
    whole number of steps, and mass off the lattice is moved.
    """
    variance, releases = variance_of(stages), sum(stage.releases for stage in stages)
    width = POINTS * math.sqrt(variance) + max(stage.width(tail) for stage in stages)
    sizes = largest_losses_of(stages)
    size = np.array(list(sizes))
    weight = np.array(list(sizes.values())) * size**2
    error = FINEST
    while error <= COARSEST:
        step = math.sqrt(8 * error * variance / releases)
        if sizes:
            largest = float(size[np.argmax(weight)])
            fewest = max(math.ceil(largest / step), COARSE_STEPS)
            steps = largest / np.arange(fewest, 2.0 * fewest + 1)
            steps = np.append(steps, np.linspace(steps[-1], steps[0], SUITED_STEPS))
            # A few ulps less than a whole number is that number.
            in_steps = np.floor(size[:, None] / steps * (1 + 4 * ULP))
            lost = 1 - np.minimum(in_steps * steps / size[:, None], 1.0)
            step = float(steps[np.argmin(ordered_sum(weight, lost))])
        work = sum(stage.work(step, width / step) for stage in stages)
        if work <= WORK[error >= USUAL]:
            return step
        error *= FINER
    return None


@functools.lru_cache(maxsize=512)
def ends_of_losses(plan: Plan, tail: float) -> tuple[float, float]:
    """Return a least and a greatest loss; beyond is little mass, above the greatest ``tail``."""
    outline = Outline(PlanProfile(plan), 1)
    (low, _), (_, high) = (
        outline.component(0.0, math.inf, 0.0, left_out, NO_TILT).ends
        for left_out in (LOWER_TAIL, tail)
    )
    return low, high


@functools.lru_cache(maxsize=256)
def pairs_of_plans(
    plans: tuple[Plan, ...], step: float, tail: float, tilt: float
) -> list[tuple[PairOnGrid, PairOnGrid]]:
    """Return pairs below and above each of the plans, or below and above two that serve for all.

    The lattice has this ``step``.  ``tail`` is the mass of P that may be beyond it, and ``tilt``
    about the order of Chernoff's bound of the whole plan.
    """
    losses = [PlanProfile(plan) for plan in plans]
    outer = [losses[0], losses[-1]] if len(losses) > 1 else losses
    lows, highs = zip(*[ends_of_losses(plan, tail) for plan in plans], strict=True)
    bottom, top = math.floor(min(lows) / step) - 1, math.ceil(max(highs) / step) + 1
    lattice = GridLaw(step, bottom, 0.0, np.zeros(top - bottom + 1), 1)
    points, chosen = lattice.points, np.zeros(top - bottom + 1, dtype=bool)
    for loss in outer:
        # Knots are dense where the law has mass with tilts from 0 to that of the whole plan.
        pair = pair_above(loss.profile_any_epsilon, PROFILE_POINTS)
        log_weights = np.log(np.maximum(pair.mass, 1e-300)) + np.multiply.outer(
            [0.0, tilt / 2, tilt], pair.loss
        )
        log_weights -= logsumexp(log_weights)[:, None]
        chosen[places_by_weight(points, pair.loss, np.max(log_weights, axis=0), DENSE)] = True
    knots = np.flatnonzero(chosen)
    if not all(isinstance(plan, Loss) for plan in plans):  # smooth profiles, which take long
        knots = np.union1d(knots[:: -(-knots.size // KNOTS)], knots[[0, -1]])
    bounds = [bounds_at_knots(loss, lattice, knots) for loss in losses]
    if len(losses) > 2 and (raised := two_above(bounds)) is not None:
        losses, bounds = outer, raised
    return [
        pairs_at_knots(loss, lattice, knots, *of_loss)
        for loss, of_loss in zip(losses, bounds, strict=True)
    ]


def two_above(bounds: list[tuple[Array, Array, Array]]) -> list[tuple[Array, Array, Array]] | None:
    """Return the first and the last bounds, raised so that means of them are above all others.

    Bounds are x = e^epsilon, and lower and upper bounds on a profile there.  The result is None
    where the two would be raised by much.
    """
    (x, low_1, high_1), *middle, (_, low_2, high_2) = bounds
    size = high_1 + high_2 - 2 * np.maximum(1 - x, 0.0)
    size = np.maximum(size, 1e-10 * np.max(size))
    means = SHARES * high_1 + (1 - SHARES) * high_2
    shares = [SHARES[np.argmin(np.max((high - means) / size, axis=1))] for _, _, high in middle]
    two = [high_1, high_2]
    for _ in range(RAISES):
        excess = np.zeros(x.size)
        for share, (_, _, high) in zip(shares, middle, strict=True):
            mean = share * two[0] + (1 - share) * two[1]
            # What is within round-off is covered by the slack of `ValueFunction.before_release`.
            excess = np.maximum(excess, np.where(high > mean * (1 + 8 * ULP), high - mean, 0.0))
        if not excess.any():
            return [(x, low_1, two[0]), (x, low_2, two[1])]
        for side, values in enumerate(two):
            raised = np.minimum(values + RAISED_BY * excess, 1.0)
            corners = lower_hull(x, raised)
            two[side] = np.interp(x, x[corners], raised[corners])
        if np.max((two[0] - high_1) / size) > RAISE_LIMIT:
            return None
    return None
