"""Sums of exponentials: the cumulant of a loss with finitely many outcomes.

With losses l_i and masses m_i the cumulant is K(z) = ln sum_i m_i e^{z l_i}, asked for at any array
of complex z.  A matrix ``z[r, c] = a + i h (r C + c)`` with C columns is special: it holds the
uniform nodes, h apart, of an integral along the line Re z = a, called a contour.  Its exponentials
are outer products, and the sum a product of matrices.  There the ratio E e^{zL} / E e^{aL} is
wanted, the characteristic function (cf) of the law tilted by e^{aL}, of size at most 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p
from accountant.numerics.ordered_sums import ordered_dot, ordered_product, sum_with_errors
from accountant.numerics.rounding import ULP

BLOCK_SIZE = 2**18  # complex numbers in memory together: 4 MB


def finite_cgf(loss: Array, log_mass: Array, z: Any) -> tuple[Any, Array]:
    """Return ``ln sum_i e^{log_mass[i] + z loss[i]}`` elementwise, and a bound on its round-off."""
    if loss.size == 0:
        return np.full(z.shape, -np.inf, dtype=z.dtype), np.zeros(z.shape)
    flat, step = z.reshape(-1, 1), max(1, BLOCK_SIZE // loss.size)
    blocks = [
        _finite_cgf_block(loss, log_mass, flat[i : i + step]) for i in range(0, flat.size, step)
    ]
    value, error = (
        np.concatenate(columns).reshape(z.shape) for columns in zip(*blocks, strict=True)
    )
    return value, error


def sum_of_finite_cgfs(
    outcomes: Sequence[tuple[Array, Array]], counts: Array, z: Any
) -> tuple[Any, Array]:
    """Return ``sum_i counts[i] ln E e^{zL_i}`` and its round-off; ``outcomes``: loss and mass."""
    cumulants = (finite_cgf(loss, np.log(mass), z) for loss, mass in outcomes)
    return sum_with_errors(cumulants, counts, z)


def product_of_cf_ratios(
    outcomes: Sequence[tuple[Array, Array]], counts: Array, z: Complex
) -> tuple[Complex, Array]:
    """``prod_i (E e^{zL_i} / E e^{aL_i})^{counts[i]}`` on uniform nodes, and its round-off."""
    product, round_off = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
    for (loss, mass), count in zip(outcomes, counts.tolist(), strict=True):
        ratio, spread, ratio_error = cf_ratio(loss, np.log(mass), z)
        product *= complex_power(ratio, int(count))
        round_off += power_round_off(count, spread, z, ratio_error)
    return product, round_off


def power_round_off(count: float, spread: float, z: Complex, own_error: float = 0.0) -> Array:
    """Return the round-off of a power of `cf_ratio`, whose factors are at most 1.

    A phase u l, u = Im z, is inexact by an ulp of itself; ``spread`` is the mean of |l|, and
    ``own_error`` the second coefficient that `cf_ratio` returns.  Each of the ``count`` factors
    adds 16 ulps of these: no factor is above 1, so that errors add up.
    """
    error: Array = 16 * ULP * count * (1 + own_error + np.abs(z.imag) * spread)
    return error


def complex_power(base: Complex, exponent: int) -> Complex:
    """Return ``base ** exponent`` by repeated squaring."""
    result: Complex | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return np.ones_like(base) if result is None else result


def cf_ratio(loss: Array, log_mass: Array, z: Complex) -> tuple[Complex, float, float]:
    """``E e^{zL} / E e^{aL}`` on uniform nodes, and two coefficients of its round-off.

    The round-off is the first times ``|u|`` plus the second, in units of 16 ulps; they are the
    ``spread`` and ``own_error`` of `power_round_off`.
    """
    exponent = z[0, 0].real * loss + log_mass
    weight = np.exp(exponent - np.max(exponent))
    weight /= weight.sum()
    ratio = np.zeros(z.shape, dtype=complex)
    step = max(1, 4 * BLOCK_SIZE // sum(z.shape))
    for start in range(0, loss.size, step):
        part = slice(start, start + step)
        rows = phases(np.outer(z[:, 0].imag, loss[part]))
        columns = phases(np.outer(z[0].imag, loss[part]))
        columns *= weight[part]
        ratio += ordered_product(rows, columns)
    # A weight is inexact by an ulp of its logarithm, a sum of n terms by n / 16 ulps and one of
    # each block, of which there are fewer; both are divided by the 16 ulps of `power_round_off`.
    weight_error = float(ordered_dot(np.abs(exponent), weight)) / 16 + loss.size / 256
    return ratio, float(ordered_dot(np.abs(loss), weight)), weight_error


def phases(angle: Array) -> Complex:
    """Return ``e^{i angle}``, twice as fast as numpy's complex exponential."""
    result = np.empty(angle.shape, dtype=complex)
    np.cos(angle, out=result.real)
    np.sin(angle, out=result.imag)
    return result


def _finite_cgf_block(loss: Array, log_mass: Array, z: Any) -> tuple[Any, Array]:
    """Return K at a column of z, and a bound on its round-off."""
    exponent = z * loss + log_mass
    top = np.max(exponent.real, axis=1)
    mass = np.exp(log_mass)
    spread = np.max(np.abs(z), axis=1) * np.max(np.abs(loss))
    if spread.max() < 1:  # The moment is near 1: K is computed from its distance to 1.
        sum_less_1 = ordered_dot(np.expm1(z * loss), mass) - (1 - mass.sum())
        value = log1p(sum_less_1)
        size = spread * np.exp(-value.real) + abs(1 - mass.sum())
    else:  # The moment is scaled by its greatest term.
        terms = np.exp(exponent - top[:, None])
        total = terms.sum(axis=1)
        value = top + np.log(total)
        # An exponent is inexact by an ulp of itself: the mean of |z L|.
        size = 1 + ordered_dot(np.abs(terms), np.abs(loss)) * np.abs(z[:, 0]) / np.abs(total)
    return value, 16 * ULP * (size + np.abs(value))


def cf_ratios_from_cgf(
    sum_cgf: Callable[[Any, Array, Any], tuple[Any, Array]],
    losses: Any,
    counts: Array,
    z: Complex,
) -> tuple[Complex, Array]:
    """Return `ExactCGF.cf_ratios`, computed by way of logarithms."""
    height, _ = sum_cgf(losses, counts, z[:1, :1].real)
    value, error = sum_cgf(losses, counts, z)
    with np.errstate(under="ignore"):
        product: Complex = np.exp(value - height)
    return product, np.abs(product) * (error + 4 * ULP * (1 + abs(float(height[0, 0]))))
