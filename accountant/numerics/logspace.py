"""Logarithms near 0 and 1, sums of numbers that are given by their logarithms, normal tails.

e^x is a float for |x| <= 700; functions with larger x take another formula.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.numerics import Array, Complex


def log1mexp(x: Array) -> Array:
    """Return ``ln(1 - e^x)`` for ``x <= 0``, accurate at both ends (Maechler, 2012)."""
    with np.errstate(divide="ignore"):
        small: Array = np.log(-np.expm1(x))
        large: Array = np.log1p(-np.exp(x))
    return np.where(x > -math.log(2), small, large)


def log1p(x: Any) -> Any:
    """Return ``ln(1 + x)``, accurate near 0 at complex ``x`` too (numpy's own is not)."""
    if not np.iscomplexobj(x):
        return np.log1p(x)
    real = np.log1p(x.real * (2 + x.real) + x.imag * x.imag) / 2
    result: Complex = real + 1j * np.arctan2(x.imag, 1 + x.real)
    return result


def log_mixture(x: Array, weight: float) -> Array:
    """Return ``ln(1 - weight + weight e^x)``, to a few ulps of itself.

    It is log1p of weight (e^x - 1), unless that is below -0.5, where log1p would lose digits.
    """
    if weight == 1:
        return x
    if weight == 0:
        return np.zeros_like(x)
    mixture_less_1 = weight * np.expm1(np.minimum(x, 700.0))
    result: Array = np.log1p(np.maximum(mixture_less_1, -0.5))
    small, large = mixture_less_1 < -0.5, x > 700
    if small.any():  # where e^x is small, and so may be what is left
        low = (1 - weight) + weight * np.exp(np.minimum(x, 0.0))
        result = np.where(small, np.log(low), result)
    if large.any():
        far = np.logaddexp(math.log1p(-weight), x + math.log(weight))
        result = np.where(large, far, result)
    return result


def log_mixture_at(x: float, weight: float) -> float:
    """Return `log_mixture` of one number, many times as quick; ``0 < weight <= 1``."""
    if weight == 1:
        return x
    if x > 700:
        present, absent = x + math.log(weight), math.log1p(-weight)
        return max(present, absent) + math.log1p(math.exp(-abs(present - absent)))
    mixture_less_1 = weight * math.expm1(x)
    return (
        math.log1p(mixture_less_1)
        if mixture_less_1 >= -0.5
        else math.log((1 - weight) + weight * math.exp(x))
    )


def inverse_log_mixture(y: Array, weight: float) -> Array:
    """Return x with ``ln(1 - weight + weight e^x) = y``; minus infinity where y is too small."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.maximum(np.expm1(y) / weight, -1.0)  # e^x - 1
        # Where e^y overflows, 1 is negligible against it:  x = ln(e^y - 1) - ln weight
        far = y + np.log(-np.expm1(-np.maximum(y, 0.0))) - math.log(weight)
        result: Array = np.where(np.isinf(ratio), far, np.log1p(ratio))
    return result


def log_ndtr(x: Array) -> Array:
    """Return the logarithm of the standard normal distribution function, also far in the tail."""
    from scipy.special import log_ndtr as scipy_log_ndtr

    result: Array = scipy_log_ndtr(x)
    return result


def normal_tail(x: float) -> float:
    """Return ``P(N(0, 1) > x)``; scipy's function would take half a second to import."""
    return math.erfc(x / math.sqrt(2)) / 2


def logsumexp(terms: Array, axis: int = -1) -> Array:
    """Return ``ln sum e^terms`` along an axis, for real terms; minus infinity if all are."""
    top = terms.max(axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Array = np.log(np.exp(terms - top).sum(axis=axis))
    total += top.squeeze(axis=axis)
    return total


def log_interval(low: float, high: float, scale: float) -> tuple[float, float]:
    """Return ``ln low + scale`` and ``ln high + scale``; (-inf, inf) where one is not a number."""
    if not (math.isfinite(scale) and math.isfinite(high)) or high < 0:
        return -math.inf, math.inf
    return log_or_minus_infinity(low) + scale, log_or_minus_infinity(high) + scale


def log_or_minus_infinity(x: float) -> float:
    """Return ``ln x``; minus infinity where a bound is not positive."""
    return math.log(x) if x > 0 else -math.inf
