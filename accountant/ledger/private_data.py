"""Data and users as the gates accept them: arrays with one row for each user, checked once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError

Users = NDArray[np.intp] | slice


def checked_data(argument: str, data: Any) -> Any:
    """Return the data as a read-only array or tuple of arrays; refuse empty or ragged data."""
    if isinstance(data, tuple):
        parts = tuple(checked_data(f"{argument}[{i}]", part) for i, part in enumerate(data))
        lengths = sorted({part.shape[0] for part in parts})
        if len(lengths) != 1:
            raise ParameterError(argument, f"arrays of {lengths} rows", "arrays of equal length")
        return parts
    if hasattr(data, "checked_as_read"):
        return data
    if hasattr(data, "tocsr"):
        return _checked_sparse(argument, data)
    try:
        array = np.asarray(data)
    except ValueError:
        raise ParameterError(argument, type(data), "rectangular, not ragged") from None
    if array.size == 0 or array.ndim == 0:
        raise ParameterError(argument, array.shape, "an array with one row a user, not empty")
    if array.dtype == object:
        raise ParameterError(argument, array.dtype, "an array of numbers, not of objects")
    # one cheap pass; only a suspicious sum is looked at closely
    if array.dtype.kind in "fc":
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not math.isfinite(abs(array.sum()))
        if suspicious and not np.isfinite(array).all():
            raise ParameterError(argument, "NaN or infinite entries", "finite")
    array = array.view()
    array.flags.writeable = False  # a query may look, not touch
    return array


def _checked_sparse(argument: str, data: Any) -> Any:
    """Return a checked, read-only sparse matrix in row format."""
    matrix = data.tocsr(copy=True)
    if 0 in matrix.shape:
        raise ParameterError(argument, matrix.shape, "a matrix with one row a user, not empty")
    if matrix.data.dtype.kind not in "biuf" or not np.isfinite(matrix.data).all():
        raise ParameterError(argument, "NaN or infinite entries", "finite numbers")
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def first_array(data: Any) -> Any:
    """Return the first array of a tuple, or the array itself."""
    array = data[0] if isinstance(data, tuple) else data
    return np.asarray(array) if not hasattr(array, "shape") else array


def take_rows(data: Any, who: Users) -> Any:
    """Return the rows of the users in ``who``, of every array in the data."""
    return tuple(part[who] for part in data) if isinstance(data, tuple) else data[who]


def count_users(who: Users) -> int:
    """Return how many users an index array or a checked slice names."""
    return len(range(who.start, who.stop, who.step)) if isinstance(who, slice) else len(who)


def checked_users(who: Any, users: int) -> Users:
    """Return ``who`` as a slice or an array of distinct indices below ``users``."""
    if who is None:
        return slice(0, users, 1)
    if isinstance(who, slice):
        try:
            start, stop, step = who.indices(users)
        except (TypeError, ValueError):
            raise ParameterError("who", who, "a slice of whole numbers, its step not 0") from None
        return slice(start, stop, step) if step > 0 else np.arange(start, stop, step)
    allowed = f"distinct user indices from 0 to {users - 1}, a mask or a slice"
    try:
        index = np.asarray(who)
    except ValueError:
        raise ParameterError("who", who, allowed) from None
    if index.dtype == bool and index.shape == (users,):
        return np.flatnonzero(index)
    if index.shape == (0,):
        index = index.astype(np.intp)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ParameterError("who", who, allowed)
    rising = index.size < 2 or bool(np.all(index[1:] > index[:-1]))
    if not rising and np.unique(index).size != index.size:
        raise ParameterError("who", who, allowed)
    if index.size and not (index.min() >= 0 and index.max() < users):
        raise ParameterError("who", who, allowed)
    return index.astype(np.intp)
