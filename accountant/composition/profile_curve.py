"""The profile of one composition, delta as a function of epsilon, at many epsilons at once.

The axis of epsilon is divided into ranges.  In each an engine, a numerical method, bounds delta.
It is made for an epsilon of the range (a `Neighbourhood`) when the first delta there is asked for,
and kept.  The tilt of a neighbourhood is about minus the slope of ln delta.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant.composition.cgf import saddlepoint
from accountant.composition.composition import (
    Composition,
    Neighbourhood,
    ignore_overflow,
    neighbourhood_at,
)
from accountant.composition.contour import Contour
from accountant.composition.engine import DeltaBounds, delta_bounds_near, least_cost_near
from accountant.composition.engines import ENGINES_NEAR_EPSILON, EXACT_ENGINES
from accountant.composition.enumeration import Enumeration
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up

# Deltas at whose epsilons the ranges of the engines start, one engine each.  The first are for
# curves with a given accuracy of delta itself, the others for those whose accuracy is relative to
# epsilon.
DELTAS = (0.3, 0.05, 3e-3, 1e-5, 1e-9, 1e-20)
RELATIVE_DELTAS = (0.2, 0.03, 1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-50)

# A contour of more nodes is not summed for each epsilon; a table is made instead.
MAX_SUMMED_NODES = 2**11
# Where the accuracy of delta is given, the interval around delta that an engine is asked for is
# this many times as wide.  Only smoothing makes intervals as wide as wanted: it takes 0.6 of the
# width (`Neighbourhood.smoothing`), and half of that is above delta, which is 0.9 of the accuracy.
# The width relative to epsilon is at most WIDEST.
WIDTH_OVER_ACCURACY, WIDEST = 3, 1e-2
MAX_COST = 4e6  # an engine that costs more takes long at many epsilons; in complex products


class ProfileCurve:
    """Upper bounds on the delta of a composition with exact cumulants.

    Parameters
    ----------
    composition : Composition
        Losses with exact cumulants.
    width : float
        How loose the bounds may be, relative to epsilon.
    accuracy : float, optional
        How loose they may be as numbers, in place of ``width``.
    """

    @ignore_overflow
    def __init__(
        self, composition: Composition, width: float, accuracy: float | None = None
    ) -> None:
        self._composition, self._accuracy = composition, accuracy
        self.max_loss, self.loss_pmf = composition.max_loss, None
        self._bounds: dict[int, Callable[[Array], Array]] = {}
        # one for each engine, sorted by the epsilon where its range starts
        self._neighbourhoods: list[Neighbourhood] = []
        if composition.items and composition.max_loss > 0 and composition.infinity < 1:
            at_zero = saddlepoint(composition.cgf, epsilon=0.0)
            neighbourhoods = [self._neighbourhood(at_zero, 0.0, 1.0, width)]
            for delta in RELATIVE_DELTAS if accuracy is None else DELTAS:
                neighbourhood = neighbourhood_at(
                    composition, math.log(delta), width, composition.rough_epsilon(math.log(delta))
                )
                neighbourhoods.append(
                    self._neighbourhood(neighbourhood.tilt, neighbourhood.epsilon, delta, width)
                )
            self._neighbourhoods = sorted(
                (neighbourhood for neighbourhood in neighbourhoods if neighbourhood.epsilon >= 0),
                key=lambda neighbourhood: neighbourhood.epsilon,
            )

    def _neighbourhood(
        self, tilt: float, epsilon: float, delta: float, width: float
    ) -> Neighbourhood:
        """Return the neighbourhood of an epsilon where delta is about ``delta``."""
        if self._accuracy is not None:
            # An error of epsilon is one of delta that is about tilt * delta times as large.  The
            # width is relative to epsilon; where epsilon is near 0, to 1e-3 / tilt.
            slope = tilt * delta * max(epsilon, 1e-3 / tilt)
            width = min(WIDTH_OVER_ACCURACY * self._accuracy / slope, WIDEST)
        return Neighbourhood(self._composition, tilt, epsilon, width)

    @property
    @ignore_overflow
    def is_exact(self) -> bool:
        """Whether no bound is smoothed, and each takes little time at many epsilons."""
        return all(
            least_cost_near(neighbourhood, EXACT_ENGINES) <= MAX_COST
            for neighbourhood in self._neighbourhoods
        )

    @ignore_overflow
    def profile(self, epsilon: Array) -> Array:
        """Return delta at each epsilon, rounded up; 1 below 0."""
        infinity = round_up(self._composition.infinity, 16)
        flat = np.ravel(epsilon)
        result = np.full(flat.shape, infinity)
        result[flat < 0] = 1.0
        inside = (flat >= 0) & (flat < self.max_loss)
        if self._neighbourhoods and inside.any():
            starts = [neighbourhood.epsilon for neighbourhood in self._neighbourhoods[1:]]
            index_of_range = np.searchsorted(starts, flat, side="right")
            for i in np.unique(index_of_range[inside]).tolist():
                served = inside & (index_of_range == i)
                result[served] += self._finite_part(i, flat[served])
        capped: Array = np.minimum(result, 1.0).reshape(np.shape(epsilon))
        return capped

    def _finite_part(self, i: int, epsilon: Array) -> Array:
        """Return the delta of the finite losses, by the ``i``-th engine."""
        if i not in self._bounds:
            neighbourhood, *later = self._neighbourhoods[i:]
            end = later[0].epsilon if later else self.max_loss
            cheapest = next(delta_bounds_near(neighbourhood, ENGINES_NEAR_EPSILON), None)
            self._bounds[i] = _upper_bounds(cheapest, neighbourhood.epsilon, end)
        delta: Array = np.exp(np.minimum(self._bounds[i](epsilon), 0.0))
        return delta


def _upper_bounds(
    delta_bounds: DeltaBounds | None, low: float, high: float
) -> Callable[[Array], Array]:
    """Return a function that gives the logarithms of upper bounds on delta between two epsilons."""
    if delta_bounds is None:  # no engine applies: delta is at most 1
        return np.zeros_like
    if isinstance(delta_bounds, Enumeration):
        return delta_bounds.log_upper_bounds
    if not isinstance(delta_bounds, Contour):
        return lambda epsilon: np.array([delta_bounds.bounds(e)[1] for e in epsilon.tolist()])
    table = delta_bounds.upper_table(low, high) if delta_bounds.nodes > MAX_SUMMED_NODES else None
    return delta_bounds.log_upper_bounds if table is None else functools.partial(_chord, *table)


def _chord(first_index: int, spacing: float, logs: Array, epsilon: Array) -> Array:
    """Return the logarithm of delta between the points of a table, on chords in ``x = e^epsilon``.

    ``logs`` are ln of bounds at ``spacing * (first_index + i)``, see `Contour.upper_table`.  Delta
    is convex in x, so that it lies below the chords.
    """
    # Delta falls, so a slightly smaller epsilon makes up for the round-off of the places.
    epsilon = epsilon * (1 - 8 * ULP)
    cell = np.floor(epsilon / spacing)
    index = cell.astype(int) - first_index
    share = np.clip(np.expm1(epsilon - cell * spacing) / math.expm1(spacing), 0.0, 1.0)
    top = np.maximum(logs[index], logs[index + 1])
    left_delta, right_delta = np.exp(logs[index] - top), np.exp(logs[index + 1] - top)
    chord: Array = top + np.log((1 - share) * left_delta + share * right_delta) + 16 * ULP
    return np.where(np.isfinite(top), chord, top)
