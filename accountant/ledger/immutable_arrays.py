"""Arrays whose memory nothing in Python can write to, unlike those with a read-only flag."""

from __future__ import annotations

import copy
import mmap
from typing import Any, Literal

import numpy as np


def immutable(array: np.ndarray[Any, Any], mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return the array on immutable memory; it is copied unless it lies there already.

    The owner of an array may set ``flags.writeable`` again, also through ``base``; not here.
    ``mapped`` leaves a file that was mapped read-only where it is.
    """
    array = np.asarray(array)
    if is_immutable(array, mapped):
        return array
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    return np.ndarray(array.shape, array.dtype, array.tobytes(order), order=order)


def lent(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array as one that its holder cannot write to; numbers are not copied.

    The array behind it is not found through ``base``.  Its owner can still write to it.
    """
    array = np.asarray(array)
    if is_immutable(array):
        return array
    locked = array.view()
    locked.flags.writeable = False
    try:
        shown = np.from_dlpack(locked)  # the base is a capsule, which shows nothing
    except (BufferError, TypeError):  # not in the bytes of this machine, or numpy before 2.1
        return immutable(array)
    return immutable(array) if shown.flags.writeable else shown


def is_immutable(array: np.ndarray[Any, Any], mapped: bool = True) -> bool:
    """Return whether an array lies on bytes, or if ``mapped`` on a file mapped read-only."""
    base: Any = array
    while type(base) in {np.ndarray, np.memmap}:  # a subclass may report anything
        if base.flags.owndata or base.flags.writeable:
            return False
        base = base.base
    return type(base) is bytes or (mapped and type(base) is mmap.mmap and memoryview(base).readonly)


def immutable_output(output: Any) -> Any:
    """Return a mechanism's output with immutable arrays, in tuples too."""
    if isinstance(output, tuple):
        return tuple(map(immutable_output, output))
    if not isinstance(output, np.ndarray):
        return output
    if output.dtype.hasobject:  # of a mechanism that is not declared
        output = output.copy()
        output.flags.writeable = False
        return output
    return immutable(output)


def fresh_view(data: Any) -> Any:
    """Return a view for other code to read: it may be reshaped, and its values never change."""
    if isinstance(data, tuple):
        return tuple(map(fresh_view, data))
    if isinstance(data, np.ndarray):
        return data.view()
    if hasattr(data, "fresh"):  # a frame
        return data.fresh()
    return copy.copy(data) if hasattr(data, "tocsr") else data
