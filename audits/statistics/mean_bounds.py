"""A lower bound on the mean of non-negative variables, without an upper range.

A bettor stakes a fraction c of its wealth, ``0 < c < 1``, on each sample X: the wealth is
multiplied by ``1 - c + c X / m``.  This factor is non-negative for every X >= 0.  Its mean is 1 if
X has mean m, and at most 1 if X has a smaller mean.  So if the mean is at most m, a wealth that
starts at 1, and the average of the wealths for many c, exceeds 1/alpha with probability at most
alpha (Ville 1939).  This holds also if the distribution of each X depends on those before, as long
as its mean does not.  A wealth above 1/alpha refutes the mean m; the lower bound is the largest
refuted m.

Reference: Waudby-Smith & Ramdas (2024), section 4.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import greatest_float_that

BISECTION_STEPS = 36  # halvings of an interval for ln m, which is some tens of nats long


def mean_lower(samples: Array, alpha: float) -> Array:
    """Lower bound on the mean of each column of ``samples >= 0``, shape (runs, columns).

    Each bound is at most the mean with probability at least ``1 - alpha``; a sample may depend on
    those before it as long as its conditional mean does not.
    """
    return np.array(
        [_column_mean_lower(column[column > 0], len(column), alpha) for column in samples.T]
    )


def _column_mean_lower(positive: Array, runs: int, alpha: float) -> float:
    """The largest mean that the wealth refutes.

    ``positive`` are the positive ones of ``runs`` samples; the others are zero.  The log-wealth
    must reach ``ln(1 / alpha)`` and 1e-9 nats more, and the bound is lowered by 1e-12 of itself.
    """
    if positive.size == 0:
        return 0.0
    shares, needed = _stakes(runs), 1e-9 - math.log(alpha)
    greatest = float(positive.max())
    # The mean is sought as a multiple of the greatest sample, between e^low and 1.  At 1 no bet
    # gains.  At e^low the bettor with the least share has enough wealth by the greatest sample
    # alone: through all zeros it keeps at least a half of its wealth.
    low = math.log(alpha) - math.log(8.0 * runs * shares.size)

    def refuted(log_mean: float) -> bool:
        payoffs = positive / greatest * math.exp(-log_mean)
        return _log_wealth(payoffs, runs, shares) >= needed

    log_mean = greatest_float_that(refuted, low, 0.0, steps=BISECTION_STEPS)
    return greatest * math.exp(log_mean) * (1 - 1e-12)


def _stakes(runs: int) -> Array:
    """The fractions c of the wealth that are staked, falling by sqrt(2) from 0.95 to 0.5 / runs."""
    halvings = np.arange(0.0, math.log2(2.0 * runs) + 0.5, 0.5)
    shares: Array = 0.95 * 2.0**-halvings
    return shares


def _log_wealth(payoffs: Array, runs: int, shares: Array) -> float:
    """Logarithm of the average final wealth of bettors with initial wealth 1, one for each share.

    ``payoffs`` are the positive ones of ``runs`` ratios X / m; the others are zero.
    """
    won = np.log1p(shares[:, None] * (payoffs - 1)).sum(axis=1)
    wealth = won + (runs - payoffs.size) * np.log1p(-shares)
    top = float(wealth.max())
    return top + math.log(np.mean(np.exp(wealth - top)))
