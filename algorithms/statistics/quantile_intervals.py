"""The two quantiles between which a quantile lies, whose places are found with noise.

References: Kaplan, Schnapp & Stemmer (2022); proof in docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.numerics import Array
from algorithms.base.intervals import laplace_interval
from algorithms.statistics.quantile_tree import rank_noise

# The release falls into a part of the grid without records, at this distance in scales plus
# ln(points) from a quantile, with probability below e^-4.  This holds if the numbers near the
# quantile fill at least a hundred thousandth of the bounds.
FAR_SCALES, EMPTIEST = 4.0, 1e5


def with_ends(
    quantiles: Array,
    sampling: Array,
    records: float,
    scale: float,
    level: float,
    points: int,
    replaced: bool,
) -> Array:
    """Return each quantile, and two quantiles around it that are the ends of its interval.

    ``sampling`` is the deviation of the sample's quantile from that of the population, as a share
    of the records; it is zero for the quantile of the sample itself.
    """
    targets = np.repeat(quantiles[:, None], 3, axis=1)
    reach = math.log(min(points, EMPTIEST)) + FAR_SCALES
    for _ in range(3):  # the noise of the ends depends a little on their positions
        levels, order = ascending(targets)
        noise = rank_noise(levels, scale, replaced)
        # A quantile so near the least or the greatest record that the empty part of the grid
        # beyond it is likely: its rank may be wrong by its distance from there.
        margin = reach * noise.own / records
        at = np.array(levels)
        distance_to_end = np.where((at < margin) | (at > 1 - margin), np.minimum(at, 1 - at), 0.0)
        own_noise, other_variance, pull, margins = (np.empty(at.size) for _ in range(4))
        own_noise[order], other_variance[order] = noise.own / records, noise.rest
        margins[order] = margin
        pull[order] = noise.mixed @ distance_to_end - distance_to_end
        # The deviation is in units of the quantile's own noise.  Only the two ends are used.
        deviation = np.hypot(np.repeat(sampling, 3), np.sqrt(other_variance) / records) / own_noise
        noisy = laplace_interval(np.zeros(own_noise.size), 1.0, deviation, level)[:, 1] * own_noise
        half = (noisy + pull).reshape(targets.shape)[:, 1:]
        below, above = quantiles - half[:, 0], quantiles + half[:, 1]
        margin_below, margin_above = margins.reshape(targets.shape).T[1:]
        # An end whose rank is not reliable moves to the margin, or to the bound of the data.
        below = np.minimum(below, 1 - margin_below)
        above = np.maximum(above, margin_above)
        below = np.where(below < margin_below, 0.0, below)
        above = np.where(above > 1 - margin_above, 1.0, above)
        targets = np.stack([quantiles, below, above], axis=1)
    return targets


def ascending(targets: Array) -> tuple[list[float], Any]:
    """Return all targets in ascending order, and that order."""
    order = np.argsort(targets, axis=None, kind="stable")
    return targets.ravel()[order].tolist(), order
