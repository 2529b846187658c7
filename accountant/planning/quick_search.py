"""The search for a noise parameter where one epsilon of `Tight` takes long to compute.

Calibration looks for the parameter at which a plan has a target epsilon.  Coarse lattices give a
rough start and a slope; from there a few exact answers are enough.  Slopes are those of ln epsilon
as a function of ln parameter, which is nearly a line.  The search takes ln parameter as a
polynomial of ln(cost / aim) through its last points, and goes to its value at 0.  What is returned
meets the target by the exact accountant: rough answers only decide where to look.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.accountants.direction import MAX_CHOICES, Direction
from accountant.composition.cgf import exact_cgf
from accountant.composition.composition import PLANNING_FREQUENCY
from accountant.composition.grid_certificate import grid_certificate
from accountant.plans.plan import Plan, directions

TOLERANCE = 1e-6  # relative to the target: by so much the answer may be below it
STEPS = 12  # evaluations at most; with a good start three or four are usual
MAX_LOG_STEP = math.log(50.0)  # nats: one step changes the parameter at most 50-fold
# Relative widths of epsilon that lattices aim at, each with the distance of ln cost from its aim at
# which the step of the polynomial that follows is exact enough.  Each search starts from the end of
# the previous one.
ROUGH_WIDTHS = ((1e-2, 0.01), (1e-6, 1e-4))
MAX_POINTS = 2**17  # lattice points: a much finer lattice would change the upper end by about 1e-7
LATTICE_AIM = 0.3 * TOLERANCE  # below the target, since upper ends of lattices are a little high
CLEARLY_LESS = 0.98  # a direction below this share of the other one is not computed again
MAX_RELEASES = 300  # with more releases a lattice is no quicker than `Tight`
FEW_RELEASES = 19  # sampled releases: contours of so few are long, and lattices are quicker
FEW_TERMS = 16  # terms of a cumulant: one with more is a quadrature, which takes long

SearchPoints = list[tuple[float, float]]  # ln of cost over the aim, and of the parameter


def root_near(
    cost: Callable[[float], float], target: float, start: float, slope: float | None = None
) -> float | None:
    """Return where the cost is at most ``target``, and not by more than `TOLERANCE`; or None.

    ``slope`` is about that of ln cost in ln parameter.
    """
    aim, parameter = target * (1 - TOLERANCE / 2), start
    points: SearchPoints = []
    for _ in range(STEPS):
        value = cost(parameter)
        if (1 - TOLERANCE) * target <= value <= target:
            return parameter
        next_parameter = _next(points, value / aim, parameter, slope)
        if next_parameter is None:
            return None
        parameter = next_parameter
    return None


def _next(
    points: SearchPoints, ratio: float, parameter: float, slope: float | None
) -> float | None:
    """Return where the polynomial through the last points is 0; ``points`` gets this one."""
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
    """Return ln of the parameter where the cost is the aim, by interpolation or by the slope.

    None where two of the last points have one cost.
    """
    if len(points) > 1:
        return _interpolated_at_zero(points[-3:])
    if slope is None:
        return points[0][1] + math.log(1.1)  # the second parameter is 10 % above the first
    return points[0][1] - points[0][0] / slope


def _interpolated_at_zero(points: SearchPoints) -> float | None:
    """Return the polynomial through a few points at 0."""
    xs = [x for x, _ in points]
    if len(set(xs)) < len(xs):
        return None
    return sum(
        y * math.prod(-other_x / (x - other_x) for other_x in xs if other_x != x) for x, y in points
    )


def _slope_at_zero(points: SearchPoints) -> float | None:
    """Return the slope, where it is 0, of the curve through a few points."""
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

    The loss is then nearly Gaussian, of mean r^2 and variance 2 r^2.
    """
    if delta == 0:
        return -1.0
    # epsilon = r^2 + 2 r sqrt(L), with L = ln(1 / delta) and r as the inverse of noise
    log_inverse_delta = -math.log(delta)
    r = math.sqrt(log_inverse_delta + epsilon) - math.sqrt(log_inverse_delta)
    return -2 * r * (r + math.sqrt(log_inverse_delta)) / epsilon


def rough_start(
    build: Callable[[float], Plan], target: float, delta: float
) -> tuple[float, float] | None:
    """Return about where the plan costs ``target`` at ``delta``, and the slope there.

    None where coarse lattices are no quicker than the search by `Tight`.
    """
    aim, parameter, slope = target * (1 - LATTICE_AIM), 1.0, None
    backwards: bool | None = None  # which direction costs more
    for width, tolerance in ROUGH_WIDTHS:
        points: SearchPoints = []
        for _ in range(STEPS):
            epsilons = _rough_costs(build(parameter), delta, width, backwards)
            if epsilons is None:
                return None
            value = max(epsilons)
            if backwards is None and len(epsilons) == 2 and min(epsilons) < CLEARLY_LESS * value:
                backwards = epsilons[1] == value
            next_parameter = _next(points, value / aim, parameter, slope)
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
    """Return about the epsilon of each direction, or of one, by coarse lattices.

    None where coarse lattices are no quicker than `Tight`.
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
    """Return whether some cumulant is a quadrature, or sampled Gaussians are few."""
    composition = direction.composition
    if not direction.is_exact or direction.choices or len(composition.items) > MAX_CHOICES:
        return False
    if composition.rough_epsilon(-1.0) is not None:
        return composition.releases <= FEW_RELEASES
    for loss, _ in composition.items:
        terms = exact_cgf(loss).quadrature_terms(loss, PLANNING_FREQUENCY)
        if loss.loss_pmf is None and terms > FEW_TERMS:
            return True
    return False
