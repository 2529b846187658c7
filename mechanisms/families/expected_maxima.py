"""The expected largest of many independent draws of noise.

Mechanisms state their errors with it before any data are seen.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.quadrature import gauss_legendre_panels
from accountant.numerics.rounding import LARGEST_BELOW_ONE

EULER_GAMMA = 0.5772156649015329  # the limit of H_n - ln n


def expected_max_exponential(count: int) -> float:
    """Return the expected largest of ``count`` standard exponentials: the harmonic number."""
    if count < 100:
        return math.fsum(1 / k for k in range(1, count + 1))
    # H_n <= ln n + gamma + 1/2n - 1/12n^2 + 1/120n^4
    return (
        math.log(count)
        + EULER_GAMMA
        + 1 / (2 * count)
        - (1 - 1 / (10 * count**2)) / (12 * count**2)
    )


@functools.lru_cache(maxsize=4096)
def expected_max_abs_gaussian(count: int) -> float:
    """Return the expected largest absolute value of ``count`` standard Gaussians."""
    from scipy.special import log_ndtr

    # E max = int_0^inf 1 - (1 - 2 Q(t))^count dt with Q(t) = P(N(0, 1) > t), by 16 nodes on panels
    # of width 1/4; beyond t = 40 the integrand is 0 for 2^53 draws.
    t, weights, _ = gauss_legendre_panels(np.arange(0.0, 40.25, 0.25), 16)
    outside = np.minimum(2 * np.exp(log_ndtr(-t)), LARGEST_BELOW_ONE)
    missed = -np.expm1(count * np.log1p(-outside))
    return float(ordered_dot(missed, weights))
