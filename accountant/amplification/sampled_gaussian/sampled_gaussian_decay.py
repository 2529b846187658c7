"""How fast the transform of a sampled Gaussian falls: its integral on lines of some heights.

``|E r^{p+iv}|`` is at most ``sum_i weight[i] e^{-v arg r(x_i)}`` on any line or curve that is
allowed, which falls with v.  Proof: `docs/proofs/sampled_gaussian.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import loss_and_share, turned
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

LINE_LADDER = 2.0 ** -np.arange(0, 24, 0.9)  # heights of lines, and how many of them are tried
WINDOW = np.arange(5)  # for one frequency


class Decay:
    """Bounds on ``|E r^s|`` over its value at Re s, from curves ``x + i height rise``.

    ``log_weight`` is the logarithm of the weights at height 0 over the moment, without ``r^s``;
    ``width``: that of a curve whose rise falls to 0 at a cut, None for straight lines; ``missed``:
    the error of the sum at each height, relative to the moment; ``log_factor``: the logarithm of
    the size of another factor, at an angle.
    """

    def __init__(
        self,
        mu: float,
        rate: float,
        power: float,
        x: Array,
        log_weight: Array,
        height: Array,
        missed: Array,
        rise: Any = 1.0,
        width: float | None = None,
        log_factor: Callable[[Array], Array] | None = None,
    ) -> None:
        self._mu, self._rate, self._power = mu, rate, power
        self._loss, self._share = loss_and_share(mu, rate, x)
        self._log_weight, self._rise, self._width = log_weight, rise, width
        self._height, self._missed, self._log_factor = height, missed, log_factor
        self._weight = np.empty((height.size, x.size))
        self._arg = np.empty((height.size, x.size))
        self._known = np.zeros(height.size, dtype=bool)
        # where the loss is about normal, of speed c, the best height is c u
        self._find(np.array([height.size - 1]))
        self._speed = float(ordered_dot(self._arg[-1], self._weight[-1])) / height[-1]

    def log_bound(self, u: Array) -> Array:
        """Return the logarithm of a bound for every frequency ``v >= u``."""
        node_index = np.searchsorted(-self._height, -2 * self._speed * u)
        at = np.minimum(node_index[:, None] + WINDOW, self._height.size - 1)
        wanted = np.zeros(self._height.size, dtype=bool)
        wanted[at] = True
        self._find(np.flatnonzero(wanted & ~self._known))
        size = np.sum(np.exp(-u[:, None, None] * self._arg[at]) * self._weight[at], axis=-1)
        least_bound = np.min(size * (1 + 64 * ULP) + self._missed[at], axis=1)
        log_bound: Array = np.log(np.minimum(least_bound, 1.0))
        return log_bound

    def _find(self, rows: Any) -> None:
        """Evaluate the integrand at these heights."""
        if not rows.size:
            return
        height = self._height[rows, None]
        growth, turn = turned(self._loss, self._share, self._rate, self._mu * height * self._rise)
        size = self._power * (self._loss + growth) + self._log_weight
        size = size + (height * self._rise) ** 2 / 2
        if self._width is not None:  # the curve is longer where it rises
            slope = height * (1 - self._rise) / self._width
            size += np.log1p(slope * slope) / 2
        if self._log_factor is not None:
            size += self._log_factor(self._mu * height)
        self._weight[rows], self._arg[rows] = np.exp(size), turn
        self._known[rows] = True
