"""Rounding towards privacy, logarithms near 0 and 1, and the one checked root finder."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

ULP = 2.0**-52
# Profiles are evaluated to this relative accuracy or better; answers are rounded by as much.
ACCURACY = 2.0**-36


def round_up(x: float, ulps: float = 4.0) -> float:
    """``x`` rounded up by a few units in the last place; exact zeros and infinities stay."""
    return x + abs(x) * ulps * ULP


def round_up_ratio(x: float, y: float) -> float:
    """The least float that is not below ``x / y``; exact ratios stay."""
    ratio = x / y
    if not 0 < ratio < math.inf:
        return ratio
    # floats are fractions of whole numbers, which are compared exactly
    (r, r_under), (a, a_under), (b, b_under) = (float(v).as_integer_ratio() for v in (ratio, x, y))
    if r * b * a_under >= a * r_under * b_under:
        return ratio
    return math.nextafter(ratio, math.inf)


def round_up_square(x: float, divisor: float) -> float:
    """``x^2 / divisor`` rounded up: 0 for 0 alone, infinite where it overflows."""
    if x == 0:
        return 0.0
    return max(round_up(x * x / divisor), 1e-300) if x < 1e150 else math.inf


def round_up_sum(total: Array, size: Array) -> Array:
    """``total`` rounded up by a few units in the last place of 1 and of its terms' ``size``."""
    result: Array = total + 4 * ULP * (1 + np.abs(size) + np.abs(total))
    return result


@functools.cache
def legendre(points: int) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss-Legendre rule on ``[-1, 1]``."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def log1mexp(x: Array) -> Array:
    """``ln(1 - e^x)`` for ``x <= 0``, accurate at both ends (Maechler, 2012)."""
    with np.errstate(divide="ignore"):
        small: Array = np.log(-np.expm1(x))
        large: Array = np.log1p(-np.exp(x))
    return np.where(x > -math.log(2), small, large)


def log1p(x: Any) -> Any:
    """``ln(1 + x)``, accurate near 0 at complex ``x`` too (numpy's own is not)."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    real = np.log1p(x.real * (2 + x.real) + x.imag * x.imag) / 2
    result: Complex = real + 1j * np.arctan2(x.imag, 1 + x.real)
    return result


def log_mixture(x: Array, weight: float) -> Array:
    """``ln(1 - share + share e^x)``, without cancelling."""
    if weight == 1:
        return x
    if weight == 0:
        return np.zeros_like(x)
    with np.errstate(over="ignore", divide="ignore"):
        near = np.log1p(weight * np.expm1(np.minimum(x, 30.0)))
        # where e^x is small, and so may be what is left
        low = np.log((1 - weight) + weight * np.exp(np.minimum(x, 0.0)))
        far = np.maximum(x, 30.0) + np.log(weight + (1 - weight) * np.exp(-np.maximum(x, 30.0)))
    result: Array = np.where(x > 30, far, np.where((x < 0) & (weight > 0.5), low, near))
    return result


def log_ndtr(x: Array) -> Array:
    """Logarithm of the standard normal distribution function, accurate in the far tail."""
    from scipy.special import log_ndtr as scipy_log_ndtr

    result: Array = scipy_log_ndtr(x)
    return result


def logsumexp(terms: Array, axis: int = -1) -> Array:
    """``ln sum e^terms`` along an axis, for real terms; all-minus-infinity gives minus infinity."""
    top = np.max(terms, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Array = np.log(np.sum(np.exp(terms - top), axis=axis))
    total += np.squeeze(top, axis=axis)
    return total


def gaussian_mu(epsilon: float) -> float:
    """The mu of epsilon-DP: its trade-off curve touches the Gaussian's at its corner."""
    from scipy.special import ndtri_exp

    # Phi(-mu / 2) = 1 / (1 + e^epsilon)
    if epsilon == 0 or math.isinf(epsilon):
        return epsilon
    return round_up(max(-2 * float(ndtri_exp(-np.logaddexp(0.0, epsilon))), 0.0) + 1e-15, 64)


def smallest_root(decreasing: Callable[[Array], Array], target: float, high: float) -> float:
    """Smallest ``x`` in ``[0, high]`` that was seen to satisfy ``decreasing(x) <= target``.

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
                first = int(np.argmax(holds))
                low = float(block[first - 1]) if first else low
                high = float(block[first])
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
        first = int(np.argmax(holds)) if holds.any() else inner.size
        low = float(inner[first - 1]) if first else low
        high = float(inner[first]) if first < inner.size else high
        if high - low <= ULP * high:
            return high


def minimum_of_one_valley(f: Callable[[Array], Array]) -> float:
    """Least value seen of a function of ``a > 0`` with one valley, by zooming in on it."""
    low, high, best = math.log(1e-6), math.log(1e9), math.inf
    for points in (121, 41, 41, 41, 41):
        grid = np.linspace(low, high, points)
        with np.errstate(invalid="ignore", over="ignore"):
            value = f(np.exp(grid))
        value = np.where(np.isnan(value), np.inf, value)
        at = int(np.argmin(value))
        best = min(best, float(value[at]))
        step = (high - low) / (points - 1)
        low, high = grid[at] - step, grid[at] + step
    return best
