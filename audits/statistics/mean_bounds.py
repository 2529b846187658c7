"""A lower bound on the mean of non-negative variables, without an upper range.

The bet ``1 - c + c X / m`` with ``0 < c < 1`` has mean 1 if X has mean m, and more only if X has a
larger mean; it is non-negative for every X >= 0.  Wealth, and an average of wealths over many c,
exceeds 1/alpha with probability at most alpha (Ville 1939), also if the distribution of each X
depends on those before while its mean does not.  Reference: Waudby-Smith & Ramdas (2024),
section 4.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that

BISECTION_STEPS = 36  # steps of bisection of an interval of some tens of nats


def mean_lower(samples: Array, alpha: float) -> Array:
    """Lower bound on the mean of each column of ``samples >= 0``, shape (runs, columns).

    Each covers with probability at least ``1 - alpha``; a sample may depend on those before it as
    long as its conditional mean does not.
    """
    return np.array(
        [_column_mean_lower(column[column > 0], len(column), alpha) for column in samples.T]
    )


def _column_mean_lower(positive: Array, runs: int, alpha: float) -> float:
    """The largest mean that the wealth refutes; all samples but ``positive`` are zero."""
    if positive.size == 0:
        return 0.0
    shares, needed = _stakes(runs), 1e-9 - math.log(alpha)
    greatest = float(positive.max())
    # as a multiple of the greatest: at 1 no bet gains, and at the other end the least share, which
    # keeps a half of its wealth through all zeros, wins enough with the greatest alone
    low = math.log(alpha) - math.log(8.0 * runs * shares.size)

    def refuted(log_mean: float) -> bool:
        payoffs = positive / greatest * math.exp(-log_mean)
        return _log_wealth(payoffs, runs, shares) >= needed

    log_mean = greatest_float_that(refuted, low, 0.0, steps=BISECTION_STEPS)
    return greatest * math.exp(log_mean) * (1 - 1e-12)


def _stakes(runs: int) -> Array:
    """The fractions c of the wealth that are staked: from nearly 1 down to 1/(2 runs)."""
    halvings = np.arange(0.0, math.log2(2.0 * runs) + 0.5, 0.5)
    shares: Array = 0.95 * 2.0**-halvings
    return shares


def _log_wealth(payoffs: Array, runs: int, shares: Array) -> float:
    """Logarithm of the average final wealth of bettors with initial wealth 1."""
    won = np.log1p(shares[:, None] * (payoffs - 1)).sum(axis=1)
    wealth = won + (runs - payoffs.size) * np.log1p(-shares)
    top = float(wealth.max())
    return top + math.log(np.mean(np.exp(wealth - top)))
