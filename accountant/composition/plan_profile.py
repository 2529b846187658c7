"""Both bounds on the profile of one direction of a plan, at every epsilon, also below 0.

They are those of `profile_ends` where an exact engine gives them quickly.  Elsewhere the upper
bounds are those of a lattice above the losses, and the lower bounds those of no release.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.composed_loss import losses_of_items
from accountant.composition.composition import Composition
from accountant.composition.lattice_above import LatticeCurve
from accountant.composition.pld_grid import spread_of
from accountant.composition.profile_curve import ProfileCurve
from accountant.composition.profile_ends import ProfileEnds, profile_ends
from accountant.losses.loss import Loss, epsilons
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.plans.plan import Item, Plan

NEAR = 0.3  # deviations
QUICK = 3e7  # complex products: contours whose planning costs more take long
WIDTH = 1e-3  # what the lattice above adds to epsilon, relative to it, about


@final
@dataclass(frozen=True, slots=True)
class PlanProfile(Loss):
    """One direction of a plan as one loss, with bounds on its profile."""

    plan: Plan

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the upper bounds."""
        return self.profile_bounds(epsilons(epsilon))[1]

    @property
    def reversed(self) -> PlanProfile:
        """The other direction."""
        return PlanProfile(self.plan.reversed)

    @property
    def infinity(self) -> float:
        """The mass at infinity, rounded down."""
        ends = _ends(self.plan)
        return 0.0 if isinstance(ends, LatticeCurve) else ends.infinity

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the upper bounds at any real epsilons."""
        return self.profile_bounds(epsilon)[1]

    def profile_bounds(self, epsilon: Array) -> tuple[Array, Array]:
        """Return both bounds at any real epsilons."""
        low, high = np.empty((2, *epsilon.shape))
        above, below = np.flatnonzero(epsilon >= 0), np.flatnonzero(epsilon < 0)
        low[above], high[above] = _bounds(self.plan, epsilon[above])
        if below.size:
            # delta(-e) = 1 - e^-e + e^-e delta_reversed(e)
            e = -epsilon[below]
            reversed_low, reversed_high = _bounds(self.plan.reversed, e)
            low[below] = np.exp(-e) * reversed_low - np.expm1(-e)
            high[below] = np.exp(-e) * reversed_high - np.expm1(-e)
        return low * (1 - 8 * ULP), np.minimum(high * (1 + 8 * ULP), 1.0)


def has_quick_ends(items: list[tuple[Item, int]]) -> bool:
    """Return whether an exact engine bounds the profile of these releases quickly."""
    if len(items) == 1 and items[0][1] == 1:
        return True
    composition = Composition(losses_of_items(items))
    return (
        composition.has_exact_cgf
        and composition.contour_planning_cost <= QUICK
        and ProfileCurve(composition, WIDTH).is_exact
    )


@functools.lru_cache(maxsize=128)
def _ends(plan: Plan) -> ProfileEnds | LatticeCurve:
    """Return what bounds the profile of a plan."""
    items = list(plan.losses())
    if not has_quick_ends(items):
        losses = losses_of_items(items)
        releases = sum(count for _, count in losses)
        curve = LatticeCurve.of(losses, math.sqrt(8 * WIDTH / releases) * deviation_of(plan))
        if curve is not None:
            return curve
    return profile_ends(plan)


def _bounds(plan: Plan, epsilon: Array) -> tuple[Array, Array]:
    """Return bounds at epsilons of at least 0."""
    ends = _ends(plan)
    if isinstance(ends, LatticeCurve):
        return np.zeros(epsilon.size), ends.profile(epsilon)
    low, high = np.zeros(epsilon.size), np.ones(epsilon.size)
    # What bounds delta near one epsilon is used for those at most `NEAR` deviations further.
    distance = NEAR * deviation_of(plan) if ends.needs_centre else math.inf
    row = np.floor(epsilon / distance)
    for number in np.unique(row).tolist():
        places = np.flatnonzero(row == number)
        centre = float(np.median(epsilon[places]))
        low[places], high[places] = ends.near(centre, epsilon[places])
    return low, high


@functools.lru_cache(maxsize=512)
def deviation_of(plan: Plan) -> float:
    """Return a rough standard deviation of the loss of a plan."""
    spread = spread_of(losses_of_items(list(plan.losses())))
    return math.sqrt(math.fsum(count * deviation**2 for deviation, count in spread)) or 1.0
