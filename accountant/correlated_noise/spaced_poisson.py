"""Poisson samples with a rest for a matrix mechanism: b - 1 steps after each use.

In each step a record that was not used in the last b - 1 steps is used with chance r.  With at most
b bands, the columns of its steps are orthogonal.

Above: of a denser random set of steps that are b or more apart, and which is made public, each is
used with chance q, by coins of their own.  Such a set exists if its gaps have the generating
function G / (q + (1 - q) G), G that of the gaps of uses, with no negative coefficient; the least
such q is known.  So the run costs at most as many sampled Gaussians as the set has steps.

Below: the number of uses alone, seen by the sum of all rows; or inner products of different columns
set to 0, seen by the sum of scores of all steps.

References: Dong & Ganesh (2026), arXiv 2602.09338, for the sampling, with an analysis by
simulation.  Proof: `docs/proofs/spaced_poisson.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.amplification.allocation.picked_sum import ScoreLaw, merged_pair, score_laws
from accountant.amplification.exchanged_record import NO_LOSS
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.composition.composed_loss import loss_of_plan
from accountant.correlated_noise.chain_of_bins import CHAIN
from accountant.correlated_noise.participation import Once
from accountant.correlated_noise.sampled_steps import (
    CELL_ERROR,
    GREATEST_SHIFT,
    PRODUCT_ERROR,
    Bounds,
    SampledSteps,
    bands_of,
    column_products,
    greatest_of,
    mixture_of_shifts,
)
from accountant.correlated_noise.strategy import STEPS, Strategy, sensitivity
from accountant.domains import Interval
from accountant.errors import ParameterError
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import round_up_product
from accountant.plans.declared_releases import plan_field

RATE = Interval(0.0, 1.0, "(]")
MISSED = 1e-14  # the chance with which the public set may have more steps than are counted
NEGLIGIBLE = (
    1e-13  # the chance of the greatest numbers of uses: a pair below drops it to lesser ones
)


@plan_field
@final
@dataclass(frozen=True, slots=True)
class SpacedPoisson(SampledSteps):
    """A step uses a record with chance ``rate``, unless one of the ``separation`` - 1 before did.

    The run begins as if it had gone on for long (a warm start): a record may rest at first.  A
    step's expected share of the records is 1 / (separation - 1 + 1 / rate).  For a rate of 1 say
    `BallsInBins(separation)`, which is the same and costs less here.

    Parameters
    ----------
    rate : float
        The chance of a record that does not rest, above 0 and at most 1.
    separation : int
        Least distance of two steps that use a record, at least as many as the strategy's bands.

    References
    ----------
    Dong & Ganesh (2026), "Privacy amplification for BandMF via b-min-sep subsampling".

    Examples
    --------
    >>> from accountant import AmplifiedMatrix, SpacedPoisson, Tight, Toeplitz
    >>> strategy = Toeplitz((1.0, 0.5, 0.25), steps=1000)
    >>> plan = AmplifiedMatrix(strategy, scale=2.0, sampling=SpacedPoisson(0.01, separation=3))
    >>> round(Tight().epsilon(plan, delta=1e-6), 2)
    2.88
    """

    rate: float
    separation: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", RATE.check("rate", self.rate))
        object.__setattr__(self, "separation", STEPS.check("separation", self.separation))

    @property
    def share(self) -> float:
        """The chance that a step uses a record."""
        return self.rate / (1 + (self.separation - 1) * self.rate)

    def check_fit(self, strategy: Strategy) -> None:
        """Refuse more bands than the separation, and a separation beyond the steps."""
        bands = bands_of(strategy)
        if not bands <= self.separation <= strategy.columns:
            allowed = (
                f"a whole number from {bands}, the strategy's bands, to {strategy.columns}, its "
                "steps"
            )
            raise ParameterError("separation", self.separation, allowed)

    def bounds(self, strategy: Strategy, mu: float) -> Bounds:
        """Return the loss of a step of the public set: a sampled Gaussian."""
        longest = round_up_product(sensitivity(strategy, Once()).value, mu)
        chance = thinned_chance(self.rate, self.separation)
        step = loss_of_plan(PoissonSampled(GaussianLoss(longest), chance))
        return Bounds(step, step.reversed)

    def releases(self, strategy: Strategy) -> int:
        """Return the number of steps of the public set, but for the chance `missed`."""
        return step_count(self.rate, self.separation, strategy.columns)

    @property
    def missed(self) -> float:
        """The chance of more steps of the public set."""
        return MISSED

    def attained(self, strategy: Strategy, mu: float) -> Bounds:
        """Return the better of two tests: of the mean of all rows, and of all steps' scores."""
        return tests_below(strategy, self, mu)


def thinned_chance(rate: float, separation: int) -> float:
    """Return the least chance q for which the uses are a thinned set of separated steps.

    The gaps of that set have the generating function r z^b / q over 1 - (1 - r) z + a z^b with a =
    r (1 - q) / q, which has no negative coefficient if its denominator has a positive root.
    """
    resting = separation - 1
    log_a = separation * math.log1p(-rate) if rate < 1 else -math.inf  # the greatest a
    if resting:
        log_a += resting * math.log(resting / separation) - math.log(separation)
    return min(rate / (rate + math.exp(log_a)) * (1 + 1e-12), 1.0)


def step_count(rate: float, separation: int, steps: int) -> int:
    """Return a number that the set's steps exceed with at most the chance `MISSED`.

    N + 1 steps of the set have N gaps of at most ``steps`` - 1 in all.  By Markov's inequality that
    has at most the chance z^-(steps - 1) H(z)^N, for all z in (0, 1].
    """
    greatest = -(-steps // separation)
    chance = thinned_chance(rate, separation)
    if chance == 1:
        return greatest
    log_z = -np.geomspace(1e-9, 2.0, 4000) / separation
    odds = rate * (1 - chance) / chance
    # 1 - (1 - r) z = r + (1 - r) (1 - z)
    below = rate - (1 - rate) * np.expm1(log_z) + odds * np.exp(separation * log_z)
    log_h = np.minimum(np.log(rate / chance) + separation * log_z - np.log(below), -1e-300)
    number = math.ceil(float(np.min((math.log(MISSED) + log_z * (steps - 1)) / log_h)) + 1e-6)
    return min(number, greatest)


def use_chances(sampling: SpacedPoisson, steps: int) -> Array:
    """Return the chances of 0, 1, 2, ... uses in some steps of a run that has gone on for long.

    A gap is b - 1 and a geometric number of trials.  The first use is in each of the first b - 1
    steps with the chance of any step; else it is the first success after them.
    """
    from scipy.special import bdtrc

    resting = sampling.separation - 1
    uses = np.arange(1, -(-steps // sampling.separation) + 1)
    trials = steps - uses * resting
    # P(j or more successes in some trials) = bdtrc(j - 1, trials, rate)
    later = np.where(
        trials >= uses, bdtrc(uses - 1.0, np.maximum(trials, uses), sampling.rate), 0.0
    )
    at_least = sampling.share / sampling.rate * later
    for start in range(min(resting, steps)):
        trials = steps - 1 - start - (uses - 1) * resting
        chance = bdtrc(uses - 2.0, np.maximum(trials, uses - 1), sampling.rate)
        chance = np.where(trials >= uses - 1, chance, 0.0)
        at_least += sampling.share * np.where(uses == 1, 1.0, chance)
    at_least = np.concatenate([[1.0], np.minimum.accumulate(np.minimum(at_least, 1.0)), [0.0]])
    chances: Array = -np.diff(at_least)
    return chances


@functools.lru_cache(maxsize=64)
def tests_below(strategy: Strategy, sampling: SpacedPoisson, mu: float) -> Bounds:
    """Return the better of two tests of records that move all steps by one vector."""
    columns = column_products(strategy)
    bands, steps = columns.signed.shape
    if columns.signed.min() < 0:  # uses may cancel each other
        return greatest_of([NO_LOSS])
    pairs: list[Loss] = []
    # All steps that use the record move by one vector.  A sum of the rows with the weights C w, for
    # w of 1 in the steps away from both ends, moves by the same in each of them.
    inside = np.arange(bands - 1, steps - bands + 1)
    if inside.size:
        weights = np.zeros(steps)
        weights[inside] = 1.0
        moved = columns.signed[0] * weights
        for d in range(1, bands):
            products = columns.signed[d, : steps - d]
            moved[: steps - d] += products * weights[d:]
            moved[d:] += products * weights[: steps - d]
        length = math.sqrt(float(moved[inside].sum()))
        shift = mu * float(moved[inside].min()) / length * (1 - PRODUCT_ERROR)
        uses = _without_tails(use_chances(sampling, inside.size))
        shifts = shift * np.arange(float(uses.size))
        pairs.append(mixture_of_shifts(shifts, uses))
    uses = _without_tails(use_chances(sampling, steps))
    step_mu = mu * math.sqrt(float(columns.signed[0].min())) * (1 - PRODUCT_ERROR)
    expected = max(round(steps * sampling.share), 1)
    step_mu = min(step_mu, GREATEST_SHIFT)  # lesser ones cost less
    if uses.size <= CHAIN[-1] // 10 and step_mu > 0 and expected < steps:
        pairs.append(sum_of_scores(GaussianLoss(step_mu), steps, expected, uses))
    return greatest_of(pairs or [NO_LOSS])


def _without_tails(chances: Array) -> Array:
    """Return the chances with those of very many uses given to fewer ones, which cost less."""
    at_least = np.cumsum(chances[::-1])[::-1]
    size = max(int(np.count_nonzero(at_least > NEGLIGIBLE)), 2)
    shortened = chances[:size].copy()
    shortened[-1] += max(float(chances[size:].sum()), 0.0)
    return shortened


def sum_of_scores(step: GaussianLoss, steps: int, expected: int, uses: Array) -> Loss:
    """Return the pair of the sum of the scores of all steps, of which a random number is picked."""
    laws = score_laws(step, steps, expected)
    if laws is None:
        raise TypeError("a Gaussian step has laws")
    picked, unpicked, outcomes = laws
    # In the manner of Horner: of the sum over N of w_N picked^N unpicked^(greatest - N).
    greatest = uses.size - 1
    total, others = ScoreLaw(0, np.array([uses[greatest]])), ScoreLaw(0, np.ones(1))
    for number in range(greatest - 1, -1, -1):
        others = others.times(unpicked)
        total = total.times(picked).plus(others, float(uses[number]))
    with_record = total.times(unpicked.power(steps - greatest))
    without_record = unpicked.power(steps)
    rounding = 2 * steps * (CELL_ERROR / 100 + (with_record.masses.size + outcomes) * 2.0**-52)
    return merged_pair(with_record, without_record).with_rounding(rounding)
