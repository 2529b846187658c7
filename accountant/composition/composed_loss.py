"""A whole plan as one loss: what is sampled, grouped or run in parallel may be a composition."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import cast, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.certified_composition import Composition
from accountant.composition.plan_totals import atoms
from accountant.losses.discretised import dots
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons, single_loss
from accountant.numerics import Array, up
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential

FAR_UP = 1e5


def as_loss(plan: Plan) -> Loss:
    """The one loss a plan amounts to: its own, one Gaussian, or its composition."""
    items = list(plan.losses())
    if len(items) == 1 and items[0][1] == 1:
        return item_loss(items[0][0])
    gaussians = [(item.mu, n) for item, n in items if isinstance(item, GaussianLoss)]
    if items and len(gaussians) == len(items):
        return GaussianLoss(up(math.sqrt(math.fsum(n * mu**2 for mu, n in gaussians))))
    return Composed(plan)


def as_losses(items: list[tuple[Item, int]]) -> list[tuple[Loss, int]]:
    """The items, parallels as one loss each; the same list where there are none."""
    if any(not isinstance(item, Loss) for item, _ in items):
        return [(item_loss(item), n) for item, n in items]
    return cast("list[tuple[Loss, int]]", items)


def item_loss(item: Item) -> Loss:
    """A loss itself, or the greatest of parallel parts."""
    if not isinstance(item, Parallel):
        return single_loss(item)
    losses = tuple(dict.fromkeys(as_loss(part) for part in item.distinct))
    kept = tuple(
        one for one in losses if not any(other is not one and other.covers(one) for other in losses)
    )
    return kept[0] if len(kept) == 1 else Greatest(kept)


@final
@dataclass(frozen=True, slots=True)
class Composed(Loss):
    """Several releases seen as one; its profile is their exact composition, rounded up."""

    plan: Plan

    def profile(self, epsilon: ArrayLike) -> Array:
        """The composition at each epsilon."""
        return _composition(self.plan).profile(epsilons(epsilon))

    @property
    def reversed(self) -> Loss:
        """The plan reversed."""
        return as_loss(self.plan.reversed)

    @property
    def infinity(self) -> float:
        """What the parts' masses come to."""
        return atoms(self.plan)

    @property
    def bound(self) -> float:
        """Sum of the parts'."""
        return up(math.fsum(n * item_loss(item).bound for item, n in self.plan.losses()), 8)

    @property
    def rho(self) -> float:
        """Sum of the parts'."""
        return up(math.fsum(n * item_loss(item).rho for item, n in self.plan.losses()), 8)

    def renyi(self, order: ArrayLike) -> Array:
        """Sum of the parts'."""
        total: Array = np.zeros(np.shape(order))
        for item, n in self.plan.losses():
            total = total + n * item_loss(item).renyi(order)
        return total

    @property
    def envelope(self) -> bool:
        """Where a part is one."""
        return any(item_loss(item).envelope for item, _ in self.plan.losses())

    @property
    def rounded(self) -> bool:
        """Yes."""
        return True

    @property
    def attained(self) -> Loss:
        """The composition of what the parts' pairs attain."""
        return as_loss(Sequential(n * item_loss(i).attained for i, n in self.plan.losses()))


@final
@dataclass(frozen=True, slots=True)
class Greatest(Loss):
    """The pointwise maximum of several losses: a user pays for one of them, nobody knows which."""

    parts: tuple[Loss, ...]

    def profile(self, epsilon: ArrayLike) -> Array:
        """The greatest profile."""
        greatest: Array = np.maximum.reduce([part.profile(epsilon) for part in self.parts])
        return greatest

    @property
    def reversed(self) -> Loss:
        """The greatest of the parts reversed."""
        return Greatest(tuple(part.reversed for part in self.parts))

    @property
    def infinity(self) -> float:
        """The greatest."""
        return max(part.infinity for part in self.parts)

    @property
    def bound(self) -> float:
        """The greatest."""
        return max(part.bound for part in self.parts)

    @property
    def rho(self) -> float:
        """The greatest."""
        return max(part.rho for part in self.parts)

    def renyi(self, order: ArrayLike) -> Array:
        """The greatest."""
        greatest: Array = np.maximum.reduce([part.renyi(order) for part in self.parts])
        return greatest

    @property
    def envelope(self) -> bool:
        """Always."""
        return True

    @property
    def rounded(self) -> bool:
        """Where a part is."""
        return any(part.rounded for part in self.parts)

    @property
    def attained(self) -> Loss:
        """That part which costs most at a delta of 1e-6."""
        return max((part.attained for part in self.parts), key=lambda one: one.epsilon_at(1e-6))


@functools.lru_cache(maxsize=256)
def _composition(plan: Plan) -> Composition:
    items = certified([(item_loss(item), n) for item, n in plan.losses()], 1e-14, upper=True)
    return Composition(items, 1e-6)


def certified(
    items: list[tuple[Loss, int]], delta: float, *, upper: bool, most: float = math.inf
) -> list[tuple[Loss, int]]:
    """The losses, some replaced by dots above or below them.

    Those without a certified cumulant, and those of more than ``most`` terms far up a contour.
    """
    releases = sum(n for _, n in items)
    # what may be moved to infinity in all changes delta by a ten-millionth
    tail = delta * 1e-7 / max(releases, 1)
    kept = [one.certified and one.terms(FAR_UP) <= most for one, _ in items]
    return [
        (one if keep else dots(one, tail, upper=upper), n)
        for (one, n), keep in zip(items, kept, strict=True)
    ]
