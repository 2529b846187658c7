"""The search for a noise parameter where one epsilon of `Tight` takes long to compute.

Calibration looks for the parameter, mostly a noise scale, at which the cost of a plan (an epsilon,
or a rate of an attack) is a target.  The *aim* is a cost a little below it.

- Coarse lattices, which are laws of the losses on points far apart, give a rough start and a slope.
  All slopes are those of ln cost as a function of ln parameter, which is nearly a line.
- From there a few exact costs are enough.  The search is inverse interpolation: ln parameter is a
  polynomial of ln(cost / aim) through the last points, whose value at 0 is tried next.

What is returned meets the target by the exact accountant: rough answers only decide where to look.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.accountants.direction import MAX_CHOICES, Direction
from accountant.composition.composition import PLANNING_FREQUENCY
from accountant.composition.grid_certificate import grid_certificate
from accountant.losses.loss import exact_cgf
from accountant.plans.plan import Plan, directions

TOLERANCE = 1e-6  # relative to the target: by so much the answer may be below it
STEPS = 12  # evaluations at most; with a good start three or four are usual
MAX_LOG_STEP = math.log(50.0)  # nats: one step changes the parameter at most 50-fold
# Two rough searches, the second from where the first one ends.  Of each: the relative width of
# epsilon that its lattices aim at, and how near ln cost must come to the aim.  The polynomial takes
# one step more from there, which is the end of the search.
ROUGH_WIDTHS = ((1e-2, 0.01), (1e-6, 1e-4))
MAX_POINTS = 2**17  # points of a lattice: more of them would change the upper end by about 1e-7
LATTICE_AIM = 0.3 * TOLERANCE  # below the target, since upper ends of lattices are a little high
CLEARLY_LESS = 0.98  # a direction below this share of the other one is not computed again
MAX_RELEASES = 300  # with more releases a lattice is no quicker than `Tight`
FEW_RELEASES = 19  # sampled releases: contours of so few are long, and lattices are quicker
FEW_TERMS = 16  # terms of a cumulant: one with more is a quadrature, which takes long

SearchPoints = list[tuple[float, float]]  # (ln(cost / aim), ln parameter), in the order of trial


def root_near(
    cost: Callable[[float], float], target: float, start: float, slope: float | None = None
) -> float | None:
    """Return a parameter whose cost is ``target``, or less by at most `TOLERANCE`; None if none is.

    ``slope`` is about that of ln cost in ln parameter; it decides the second parameter tried.
    """
    aim, parameter = target * (1 - TOLERANCE / 2), start
    points: SearchPoints = []
    for _ in range(STEPS):
        value = cost(parameter)
        if (1 - TOLERANCE) * target <= value <= target:
            return parameter
        next_parameter = _next_parameter(points, value / aim, parameter, slope)
        if next_parameter is None:
            return None
        parameter = next_parameter
    return None


def _next_parameter(
    points: SearchPoints, ratio: float, parameter: float, slope: float | None
) -> float | None:
    """Return the parameter to try after this one, at which the cost is ``ratio`` times the aim.

    The point of this parameter is appended to ``points``.  None ends the search.
    """
    if not 0 < ratio < math.inf:
        return None
    points.append((math.log(ratio), math.log(parameter)))
    log_parameter = estimated_root(points, slope)
    if log_parameter is None:
        return None
    next_parameter = math.exp(
        points[-1][1] + max(-MAX_LOG_STEP, min(MAX_LOG_STEP, log_parameter - points[-1][1]))
    )
    return next_parameter if 1e-290 < next_parameter < 1e290 else None


def estimated_root(points: SearchPoints, slope: float | None) -> float | None:
    """Return about ln of the parameter whose cost is the aim.

    From two points on it is interpolated, and None where two of the last three have one cost.  From
    one point it follows by the slope, or is a little further where no slope is known.
    """
    if len(points) > 1:
        return _interpolated_at_zero(points[-3:])
    if slope is None:
        return points[0][1] + math.log(1.1)  # the second parameter is 10 % above the first
    return points[0][1] - points[0][0] / slope


def _interpolated_at_zero(points: SearchPoints) -> float | None:
    """Return the value at x = 0 of the polynomial through a few points (x, y), by Lagrange."""
    xs = [x for x, _ in points]
    if len(set(xs)) < len(xs):
        return None
    return sum(
        y * math.prod(-other_x / (x - other_x) for other_x in xs if other_x != x) for x, y in points
    )


def _slope_at_zero(points: SearchPoints) -> float | None:
    """Return the slope of ln cost in ln parameter at the aim, by the polynomial through the points.

    The polynomial f gives ln parameter from x = ln(cost / aim), so the slope is 1 / f'(0), here
    step / (f(step) - f(0)).  None where it is not defined.
    """
    # A small share of the distance of the last points; f(step) is f at 0 of the moved points.
    step = 1e-4 * (points[-1][0] - points[-2][0])
    moved_root = _interpolated_at_zero([(x - step, y) for x, y in points])
    root = _interpolated_at_zero(points)
    return (
        None
        if moved_root is None or root is None or moved_root == root
        else step / (moved_root - root)
    )


def usual_slope(epsilon: float, delta: float) -> float:
    """Return about the slope of ln epsilon in ln noise, where releases are many.

    The sum of the losses is then nearly Gaussian, of mean r^2 and variance 2 r^2, where r is in
    proportion to 1 / noise.  With L = ln(1 / delta) it exceeds epsilon with probability about delta
    at

        epsilon = r^2 + 2 r sqrt(L),   so   r = sqrt(L + epsilon) - sqrt(L)

    and the slope is -(r / epsilon) d epsilon / dr.
    """
    if delta == 0:
        return -1.0
    log_inverse_delta = -math.log(delta)
    r = math.sqrt(log_inverse_delta + epsilon) - math.sqrt(log_inverse_delta)
    return -2 * r * (r + math.sqrt(log_inverse_delta)) / epsilon


def rough_start(
    build: Callable[[float], Plan], target: float, delta: float
) -> tuple[float, float] | None:
    """Return about the parameter at which the plan costs ``target`` at ``delta``, and the slope.

    None where coarse lattices are no quicker than the search by `Tight`.
    """
    aim, parameter, slope = target * (1 - LATTICE_AIM), 1.0, None
    # Whether the second direction of the neighbours costs more; None while that is not clear.
    backwards: bool | None = None
    for width, tolerance in ROUGH_WIDTHS:
        points: SearchPoints = []
        for _ in range(STEPS):
            epsilons = _rough_costs(build(parameter), delta, width, backwards)
            if epsilons is None:
                return None
            value = max(epsilons)
            if backwards is None and len(epsilons) == 2 and min(epsilons) < CLEARLY_LESS * value:
                backwards = epsilons[1] == value
            next_parameter = _next_parameter(points, value / aim, parameter, slope)
            if next_parameter is None:
                return None
            parameter = next_parameter
            if abs(math.log(value / aim)) < tolerance:
                break
        else:
            return None
        slope = _slope_at_zero(points[-3:]) if len(points) > 1 else slope
    return None if slope is None else (parameter, slope)


def _rough_costs(
    plan: Plan, delta: float, width: float, backwards: bool | None
) -> list[float] | None:
    """Return about the epsilon of each direction, by coarse lattices of a relative ``width``.

    Where ``backwards`` says which direction costs more, it is that of this one alone.  None where
    coarse lattices are no quicker than `Tight`.
    """
    plan_directions = directions(plan)
    if backwards is not None and len(plan_directions) == 2:
        plan_directions = (plan_directions[backwards],)
    epsilons = []
    for direction in (Direction(plan_direction, width) for plan_direction in plan_directions):
        composition = direction.composition
        if composition.releases > MAX_RELEASES or delta == 0 or not _is_expensive(direction):
            return None
        certificate = grid_certificate(composition.items, delta, direction.width, MAX_POINTS)
        if certificate is None:
            return None
        epsilons.append(certificate.upper)
    return epsilons


def is_expensive(plan: Plan, delta: float) -> bool:
    """Return whether one answer of `Tight` takes some tens of milliseconds."""
    return delta > 0 and _is_expensive(Direction(plan, ROUGH_WIDTHS[0][0]))


def _is_expensive(direction: Direction) -> bool:
    """Return whether `Tight` takes long, and a lattice, which needs no cumulant, would be quicker.

    That is so where some cumulant is a quadrature of many terms, or sampled releases are few.
    """
    composition = direction.composition
    if not direction.is_exact or direction.choices or len(composition.items) > MAX_CHOICES:
        return False
    if composition.rough_epsilon(log_delta=-1.0) is not None:  # only sampled losses have it
        return composition.releases <= FEW_RELEASES
    for loss, _ in composition.items:
        terms = exact_cgf(loss).quadrature_terms(loss, PLANNING_FREQUENCY)
        if loss.loss_pmf is None and terms > FEW_TERMS:
            return True
    return False
