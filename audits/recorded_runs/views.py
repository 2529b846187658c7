"""Views of noise: arithmetic on ``value + factors x noises``."""

from __future__ import annotations

from typing import Any

import numpy as np

from audits.recorded_runs.events import View

MOST_PARTS = 8  # noises in one number; a sum of more is taken as read after so many


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


def add(one: View, other: View, sign: float) -> View:
    """``one + sign * other``; parts without noise are left out."""
    shape = np.broadcast_shapes(one.shape, other.shape)
    first, second = broadcast(one, shape), broadcast(other, shape)
    value = first.value + sign * second.value
    if (second.noises < 0).all():
        return View(first.noises, first.factors, value)
    if (first.noises < 0).all():
        return View(second.noises, sign * second.factors, value)
    noises = np.concatenate([first.noises, second.noises], axis=-1)
    factors = np.concatenate([first.factors, sign * second.factors], axis=-1)
    return View(noises, factors, value)


def scale(view: View, by: Any) -> View:
    """The view times plain numbers."""
    factor = np.asarray(by, dtype=float)
    shape = np.broadcast_shapes(view.shape, factor.shape)
    wide = broadcast(view, shape)
    factor = np.broadcast_to(factor, shape)
    with np.errstate(all="ignore"):
        return View(wide.noises, wide.factors * factor[..., None], wide.value * factor)


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
