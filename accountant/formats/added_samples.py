"""The loss of one noisy sum of several Poisson samples, as gradient accumulation releases it.

References: `docs/proofs/mixtures.md`, section 1, for the worst pair of such a sum.
"""

from __future__ import annotations

import math

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.domains import IntegerRange
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.losses.mixture_of_gaussians import MixtureOfGaussians

ADDED = IntegerRange(1, 10_000)  # number of samples that are added
# A count that is rarer than this, and all larger ones, are taken for the largest count.  A larger
# threshold would give shorter mixtures, and a larger loss.
RARE = 1e-18
ROUNDED_UP = 1 + 1e-10  # logarithms of factorials up to 10,000 are inexact by about 2e-11


def added_samples(noise: float, rate: float, added: int) -> Loss:
    """Return the loss of Gaussian noise on the sum of ``added`` Poisson samples of one rate.

    A record is in a binomial number of the samples, Bin(added, rate), and contributes at most one
    clipping norm to each.  ``noise`` is the deviation of the noise over the clipping norm.
    """
    if added == 1 or rate in {0.0, 1.0}:
        return PoissonSampled(GaussianLoss(added / noise), rate)
    remaining_mass, shares = 1.0, {}
    # Probabilities are rounded up, from the largest count down, and count 0 gets what remains: a
    # shift of probability to more samples only enlarges the loss.
    for count, chance in reversed(_chances_of_counts(rate, added)):
        shares[float(count)] = min(chance, remaining_mass)
        remaining_mass -= shares[float(count)]
    shares[0.0] = remaining_mass
    positive_shares = {shift: share for shift, share in sorted(shares.items()) if share}
    return MixtureOfGaussians(noise, tuple(positive_shares), tuple(positive_shares.values()))


def _chances_of_counts(rate: float, added: int) -> list[tuple[int, float]]:
    """Return (count, probability) for counts 1, 2, ... of Bin(added, rate), rounded up.

    Once a count is rarer than `RARE`, all larger ones are taken for the largest.
    """
    chances = []
    for count in range(1, added + 1):
        # The probability is C(added, count) rate^count (1 - rate)^(added - count).
        log_ways = math.lgamma(added + 1) - math.lgamma(count + 1) - math.lgamma(added - count + 1)
        log_chance = log_ways + count * math.log(rate) + (added - count) * math.log1p(-rate)
        chances.append((count, math.exp(log_chance) * ROUNDED_UP))
        # The next count is rarer by this factor, and each later count by a smaller factor.  So with
        # a factor below 1/2 all later counts together are rarer than this one.
        factor = (added - count) / (count + 1) * rate / (1 - rate)
        if count < added and factor < 0.5 and chances[-1][1] < RARE:
            return [*chances, (added, RARE)]
    return chances
