"""Statistics from noisy sums, with how far noise moves them: post-processing, free of cost.

References: Fieller (1954).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from accountant.numerics.search import furthest_that
from algorithms.frames.bases import Count, Statistic, Sum
from algorithms.frames.moments import Moment, Variance
from algorithms.frames.noise_tails import NAMES, Noise, half_width, quantile, tail
from algorithms.frames.schema import Schema


class Estimate(NamedTuple):
    """The statistic of every cell, and about the standard deviation of its noise."""

    value: Array
    deviation: Array


def estimate(
    statistic: Statistic, sums: Array, schema: Schema, mechanism: Noise, public: int = 0
) -> Estimate:
    """Return the statistic of every cell from its noisy sums, a row of ``sums`` for each.

    ``public`` is the number of rows where it is public, else 0.
    """
    if not isinstance(statistic, Moment):
        unit = statistic.basis(schema, NAMES[type(mechanism)]).unit
        value = possible(statistic, sums[:, 0] * unit, schema)
        return Estimate(value, np.full(len(sums), mechanism.deviation * unit))
    _, mean, spread, error = _moments(statistic, sums, mechanism, public)
    middle, half = statistic.units(schema)
    if isinstance(statistic, Variance):
        return Estimate(spread * half**2, error * half**2)
    return Estimate(middle + half * mean, error * half)


def _moments(statistic: Moment, sums: Array, mechanism: Noise, public: int) -> tuple[Array, ...]:
    """Return the rows, the mean and variance of u, and the deviation of what is asked."""
    noise = NAMES[type(mechanism)]
    matrix = statistic.moments_of(noise)
    count, total, *squares = matrix @ sums.T
    count = count + public
    rows = np.maximum(count, 1.0)
    mean = np.where(count > 0, np.clip(total / rows, -1.0, 1.0), 0.0)
    spread = np.zeros(len(sums))
    if squares:
        # E(mean + noise)^2 = mean^2 + variance of the noise, which is subtracted.
        moved = np.linalg.norm(matrix[1] - mean[:, None] * matrix[0], axis=1)
        extra = (moved * mechanism.deviation / rows) ** 2
        spread = np.clip(squares[0] / rows - mean**2 + extra, 0.0, 1 - mean**2)
    weights = statistic.error_weights(noise, mean, spread)
    error = np.linalg.norm(weights, axis=1) * mechanism.deviation / rows
    return rows, mean, spread, error


def interval(
    statistic: Statistic,
    sums: Array,
    schema: Schema,
    mechanism: Noise,
    level: float,
    public: int = 0,
) -> Array:
    """Return lower and upper ends for the statistic of every cell, as the frame has it."""
    if not isinstance(statistic, Moment):
        unit = statistic.basis(schema, NAMES[type(mechanism)]).unit
        half = half_width(mechanism, level)
        ends = np.stack([sums[:, 0] - half, sums[:, 0] + half], axis=1) * unit
        return possible(statistic, ends, schema)
    middle, half_range = statistic.units(schema)
    if not isinstance(statistic, Variance):
        return middle + half_range * _interval_of_ratio(statistic, sums, mechanism, level, public)
    rows, mean, spread, _ = _moments(statistic, sums, mechanism, public)
    weights = statistic.error_weights(NAMES[type(mechanism)], mean, spread)
    half_widths = quantile(mechanism, weights, level) / rows
    ends = np.clip(np.stack([spread - half_widths, spread + half_widths], axis=1), 0.0, 1.0)
    return np.asarray(ends * half_range**2)


def _interval_of_ratio(
    statistic: Moment, sums: Array, mechanism: Noise, level: float, public: int
) -> Array:
    """Return the means mu of u that the noise does not contradict.

    S - mu N of the rows is 0 at their mean, so of the noisy sums it is noise of known law.
    """
    noise = NAMES[type(mechanism)]
    matrix = statistic.moments_of(noise)
    count, total = matrix @ sums.T
    count = count + public
    mean = _moments(statistic, sums, mechanism, public)[1]

    def agrees(mu: Array) -> NDArray[np.bool_]:
        weights = statistic.error_weights(noise, mu, mu)
        far: NDArray[np.bool_]
        far = tail(mechanism, weights, np.abs(total - mu * count)) >= 1 - level
        return far

    ends = []
    for end in (-np.ones_like(mean), np.ones_like(mean)):
        furthest = furthest_that(agrees, mean, end, steps=40)
        # A cell without rows may have any mean.
        ends.append(np.where((count <= 0) | agrees(end), end, furthest))
    return np.stack(ends, axis=1)


def possible(statistic: Statistic, value: Array, schema: Schema) -> Array:
    """Return numbers clipped to what the statistic can be: nothing is counted below 0."""
    if isinstance(statistic, Count):
        return np.maximum(value, 0)
    if isinstance(statistic, Sum):
        bounds = cast("tuple[float, float]", schema.kind(statistic.column).bounds)
        value = np.maximum(value, 0) if bounds[0] >= 0 else value
        return np.minimum(value, 0) if bounds[1] <= 0 else value
    return value
