"""Sums of products in an order that is fixed: BLAS's depends on how many threads it may use.

The last bits of an answer are then the same however busy the machine is, and no thread waits for
another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.rounding import ULP


def ordered_dot(values: Any, weights: Any) -> Any:
    """Return ``sum_i values[..., i] weights[i]``."""
    return np.einsum("...i,i->...", values, weights)


def ordered_sum(weights: Any, rows: Any) -> Any:
    """Return ``sum_i weights[i] rows[i]``."""
    return np.einsum("i,i...->...", weights, rows)


def sum_with_errors(terms: Iterable[tuple[Any, Array]], counts: Array, z: Any) -> tuple[Any, Array]:
    """Return ``sum_i counts[i] value_i`` at all z, and a bound on its error.

    The terms are pairs of values and bounds on their errors.
    """
    total, total_error = np.zeros(z.shape, dtype=z.dtype), np.zeros(z.shape)
    for (value, error), count in zip(terms, counts.tolist(), strict=True):
        term = count * value
        total = total + term
        # A product and a sum err by half an ulp of themselves.
        total_error += count * error + ULP / 2 * (np.abs(term) + np.abs(total))
    return total, total_error


def product_with_errors(
    ratios: Iterable[tuple[Complex, Array]], z: Complex
) -> tuple[Complex, Array]:
    """Return the product of ratios at all z, and a bound on its error.

    The ratios are pairs of values and their errors.  None is above 1, so that errors add.
    """
    product, product_error = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
    for value, error in ratios:
        product, product_error = product * value, product_error + error
    return product, product_error


def discounted_sums(values: Array, rate: float) -> Array:
    """Return ``A[p] = sum_j e^{-rate j} values[p + j]``, about ``values[p] + e^{-rate} A[p + 1]``.

    A term j places away has passed at most 2 j + 1 roundings and j factors e^{-rate k}.  However
    large j is, of n values these are at most 4 sqrt(n) + 8 roundings and 2 sqrt(n) + 4 factors.
    """
    ratio = math.exp(-rate)
    # The values are cut into rows of ``width``.  All rows are summed at once, from their ends; each
    # then adds what the later rows count at its end.  The table is transposed: its first index is
    # the column.
    width = math.isqrt(values.size) + 1
    rows = -(-values.size // width)
    table = np.zeros(rows * width)
    table[: values.size] = values
    table = np.ascontiguousarray(table.reshape(rows, width).T)
    for column in range(width - 2, -1, -1):
        table[column] += ratio * table[column + 1]
    # ``later`` is A at the start of the next row; e^{-rate (width - column)} leads from there to a
    # column.
    powers = np.exp(-rate * np.arange(1.0, width + 1))
    sums_of_rows, carried, later = table[0].tolist(), np.zeros(rows), 0.0
    for row in range(rows - 1, 0, -1):
        later = sums_of_rows[row] + float(powers[-1]) * later
        carried[row - 1] = later
    table += powers[::-1, None] * carried
    return table.T.reshape(-1)[: values.size]


def ordered_product(left: Complex, right: Complex) -> Complex:
    """Return ``product[r, c] = sum_i left[r, i] right[c, i]``.

    Summed in parts of at most 512 terms, so that they stay in the cache; of more than 128 terms
    there are 8 parts or more, so that the round-off of n terms is at most n / 16 + 8 ulps.
    """
    terms = left.shape[1]
    step = _part(terms)
    product: Complex = np.zeros((left.shape[0], right.shape[0]), dtype=complex)
    for start in range(0, terms, step):
        part = slice(start, start + step)
        product += np.einsum("ri,ci->rc", left[:, part], right[:, part])
    return product


def product_additions(terms: int) -> int:
    """Return how many additions a term of `ordered_product` goes through, at most."""
    return _part(terms) + -(-terms // _part(terms))  # those in its part, and those of the parts


def _part(terms: int) -> int:
    """Return how many terms of a product are summed together."""
    return max(16, min(512, -(-terms // 8)))
