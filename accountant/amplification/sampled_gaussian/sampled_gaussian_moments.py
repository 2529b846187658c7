"""Moments of a sampled Gaussian from one trapezoid rule, with their round-off.

A rule (`Line`) has points of losses l_j and masses m_j, which add up to 1 - lost, so that

    E r^s = sum_j m_j e^{s l_j} = 1 - lost + sum_j m_j (e^{s l_j} - 1).

The right-hand side is summed: a moment of a small loss is near 1, and its logarithm, the cumulant
of one release, is multiplied by as many as 10^12 releases.  So its errors must be small relative to
its distance from 1.  Where the cumulant is large, the middle sum is scaled by its greatest term
instead.

Round-off is counted in ulps, and multiplied by `ULP` and a factor of 2 or more at the end.  Proof:
`docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import Line
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p, logsumexp
from accountant.numerics.ordered_sums import ordered_dot, ordered_product, product_additions
from accountant.numerics.rounding import MAX_EXPONENT, ULP

# Sums whose cumulant is above it are scaled by their greatest term.  The distance from 1 no longer
# matters there: 1 is e^-30 = 1e-13 of the sum.
LARGE_CUMULANT = 30.0


def log_moments(line: Line, s: Any) -> tuple[Any, Array]:
    """Return ``ln E r^s`` at some complex ``s``, and a bound on its error."""
    is_real = not (np.any(s.imag) or np.any(line.x.imag))
    if is_real:  # Real numbers are a few times quicker than complex ones.
        line = line._replace(loss=line.loss.real, log_mass=line.log_mass.real)
        s = s.real
    mass, exponent = np.exp(line.log_mass), s[:, None] * line.loss
    mass_ulps = _mass_ulps(line)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        exp_minus_one = np.expm1(exponent)
        excess = ordered_dot(exp_minus_one, mass) - line.lost
        grown = np.abs(exp_minus_one + 1)
        # The ulps of all terms: e^{sl} errs by |s| times those of the loss.
        ulps = np.abs(s) * ordered_dot(grown, np.abs(mass) * line.loss_error)
        ulps += ordered_dot(np.abs(exp_minus_one), mass_ulps * np.abs(mass)) + 4 * line.lost
        # Without edges the rule's error is a share of this very sum.
        is_share = is_real and line.edge is None
        missed = line.missed * ordered_dot(grown, mass) if is_share else line.missed_moments(s.real)
        error = 2 * ULP * ulps + missed
        error /= np.abs(1 + excess)
        value = log1p(excess)
    is_large = ~(np.isfinite(value + error) & (value.real < LARGE_CUMULANT))
    if is_large.any():
        value[is_large], error[is_large] = _log_large_moments(line, s[is_large])
    # The error of the logarithm is infinite where the sum is no larger than its own.
    with np.errstate(divide="ignore"):
        log_error = -np.log1p(-np.minimum(error, 1.0))
    return value, log_error + 4 * ULP * np.abs(value)


def _log_large_moments(line: Line, s: Any) -> tuple[Any, Array]:
    """Return ``ln E r^s`` scaled by the greatest term, and the error of E r^s over its size."""
    exponent = s[:, None] * line.loss + line.log_mass
    top = logsumexp(exponent.real)
    terms = np.exp(exponent - top[:, None])
    total = np.sum(terms, axis=1)
    ulps = np.abs(s)[:, None] * line.loss_error + np.abs(exponent) + _mass_ulps(line)
    error = 2 * ULP * np.sum(np.abs(terms) * ulps, axis=1)
    error += np.exp(np.minimum(line.log_missed(s.real) - top, 700.0))
    return top + np.log(total), error / np.abs(total)


def moment_power(line: Line, s: Complex, count: int) -> tuple[Complex, Array]:
    """Return ``(E r^s / E r^a)^count`` on equidistant nodes, ``a = s[0, 0]``, and its error."""
    log_ratio, error = log_moment_ratio(line, s)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        ratio = np.exp(count * log_ratio)
        # (|x| + e)^n - |x|^n = |x|^n (e^{n ln(1 + e / |x|)} - 1)
        log_growth = count * (np.log1p(error) + 4 * ULP * np.abs(log_ratio)) + 8 * ULP
        return ratio, np.abs(ratio) * np.expm1(np.minimum(log_growth, 700.0))


def log_moment_ratio(line: Line, s: Complex) -> tuple[Complex, Array]:
    """Return ``ln (E r^s / E r^a)`` on equidistant nodes, ``a = s[0, 0]``, and the ratio's error.

    ``s[i, k]`` is the sum of its row's part v = s[i, 0] and its column's part w = s[0, k] - a, so
    that exponentials are outer products and the sum over the points is a product of matrices:

        e^{v + w} - 1 = (e^v - 1)(e^w - 1) + (e^v - 1) + (e^w - 1),    each times l_j.
    """
    power = s[0, 0].real
    mass, row_powers, column_powers = np.exp(line.log_mass), s[:, 0], (s[0] - power).imag
    log_tilted = line.log_mass.real + power * line.loss.real
    if logsumexp(log_tilted) >= LARGE_CUMULANT:
        total, error = scaled_moments(line, s)
        with np.errstate(divide="ignore"):
            error /= np.abs(total)
            value = np.log(total)
        return value - value[0, 0].real, _ratio_error(error)
    exponents = np.outer(row_powers, line.loss)
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.expm1(exponents) * mass
    # Where e^v overflows, the mass is so small that their product does not.
    far = exponents[0].real > MAX_EXPONENT
    if far.any():
        terms[:, far] = np.exp(exponents[:, far] + line.log_mass[far])
    # The last row has the masses alone, for the third summand.
    rows = np.vstack([terms, mass])
    columns = np.expm1(1j * np.outer(column_powers, line.loss))
    product = ordered_product(rows, columns)
    excess = product[:-1] - line.lost + (rows[:-1].sum(axis=1)[:, None] + product[-1])
    # |e^{sl} - 1| <= |s l| max(1, |e^{sl}|), and |e^{sl}| falls with the frequency.
    size = np.abs(mass) + np.exp(log_tilted)
    ulps = line.loss_error + _mass_ulps(line, summed_in_parts=True) * np.abs(line.loss)
    missed = line.missed_moments(s[0, :1].real)[0] + 8 * ULP * line.lost
    error = 6 * ULP * float(ordered_dot(ulps, size)) * np.abs(s) + missed
    with np.errstate(divide="ignore"):
        error /= np.abs(1 + excess)
        value = log1p(excess)
    return value - value[0, 0].real, _ratio_error(error)


def _ratio_error(error: Array) -> Array:
    """Return the errors of the moments over the first one, all relative to their size.

    If d and d_0 are the errors of two moments, that of their ratio is (d - d_0) / (1 + d_0).
    """
    first = min(float(error[0, 0]), 1.0)
    with np.errstate(divide="ignore"):
        return (error + first) / np.float64(1 - first)


def scaled_moments(line: Line, s: Complex) -> tuple[Complex, Array]:
    """Return ``e^-top sum_j e^{log_mass_j + s loss_j}`` on equidistant nodes, and its error.

    top is the logarithm of the sum at Re s, so that no term is above 1.
    """
    power = s[0, 0].real
    exponent = s[:, :1] * line.loss + line.log_mass
    top = float(logsumexp(exponent[0].real))
    rows = np.exp(exponent - top)
    total = ordered_product(rows, np.exp(1j * np.outer((s[0] - power).imag, line.loss)))
    size = np.exp(exponent[0].real - top)
    ulps = ordered_dot(np.abs(exponent[0]) + _mass_ulps(line), size)
    error = 4 * ULP * (ulps + np.abs(s) * ordered_dot(line.loss_error, size))
    error += math.exp(min(float(line.log_missed(s[0, :1].real)[0]) - top, 700.0))
    return total, error


def _mass_ulps(line: Line, *, summed_in_parts: bool = False) -> Array:
    """Return half the ulps of a mass, its term and the sum of all terms, relative to each mass.

    A mass errs by half an ulp of its logarithm, or less.  ``summed_in_parts``: the sum is an
    `ordered_product`, each of whose terms is in few additions.
    """
    terms = line.loss.size
    sum_ulps = product_additions(terms) / 8 if summed_in_parts else terms / 16
    ulps: Array = 4 + np.abs(line.log_mass) / 4 + sum_ulps
    return ulps
