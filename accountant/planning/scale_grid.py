"""Scales rounded to a logarithmic grid: exact accountants are faster with few different losses.

A grid point is 9 % above the last, so that no scale moves by more than 4.4 %, and not all one way:
around the least error that costs 3/2 of its mean square, 0.1 %.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.planning.requests import Wanted

MAX_EXACT_RELEASES = 64  # different releases are not hurried
LOG_GRID_STEP = math.log(2) / 8


def snap_to_grid(scales: Array, units: Sequence[float]) -> Array:
    """Return the scales in units of each release's own, rounded to the grid."""
    snapped: Array = np.exp(LOG_GRID_STEP * np.round(np.log(scales / units) / LOG_GRID_STEP))
    return snapped


class LossMatcher:
    """Returns scales whose losses are equal floats, so that accountants merge them."""

    def __init__(self) -> None:
        self._losses: dict[Hashable, Hashable] = {}

    def scale(self, release: Wanted, grid_scale: float) -> float:
        """``grid_scale`` units, or one of the next few floats if that has the loss of an earlier
        one.
        """
        scale = nominal_scale = float(
            min(max(release.unit * grid_scale, release.domain.low), release.domain.high)
        )
        other_fields = tuple(pair for pair in release.fields if pair[0] != "sensitivity")
        if not isinstance(release.family, type):
            return scale
        key = (release.family, other_fields, grid_scale)
        for _ in range(4):
            losses = tuple(release.plan(scale).losses())
            if self._losses.setdefault(key, losses) == losses:
                return scale
            scale = math.nextafter(scale, math.inf)
        return nominal_scale


def scales_at(wanted: Sequence[Wanted], grid_scales: Array, factor: float) -> tuple[float, ...]:
    """Return the scales of all of ``wanted`` at a common factor."""
    match = LossMatcher()
    try:
        return tuple(
            match.scale(release, scale * factor)
            for release, scale in zip(wanted, grid_scales.tolist(), strict=True)
        )
    except ParameterError as error:
        raise ParameterError("factor", factor, str(error)) from None
