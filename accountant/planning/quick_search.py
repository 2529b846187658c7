"""The search of a calibration where one answer of `Tight` takes long: rough answers come first.

What is returned was seen to meet the target by the accountant that was asked; rough answers only
say where to look.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.accountants.one_way import FEW_RELEASES, MAX_CHOICES, OneWay, one_way
from accountant.composition.cgf import exact_cgf
from accountant.composition.exact_cgf import HIGH_FREQUENCY
from accountant.composition.grid_certificate import grid_certificate
from accountant.plans.plan import Plan, directions

TOLERANCE = 1e-6
STEPS = 12
SECOND = math.log(1.1)  # the second point tried, over the first
MOST = math.log(50.0)  # the longest step
# of epsilon, what lattices aim at, and from how many nats of it one step of the polynomial is
# enough; each search starts from the last
ROUGH_WIDTHS = ((1e-2, 0.01), (1e-6, 1e-4))
MAX_POINTS = 2**17  # of a lattice: its upper end is that of much finer ones to some 1e-7
CLEARLY_LESS = 0.98  # of the other direction: it is then not asked for again
MAX_RELEASES = 300  # of more a lattice is no quicker
FEW_TERMS = 16  # of a cumulant: one with more is a quadrature

Known = list[tuple[float, float]]  # ln of cost over the aim, and of the parameter


def root_near(
    cost: Callable[[float], float], target: float, start: float, slope: float | None = None
) -> float | None:
    """Return where the cost is at most ``target``, and not by more than `TOLERANCE`; or None.

    ``slope`` is about that of ln cost in ln parameter.
    """
    aim, here = target * (1 - TOLERANCE / 2), start
    known: Known = []
    for _ in range(STEPS):
        value = cost(here)
        if (1 - TOLERANCE) * target <= value <= target:
            return here
        there = _next(known, value / aim, here, slope)
        if there is None:
            return None
        here = there
    return None


def _next(known: Known, ratio: float, here: float, slope: float | None) -> float | None:
    """Return where the polynomial through the last points is 0; ``known`` keeps this one."""
    if not 0 < ratio < math.inf:
        return None
    known.append((math.log(ratio), math.log(here)))
    if len(known) > 1:
        there = interpolated_at_zero(known[-3:])
    else:
        there = known[0][1] + (SECOND if slope is None else -known[0][0] / slope)
    if there is None:
        return None
    found = math.exp(known[-1][1] + max(-MOST, min(MOST, there - known[-1][1])))
    return found if 1e-290 < found < 1e290 else None


def interpolated_at_zero(points: Known) -> float | None:
    """Return the polynomial through a few points at 0."""
    places = [x for x, _ in points]
    if len(set(places)) < len(places):
        return None
    return sum(
        y * math.prod(-other / (x - other) for other in places if other != x) for x, y in points
    )


def _slope_at_zero(points: Known) -> float | None:
    """Return the slope, where it is 0, of the curve through a few points."""
    step = 1e-4 * (points[-1][0] - points[-2][0])
    moved = interpolated_at_zero([(x - step, y) for x, y in points])
    here = interpolated_at_zero(points)
    return None if moved is None or here is None or moved == here else step / (moved - here)


def usual_slope(epsilon: float, delta: float) -> float:
    """Return about the slope of ln epsilon in ln noise, where releases are many."""
    if delta == 0:
        return -1.0
    # epsilon = r^2 + 2 r sqrt(L), with L = ln(1 / delta) and r as the inverse of noise
    most = -math.log(delta)
    r = math.sqrt(most + epsilon) - math.sqrt(most)
    return -2 * r * (r + math.sqrt(most)) / epsilon


def rough_start(
    build: Callable[[float], Plan], target: float, delta: float
) -> tuple[float, float] | None:
    """Return about where the plan costs ``target`` at ``delta``, and the slope there.

    None where coarse lattices are no quicker than the search by `Tight`.
    """
    # upper ends of lattices are too large by some of the tolerance
    aim, here, slope = target * (1 - 0.3 * TOLERANCE), 1.0, None
    backwards: bool | None = None  # which direction costs more
    for width, near in ROUGH_WIDTHS:
        known: Known = []
        for _ in range(STEPS):
            found = _rough_costs(build(here), delta, width, backwards)
            if found is None:
                return None
            value = max(found)
            if backwards is None and len(found) == 2 and min(found) < CLEARLY_LESS * value:
                backwards = found[1] == value
            there = _next(known, value / aim, here, slope)
            if there is None:
                return None
            here = there
            if abs(math.log(value / aim)) < near:
                break
        else:
            return None
        slope = _slope_at_zero(known[-3:]) if len(known) > 1 else slope
    return None if slope is None else (here, slope)


def _rough_costs(
    plan: Plan, delta: float, width: float, backwards: bool | None
) -> list[float] | None:
    """Return about the epsilon of each direction, or of one, by coarse lattices."""
    ways = directions(plan)
    if backwards is not None and len(ways) == 2:
        ways = (ways[backwards],)
    found = [_rough_epsilon(one_way(way, width), delta) for way in ways]
    return None if any(map(math.isnan, found)) else found


def _rough_epsilon(way: OneWay, delta: float) -> float:
    if sum(n for _, n in way.losses) > MAX_RELEASES or not _is_dear(way):
        return math.nan
    found = grid_certificate(way.losses, delta, way.width, MAX_POINTS)
    return math.nan if found is None else found.upper


def is_dear(plan: Plan, delta: float) -> bool:
    """Return whether one answer of `Tight` takes some tens of milliseconds."""
    return _is_dear(one_way(plan, ROUGH_WIDTHS[0][0], at_zero=delta == 0))


def _is_dear(way: OneWay) -> bool:
    """Return whether some cumulant is a quadrature, or sampled Gaussians are few."""
    if way.exact is None or way.choices or len(way.losses) > MAX_CHOICES:
        return False
    if way.exact.may_have_certain_violations:
        return sum(n for _, n in way.losses) <= FEW_RELEASES
    for loss, _ in way.losses:
        terms = exact_cgf(loss).quadrature_terms(loss, HIGH_FREQUENCY)
        if loss.loss_pmf is None and terms > FEW_TERMS:
            return True
    return False
