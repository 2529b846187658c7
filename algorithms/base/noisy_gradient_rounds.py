"""Rounds of noisy gradients: their number, and the noise of each.

The mu of a Gaussian release is how far one record moves its value, over the deviation of its noise
(Gaussian differential privacy); the squares of the mu of several releases add up.

References: Dong, Roth & Su (2022) for the composition of Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.planning.calibration import calibrate, calibrate_near
from accountant.plans.plan import Plan, Repeat, Sequential
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
    """Return the Gaussian mechanism of one of ``rounds`` gradients.

    A record moves a gradient of ``features`` coordinates by at most ``sensitivity``.  With a
    ``rate`` every round sees a Poisson sample of that rate; the mechanism is then the one on the
    sample.
    """

    def noise(scale: float) -> Gaussian:
        # The mechanism is declared for 2 coordinates or more; a gradient may have one.
        return Gaussian(scale * sensitivity, sensitivity, "exact", max(features, 2))

    def plan_of(scale: float) -> Plan:
        gradient = noise(scale)
        return Repeat(gradient if rate is None else PoissonSampled(gradient, rate), rounds)

    mu = mu_of_budget(epsilon, delta)
    start = 1 / round_mu(mu, rounds, rate)
    return noise(calibrate_near(plan_of, start, epsilon, delta))


def round_mu(mu: float, rounds: int, rate: float | None = None, replaced: bool = False) -> float:
    """Return about the mu of one of ``rounds`` releases that have ``mu`` together.

    Without a rate they have ``m sqrt(rounds)`` if one has m.  On Poisson samples of a small rate q
    many releases have about the root of the sum of their chi-square distances, by the central limit
    theorem.  With f_x the density of the normal law around x, and 0 what data without the record
    give, such a distance is

        q^2 integral (f_m - f_0)^2 / f_0 = q^2 (e^{m^2} - 1),

    and if a record is replaced, at worst one that moves the value by m for one that moves it by -m,

        q^2 integral (f_m - f_-m)^2 / f_0 = 4 q^2 sinh(m^2).

    This is solved for m.  It is a start for a calibration, and no bound.
    """
    mu_square = mu * mu / rounds  # of one round
    if rate is None:
        return math.sqrt(mu_square)
    distance = mu_square / rate**2  # the integral
    return math.sqrt(math.asinh(distance / 4) if replaced else math.log1p(distance))


@final
@dataclass(frozen=True, slots=True)
class GradientRounds:
    """The rounds of a plan, which all release a gradient in the same way."""

    part: Any  # what a round releases: the mechanism itself, or the mechanism on a sample
    mechanism: Any  # what adds the noise
    rate: float  # probability that a sample holds a record; 1 if a round sees all records
    count: int

    @classmethod
    def of(cls, plan: Sequential | Repeat) -> GradientRounds:
        """Return the rounds of a plan: its part that is repeated, or the whole plan.

        A plan of a constant alone has none, and the noise is that of its last part.
        """
        parts = (plan,) if isinstance(plan, Repeat) else plan.parts
        repeat = next((part for part in parts if isinstance(part, Repeat)), None)
        if repeat is None:
            return cls(parts[-1], parts[-1], 1.0, 0)
        if isinstance(repeat.part, PoissonSampled):
            sampled = repeat.part
            return cls(sampled, sampled.part, sampled.rate, repeat.count)
        return cls(repeat.part, repeat.part, 1.0, repeat.count)
