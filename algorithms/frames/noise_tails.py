"""How far noise moves a weighted sum of released numbers: tails and quantiles for intervals.

Each number has independent discrete noise of one mechanism.  In sums the noise counts as
continuous: Laplace for `DiscreteLaplace`, normal for `DiscreteGaussian`.

References: Fieller (1954), for intervals of a ratio.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from accountant.numerics import Array
from accountant.numerics.search import furthest_that, least_integer_that
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace

Noise = DiscreteLaplace | DiscreteGaussian
NAMES: dict[type[Any], str] = {DiscreteLaplace: "laplace", DiscreteGaussian: "gaussian"}
# Scales nearer to each other than this share are moved apart, because the formula for sums of
# Laplace noise divides by their differences.  A scale moves by this share of itself for each
# number in the sum, and a tail accordingly.
APART = 1e-3
LATTICE, POINTS = 2000, 1 << 19  # largest deviation of a sum in steps, and points of its law
NORMAL_FROM = (
    1e4  # deviations of normal noise above this count as continuous, so many terms as normal
)


def half_width(mechanism: Noise, confidence: float, numbers: int = 1) -> int:
    """Return the least whole h with P(|noise| <= h) >= confidence, of a sum of so many numbers."""
    outside, scale = 1 - confidence, mechanism.scale
    if numbers > 1:
        return sum_half_width(mechanism, confidence, numbers)
    if isinstance(mechanism, DiscreteLaplace):
        # P(|k| > h) = 2 q^{h+1} / (1 + q) with q = e^{-1 / scale}, solved for h.
        scale = mechanism.drawn_scale
        return max(0, math.ceil(-scale * math.log(outside * (1 + math.exp(-1 / scale)) / 2)) - 1)
    if scale > NORMAL_FROM:
        return math.ceil(-scale * float(ndtri(outside / 2)))
    steps = np.arange(math.ceil(40 * scale) + 1)  # what is beyond has a mass below e^-800
    mass = np.exp(-((steps / scale) ** 2) / 2)
    # P(|k| <= h) for h = 0, 1, ...: both sides of 0 are summed.
    within = (2 * np.cumsum(mass) - 1) / (2 * mass.sum() - 1)
    return least_integer_that(lambda h: bool(within[h] >= confidence), -1, len(steps) - 1)


@lru_cache(maxsize=256)
def sum_half_width(mechanism: Noise, confidence: float, numbers: int) -> int:
    """Return about the least whole h for a sum, by its characteristic function.

    Noise whose sum deviates by more than `LATTICE` counts as noise on wider steps, one step more.
    The sum of very many counts as normal.
    """
    deviation = mechanism.deviation * math.sqrt(numbers)
    if numbers > NORMAL_FROM:
        return math.ceil(-deviation * float(ndtri((1 - confidence) / 2)) * (1 + 1e-3)) + 1
    scale = getattr(mechanism, "drawn_scale", mechanism.scale)
    step = math.ceil(max(1.0, deviation / LATTICE))
    cosine = np.cos(2 * math.pi * np.arange(POINTS // 2 + 1) / POINTS)
    if isinstance(mechanism, DiscreteLaplace):
        q = math.exp(-step / scale)
        transform = (1 - q) ** 2 / (1 - 2 * q * cosine + q * q)
    else:
        places = np.minimum(np.arange(POINTS), POINTS - np.arange(POINTS))
        mass = np.exp(-((places * step / scale) ** 2) / 2)
        transform = np.fft.rfft(mass / mass.sum()).real
    chances = np.maximum(np.fft.irfft(transform**numbers, POINTS), 0.0)[: POINTS // 2]
    beyond = 2 * np.append(np.cumsum(chances[:0:-1])[::-1], 0.0)  # P(|sum| > h)
    inside = int(np.argmax(beyond <= 1 - confidence))
    return inside if step == 1 else (inside + 1) * step


def tail(mechanism: Noise, weights: Array, x: Array) -> Array:
    """Return P(|sum of weights * noise| > x) for every row of weights, noise as continuous."""
    if isinstance(mechanism, DiscreteGaussian):
        deviation = np.linalg.norm(weights, axis=1) * mechanism.scale
        return np.asarray(2 * ndtr(-x / np.maximum(deviation, 1e-300)))
    # The sum of Laplace noises of scales b_j has the characteristic function
    # 1 / prod(1 + b_j^2 s^2) = sum_j c_j / (1 + b_j^2 s^2) with the product
    # c_j = prod_{i != j} b_j^2 / (b_j^2 - b_i^2): a sum of Laplace laws with weights c_j, of which
    # some are negative.
    scales = np.sort(np.abs(weights), axis=1)[:, ::-1] * mechanism.drawn_scale
    scales = np.maximum(scales, 1e-6 * scales[:, :1])  # a weight may be 0
    for j in range(1, scales.shape[1]):
        scales[:, j] = np.minimum(scales[:, j], scales[:, j - 1] * (1 - APART))
    squares, total = scales**2, np.zeros(len(scales))
    for j in range(scales.shape[1]):
        other_squares = np.delete(squares, j, axis=1)
        share = np.prod(squares[:, [j]] / (squares[:, [j]] - other_squares), axis=1)
        total += share * np.exp(-x / scales[:, j])
    return total


def quantile(mechanism: Noise, weights: Array, confidence: float) -> Array:
    """Return the x with P(|sum of weights * noise| <= x) = confidence, for every row of weights."""
    outside = 1 - confidence
    # The search begins at a point where the tail is smaller: there each of the d terms exceeds its
    # share of x with a probability of at most outside / d.
    upper_end = np.abs(weights).sum(axis=1) * mechanism.scale * (1 - math.log(outside / 4)) * 2
    return furthest_that(
        lambda x: tail(mechanism, weights, x) <= outside, upper_end, np.zeros_like(upper_end)
    )
