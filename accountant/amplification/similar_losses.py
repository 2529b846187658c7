"""Which sampled Gaussians are alike enough to share a rule."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

Index = NDArray[np.intp]


def alike(mu: Array, log_odds: Array) -> Iterable[Index]:
    """Yield the places of losses whose mu is in one octave, and whose odds are alike."""
    octave = np.frexp(mu)[1]
    width = np.minimum(1.0, 3.0 * 2.0**octave)
    keys = np.stack([octave, np.floor(log_odds / width)])
    _, place = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(place, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(place.ravel()[order])) + 1)
