"""Sums of products in an order that is fixed: BLAS's depends on how many threads it may use.

The last bits of an answer are then the same however busy the machine is, and no thread waits for
another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accountant.numerics import Complex


def ordered_dot(values: Any, weights: Any) -> Any:
    """Return ``sum_i values[..., i] weights[i]``."""
    return np.einsum("...i,i->...", values, weights)


def ordered_sum(weights: Any, rows: Any) -> Any:
    """Return ``sum_i weights[i] rows[i]``."""
    return np.einsum("i,i...->...", weights, rows)


def ordered_product(left: Complex, right: Complex) -> Complex:
    """Return ``product[r, c] = sum_i left[r, i] right[c, i]``.

    Summed in parts of at most 512 terms, so that they stay in the cache; of more than 128 terms
    there are 8 parts or more, so that the round-off of n terms is at most n / 16 + 8 ulps.
    """
    terms = left.shape[1]
    step = _part(terms)
    product: Complex = np.zeros((left.shape[0], right.shape[0]), dtype=complex)
    for first in range(0, terms, step):
        part = slice(first, first + step)
        product += np.einsum("ri,ci->rc", left[:, part], right[:, part])
    return product


def product_additions(terms: int) -> int:
    """Return how many additions a term of `ordered_product` goes through, at most."""
    return _part(terms) + -(-terms // _part(terms))


def _part(terms: int) -> int:
    return max(16, min(512, -(-terms // 8)))
