"""A mixture of normal laws N(m_j, 1), m_j >= 0, by the ratio of its density to that of N(0, 1).

With weights w_j the ratio at x is sum_j w_j e^{m_j x - m_j^2 / 2}.  A pair of such mixtures
(`accountant/losses/mixture_pair.py`) has one on each side of 0, hence the name `Side`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot, ordered_sum

MAX_SHIFT = 1e100  # the largest mean m_j, in standard deviations


@final
@dataclass(frozen=True, slots=True)
class Side:
    """A mixture of normal laws of variance 1."""

    shifts: tuple[float, ...]  # the means m_j, at least 0, in increasing order
    weights: tuple[float, ...]  # w_j above 0, which sum to 1

    def log_ratio(self, x: Array) -> Array:
        """Return ``ln sum_j w_j e^{m_j x - m_j^2 / 2}``, accurate near 0 too."""
        w = np.array(self.weights)
        y = self._exponents(x)
        with np.errstate(divide="ignore", over="ignore"):
            # A logarithm near 0 is computed from the ratio less 1, a sum of w_j (e^{y_j} - 1).
            ratio_less_1 = ordered_sum(w, np.expm1(np.minimum(y, 30.0)))
            top = np.max(y, axis=0)
            scaled = np.log(ordered_sum(w, np.exp(y - top))) + top
        small = (ratio_less_1 > -0.5) & (top <= 30.0)
        result: Array = np.where(small, np.log1p(np.where(small, ratio_less_1, 0.0)), scaled)
        return result

    def posterior(self, x: Array) -> Array:
        """Return the chance of each component, given the output; the first axis is theirs."""
        y = self._exponents(x)
        e = np.exp(y - np.max(y, axis=0))
        e *= np.array(self.weights).reshape(-1, *(1,) * np.ndim(x))
        chance: Array = e / e.sum(axis=0)
        return chance

    def slope(self, x: Array) -> Array:
        """Return the derivative of `log_ratio`, the mean shift given the output."""
        mean: Array = ordered_sum(np.array(self.shifts), self.posterior(x))
        return mean

    def _exponents(self, x: Array) -> Array:
        """Return ``m_j x - m_j^2 / 2``."""
        m = np.array(self.shifts)
        y: Array = np.multiply.outer(m, x)
        y -= (m * (m / 2)).reshape(-1, *(1,) * np.ndim(x))
        return y

    def log_modulus_and_turn(self, x: Array, d: float) -> tuple[Array, Array]:
        """Return ``ln |r|`` and ``arg r`` of the ratio r at ``x + id``, ``d >= 0``.

        At ``x + id`` each term e^{m_j x - m_j^2 / 2} is turned by the angle d m_j (and its size is
        that at x).  The least of these angles, d m_0, is taken off all and added in the end: what
        remains lies between 0 and d `spread`, so that the angle of the sum is known without
        multiples of 2 pi.
        """
        m = np.array(self.shifts)
        y = m * x[:, None] - m * (m / 2) + np.log(self.weights)
        top = np.max(y, axis=1, keepdims=True)
        inner = ordered_dot(np.exp(y - top), np.exp(1j * d * (m - m[0])))
        return top[:, 0] + np.log(np.abs(inner)), np.angle(inner) + d * m[0]

    @property
    def greatest(self) -> float:
        """The largest shift."""
        return max(self.shifts)

    @property
    def spread(self) -> float:
        """The distance of the largest shift from the smallest."""
        return max(self.shifts) - min(self.shifts)


ORIGIN = Side((0.0,), (1.0,))  # N(0, 1) itself


def side(shifts: Sequence[float], weights: Sequence[float]) -> Side:
    """Return a mixture, its shifts in order, equal ones merged, its weights made to sum to 1."""
    merged: dict[float, list[float]] = {}
    for shift, weight in zip(shifts, weights, strict=True):
        if weight > 0:
            # A subnormal shift is rounded away from 0.
            merged.setdefault(max(shift, 1e-300) if shift else 0.0, []).append(weight)
    total = math.fsum(weights)
    order = sorted(merged)
    if order[-1] > MAX_SHIFT:
        allowed = f"with a sensitivity of at most {MAX_SHIFT:g} scales: add more noise"
        raise ParameterError("part", order[-1], allowed)
    return Side(tuple(order), tuple(math.fsum(merged[m]) / total for m in order))
