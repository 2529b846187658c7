"""Searches for thresholds and peaks: each answer was evaluated, or is an end the caller gave.

A threshold search takes a predicate that changes once between two ends. It returns the last point
at which the predicate was seen to hold; if there was none, the end at which it should hold. If it
changes more often, the answer may be less sharp, but it was still seen to hold.
`smallest_root` evaluates many points at a time. `falling_root` and the secants of
`planning.calibration` are the fast forms, for functions that are slow and smooth.
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

MAX_STEPS = 2200  # of bisection: from any float to any other
LADDER_DEPTH = 170  # as a logarithm: below e^-170 products of n, e^eps and 1 / p overflow
GOLDEN_RATIO, GOLDEN_STEPS = (math.sqrt(5) - 1) / 2, 39  # .618^39 = 7e-9 of the bracket is left
PEAK_STEPS = 100  # of Brent's search
PEAK_GAIN = 1e-13  # relative: a parabola that promises less ends it
ROOT_STEPS = 200  # of a secant search; bisection alone needs about 60
# A secant search aims 3e-13 below the root of ln delta, and ends within 1e-12 below it.
ROOT_AIM, ROOT_ACCURACY = 3e-13, 1e-12


def arithmetic_mean(a: float, b: float) -> float:
    """Return ``(a + b) / 2``, also where the sum overflows."""
    return (a + b) / 2 if math.isfinite(a + b) else a / 2 + b / 2


def geometric_mean(a: float, b: float) -> float:
    """Return ``sqrt(ab)`` of positive numbers, also where the product overflows."""
    return math.sqrt(a) * math.sqrt(b)


class Precision(TypedDict, total=False):
    """When bisection stops: at a relative distance, or after so many steps of a mean."""

    relative: float
    steps: int
    mean: Callable[[float, float], float]


def least_float_that(
    holds: Callable[[float], bool], low: float, high: float, **until: Unpack[Precision]
) -> float:
    """Return the least float seen with ``holds``, which is true from a point above ``low`` on.

    Neither end is evaluated; without a `Precision`, the float below does not hold.
    """
    return _bisect(holds, high, low, **until)


def greatest_float_that(
    holds: Callable[[float], bool], low: float, high: float, **until: Unpack[Precision]
) -> float:
    """Return the greatest float seen with ``holds``; `least_float_that` with the ends exchanged."""
    return _bisect(holds, low, high, **until)


def _bisect(
    holds: Callable[[float], bool],
    good: float,
    bad: float,
    relative: float = 0.0,
    steps: int = MAX_STEPS,
    mean: Callable[[float, float], float] = arithmetic_mean,
) -> float:
    for _ in range(steps):
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
    """Return elementwise the last point with ``holds`` on the way from ``start`` to ``end``."""
    for _ in range(steps):
        middle = (start + end) / 2
        if ((middle == start) | (middle == end)).all():
            break  # neighbouring floats, or nothing to look for
        good = holds(middle)
        start, end = np.where(good, middle, start), np.where(good, end, middle)
    return start


def least_integer_that(
    holds: Callable[[int], bool], low: int, high: int, one_in: int = 2**63
) -> int:
    """The least integer above ``low`` seen with ``holds``, or ``high``; to one part in so many."""
    while high - low > max(1, low // one_in):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def grow_until(
    holds: Callable[[Number], bool], start: Number, end: Number, factor: Number = 2
) -> tuple[Number, Number]:
    """Return the first of ``start``, ``factor * start``, ... with ``holds``, and the one before.

    The first that is not below ``end`` is not evaluated.
    """
    previous, current = 0 * start, start
    while current < end and not holds(current):
        previous, current = current, current * factor
    return previous, current


def smallest_root(decreasing: Callable[[Array], Array], target: float, high: float) -> float:
    """Return the smallest ``x`` in ``[0, high]`` seen to satisfy ``decreasing(x) <= target``.

    The returned point is always one at which the inequality was evaluated and held, so the
    answer errs upwards, by one float at most.  Returns infinity when ``high`` does not satisfy it.
    ``high = inf`` is searched by doubling up to 1e300.
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
    # Each sweep looks at 62 points between the ends, so nine sweeps exhaust a double.
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
    """Return the smallest epsilon seen with ``excess <= 0``, and minus the slope there.

    ``excess`` falls: it is ln delta at an epsilon, less its target.  By secants, guarded by the
    bracket [low, high] of the root.  ``tilt`` is about minus the slope at ``start``.  Where no such
    epsilon was seen, the answer is ``max_epsilon``.
    """
    low, high, e, slope = 0.0, math.inf, min(max(start, 0.0), max_epsilon), max(tilt, 1e-300)
    previous: tuple[float, float] | None = None
    is_zero_known = False  # Epsilon 0 is only asked for where the search would go there.
    for _ in range(ROOT_STEPS):
        value = excess(e)
        if value <= 0:
            high = min(high, e)
        else:
            low = max(low, e)
        if high - low <= 2 * ULP * min(high, 1e300) or (low >= max_epsilon and math.isinf(high)):
            break
        if -ROOT_ACCURACY <= value <= 0:
            break
        if previous is not None and math.isfinite(value) and abs(e - previous[0]) > 1e-11 * e:
            secant_slope = (previous[1] - value) / (e - previous[0])
            if math.isfinite(secant_slope) and secant_slope > 0:
                slope = secant_slope
        previous = e, value
        guess = e + (value + ROOT_AIM) / slope if math.isfinite(value) else math.inf
        if value <= 0 and low == 0 and not is_zero_known and not 0 < guess < high:
            is_zero_known = True
            if e == 0 or excess(0.0) <= 0:
                return 0.0, tilt
        if math.isinf(high):
            # No upper end is known: at most twice as far, or as far as 50 nats would take.
            guess = min(guess, max(2 * e, e + 50 / slope), max_epsilon)
            e = guess if guess > low else min(max_epsilon, 2 * low + 1 / slope)
        else:
            e = guess if low < guess < high else (low + high) / 2
            if previous is not None and abs(e - previous[0]) < 4 * ULP * e:
                e = (low + high) / 2
    return (high, slope) if math.isfinite(high) else (max_epsilon, slope)


def minimum_of_one_valley(
    f: Callable[[Array], Array],
    low: float = 1e-6,
    high: float = 1e9,
    points: Sequence[int] = (121, 41, 41, 41, 41),
) -> tuple[float, float]:
    """Return where ``f`` is least on the last of ever finer grids, and its least value on any."""
    log_low, log_high, best = math.log(low), math.log(high), math.inf
    for count in points:
        grid = np.linspace(log_low, log_high, count)
        with np.errstate(invalid="ignore", over="ignore"):
            value = f(np.exp(grid))
        value = np.where(np.isnan(value), np.inf, value)
        lowest = int(np.argmin(value))
        best = min(best, float(value[lowest]))
        step = (log_high - log_low) / (count - 1)
        log_low, log_high = grid[lowest] - step, grid[lowest] + step
    return float(np.exp(grid[lowest])), best


def maximum_of_one_peak(f: Callable[[float], float], high: float) -> tuple[float, float]:
    """Return the largest value seen over ``(0, high]`` of a function with one peak, and where.

    A ladder of logarithms, then golden section; a second peak could only make the value smaller.
    """

    def at(x: float) -> tuple[float, float]:
        value = f(min(x, high))
        return -math.inf if math.isnan(value) else value, min(x, high)

    ladder = [max(high * math.exp(-i), math.ulp(0.0)) for i in range(0, LADDER_DEPTH, 3)]
    samples = [at(x) for x in ladder]
    top = max(range(len(samples)), key=lambda i: samples[i][0])
    low, up = math.log(ladder[min(top + 1, len(ladder) - 1)]), math.log(ladder[max(top - 1, 0)])
    inner_low, inner_high = up - GOLDEN_RATIO * (up - low), low + GOLDEN_RATIO * (up - low)
    highest, at_inner_low, at_inner_high = (
        samples[top],
        at(math.exp(inner_low)),
        at(math.exp(inner_high)),
    )
    for _ in range(GOLDEN_STEPS):
        highest = max(highest, at_inner_low, at_inner_high)
        if at_inner_low[0] >= at_inner_high[0]:
            up, inner_high, at_inner_high = inner_high, inner_low, at_inner_low
            inner_low = up - GOLDEN_RATIO * (up - low)
            at_inner_low = at(math.exp(inner_low))
        else:
            low, inner_low, at_inner_low = inner_low, inner_high, at_inner_high
            inner_high = low + GOLDEN_RATIO * (up - low)
            at_inner_high = at(math.exp(inner_high))
    return max(highest, at_inner_low, at_inner_high)


def highest_of_one_peak(
    f: Callable[[Array, Array], Array], parameter: Array, points: Array, values: Array
) -> tuple[Array, Array]:
    """Return where ``f(x, parameter)`` was seen greatest, and its value, for many parameters.

    ``points`` and ``values`` have three rows, below, at and above the highest point seen.  Brent's
    search: x is the best point seen, w the second best and v the third; the next point is the
    vertex of the parabola through them, or a golden section where that leads nowhere.
    """
    (low, x, high), (w, v) = points.copy(), points[[0, 2]].copy()
    fw, fx, fv = values.copy()
    before = high - low
    active = np.flatnonzero(high > low)
    for _ in range(PEAK_STEPS):
        if active.size == 0:
            break
        a, b, best_x = low[active], high[active], x[active]
        to_w, to_v = w[active] - best_x, v[active] - best_x
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope_w, slope_v = (fw[active] - fx[active]) / to_w, (fv[active] - fx[active]) / to_v
            bend = (slope_w - slope_v) / (to_w - to_v)  # half of the second derivative
            step = (bend * to_w - slope_w) / (2 * bend)
            smooth = (
                (best_x + step > a)
                & (best_x + step < b)
                & (np.abs(step) < 0.5 * np.abs(before[active]))
            )
            gain = np.where(smooth & (bend < 0), np.abs(bend) * step * step, np.inf)
        smooth &= bend < 0
        to_end = np.where(best_x > (a + b) / 2, a - best_x, b - best_x)
        before[active] = np.where(smooth, step, to_end)
        step = np.where(smooth, step, (1 - GOLDEN_RATIO) * to_end)
        candidate = best_x + step
        values_new = f(candidate, parameter[active])
        better, right = values_new >= fx[active], step > 0
        # The best point stays inside the bracket.
        inner = np.where(better, best_x, candidate)
        keep_low = np.where(better, right, ~right)
        low[active], high[active] = np.where(keep_low, inner, a), np.where(keep_low, b, inner)
        second = better | (values_new >= fw[active]) | (w[active] == best_x)
        third = ~second & (
            (values_new >= fv[active]) | (v[active] == best_x) | (v[active] == w[active])
        )
        v[active] = np.where(second, w[active], np.where(third, candidate, v[active]))
        fv[active] = np.where(second, fw[active], np.where(third, values_new, fv[active]))
        w[active] = np.where(better, best_x, np.where(second, candidate, w[active]))
        fw[active] = np.where(better, fx[active], np.where(second, values_new, fw[active]))
        x[active], fx[active] = (
            np.where(better, candidate, best_x),
            np.where(better, values_new, fx[active]),
        )
        far = (gain > PEAK_GAIN * (np.abs(fx[active]) + 1e-3)) & (
            np.abs(step) > 2 * ULP * np.abs(candidate)
        )
        active = active[far]
    return np.asarray(x, dtype=float), np.asarray(fx, dtype=float)
