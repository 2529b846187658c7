"""How fast the characteristic function of a sampled Gaussian falls: sums on lines of some heights.

With r the likelihood ratio and n the normal density (see `sampled_gaussian_lines`), the moment
E r^{p + iv} is int n r^{p + iv} along any allowed curve x + i eta rise(x).  Its size is at most

    sum_j weight_j e^{-v arg r(x_j + i eta rise_j)},    weight_j = |n r^p| there, times a step,

which falls with v, so that its value at u bounds all frequencies v >= u.  A contour is cut off
where the product of such bounds is negligible.  `Decay` takes the best of a ladder of heights eta.

Proof: `docs/proofs/sampled_gaussian.md`, decay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_gaussian_lines import loss_and_share, turned
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

# Heights, as shares of the highest one: each is 2^-0.9 of the one before, down to 2^-23.
LINE_LADDER = 2.0 ** -np.arange(0, 24, 0.9)
# Rungs of the ladder that are tried at a frequency, from twice the height that a guess calls best:
# every height gives a valid bound, and the least is taken.
WINDOW = np.arange(5)


class Decay:
    """Bounds on ``|E r^s|`` over its value at Re s, from curves ``x + i height rise``.

    ``log_weight`` is ln of the step times n(x) over the moment, at height 0 and without ``r^p``;
    ``missed``: the error of the sum at each height, relative to the moment; ``width``: that of a
    curve whose rise falls to 0 at a cut (`rules_to_cut`), None for straight lines.
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
    ) -> None:
        self._mu, self._rate, self._power = mu, rate, power
        self._loss, self._share = loss_and_share(mu, rate, x)
        self._log_weight, self._rise, self._width = log_weight, rise, width
        self._height, self._missed = height, missed
        # |n r^p| and arg r at each height, a row for each, evaluated when asked for.
        self._weight = np.empty((height.size, x.size))
        self._arg = np.empty((height.size, x.size))
        self._is_evaluated = np.zeros(height.size, dtype=bool)
        # arg r is about height * speed at small heights.  The bound there is about
        # e^{height^2 / 2 - u height speed}, which is least at the height speed * u.
        self._evaluate(np.array([height.size - 1]))
        self._speed = float(ordered_dot(self._arg[-1], self._weight[-1])) / height[-1]

    def log_bound(self, u: Array) -> Array:
        """Return the logarithm of a bound for every frequency ``v >= u``."""
        highest = np.searchsorted(-self._height, -2 * self._speed * u)
        tried = np.minimum(highest[:, None] + WINDOW, self._height.size - 1)
        is_wanted = np.zeros(self._height.size, dtype=bool)
        is_wanted[tried] = True
        self._evaluate(np.flatnonzero(is_wanted & ~self._is_evaluated))
        size = np.sum(np.exp(-u[:, None, None] * self._arg[tried]) * self._weight[tried], axis=-1)
        least_bound = np.min(size * (1 + 64 * ULP) + self._missed[tried], axis=1)
        log_bound: Array = np.log(np.minimum(least_bound, 1.0))
        return log_bound

    def _evaluate(self, rows: Any) -> None:
        """Evaluate the integrand at these heights."""
        if not rows.size:
            return
        height = self._height[rows, None]
        growth, arg = turned(self._loss, self._share, self._rate, self._mu * height * self._rise)
        log_size = self._power * (self._loss + growth) + self._log_weight
        log_size = log_size + (height * self._rise) ** 2 / 2  # |n(x + ib)| = n(x) e^{b^2 / 2}
        if self._width is not None:
            # |dx| = sqrt(1 + slope^2) of that at height 0, as d rise / dt = rise (rise - 1)
            slope = height * (1 - self._rise) / self._width
            log_size += np.log1p(slope * slope) / 2
        self._weight[rows], self._arg[rows] = np.exp(log_size), arg
        self._is_evaluated[rows] = True
