"""Rounds of noisy gradients: their number, and the noise of each.

References: Dong, Roth & Su (2022) for the composition of Gaussian noise.
"""

from __future__ import annotations

import math
from functools import lru_cache

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.planning.calibration import calibrate, calibrate_near
from accountant.plans.plan import Plan, Repeat
from mechanisms.gaussian import Gaussian

MAX_ROUNDS = 1000  # most rounds that `affordable_rounds` returns, and those without privacy


@lru_cache(maxsize=64)
def mu_of_budget(epsilon: float, delta: float) -> float:
    """Return the mu of a Gaussian release that meets (epsilon, delta)."""
    return calibrate(Gaussian, epsilon=epsilon, delta=delta).loss.mu


def affordable_rounds(
    step_sensitivity: float, features: int, epsilon: float, delta: float, noise: float
) -> int:
    """Return how many rounds add noise of at most ``noise`` to any coordinate; 1 to 1,000.

    ``step_sensitivity`` is how far a record moves the coefficients in one step.
    """
    if epsilon == math.inf:
        return MAX_ROUNDS
    # With s for the step's sensitivity, T rounds that have mu together have noise of deviation
    # s sqrt(T) / mu each.  Their sum has the deviation s T / mu, and the largest absolute value of
    # p standard normals is about sqrt(2 ln 2p).
    mu = mu_of_budget(epsilon, delta)
    rounds = noise * mu / (step_sensitivity * math.sqrt(2 * math.log(2 * features)))
    return max(1, min(math.floor(rounds), MAX_ROUNDS))


@lru_cache(maxsize=64)
def calibrated_gaussian(
    epsilon: float,
    delta: float,
    rounds: int,
    sensitivity: float,
    features: int,
    rate: float | None = None,
) -> Gaussian:
    """Return the Gaussian mechanism of one of ``rounds`` gradients, optionally subsampled."""

    def noise(scale: float) -> Gaussian:
        # The mechanism needs a vector, also for a gradient of one coordinate.
        return Gaussian(scale * sensitivity, sensitivity, "exact", max(features, 2))

    def plan_of(scale: float) -> Plan:
        gradient = noise(scale)
        return Repeat(gradient if rate is None else PoissonSampled(gradient, rate), rounds)

    mu = mu_of_budget(epsilon, delta)
    start = 1 / round_mu(mu, rounds, rate)
    return noise(calibrate_near(plan_of, start, epsilon, delta))


def round_mu(mu: float, rounds: int, rate: float | None = None, replaced: bool = False) -> float:
    """Return about the mu of one of ``rounds`` releases that have ``mu`` together.

    Many releases of mu = m on Poisson samples have about ``rate sqrt(rounds (e^{m^2} - 1))``
    together, and if a record is replaced ``rate sqrt(4 rounds sinh(m^2))``; this is solved for m.
    Without a rate they have ``m sqrt(rounds)``.
    """
    square = mu * mu / rounds
    if rate is None:
        return math.sqrt(square)
    square /= rate**2
    return math.sqrt(math.asinh(square / 4) if replaced else math.log1p(square))
