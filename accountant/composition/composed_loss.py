"""A whole plan as one loss: what is sampled, grouped or run in parallel may be a composition."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import cast, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.certified_composition import CertifiedComposition
from accountant.composition.exact_cgf import with_exact_cgf
from accountant.composition.plan_totals import infinity_mass
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons, single_loss
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Item, Plan, Sequential


def loss_of_plan(plan: Plan) -> Loss:
    """The one loss a plan amounts to: its own, one Gaussian, or its composition."""
    items = list(plan.losses())
    if len(items) == 1 and items[0][1] == 1:
        return loss_of_item(items[0][0])
    gaussians = [(item.mu, n) for item, n in items if isinstance(item, GaussianLoss)]
    if items and len(gaussians) == len(items):
        return GaussianLoss(round_up(math.sqrt(math.fsum(n * mu**2 for mu, n in gaussians))))
    return ComposedLoss(plan)


def losses_of_items(items: list[tuple[Item, int]]) -> list[tuple[Loss, int]]:
    """The items, parallels as one loss each; the same list where there are none."""
    if any(not isinstance(item, Loss) for item, _ in items):
        return [(loss_of_item(item), n) for item, n in items]
    return cast("list[tuple[Loss, int]]", items)


def loss_of_item(item: Item) -> Loss:
    """A loss itself, or the greatest of parallel parts."""
    if not isinstance(item, Parallel):
        return single_loss(item)
    losses = tuple(dict.fromkeys(loss_of_plan(part) for part in item.distinct))
    kept = tuple(
        one
        for one in losses
        if not any(other is not one and other.dominates(one) for other in losses)
    )
    return kept[0] if len(kept) == 1 else PointwiseMaximum(kept)


@final
@dataclass(frozen=True, slots=True)
class ComposedLoss(Loss):
    """Several releases seen as one; its profile is their exact composition, rounded up."""

    plan: Plan

    def profile(self, epsilon: ArrayLike) -> Array:
        """The composition at each epsilon."""
        return _composition(self.plan).profile(epsilons(epsilon))

    @property
    def reversed(self) -> Loss:
        """The plan reversed."""
        return loss_of_plan(self.plan.reversed)

    @property
    def infinity(self) -> float:
        """What the parts' masses come to."""
        return infinity_mass(self.plan)

    @property
    def max_loss(self) -> float:
        """Sum of the parts'."""
        return round_up(
            math.fsum(n * loss_of_item(item).max_loss for item, n in self.plan.losses()), 8
        )

    @property
    def rho(self) -> float:
        """Sum of the parts'."""
        return round_up(math.fsum(n * loss_of_item(item).rho for item, n in self.plan.losses()), 8)

    def renyi(self, order: ArrayLike) -> Array:
        """Sum of the parts'."""
        total: Array = np.zeros(np.shape(order))
        for item, n in self.plan.losses():
            total = total + n * loss_of_item(item).renyi(order)
        return total

    @property
    def numerics(self) -> LossNumerics:
        """A numerical bound, on many pairs where that of a part is."""
        parts = (loss_of_item(item).numerics for item, _ in self.plan.losses())
        many = any(part.is_upper_envelope for part in parts)
        return LossNumerics(is_upper_envelope=many, is_numerical=True)

    @property
    def attained_pair(self) -> Loss:
        """The composition of what the parts' pairs attain."""
        return loss_of_plan(
            Sequential(n * loss_of_item(i).attained_pair for i, n in self.plan.losses())
        )


@final
@dataclass(frozen=True, slots=True)
class PointwiseMaximum(Loss):
    """The pointwise maximum of several losses: a user pays for one of them, nobody knows which."""

    parts: tuple[Loss, ...]

    def profile(self, epsilon: ArrayLike) -> Array:
        """The greatest profile."""
        greatest: Array = np.maximum.reduce([part.profile(epsilon) for part in self.parts])
        return greatest

    @property
    def reversed(self) -> Loss:
        """The greatest of the parts reversed."""
        return PointwiseMaximum(tuple(part.reversed for part in self.parts))

    @property
    def infinity(self) -> float:
        """The greatest."""
        return max(part.infinity for part in self.parts)

    @property
    def max_loss(self) -> float:
        """The greatest."""
        return max(part.max_loss for part in self.parts)

    @property
    def rho(self) -> float:
        """The greatest."""
        return max(part.rho for part in self.parts)

    def renyi(self, order: ArrayLike) -> Array:
        """The greatest."""
        greatest: Array = np.maximum.reduce([part.renyi(order) for part in self.parts])
        return greatest

    @property
    def numerics(self) -> LossNumerics:
        """A bound on many pairs, numerical where that of a part is."""
        numerical = any(part.numerics.is_numerical for part in self.parts)
        return LossNumerics(is_upper_envelope=True, is_numerical=numerical)

    @property
    def attained_pair(self) -> Loss:
        """That part which costs most at a delta of 1e-6."""
        return max(
            (part.attained_pair for part in self.parts), key=lambda one: one.epsilon_at(1e-6)
        )


@functools.lru_cache(maxsize=256)
def _composition(plan: Plan) -> CertifiedComposition:
    items = with_exact_cgf(
        [(loss_of_item(item), n) for item, n in plan.losses()], 1e-14, upper=True
    )
    return CertifiedComposition(items, 1e-6)
