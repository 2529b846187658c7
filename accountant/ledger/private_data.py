"""Private data and sets of users, as a gate accepts them: checked once, before any release.

Data are an array, a tuple of arrays of equal length, a sparse matrix or a data frame; each row
belongs to one user.  A set of users is a slice, an array of indices of rows, or a mask.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.ledger.frames import (
    FramePartitions,
    FrameRows,
    FrameTables,
    LazyRows,
    is_frame,
    is_lazy,
    is_partitioned,
)
from accountant.ledger.immutable_arrays import immutable, lent

Users = NDArray[np.intp] | slice  # indices of rows, or a slice of them
# Classes that read data in pieces, and check every piece as it is read; they add themselves.
CHUNK_READERS: set[type[Any]] = set()
FRAME_HOLDERS = (FrameRows, FramePartitions, LazyRows, FrameTables)  # these check their frames
UNMASKED = "without a mask: .filled(value) says what a hidden entry counts as"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lent:
    """Data that their owner does not change while the gate is asked: arrays are not copied."""

    data: Any


def checked_data(argument: str, data: Any) -> Any:
    """Return the data as immutable arrays; refuse empty, ragged, masked and missing data.

    Arrays that are `Lent` stay where they are: a query cannot write to them, and their owner can.
    """
    is_lent = type(data) is Lent
    return _checked_data(argument, data.data if is_lent else data, is_lent)


def _checked_data(argument: str, data: Any, is_lent: bool) -> Any:
    if isinstance(data, tuple):
        parts = tuple(
            _checked_data(f"{argument}[{i}]", part, is_lent) for i, part in enumerate(data)
        )
        lengths = sorted({part.shape[0] for part in parts})
        if len(lengths) != 1:
            raise ParameterError(argument, f"arrays of {lengths} rows", "arrays of equal length")
        return parts
    if type(data) in CHUNK_READERS or type(data) in FRAME_HOLDERS:
        return data
    if type(data) is np.ndarray:  # the most frequent case, before the slower tests below
        return _checked_array(argument, data, is_lent)
    if is_frame(data):  # entries may be missing: the mechanisms of frames say how these count
        return FrameRows(argument, data)
    if is_partitioned(data):
        return FramePartitions(argument, data)
    if is_lazy(data):
        return LazyRows(argument, data)
    if hasattr(data, "tocsr"):
        return _checked_sparse(argument, data, is_lent)
    if is_masked(data):
        raise ParameterError(argument, type(data), UNMASKED)
    if isinstance(data, dict):
        named_frames = {name: part for name, part in data.items() if isinstance(name, str)}
        if named_frames and all(
            is_frame(p) or is_partitioned(p) or is_lazy(p) for p in data.values()
        ):
            frames = {
                name: _checked_data(f"{argument}[{name!r}]", p, is_lent)
                for name, p in named_frames.items()
            }
            return FrameTables(argument, frames)
        allowed = "an array, or a data frame: pandas.DataFrame(data) makes one"
        raise ParameterError(argument, dict, allowed)
    return _checked_array(argument, data, is_lent)


def _checked_array(argument: str, data: Any, is_lent: bool) -> NDArray[Any]:
    """Return the data as an immutable array of numbers that is not empty and has no gaps."""
    try:
        array = np.asarray(data)
    except ValueError:
        raise ParameterError(argument, type(data), "rectangular, not ragged") from None
    if array.ndim == 0:
        allowed = "an array with one row a user, before the plan or the budget"
        raise ParameterError(argument, type(data).__name__, allowed)
    if array.size == 0:
        raise ParameterError(argument, array.shape, "an array with one row a user, not empty")
    if array.dtype.hasobject:
        raise ParameterError(argument, array.dtype, "an array of numbers, not of objects")
    _refuse_missing(argument, array)
    # A query may read the data, but not change them.
    return lent(array) if is_lent else immutable(array, mapped=True)


def is_masked(data: Any) -> bool:
    """Return whether the data, or any part of a list, is a masked array.

    `numpy.asarray` would ignore the mask, and show the hidden entries.
    """
    if isinstance(data, list | tuple):
        return any(map(is_masked, data))
    return isinstance(data, np.ma.MaskedArray)


def _refuse_missing(argument: str, array: NDArray[Any]) -> None:
    """Refuse NaN, infinity and missing dates (NaT), in each field of an array of records too."""
    if array.dtype.names is not None:
        for name in array.dtype.names:
            _refuse_missing(argument, array[name])
    elif array.dtype.kind in "fc":
        # The sum takes one quick pass.  It is infinite or NaN if any entry is, and also where
        # finite entries overflow: only then each entry is tested.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not math.isfinite(abs(array.sum()))
        if suspicious and not np.isfinite(array).all():
            raise ParameterError(argument, "NaN or infinite entries", "finite")
    elif array.dtype.kind in "mM" and np.isnat(array).any():
        raise ParameterError(argument, "entries without a date (NaT)", "a date in every entry")


def _checked_sparse(argument: str, data: Any, is_lent: bool) -> Any:
    """Return a checked, read-only sparse matrix in row format."""
    from scipy import sparse

    in_row_format = data.tocsr  # every sparse format has this method
    if not sparse.issparse(data):
        raise ParameterError(argument, type(data), "an array, or a matrix of scipy.sparse")
    matrix: Any = copy.copy(in_row_format())
    if 0 in matrix.shape:
        raise ParameterError(argument, matrix.shape, "a matrix with one row a user, not empty")
    if matrix.data.dtype.kind not in "biuf" or not np.isfinite(matrix.data).all():
        raise ParameterError(argument, "NaN or infinite entries", "finite numbers")
    for part in ("data", "indices", "indptr"):
        numbers = getattr(matrix, part)
        setattr(matrix, part, lent(numbers) if is_lent else immutable(numbers))
    return matrix


def first_array(data: Any) -> Any:
    """Return the first array of a tuple, or the array itself."""
    array = data[0] if isinstance(data, tuple) else data
    return np.asarray(array) if not hasattr(array, "shape") else array


def take_rows(data: Any, who: Users) -> Any:
    """Return the data of the users in ``who``: their rows of each array."""
    return tuple(part[who] for part in data) if isinstance(data, tuple) else data[who]


def count_users(who: Users) -> int:
    """Return how many users an index array or a checked slice names."""
    return len(range(who.start, who.stop, who.step)) if isinstance(who, slice) else len(who)


def checked_users(who: Any, users: int) -> Users:
    """Return a set of users as a slice, or as an immutable array of distinct indices of rows.

    ``who`` is None for all, a slice, a mask of length ``users``, or indices below ``users``, the
    number of rows; negative and repeated indices are refused.
    """
    if who is None:
        return slice(0, users, 1)
    if isinstance(who, slice):
        try:
            start, stop, step = who.indices(users)
        except (TypeError, ValueError):
            raise ParameterError("who", who, "a slice of whole numbers, its step not 0") from None
        return slice(start, stop, step) if step > 0 else immutable(np.arange(start, stop, step))
    allowed = f"distinct user indices from 0 to {users - 1}, a mask or a slice"
    if is_masked(who):
        raise ParameterError("who", type(who), UNMASKED)
    try:
        index = np.asarray(who)
    except ValueError:
        raise ParameterError("who", who, allowed) from None
    if index.dtype == bool and index.shape == (users,):
        return immutable(np.flatnonzero(index))
    if index.shape == (0,):
        index = index.astype(np.intp)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ParameterError("who", who, allowed)
    rising = index.size < 2 or bool(np.all(index[1:] > index[:-1]))
    if not rising and np.unique(index).size != index.size:
        raise ParameterError("who", who, allowed)
    if index.size and not (index.min() >= 0 and index.max() < users):
        raise ParameterError("who", who, allowed)
    return immutable(index.astype(np.intp, copy=False))
