"""Rows of data, dense or sparse: clipped, measured, multiplied, and summed in blocks.

Blocks have a fixed number of rows and are added in order, so the bits of a sum depend neither on
the chunks of the data nor on the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse

from accountant.ledger.chunks import Chunks
from accountant.ledger.ordered_map import map_in_order
from accountant.ledger.private_data import first_array, take_rows
from accountant.numerics import Array

DENSE_BLOCK_ENTRIES = 1 << 18  # a dense block of so many entries fits into a core's cache
SPARSE_BLOCK_ROWS = 1 << 14  # rows of a sparse block, whatever the number of features
CLIPPED_ENTRIES = 1 << 22  # entries that one thread clips at a time


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


def sum_over_blocks(work: Callable[[Any], Array], data: Any, executor: Executor | None) -> Array:
    """Return the sum of ``work(block)`` over all blocks of rows, in their order."""
    return ordered_sum(work, (take_rows(data, rows) for rows in row_blocks(data)), executor)


@final
@dataclass(frozen=True, slots=True)
class MeanOfBlocks:
    """A query: the mean over ``records`` of a function that sums blocks of them."""

    work: Callable[[Any], Array]
    records: float
    executor: Executor | None = None

    def __call__(self, data: Any) -> Array:
        """Return one vector."""
        return sum_over_blocks(self.work, data, self.executor) / self.records


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


def clipped_rows(rows: Any, bound: float) -> Any:
    """Return rows with entries clipped to ``[-bound, bound]``; the same ones if none exceeds it."""
    if isinstance(rows, np.ndarray):
        values = rows.astype(np.float64, copy=False)
        if values.max(initial=0.0) <= bound and values.min(initial=0.0) >= -bound:
            return values
        # First access to the copy's memory dominates, so threads write blocks of rows in parallel.
        copy = np.empty_like(values)
        blocks = equal_slices(0, len(values), max(1, CLIPPED_ENTRIES * len(values) // values.size))
        if len(blocks) == 1:
            return np.clip(values, -bound, bound, out=copy)
        with ThreadPoolExecutor() as pool:
            # The list waits for every block and re-raises its errors.
            list(pool.map(lambda at: np.clip(values[at], -bound, bound, out=copy[at]), blocks))
        return copy
    matrix = rows.tocsr().astype(np.float64, copy=False)
    if not matrix.has_canonical_format:  # entries that are stored in parts add up
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.data.max(initial=0.0) > bound or matrix.data.min(initial=0.0) < -bound:
        matrix = matrix.copy()
        matrix.data = np.clip(matrix.data, -bound, bound)
    return matrix


def squared_lengths(rows: Any) -> Array:
    """Return the squared Euclidean lengths of rows, dense or sparse."""
    if isinstance(rows, np.ndarray):
        squares: Array = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return squares
    entries = rows.astype(np.float64, copy=False)
    return np.asarray(entries.multiply(entries).sum(axis=1)).ravel()


def weight_shares(weights: Array, weight_bound: float) -> Array:
    """Return the weights of records as shares of their bound, clipped to [0, 1]."""
    # Divided first, a weight could overflow, and the warning would tell of it.
    return np.asarray(np.clip(weights, 0.0, weight_bound) / weight_bound)


def block_shares(block: tuple[Any, ...], weight_bound: float) -> Array | float:
    """Return what each record of a block counts: its weight, the third array, as a share; else 1.

    A factor of 1 changes no bit of a sum.
    """
    return weight_shares(block[2], weight_bound) if len(block) > 2 else 1.0


def row_lengths(rows: Any, intercept: float) -> Array:
    """Return Euclidean lengths of rows, to which an intercept adds a constant feature."""
    lengths: Array = np.sqrt(squared_lengths(rows) + float(intercept) ** 2)
    return lengths
