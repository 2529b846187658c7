"""Entries of sparse matrices: where those of some rows or of a column are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from accountant.numerics import Array
from mechanisms.families.bounded_scores import IndexArray


def column_entries(columns: Any, feature: int) -> tuple[IndexArray, Array]:
    """Return rows and values of one column of a matrix stored by columns."""
    part = slice(columns.indptr[feature], columns.indptr[feature + 1])
    return columns.indices[part], columns.data[part]


def row_entries(matrix: Any, rows: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return where the entries of rows are stored, and the number of entries of each row."""
    row_starts = matrix.indptr[rows]
    lengths = matrix.indptr[rows + 1] - row_starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(row_starts - before, lengths) + np.arange(lengths.sum()), lengths


def unique_items(items: IndexArray, count: int) -> IndexArray:
    """Return each of some items below ``count`` once."""
    if 8 * items.size < count:
        return np.unique(items)
    return np.flatnonzero(np.bincount(items, minlength=count))
