"""Searches for thresholds, roots, minima and maxima of functions of one variable.

A threshold search takes a predicate that changes once between two ends: it holds at one of them,
and not at the other.  It returns the last point at which the predicate was evaluated and held; if
there was none, the end at which it should hold.  If the predicate changes more often, the answer
may be less sharp, but it was still seen to hold.  So an answer is safe to state where every point
with the predicate is a valid bound.

Thresholds: `least_float_that`, `greatest_float_that`, `furthest_that` (elementwise) and
`least_integer_that` bisect; `grow_until` finds the first bracket.
Roots of decreasing functions: `smallest_root` evaluates many points at a time; `falling_root` takes
secants, for functions that are slow and smooth.
Extrema: `minimum_of_one_valley` refines grids; `maximum_of_one_peak` is a golden-section search;
`highest_of_one_peak` is Brent's search for many functions at once.

References: Brent (1973), "Algorithms for minimization without derivatives", Chapter 5, for golden
sections with parabolas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from accountant.numerics.rounding import ULP

Number = TypeVar("Number", int, float)

# `maximum_of_one_peak` first looks at points down to about e^-170 = 1e-74 of the largest one.
LADDER_DEPTH = 170
# A golden section keeps .618 of the bracket, so 39 of them keep .618^39 = 7e-9 of it.
GOLDEN_RATIO, GOLDEN_STEPS = (math.sqrt(5) - 1) / 2, 39
PEAK_STEPS = 100  # most steps of `highest_of_one_peak`
# `highest_of_one_peak` ends where the parabola promises a rise of at most this much, relative to
# the value plus 1e-3.
PEAK_GAIN = 1e-13
ROOT_STEPS = 200  # most steps of `falling_root`; bisection alone needs about 60
# In units of `falling_root`'s excess, which is a logarithm: a secant aims at an excess of
# -ROOT_AIM, and the search ends where the excess is in [-ROOT_ACCURACY, 0].
ROOT_AIM, ROOT_ACCURACY = 3e-13, 1e-12
# Of `falling_root`: a secant between points that are nearer than this, relative to epsilon, would
# have a slope made of round-off.
CHORD = 1e-11
FALL_OF_A_STEP = 50.0  # nats of the excess: limits a step while no upper end is known


def arithmetic_mean(a: float, b: float) -> float:
    """Return ``(a + b) / 2``, also where the sum overflows."""
    return (a + b) / 2 if math.isfinite(a + b) else a / 2 + b / 2


def geometric_mean(a: float, b: float) -> float:
    """Return ``sqrt(ab)`` of positive numbers, also where the product overflows."""
    return math.sqrt(a) * math.sqrt(b)


class Precision(TypedDict, total=False):
    """When a bisection stops, and how it divides its bracket.

    It stops where the ends differ by at most ``relative`` times the larger of them, after ``steps``
    steps, or at neighbouring floats.  ``mean`` gives the next point between the two ends.
    """

    relative: float
    steps: int
    mean: Callable[[float, float], float]


def least_float_that(
    holds: Callable[[float], bool], low: float, high: float, **until: Unpack[Precision]
) -> float:
    """Return the least float seen with ``holds``, which is true from a point above ``low`` on.

    Neither end is evaluated.  Without a `Precision` the bisection goes on to neighbouring floats:
    the float below the answer is ``low``, or was seen not to hold.
    """
    return _bisect(holds, high, low, **until)


def greatest_float_that(
    holds: Callable[[float], bool], low: float, high: float, **until: Unpack[Precision]
) -> float:
    """Return the greatest float seen with ``holds``, which is true up to a point below ``high``.

    Neither end is evaluated; see `least_float_that`.
    """
    return _bisect(holds, low, high, **until)


def _bisect(
    holds: Callable[[float], bool],
    good: float,
    bad: float,
    relative: float = 0.0,
    steps: float = math.inf,
    mean: Callable[[float, float], float] = arithmetic_mean,
) -> float:
    """Return the end ``good``, moved towards ``bad`` as far as ``holds`` was seen to hold.

    All floats lie within 2^1025, and are at least 2^-1074 apart, so about 2100 halvings lead from
    any bracket to two neighbouring floats.
    """
    while steps > 0:
        steps -= 1
        middle = mean(good, bad)
        if not (good < middle < bad or bad < middle < good):
            break
        if relative and abs(good - bad) <= relative * max(abs(good), abs(bad)):
            break
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def furthest_that(
    holds: Callable[[Array], NDArray[np.bool_]], start: Array, end: Array, steps: int = 60
) -> Array:
    """Return elementwise the last point with ``holds`` on the way from ``start`` to ``end``.

    ``holds`` is true from ``start`` on up to some point; ``start`` itself is not evaluated.  Every
    step halves all brackets.
    """
    for _ in range(steps):
        middle = (start + end) / 2
        if ((middle == start) | (middle == end)).all():
            break  # the ends are neighbouring floats or equal
        middle_holds = holds(middle)
        start, end = np.where(middle_holds, middle, start), np.where(middle_holds, end, middle)
    return start


def least_integer_that(
    holds: Callable[[int], bool], low: int, high: int, one_in: int = 2**63
) -> int:
    """Return the least integer above ``low`` seen with ``holds``, or ``high`` if there is none.

    The bisection stops where the bracket is no wider than the larger of 1 and ``low / one_in``.
    """
    while high - low > max(1, low // one_in):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def grow_until(
    holds: Callable[[Number], bool], start: Number, end: Number, factor: Number = 2
) -> tuple[Number, Number]:
    """Return (previous, first): the first of ``start``, ``factor * start``, ... with ``holds``.

    ``previous`` is the number before it in this sequence, or 0 if the first is ``start``.  A number
    that is not below ``end`` is not evaluated, and ends the search.
    """
    previous, current = 0 * start, start
    while current < end and not holds(current):
        previous, current = current, current * factor
    return previous, current


def smallest_root(decreasing: Callable[[Array], Array], target: float, high: float) -> float:
    """Return the smallest ``x`` in ``[0, high]`` seen to satisfy ``decreasing(x) <= target``.

    The inequality was evaluated and held at the returned point, so the answer is never below the
    root of a decreasing function; it exceeds the root by about one unit in the last place.  It is
    infinity if ``high`` does not satisfy the inequality.  Where ``high`` is infinite, the bracket
    is found among the powers of 2 from 2^-40 to 2^995 = 3e299.
    """
    if float(decreasing(np.zeros(1))[0]) <= target:
        return 0.0
    low = 0.0
    if math.isinf(high):
        ladder = 2.0 ** np.arange(-40, 996)
        for block in np.split(ladder, range(80, ladder.size, 80)):
            holds = decreasing(block) <= target
            if holds.any():
                first_held = int(np.argmax(holds))
                low = float(block[first_held - 1]) if first_held else low
                high = float(block[first_held])
                break
            low = float(block[-1])
        else:
            return math.inf
    elif not float(decreasing(np.array([high]))[0]) <= target:
        return math.inf
    # Each sweep looks at 62 points between the ends and keeps one of 63 parts of the bracket.  Nine
    # sweeps divide it by 63^9 = 2^53.8, which is more than the 53 bits of a float.
    while True:
        inner = np.linspace(low, high, 64)[1:-1]
        inner = inner[(inner > low) & (inner < high)]
        if inner.size == 0:
            return high
        holds = decreasing(inner) <= target
        first_held = int(np.argmax(holds)) if holds.any() else inner.size
        low = float(inner[first_held - 1]) if first_held else low
        high = float(inner[first_held]) if first_held < inner.size else high
        if high - low <= ULP * high:
            return high


def falling_root(
    excess: Callable[[float], float], start: float, tilt: float, max_epsilon: float
) -> tuple[float, float]:
    """Return the smallest epsilon seen with ``excess <= 0``, and about minus the slope there.

    ``excess(e)`` falls with epsilon, such as ``ln delta(e) - ln(target)``.  From the last two
    points e and e' the secant has

        slope = (excess(e') - excess(e)) / (e - e')    (minus the derivative, so positive)

    and the next point is ``e + (excess(e) + ROOT_AIM) / slope``, where the secant is -ROOT_AIM.  It
    is replaced by the middle of the bracket [low, high] of the root if it lies outside.  ``tilt``
    is the slope that the first step takes, and that is returned with epsilon 0.  Where no epsilon
    with ``excess <= 0`` was seen, the answer is ``max_epsilon``.
    """
    low, high, e, slope = 0.0, math.inf, min(max(start, 0.0), max_epsilon), max(tilt, 1e-300)
    previous: tuple[float, float] | None = None  # the point before and its excess
    is_zero_known = False  # Epsilon 0 is only evaluated where the search would go there.
    for _ in range(ROOT_STEPS):
        excess_here = excess(e)
        if excess_here <= 0:
            high = min(high, e)
        else:
            low = max(low, e)
        # The bracket is as narrow as floats allow, or even ``max_epsilon`` is too small.
        if high - low <= 2 * ULP * min(high, 1e300) or (low >= max_epsilon and math.isinf(high)):
            break
        if -ROOT_ACCURACY <= excess_here <= 0:
            break
        if previous is not None and math.isfinite(excess_here) and abs(e - previous[0]) > CHORD * e:
            previous_epsilon, previous_excess = previous
            secant_slope = (previous_excess - excess_here) / (e - previous_epsilon)
            if math.isfinite(secant_slope) and secant_slope > 0:
                slope = secant_slope
        previous = e, excess_here
        next_epsilon = (
            e + (excess_here + ROOT_AIM) / slope if math.isfinite(excess_here) else math.inf
        )
        # The secant leads to 0 or below, and no epsilon was seen that is too small: is 0 enough?
        if excess_here <= 0 and low == 0 and not is_zero_known and not 0 < next_epsilon < high:
            is_zero_known = True
            if e == 0 or excess(0.0) <= 0:
                return 0.0, tilt
        if math.isinf(high):
            # No upper end is known: a step goes at most to twice this epsilon, or as far as the
            # slope needs for a fall of FALL_OF_A_STEP in the excess, whichever is further.
            next_epsilon = min(next_epsilon, max(2 * e, e + FALL_OF_A_STEP / slope), max_epsilon)
            e = next_epsilon if next_epsilon > low else min(max_epsilon, 2 * low + 1 / slope)
        else:
            e = next_epsilon if low < next_epsilon < high else (low + high) / 2
            if previous is not None and abs(e - previous[0]) < 4 * ULP * e:
                e = (low + high) / 2  # the secant no longer moves
    return (high, slope) if math.isfinite(high) else (max_epsilon, slope)


def minimum_of_one_valley(
    f: Callable[[Array], Array],
    low: float = 1e-6,
    high: float = 1e9,
    points: Sequence[int] = (121, 41, 41, 41, 41),
) -> tuple[float, float]:
    """Return where ``f`` is least on the last of ever finer grids, and its least value on any.

    Every grid is uniform in ln x.  The first has ``points[0]`` points over [low, high]; each other
    one goes from one step of the grid before below its lowest point to one step above it.  NaN
    counts as infinite.
    """
    log_low, log_high, least_value = math.log(low), math.log(high), math.inf
    for count in points:
        grid = np.linspace(log_low, log_high, count)
        with np.errstate(invalid="ignore", over="ignore"):
            values = f(np.exp(grid))
        values = np.where(np.isnan(values), np.inf, values)
        lowest = int(np.argmin(values))
        least_value = min(least_value, float(values[lowest]))
        step = (log_high - log_low) / (count - 1)
        log_low, log_high = grid[lowest] - step, grid[lowest] + step
    return float(np.exp(grid[lowest])), least_value


def maximum_of_one_peak(f: Callable[[float], float], high: float) -> tuple[float, float]:
    """Return the largest value seen over ``(0, high]`` of a function with one peak, and where.

    The function is first evaluated at ``high, high e^-3, high e^-6, ...``; then a golden-section
    search in ln x goes on between the neighbours of the point with the largest of these values.
    The value was attained in any case; of a function with several peaks it may be less than the
    maximum.
    """

    def at(x: float) -> tuple[float, float]:
        value = f(min(x, high))
        return -math.inf if math.isnan(value) else value, min(x, high)

    # The points fall: the neighbours of the highest one are the ends of the bracket.
    ladder = [max(high * math.exp(-i), math.ulp(0.0)) for i in range(0, LADDER_DEPTH, 3)]
    samples = [at(x) for x in ladder]
    peak_index = max(range(len(samples)), key=lambda i: samples[i][0])
    highest = samples[peak_index]
    log_high = math.log(ladder[max(peak_index - 1, 0)])
    log_low = math.log(ladder[min(peak_index + 1, len(ladder) - 1)])
    # Two inner points divide the bracket by the golden ratio from either end.  The end beyond the
    # lower one of them is dropped; the other inner point then divides what remains in the same way.
    log_inner_low = log_high - GOLDEN_RATIO * (log_high - log_low)
    log_inner_high = log_low + GOLDEN_RATIO * (log_high - log_low)
    at_inner_low, at_inner_high = at(math.exp(log_inner_low)), at(math.exp(log_inner_high))
    for _ in range(GOLDEN_STEPS):
        highest = max(highest, at_inner_low, at_inner_high)
        if at_inner_low[0] >= at_inner_high[0]:
            log_high, log_inner_high, at_inner_high = log_inner_high, log_inner_low, at_inner_low
            log_inner_low = log_high - GOLDEN_RATIO * (log_high - log_low)
            at_inner_low = at(math.exp(log_inner_low))
        else:
            log_low, log_inner_low, at_inner_low = log_inner_low, log_inner_high, at_inner_high
            log_inner_high = log_low + GOLDEN_RATIO * (log_high - log_low)
            at_inner_high = at(math.exp(log_inner_high))
    return max(highest, at_inner_low, at_inner_high)


def highest_of_one_peak(
    f: Callable[[Array, Array], Array], parameter: Array, points: Array, values: Array
) -> tuple[Array, Array]:
    """Return where ``f(x, parameter)`` was seen greatest, and its value, for many parameters.

    ``points`` and ``values`` have three rows: below, at and above the highest point seen, and ``f``
    there.  Brent's search keeps a bracket [low, high] of the peak, the best point x, the second
    best w and the third best v.  The next point is the vertex of the parabola through the three if
    it opens downwards, the vertex lies in the bracket, and the step to it is less than half of the
    previous one.  Otherwise the next point divides the longer side of the bracket by the golden
    ratio.  The search for a parameter ends where the parabola promises hardly any rise.
    """
    (low, x, high), (w, v) = points.copy(), points[[0, 2]].copy()
    fw, fx, fv = values.copy()
    previous_step = high - low
    active = np.flatnonzero(high > low)  # the parameters whose search goes on
    for _ in range(PEAK_STEPS):
        if active.size == 0:
            break
        lower_end, upper_end, best_x = low[active], high[active], x[active]
        to_w, to_v = w[active] - best_x, v[active] - best_x
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Of the parabola through x, w and v: half of its second derivative, and the step from x
            # to its vertex, which is higher than x by ``-curvature step^2``.
            slope_w, slope_v = (fw[active] - fx[active]) / to_w, (fv[active] - fx[active]) / to_v
            curvature = (slope_w - slope_v) / (to_w - to_v)
            step = (curvature * to_w - slope_w) / (2 * curvature)
            takes_parabola = (
                (best_x + step > lower_end)
                & (best_x + step < upper_end)
                & (np.abs(step) < 0.5 * np.abs(previous_step[active]))
            )
            promised_rise = np.where(
                takes_parabola & (curvature < 0), np.abs(curvature) * step * step, np.inf
            )
        takes_parabola &= curvature < 0
        # to the end of the longer side of the bracket
        to_end = np.where(
            best_x > (lower_end + upper_end) / 2, lower_end - best_x, upper_end - best_x
        )
        previous_step[active] = np.where(takes_parabola, step, to_end)
        step = np.where(takes_parabola, step, (1 - GOLDEN_RATIO) * to_end)
        candidate = best_x + step
        candidate_value = f(candidate, parameter[active])
        is_best, is_right = candidate_value >= fx[active], step > 0
        # The bracket keeps the better of the two points inside: the other one becomes its end.
        moved_end = np.where(is_best, best_x, candidate)
        moves_low = np.where(is_best, is_right, ~is_right)
        low[active], high[active] = (
            np.where(moves_low, moved_end, lower_end),
            np.where(moves_low, upper_end, moved_end),
        )
        # w and v become the second and the third best of all points seen, or the latest of equals.
        is_second = is_best | (candidate_value >= fw[active]) | (w[active] == best_x)
        is_third = ~is_second & (
            (candidate_value >= fv[active]) | (v[active] == best_x) | (v[active] == w[active])
        )
        v[active] = np.where(is_second, w[active], np.where(is_third, candidate, v[active]))
        fv[active] = np.where(
            is_second, fw[active], np.where(is_third, candidate_value, fv[active])
        )
        w[active] = np.where(is_best, best_x, np.where(is_second, candidate, w[active]))
        fw[active] = np.where(is_best, fx[active], np.where(is_second, candidate_value, fw[active]))
        x[active], fx[active] = (
            np.where(is_best, candidate, best_x),
            np.where(is_best, candidate_value, fx[active]),
        )
        goes_on = (promised_rise > PEAK_GAIN * (np.abs(fx[active]) + 1e-3)) & (
            np.abs(step) > 2 * ULP * np.abs(candidate)
        )
        active = active[goes_on]
    return np.asarray(x, dtype=float), np.asarray(fx, dtype=float)
