"""What counts in place of a missing value: one public rule, the same for every estimator.

A fit that refuses one record's missing value tells that this record is there.  So a private number
that is missing (NaN, or no number at all) counts as 0, and an infinite one as the largest float of
its sign, before the estimator clips it to its public bounds.  Public numbers, and those of fits
without privacy, are refused as scikit-learn refuses them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array

TEXT = ("str", "cat", "enum", "date", "time", "large_string")  # first letters of the column types


def cells_of(data: Any) -> Any:
    """Return data as an array whose type does not depend on single values.

    Arrays and frames have a type of their own, which is public.  The type of a list would be that
    of its odd cell, so its cells stay objects.
    """
    return np.asarray(data, dtype=object) if isinstance(data, (list, tuple)) else np.asarray(data)


def filled(data: Any) -> Any:
    """Return numbers, dense or sparse, with a public number in place of each missing one.

    Text is refused where the type of an array or of a column says that there is nothing else.
    """
    if hasattr(data, "tocsr"):
        rows = data.tocsr()
        if _is_finite(rows.data):
            return data
        rows = rows.copy()
        rows.data = np.nan_to_num(rows.data, nan=0.0)
        return rows
    cells, types = cells_of(data), getattr(data, "dtypes", ())
    columns = types if hasattr(types, "__iter__") else (types,)
    if cells.dtype.kind not in "biufO" or any(
        str(dtype).lower().startswith(TEXT) for dtype in columns
    ):
        reason = "Complex data not supported" if cells.dtype.kind == "c" else "encode text first"
        raise ParameterError("X, y", cells.dtype, f"numbers. {reason}")
    if cells.dtype.kind == "O":
        cells = numbers_of(cells)
    return cells if _is_finite(cells) else np.nan_to_num(cells, nan=0.0)


def _is_finite(cells: Array) -> bool:
    """Return whether all cells are finite; only a suspicious sum is looked at closely."""
    if cells.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(cells.sum())) or bool(np.isfinite(cells).all())


def numbers_of(cells: Any) -> Array:
    """Return objects as floats; NaN replaces an object that is not a number."""
    numbers = np.array([_number(cell) for cell in cells.ravel().tolist()], dtype=np.float64)
    return numbers.reshape(cells.shape)


def _number(cell: Any) -> float:
    """Return a cell as a float; NaN where it is no number."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return float("nan")
    except OverflowError:  # a whole number beyond all floats
        return float("inf") if cell > 0 else float("-inf")
