"""Arrays as ``value + factors x noises``, and arithmetic that keeps this form.

A recorded run numbers every noise that it draws.  The `View` of an array says for each element
which noises are in it, with which factors, and what number was added to them.  The privacy loss of
a release is computed from its view.

Sums, multiples by plain numbers, linear functions and selections of elements keep the form
``value + sum over parts of factor x noise``.  Views do not grow without limit: `fits` says whether
a sum is still followed; if not, its operands count as released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Limits of views, for memory and time.  A part is one noise in the sum of an element.  Beyond
# them operands count as released, which may cost more than what the code releases.
FEW_PARTS = 8  # parts of an element up to which sums are followed in arrays of any size
MOST_PARTS = 64  # parts of an element up to which sums are followed in smaller arrays; see `fits`
# Factors in one view, which are 16 MiB with the numbers of their noises.  The result of a larger
# linear map counts as noise of an unknown law.
MOST_FACTORS = 2**20


class View(NamedTuple):
    """An array as value + sum over parts of factor x noise, element by element.

    ``value`` has the shape of the array.  ``noises`` are the numbers of noises, -1 for a part
    without noise, and ``factors`` their factors; both have the shape (*shape, parts).
    """

    noises: NDArray[np.int64]
    factors: NDArray[np.float64]
    value: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape


def plain_view(values: Any) -> View:
    """The view of numbers without noise: one part, which is empty."""
    value = np.asarray(values, dtype=float)
    factor_shape = (*value.shape, 1)
    return View(np.full(factor_shape, -1, dtype=np.int64), np.zeros(factor_shape), value)


def broadcast(view: View, shape: tuple[int, ...]) -> View:
    """The view broadcast to a shape."""
    factor_shape = (*shape, view.noises.shape[-1])
    padded_shape = (1,) * (len(shape) - len(view.shape)) + view.noises.shape
    return View(
        np.broadcast_to(view.noises.reshape(padded_shape), factor_shape),
        np.broadcast_to(view.factors.reshape(padded_shape), factor_shape),
        np.broadcast_to(view.value, shape),
    )


def add(left_view: View, right_view: View, sign: float) -> View:
    """``left_view + sign * right_view``, broadcast; the sign is 1 or -1.

    The parts of the two are joined, and `merged` if a noise may be in both.  An operand without any
    noise adds to the value alone.
    """
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
        # All noises of the second operand were drawn after those of the first, so none occurs
        # twice.
        return View(noises, factors, value)
    return merged(View(noises, factors, value))


def merged(view: View) -> View:
    """The view with one part for each noise of an element: equal noises have their factors added.

    Factors may cancel.  A part that was added to another one becomes empty, noise -1 and factor 0.
    """
    order = np.argsort(view.noises, axis=-1)
    noises = np.take_along_axis(view.noises, order, axis=-1)
    factors = np.take_along_axis(view.factors, order, axis=-1)
    # In the sorted parts equal noises are neighbours: is the noise of a part that of the one
    # before?
    repeats = (noises[..., 1:] == noises[..., :-1]) & (noises[..., 1:] >= 0)
    if not repeats.any():
        return view
    for k in range(noises.shape[-1] - 1, 0, -1):  # from the last part to the one before it
        is_repeat = repeats[..., k - 1]
        factors[..., k - 1] += np.where(is_repeat, factors[..., k], 0.0)
        factors[..., k] = np.where(is_repeat, 0.0, factors[..., k])
        noises[..., k] = np.where(is_repeat, -1, noises[..., k])
    return View(noises, factors, view.value)


def scale(view: View, by: Any) -> View:
    """The view times plain numbers, broadcast."""
    factor = np.asarray(by, dtype=float)
    shape = np.broadcast_shapes(view.shape, factor.shape)
    broadcast_view = broadcast(view, shape)
    factor = np.broadcast_to(factor, shape)
    with np.errstate(all="ignore"):
        return View(
            broadcast_view.noises,
            broadcast_view.factors * factor[..., None],
            broadcast_view.value * factor,
        )


def fits(views: list[View], shape: tuple[int, ...]) -> bool:
    """Whether the sum of these views, an array of this shape, is small enough to be followed.

    It is if an element has at most `FEW_PARTS` parts.  With more parts it is if the sum has at most
    `MOST_FACTORS` factors in all, and an element has at most `MOST_PARTS` parts, unless an operand
    has more by itself, as the result of a linear map may have.
    """
    parts = [int(view.noises.shape[-1]) for view in views]
    if sum(parts) <= FEW_PARTS:
        return True
    is_small = sum(parts) * math.prod(shape) <= MOST_FACTORS
    return is_small and (sum(parts) <= MOST_PARTS or max(parts) > MOST_PARTS)


def linear_map(view: View, function: Callable[[Any], Any]) -> View | None:
    """The view of a linear function of an array; None where it cannot be followed.

    The function is applied to the value, and for each noise to the array of the noise's factors:
    the results are the value and the factors of that noise.  It is not followed if it is not 0 at
    0, if its result is not of floats, whose sums are not rounded to whole numbers, if there is no
    noise, or if the result would have more than `MOST_FACTORS` factors.
    """
    is_noise = view.noises >= 0
    noises, noise_index = np.unique(view.noises[is_noise], return_inverse=True)
    at_zero: Any = function(np.zeros(view.shape))
    # Other types than floats would round the factors.
    is_float = getattr(at_zero, "dtype", None) in (np.float64, np.float32)
    if not noises.size or not is_float or np.any(at_zero):
        return None
    if noises.size * max(at_zero.size, view.value.size) > MOST_FACTORS:
        return None
    elements = np.broadcast_to(np.arange(view.value.size).reshape((*view.shape, 1)), is_noise.shape)
    factors_of_noise = np.zeros((noises.size, view.value.size))
    np.add.at(factors_of_noise, (noise_index, elements[is_noise]), view.factors[is_noise])
    factors = [np.asarray(function(column.reshape(view.shape))) for column in factors_of_noise]
    value = np.asarray(function(view.value), dtype=float)
    parts = (*value.shape, noises.size)
    return View(np.broadcast_to(noises, parts), np.stack(factors, axis=-1), value)


def select(view: View, places: Any) -> View:
    """The elements at these positions of the flattened view, in the shape of ``places``."""
    parts = view.noises.shape[-1]
    return View(
        view.noises.reshape(-1, parts)[places],
        view.factors.reshape(-1, parts)[places],
        np.asarray(view.value.reshape(-1)[places]),
    )


def join(views: list[View]) -> View:
    """One flat view of the elements of several; those with fewer parts get empty ones."""
    parts = max(view.noises.shape[-1] for view in views)
    noises, factors = [], []
    for view in views:
        padding = ((0, 0), (0, parts - view.noises.shape[-1]))
        flat = view.noises.reshape(-1, view.noises.shape[-1])
        noises.append(np.pad(flat, padding, constant_values=-1))
        factors.append(np.pad(view.factors.reshape(flat.shape), padding))
    value = np.concatenate([view.value.reshape(-1) for view in views])
    return View(np.concatenate(noises), np.concatenate(factors), value)
