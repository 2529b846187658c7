"""Checks of private values: errors name the fault and its index, and never show the value."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import ParameterError, PrivateValueError
from accountant.numerics import Array

A = TypeVar("A", bound=NDArray[Any])


def finite_floats(value: ArrayLike) -> Array:
    """Return ``value`` as an array of finite floats, or raise `PrivateValueError`."""
    array = as_floats(value)
    if not np.isfinite(array).all():
        raise PrivateValueError(
            "value", "finite in every entry", first_true_index(~np.isfinite(array))
        )
    return array


def as_floats(value: ArrayLike) -> Array:
    """Return ``value`` as an array of floats, perhaps infinite, or raise `PrivateValueError`."""
    raw = _unmasked_array(value, "rectangular, not ragged")
    if raw.dtype.kind not in "biuf":
        raise PrivateValueError("value", "an array of real numbers")
    with np.errstate(over="ignore"):  # longer floats may become infinite, which is refused
        return raw.astype(float, copy=False)


def as_int64(value: ArrayLike, allowed: str) -> NDArray[np.int64]:
    """Return ``value`` as 64-bit integers, or raise `PrivateValueError`."""
    raw = _unmasked_array(value, allowed)
    if raw.size == 0 and raw.dtype.kind == "f":  # an empty list
        raw = raw.astype(np.int64)
    if raw.dtype.kind == "f" and (raw != np.floor(raw)).any():
        raise PrivateValueError("value", allowed, first_true_index(raw != np.floor(raw)))
    if raw.dtype.kind not in "iu" or (raw.dtype == np.uint64 and (raw >> np.uint64(63)).any()):
        raise PrivateValueError("value", allowed)
    return raw.astype(np.int64, copy=False)


def checked_dimension(value: A, axes: int | None, dimension: int | None) -> A:
    """Return ``value``; where values are vectors, they have at most ``dimension`` coordinates."""
    if axes == 1 and not (value.ndim > 0 and value.shape[-1] <= (dimension or math.inf)):
        raise PrivateValueError("value", f"vectors of at most {dimension} coordinates")
    return value


def refuse_size_for_batch(size: int | None, value: NDArray[Any], axes: int) -> None:
    """Refuse ``size`` draws of a batch: a batch gives one output for each of its values."""
    if size is not None and value.ndim > axes:
        raise ParameterError("size", size, "None for a batch of values")


def norms(vectors: Array, order: float) -> Array:
    """Return the norm of every vector along the last axis; ``order`` is 2 or infinity."""
    if order == 2:
        squares: Array = np.sqrt(np.einsum("...i,...i", vectors, vectors))
        return squares
    greatest: Array = np.abs(vectors).max(axis=-1)
    return greatest


def first_true_index(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True entry, which marks the first wrong value."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def _unmasked_array(value: ArrayLike, allowed: str) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise PrivateValueError("value", "without a mask")
    try:
        return np.asarray(value)
    except ValueError:
        raise PrivateValueError("value", allowed) from None
