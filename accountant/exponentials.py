"""Sums of exponentials: the cumulant of a loss with finitely many outcomes.

A cumulant is asked for at any array of complex z.  A matrix ``z[r, c] = a + i h (r C + c)``, the
nodes of a contour, is special: its exponentials are outer products, and the sum a matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import ULP, Array, Complex, complex_log1p

BLOCK = 2**18  # complex numbers that are worked on at a time


def uniform(z: Complex) -> bool:
    """Whether ``z`` is a matrix of equidistant nodes on a vertical line."""
    if z.ndim != 2 or z.size < 64:
        return False
    corner = z[-1, 0] + z[0, -1] - z[0, 0]
    return bool(abs(z[-1, -1] - corner) <= 1e-9 * abs(corner) and np.ptp(z.real) == 0)


def log_sum(loss: Array, log_mass: Array, z: Complex) -> tuple[Complex, Array]:
    """``ln sum_i e^{log_mass[i] + z loss[i]}`` elementwise in ``z``, and a bound on its round-off."""
    if loss.size == 0:
        return np.full(z.shape, -np.inf, dtype=complex), np.zeros(z.shape)
    if not uniform(z):
        flat: NDArray[Any] = z.ravel() if z.imag.any() else z.real.ravel()
        parts = np.array_split(flat, max(1, flat.size * loss.size // BLOCK))
        both = [_direct(loss, log_mass, part[:, None]) for part in parts]
        value, error = (np.concatenate(one).reshape(z.shape) for one in zip(*both, strict=True))
        return value, error
    ratio, top, spread = ratios(loss, log_mass, z)
    with np.errstate(divide="ignore"):
        value = top + np.log(ratio)
    size = 1 + np.abs(top) + np.abs(z.imag) * spread
    return value, 16 * ULP * size / np.minimum(np.abs(ratio) + 1e-300, 1.0)


def of_outcomes(
    outcomes: Sequence[tuple[Array, Array]], counts: Array, z: Complex
) -> tuple[Complex, Array]:
    """``sum_i counts[i] ln E e^{zL_i}`` and its round-off, up to multiples of ``2 pi i``."""
    total, size = np.zeros(z.shape, dtype=complex), np.zeros(z.shape)
    if not uniform(z):
        for (loss, mass), count in zip(outcomes, counts.tolist(), strict=True):
            value, error = log_sum(loss, np.log(mass), z)
            total, size = total + count * value, size + count * error
        return total, size
    # a product of powers needs one logarithm for all; a factor's round-off is one of 1
    product, height, missed = np.ones(z.shape, dtype=complex), 0.0, np.zeros(z.shape)
    for (loss, mass), count in zip(outcomes, counts.tolist(), strict=True):
        ratio, top, spread = ratios(loss, np.log(mass), z)
        product *= ratio if count == 1 else power(ratio, int(count))
        height += count * top
        missed += 16 * ULP * count * (1 + abs(top) + np.abs(z.imag) * spread)
    size = np.maximum(np.abs(product), 1e-280)
    product = np.where(size > 1e-280, product, 1e-280)
    return height + np.log(product), missed / size


def power(base: Complex, exponent: int) -> Complex:
    """``base ** exponent`` by repeated squaring."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result


def ratios(loss: Array, log_mass: Array, z: Complex) -> tuple[Complex, float, float]:
    """``E e^{zL} / E e^{aL}`` on uniform nodes, ``ln E e^{aL}``, and the tilted mean of ``|L|``."""
    exponent = z[0, 0].real * loss + log_mass
    top = float(np.max(exponent))
    weight = np.exp(exponent - top)
    total = float(weight.sum())
    weight /= total
    rows = np.exp(1j * np.outer(z[:, 0].imag, loss))
    columns = np.exp(1j * np.outer(loss, z[0].imag - z[0, 0].imag)) * weight[:, None]
    return rows @ columns, top + float(np.log(total)), float(weight @ np.abs(loss))


def _direct(loss: Array, log_mass: Array, z: NDArray[Any]) -> tuple[NDArray[Any], Array]:
    exponent = z * loss + log_mass
    top = np.max(exponent.real, axis=1)
    mass = np.exp(log_mass)
    spread = np.max(np.abs(z), axis=1) * np.max(np.abs(loss))
    if spread.max() < 1:  # by its distance from 1
        near = np.expm1(z * loss) @ mass - (1 - mass.sum())
        value = complex_log1p(near)
        size = spread * np.exp(-value.real) + abs(1 - mass.sum())
    else:  # scaled by the greatest term
        terms = np.exp(exponent - top[:, None])
        total = terms.sum(axis=1)
        value = top + np.log(total)
        # an exponent is inexact by an ulp of itself: the mean of |z L|
        size = 1 + (np.abs(terms) @ np.abs(loss)) * np.abs(z[:, 0]) / np.abs(total)
    return value, 16 * ULP * (size + np.abs(value))
