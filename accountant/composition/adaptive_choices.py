"""Plans in which pairs are chosen with all earlier answers: the costliest strategy of choices.

The releases of a plan are of three kinds, called stages here: those of one pair; exponential
mechanisms, whose pair is any of a range; and parallel parts, of which each time any may be the
user's.  `value_of` goes through them backwards, in the order of their release, with a
`ValueFunction`.  The lattice is as fine as the time allows; any lattice gives bounds.

Proof: `docs/proofs/choices.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np

from accountant.composition.composed_loss import loss_of_item, loss_of_plan
from accountant.composition.pairs_of_plans import ends_of_losses, pairs_of_plans
from accountant.composition.plan_profile import deviation_of, has_quick_ends
from accountant.composition.value_function import LEAST_CELLS, ValueFunction, greatest
from accountant.losses.bounded_range import BoundedRangeLoss
from accountant.losses.loss import Loss
from accountant.numerics.ordered_sums import ordered_sum
from accountant.numerics.rounding import ULP
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

MAX_RELEASES = 20_000  # stages that are gone through; a plan with more of them has no V
LEAST_DECADE = 250  # a smaller delta than 10^-250 leaves no room in floats for what is left out
# Shares of delta: where V is less it need not be kept, and beyond a law's ends is no more mass.
LEFT_OUT, CUT = 1e-9, 1e-10
# What the lattice adds to epsilon, relative to it: at least FINEST, at most COARSEST.  One that
# adds less than USUAL may take USUAL_WORK, in products of two numbers; a coarser one MOST_WORK.
FINEST, USUAL, COARSEST = 1e-6, 2e-3, 0.02
USUAL_WORK, MOST_WORK = 5e7, 2e9
FINER = 1.25  # the factor between the errors that are tried
POINTS = 12.0  # deviations of the sum of all losses that V covers, about
SPARSE_POINTS = 40  # places with mass in the tails of a law, about
SUITED_STEPS = 2000  # steps that are tried, so that losses are whole numbers of them
LEAST_STEPS = 8  # in the largest of these losses


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
        steps = max(self.e0 / step, LEAST_CELLS)
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
    if not 0 < variance < math.inf or decade > LEAST_DECADE:
        return None
    delta = 10.0**-decade
    step = step_of(stages, CUT * delta)
    if step is None:
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
    items = list(islice(in_order(plan), MAX_RELEASES + 1))
    if len(items) > MAX_RELEASES:
        return None
    stages: list[OnePair | Ranges | Choices] = []
    for kind, row in groupby(items, lambda item: isinstance(item[0], Parallel | BoundedRangeLoss)):
        neighbours = list(row)
        losses = [loss_of_item(item) for item, _ in neighbours]
        is_bounded = all(max(loss.max_loss, loss.reversed.max_loss) < math.inf for loss in losses)
        if not kind and not (is_bounded and not has_quick_ends(neighbours)):
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
                case _:  # a bounded loss is quicker one by one
                    stages.append(OnePair(item, count))
    return tuple(stages)


def in_order(plan: Plan) -> Iterator[tuple[Item, int]]:
    """Yield the losses in order; where a part dominates all others, its losses in their place."""
    for item, count in plan.losses_in_order():
        if isinstance(item, Parallel) and len(parts := undominated_parts(item)) == 1:
            inner = list(islice(in_order(parts[0]), MAX_RELEASES + 1))
            times = count if len(inner) > 1 else 1
            for _ in range(times):
                yield from ((loss, number * (count // times)) for loss, number in inner)
        else:
            yield item, count


def undominated_parts(parallel: Parallel) -> list[Plan]:
    """Return the parts that no other is known to dominate."""
    parts = {loss_of_plan(part): part for part in parallel.distinct}
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
            fewest = max(math.ceil(largest / step), LEAST_STEPS)
            steps = largest / np.arange(fewest, 2.0 * fewest + 1)
            steps = np.append(steps, np.linspace(steps[-1], steps[0], SUITED_STEPS))
            # A few ulps less than a whole number is that number.
            whole = np.floor(size[:, None] / steps * (1 + 4 * ULP))
            lost = 1 - np.minimum(whole * steps / size[:, None], 1.0)
            step = float(steps[np.argmin(ordered_sum(weight, lost))])
        work = sum(stage.work(step, width / step) for stage in stages)
        if work <= (USUAL_WORK if error < USUAL else MOST_WORK):
            return step
        error *= FINER
    return None
