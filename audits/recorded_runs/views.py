"""Arrays as ``value + factors x noises``, and arithmetic that keeps this form.

A recorded run numbers every noise that it draws.  The `View` of an array says for each element
which noises are in it, with which factors, and what was added.  The privacy loss of a release is
computed from its view.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FEW_PARTS = 8  # noises in each number of an array of any size
MOST_PARTS = 64  # noises in one number; a longer sum counts as released
# factors in one view (16 MiB); the result of a larger linear map is noise of an unknown law
MOST_FACTORS = 2**20


class View(NamedTuple):
    """An array as value + sum over parts of factor x noise, element by element.

    ``noises`` are numbers of noises (-1 for none), of shape (*shape, parts), like ``factors``.
    """

    noises: NDArray[np.int64]
    factors: NDArray[np.float64]
    value: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape


def plain_view(values: Any) -> View:
    """The view of numbers without noise."""
    value = np.asarray(values, dtype=float)
    none = (*value.shape, 1)
    return View(np.full(none, -1, dtype=np.int64), np.zeros(none), value)


def broadcast(view: View, shape: tuple[int, ...]) -> View:
    """The view broadcast to a shape."""
    parts = (*shape, view.noises.shape[-1])
    lifted = (1,) * (len(shape) - len(view.shape)) + view.noises.shape
    return View(
        np.broadcast_to(view.noises.reshape(lifted), parts),
        np.broadcast_to(view.factors.reshape(lifted), parts),
        np.broadcast_to(view.value, shape),
    )


def add(left_view: View, right_view: View, sign: float) -> View:
    """``left_view + sign * right_view``; parts without noise are left out."""
    shape = np.broadcast_shapes(left_view.shape, right_view.shape)
    first_view, second_view = broadcast(left_view, shape), broadcast(right_view, shape)
    value = first_view.value + sign * second_view.value
    if (second_view.noises < 0).all():
        return View(first_view.noises, first_view.factors, value)
    if (first_view.noises < 0).all():
        return View(second_view.noises, sign * second_view.factors, value)
    noises = np.concatenate([first_view.noises, second_view.noises], axis=-1)
    factors = np.concatenate([first_view.factors, sign * second_view.factors], axis=-1)
    if first_view.noises.max() < second_view.noises[second_view.noises >= 0].min(
        initial=np.iinfo(int).max
    ):
        # the noises of one side were all drawn after those of the other, so none occurs twice
        return View(noises, factors, value)
    return merged(View(noises, factors, value))


def merged(view: View) -> View:
    """The view with one part for each noise: their factors are added up, and may cancel."""
    order = np.argsort(view.noises, axis=-1)
    noises = np.take_along_axis(view.noises, order, axis=-1)
    factors = np.take_along_axis(view.factors, order, axis=-1)
    repeats = (noises[..., 1:] == noises[..., :-1]) & (noises[..., 1:] >= 0)
    if not repeats.any():
        return view
    for k in range(noises.shape[-1] - 1, 0, -1):  # a repeated noise is added to the part before it
        is_repeat = repeats[..., k - 1]
        factors[..., k - 1] += np.where(is_repeat, factors[..., k], 0.0)
        factors[..., k] = np.where(is_repeat, 0.0, factors[..., k])
        noises[..., k] = np.where(is_repeat, -1, noises[..., k])
    return View(noises, factors, view.value)


def scale(view: View, by: Any) -> View:
    """The view times plain numbers."""
    factor = np.asarray(by, dtype=float)
    shape = np.broadcast_shapes(view.shape, factor.shape)
    wide = broadcast(view, shape)
    factor = np.broadcast_to(factor, shape)
    with np.errstate(all="ignore"):
        return View(wide.noises, wide.factors * factor[..., None], wide.value * factor)


def fits(views: list[View], shape: tuple[int, ...]) -> bool:
    """Whether the sum of these views is small enough to be followed.

    A view that a linear map made may have many parts.
    """
    parts = [int(view.noises.shape[-1]) for view in views]
    if sum(parts) <= FEW_PARTS:
        return True
    is_small = sum(parts) * math.prod(shape) <= MOST_FACTORS
    return is_small and (sum(parts) <= MOST_PARTS or max(parts) > MOST_PARTS)


def linear_map(view: View, function: Callable[[Any], Any]) -> View | None:
    """The view of a linear function; None if the result is too large or the function not linear.

    The factors of one noise in the result are the function of its factors in the argument.
    """
    is_noise = view.noises >= 0
    noises, noise_index = np.unique(view.noises[is_noise], return_inverse=True)
    at_zero: Any = function(np.zeros(view.shape))
    # sums of other types than floats are rounded
    is_float = getattr(at_zero, "dtype", None) in (np.float64, np.float32)
    if not noises.size or not is_float or np.any(at_zero):
        return None
    if noises.size * max(at_zero.size, view.value.size) > MOST_FACTORS:
        return None
    elements = np.broadcast_to(np.arange(view.value.size).reshape((*view.shape, 1)), is_noise.shape)
    columns = np.zeros((noises.size, view.value.size))
    np.add.at(columns, (noise_index, elements[is_noise]), view.factors[is_noise])
    factors = [np.asarray(function(column.reshape(view.shape))) for column in columns]
    value = np.asarray(function(view.value), dtype=float)
    parts = (*value.shape, noises.size)
    return View(np.broadcast_to(noises, parts), np.stack(factors, axis=-1), value)


def select(view: View, places: Any) -> View:
    """The elements at these places of the flat view."""
    parts = view.noises.shape[-1]
    return View(
        view.noises.reshape(-1, parts)[places],
        view.factors.reshape(-1, parts)[places],
        np.asarray(view.value.reshape(-1)[places]),
    )


def join(views: list[View]) -> View:
    """One flat view of all elements of several."""
    parts = max(view.noises.shape[-1] for view in views)
    noises, factors = [], []
    for view in views:
        missing = ((0, 0), (0, parts - view.noises.shape[-1]))
        flat = view.noises.reshape(-1, view.noises.shape[-1])
        noises.append(np.pad(flat, missing, constant_values=-1))
        factors.append(np.pad(view.factors.reshape(flat.shape), missing))
    value = np.concatenate([view.value.reshape(-1) for view in views])
    return View(np.concatenate(noises), np.concatenate(factors), value)
