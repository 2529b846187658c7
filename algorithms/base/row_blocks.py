"""Sums over the rows of data, a block at a time, with the same bits for every chunking.

Blocks have a fixed number of rows and are added in order, so the result depends neither on the
chunks of the data nor on the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any

import numpy as np
from scipy import sparse

from accountant.ledger.chunks import Chunks
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_data import first_array
from accountant.numerics import Array

DENSE_BLOCK_ENTRIES = 1 << 18  # a dense block of so many entries fits into a core's cache
SPARSE_BLOCK_ROWS = 1 << 14


def same_memory(cached: Any, array: Any) -> bool:
    """Return whether two arrays show the same memory.

    A gate hands out a new view of the same data each time.  The caller keeps the cached array
    alive: its address alone could be reused.
    """
    if cached is array:
        return True
    if isinstance(cached, np.ndarray) and isinstance(array, np.ndarray):
        return bool(cached.__array_interface__ == array.__array_interface__)
    parts = ("data", "indices", "indptr")
    if not all(hasattr(matrix, part) for matrix in (cached, array) for part in parts):
        return False
    return bool(cached.shape == array.shape) and all(
        same_memory(getattr(cached, part), getattr(array, part)) for part in parts
    )


def row_blocks(data: Any, start: int = 0, stop: int | None = None) -> list[slice]:
    """Return slices of all rows, or of those from ``start`` to ``stop``."""
    features = first_array(data)
    is_sparse = features.sparse if isinstance(features, Chunks) else sparse.issparse(features)
    block_rows = SPARSE_BLOCK_ROWS if is_sparse else rows_per_block(features.shape[1])
    return equal_slices(start, features.shape[0] if stop is None else stop, block_rows)


def rows_per_block(features: int) -> int:
    """Return the number of dense rows in a block."""
    return max(1, DENSE_BLOCK_ENTRIES // features)


def equal_slices(start: int, stop: int, length: int) -> list[slice]:
    """Return slices of ``length`` from ``start`` to ``stop``; the last one may be shorter."""
    return [slice(at, min(at + length, stop), 1) for at in range(start, stop, length)]


def ordered_sum(
    work: Callable[[Any], Array], pieces: Iterable[Any], executor: Executor | None = None
) -> Array:
    """Return the sum of ``work(piece)`` over all pieces, in their order; see `map_in_order`."""
    results = map_in_order(work, pieces, executor)
    total = next(results)
    for part in results:
        total = total + part
    return total


def sum_of_rows(reports: Array) -> Array:
    """Return the sum of the reports of a block of users."""
    total: Array = reports.sum(axis=0)
    return total


def row_products(data: Any, vector: Array) -> Array:
    """Return ``<row, vector>`` of every row, dense or sparse."""
    # einsum is used instead of BLAS, whose last bits depend on its number of threads.  The copy
    # makes them independent of the order in memory too.
    if not isinstance(data, np.ndarray):
        return np.asarray(data @ vector, dtype=np.float64)
    products: Array = np.einsum("ij,j->i", np.ascontiguousarray(data), vector, dtype=np.float64)
    return products


def weighted_row_sum(data: Any, weights: Array) -> Array:
    """Return ``sum_i weights_i row_i``, dense or sparse."""
    if not isinstance(data, np.ndarray):
        return np.asarray(data.T @ weights, dtype=np.float64)
    total: Array = np.einsum("ij,i->j", np.ascontiguousarray(data), weights, dtype=np.float64)
    return total
