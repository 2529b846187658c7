"""Lower and upper bounds on the profile delta(epsilon) of one direction of a plan.

For one loss they are its own profile and that of a pair that it covers.  For a composition they
come from engines, numerical methods that bound delta near the epsilon for which they are made.
Losses without an exact cumulant, which engines need, are replaced by finite losses above or below
them.  A `PlanProfile` has both bounds at every epsilon, also below 0: where no exact engine gives
them quickly, the upper ones are those of a lattice above, and the lower ones those of no release.

References: `docs/proofs/contour.md` for the two bounds of an engine; `docs/proofs/tradeoff.md` for
their use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.cgf import saddlepoint
from accountant.composition.composed_loss import ComposedLoss, loss_of_plan, losses_of_items
from accountant.composition.composition import (
    Composition,
    Neighbourhood,
    attained_losses,
    ignore_overflow,
    total_rounding,
)
from accountant.composition.engine import DeltaBounds, delta_bounds_near
from accountant.composition.engines import ENGINES_NEAR_EPSILON
from accountant.composition.finite_pairs import with_exact_cgf
from accountant.composition.lattice_above import LatticeCurve
from accountant.composition.pld_grid import spread_of
from accountant.composition.profile_curve import ProfileCurve
from accountant.losses.loss import Loss, epsilons
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, ULP
from accountant.plans.plan import Item, Plan

TAIL = 1e-14  # mass that finite losses in place of others may move to infinity
WIDTH = 1e-5  # relative to epsilon: width of the interval that engines which may be wider aim at
# Differences of ln delta between the two ends.  If an engine has at most NARROW, no further one is
# tried.  Where none reaches that, twice the least difference is accepted from then on, up to
# LEAST_NARROW; with finite losses in place of others LEAST_NARROW is accepted at once.
LEAST_NARROW = 1e-4
NARROW = 3e-6
CLOSE = 0.3  # deviations: so far from an epsilon what bounds delta near it is used
LATTICE_WIDTH = 1e-3  # what a lattice above adds to epsilon, relative to it, about
NO_BOUNDS = (-math.inf, 0.0)  # ln of the lower and the upper bound where nothing is known


class ProfileEnds(Protocol):
    """Bounds on the profile of one direction."""

    @property
    def max_loss(self) -> float:
        """The largest finite loss: from this epsilon on delta is the mass at infinity."""
        ...

    @property
    def infinity(self) -> float:
        """A lower bound on the mass at infinity."""
        ...

    @property
    def is_upper_only(self) -> bool:
        """Whether the lower bounds are all 0, as nothing is known from below."""
        ...

    @property
    def needs_centre(self) -> bool:
        """Whether the bounds are close at epsilons near ``centre`` alone."""
        ...

    def near(self, centre: float, epsilon: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds on delta at epsilons near ``centre``, all at least 0."""
        ...


def profile_ends(plan: Plan) -> ProfileEnds:
    """Return both bounds on the profile of one direction of a plan."""
    loss = loss_of_plan(plan)
    if isinstance(loss, ComposedLoss):
        return _ComposedEnds(losses_of_items(list(plan.losses())))
    return _SingleEnds(loss)


class _SingleEnds:
    """One loss: its own profile, and that of a pair it covers."""

    needs_centre = False

    def __init__(self, loss: Loss) -> None:
        self._above, self._below = loss, loss.attained_pair
        self.max_loss = loss.max_loss
        self.is_upper_only = loss.numerics.is_numerical
        self.infinity = 0.0
        if not self.is_upper_only:
            self.infinity = self._below.infinity * (1 - ACCURACY) * math.exp(-self._below.rounding)

    def near(self, centre: float, epsilon: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds on delta at each epsilon."""
        del centre
        high = np.minimum(self._above.profile(epsilon) * (1 + ACCURACY), 1.0)
        if self.is_upper_only:
            return np.zeros_like(high), high
        # The pair's masses are within a factor e^{+-r} of the mechanism's, so
        # delta(e) >= e^{-r} delta'(e + 2r) with delta' the pair's profile.
        rounding = self._below.rounding
        low = self._below.profile(epsilon + 2 * rounding)
        low = low * ((1 - ACCURACY) * math.exp(-rounding))
        return np.minimum(low, high), high


class _ComposedEnds:
    """A composition; an engine made for one epsilon is used at others while its ends are close."""

    needs_centre = True

    def __init__(self, losses: list[tuple[Loss, int]]) -> None:
        above = with_exact_cgf(losses, TAIL, upper=True)
        self.is_upper_only = any(loss.numerics.is_numerical for loss, _ in losses)
        pairs = attained_losses(losses)
        below = above if self.is_upper_only else with_exact_cgf(pairs, TAIL, upper=False)
        # With finite losses in place of others the ends are not closer than this.
        narrow_width = NARROW if above == losses else LEAST_NARROW
        self._above = self._below = _Composition(above, 0.0, narrow_width)
        self.max_loss = self._above.max_loss
        rounding = total_rounding(pairs)
        if below != above or rounding:
            self._below = _Composition(below, rounding, narrow_width)
        self.infinity = 0.0 if self.is_upper_only else self._below.infinity

    def near(self, centre: float, epsilon: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds on delta at epsilons near ``centre``."""
        low, high = self._above.near(centre, epsilon)
        if self.is_upper_only:
            return np.zeros_like(low), high
        if self._below is not self._above:
            low, _ = self._below.near(centre, epsilon)
        return np.minimum(low, high), high


class _Composition:
    """Losses with exact cumulants, whose masses are within e^{+-rounding} of the mechanisms'.

    ``narrow_width`` says how close the ends of an engine must be, in ln delta, for no further one
    to be tried.  Bounds that were used once are tried first at the next epsilon.
    """

    def __init__(self, items: list[tuple[Loss, int]], rounding: float, narrow_width: float) -> None:
        self._composition = Composition(items, 0.0)
        self._rounding, self.max_loss = rounding, self._composition.max_loss
        self.infinity = self._composition.infinity * (1 - 8 * ULP) * math.exp(-rounding)
        self._known_bounds: list[DeltaBounds] = []
        self._enough = narrow_width

    @ignore_overflow
    def near(self, centre: float, epsilon: Array) -> tuple[Array, Array]:
        """Return a lower and an upper bound on delta at each epsilon."""
        infinity, r = self._composition.infinity, self._rounding
        low = np.full(epsilon.shape, infinity * (1 - 8 * ULP))
        high = np.full(epsilon.shape, infinity * (1 + 16 * ULP))
        inside = epsilon[epsilon < self.max_loss]
        bounds = None
        if self._composition.items and inside.size and infinity < 1:
            bounds = self._bounds_near(min(centre, float(np.max(inside))))
        for i, e in enumerate(epsilon.tolist()):
            if e < self.max_loss:
                # With masses within e^{+-r}, delta(e) is at least e^{-r} delta'(e + 2r).
                log_low, log_high = NO_BOUNDS if bounds is None else bounds.bounds(e + 2 * r)
                low[i] += math.exp(min(log_low, 0.0)) * (1 - 4 * ULP)
                if r:
                    _, log_high = NO_BOUNDS if bounds is None else bounds.bounds(e)
                high[i] += math.exp(min(log_high, 0.0)) * (1 + 4 * ULP)
        return low * math.exp(-r), np.minimum(high, 1.0)

    def _bounds_near(self, epsilon: float) -> DeltaBounds | None:
        """Return the first bounds with close ends at ``epsilon``, or the closest of all engines."""
        best, least_gap = None, math.inf
        for bounds in self._candidates(epsilon):
            low, high = bounds.bounds(epsilon)
            if best is None or high - low < least_gap:
                best, least_gap = bounds, high - low
            if least_gap <= self._enough:
                break
        else:  # no engine is closer near this epsilon
            self._enough = min(max(2 * least_gap, self._enough), LEAST_NARROW)
        if best is not None and best not in self._known_bounds:
            self._known_bounds.append(best)
        return best

    def _candidates(self, epsilon: float) -> Iterator[DeltaBounds]:
        """Yield the bounds that are there already, and then new ones for this epsilon."""
        yield from list(self._known_bounds)
        tilt = saddlepoint(self._composition.cgf, epsilon=epsilon)
        neighbourhood = Neighbourhood(self._composition, tilt, epsilon, WIDTH)
        yield from delta_bounds_near(neighbourhood, ENGINES_NEAR_EPSILON)


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
        ends = _ends_of(self.plan)
        return 0.0 if isinstance(ends, LatticeCurve) else ends.infinity

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the upper bounds at any real epsilons."""
        return self.profile_bounds(epsilon)[1]

    def profile_bounds(self, epsilon: Array) -> tuple[Array, Array]:
        """Return both bounds at any real epsilons."""
        low, high = np.empty((2, *epsilon.shape))
        above, below = np.flatnonzero(epsilon >= 0), np.flatnonzero(epsilon < 0)
        low[above], high[above] = _bounds_above_zero(self.plan, epsilon[above])
        if below.size:
            # delta(-e) = 1 - e^-e + e^-e delta_reversed(e)
            e = -epsilon[below]
            reversed_low, reversed_high = _bounds_above_zero(self.plan.reversed, e)
            low[below] = np.exp(-e) * reversed_low - np.expm1(-e)
            high[below] = np.exp(-e) * reversed_high - np.expm1(-e)
        return low * (1 - 8 * ULP), np.minimum(high * (1 + 8 * ULP), 1.0)


def has_quick_ends(items: list[tuple[Item, int]]) -> bool:
    """Return whether an exact engine bounds the profile of these releases quickly."""
    if len(items) == 1 and items[0][1] == 1:
        return True
    composition = Composition(losses_of_items(items))
    return composition.is_quickly_planned and ProfileCurve(composition, LATTICE_WIDTH).is_exact


@functools.lru_cache(maxsize=128)
def _ends_of(plan: Plan) -> ProfileEnds | LatticeCurve:
    """Return what bounds the profile of a plan."""
    items = list(plan.losses())
    if not has_quick_ends(items):
        losses = losses_of_items(items)
        releases = sum(count for _, count in losses)
        curve = LatticeCurve.of(
            losses, math.sqrt(8 * LATTICE_WIDTH / releases) * deviation_of(plan)
        )
        if curve is not None:
            return curve
    return profile_ends(plan)


def _bounds_above_zero(plan: Plan, epsilon: Array) -> tuple[Array, Array]:
    """Return bounds at epsilons of at least 0."""
    ends = _ends_of(plan)
    if isinstance(ends, LatticeCurve):
        return np.zeros(epsilon.size), ends.profile(epsilon)
    low, high = np.zeros(epsilon.size), np.ones(epsilon.size)
    # What bounds delta near one epsilon is used for those at most `CLOSE` deviations further.
    distance = CLOSE * deviation_of(plan) if ends.needs_centre else math.inf
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
