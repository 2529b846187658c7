"""What canaries of gradients can show: the chance that a training with half the noise falls.

Half the noise is a training whose noise multiplier is half of the declared one, all else honest.
Scores of its canaries are drawn, and judged as those of a run are.  The same is asked of a training
without noise: what hides a canary then is that few steps use it, and the gradients of those records
that the auditor does not know.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.domains import DELTA, NON_NEGATIVE, POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.formatting import format_lower, format_upper
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.search import grow_until, least_integer_that
from accountant.plans.plan import Plan, Repeat
from accountant.table_display import FACTS, Table, TableDisplay
from audits.claims.arguments import CONFIDENCE
from audits.claims.claims import ClaimLike
from audits.known_densities.sample_size import POWER
from audits.one_run.canaries import COUNT
from audits.one_run.guess_rules import RankedCoins, ranked_coins
from audits.one_run.hypotheses import Evidence
from audits.one_run.scores import checked_plan

RATE, STEPS = Interval(0.0, 1.0, "(]"), IntegerRange(1, 10_000_000)
# Simulated runs for a chance: as many as sort so many scores, within limits.
RUNS, FEWEST_RUNS, SORTED = 200, 40, 1_000_000
# Simulated canaries of each kind, and where a search ends.
SIMULATED, MOST_CANARIES, MOST_FACTOR = 8192, 200_000, 64
NO_NOISE = 1e-6  # the standard deviation that stands for no noise at all, in clipping lengths


@final
@dataclass(frozen=True, slots=True)
class CanaryPower(TableDisplay):
    """What an audit by gradient canaries can show of a training.

    Parameters
    ----------
    canaries : int
        Number of canaries.
    steps : int
        Number of steps.
    claim : Plan
        What is claimed of the training.
    epsilon : float
        The claimed epsilon at ``delta``.
    delta : float
        The delta in [0, 1) of the claim and of the bounds.
    confidence : float
        Probability in (0, 1) with which a true claim survives.
    chance : float
        Probability in [0, 1] that a training with half the noise is falsified.
    epsilon_lower : float
        The lower bound on epsilon that such a training gets.
    provable : float
        The bound that a training without noise gets.
    needed_canaries : int or None
        Canaries that would see half the noise with probability 95 %; None if no number is known, or
        there are fewer parameters.
    needed_steps : int or None
        Steps that would, with these canaries; None if no number is known.
    needed_batch : float or None
        Unknown records in a step with which these canaries would; None if no number would do.

    Examples
    --------
    >>> from audits import CanaryPower, canary_power
    >>> power = canary_power(700, rate=0.05, steps=100, noise_multiplier=1.1)
    >>> isinstance(power, CanaryPower), power.enough, round(power.epsilon, 2)
    (True, True, 2.89)
    """

    canaries: int
    steps: int
    claim: Plan
    epsilon: float
    delta: float
    confidence: float
    chance: float
    epsilon_lower: float
    provable: float
    needed_canaries: int | None = None
    needed_steps: int | None = None
    needed_batch: float | None = None

    @property
    def enough(self) -> bool:
        """Whether half the noise is seen with probability 95 %; if not, a run is INCONCLUSIVE."""
        return self.chance >= POWER

    @property
    def needs(self) -> str:
        """What would see half the noise, in words; "" if these canaries do."""
        if self.enough:
            return ""
        changes = [
            f"{number:,.4g} {what}" if number < 1000 else f"{number:,.0f} {what}"
            for number, what in (
                (self.needed_canaries, "canaries"),
                (self.needed_steps, "steps"),
                (self.needed_batch, "unknown records a step"),
            )
            if number is not None
        ]
        return " or ".join(changes) or "more than was tried"

    def __repr__(self) -> str:
        shown = f"half the noise is falsified in {self.chance:.0%} of runs"
        needed = f"; {self.needs} would do" if self.needs else ""
        return f"<CanaryPower: {self.canaries:,} canaries, {self.steps:,} steps: {shown}{needed}>"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The facts in words, bounds rounded down."""
        shown = f"{format_lower(self.epsilon_lower)} at delta {self.delta:g}"
        without_noise = f"{format_lower(self.provable)} at delta {self.delta:g}"
        return [
            ("canaries", f"{self.canaries:,}"),
            ("steps", f"{self.steps:,}"),
            ("claimed", repr(self.claim)),
            ("claimed epsilon", f"{format_upper(self.epsilon)} at delta {self.delta:g}"),
            ("half the noise is falsified", f"in {self.chance:.0%} of trainings"),
            ("epsilon shown at half the noise", shown),
            ("epsilon shown without noise", without_noise),
            ("confidence", f"{self.confidence:g}"),
            *([("would do", self.needs)] if self.needs else []),
        ]

    def _table(self) -> Table:
        return Table(FACTS, self.rows)


def log_ratios(moved: Array, variance: Array | float, rate: float) -> Array:
    """The loss of one step: ln of the odds that a canary is in, from how far the step moved.

    A step uses a canary that is in with probability ``rate``, and is then moved by 1 along it;
    ``variance`` is that of the noise.
    """
    with np.errstate(divide="ignore"):  # the rate may be 1
        log_unused, log_used = np.log1p(-rate), np.log(rate)
    return np.asarray(np.logaddexp(log_unused, log_used + (moved - 0.5) / variance))


@final
@dataclass(frozen=True)
class SimulatedCanaries:
    """Canaries of a training whose noise and whose unknown records are known.

    ``noise`` and ``variance`` are in clipping lengths: the standard deviation of the noise, and the
    variance of what is not known of the other records.
    """

    rate: float
    steps: int
    noise: float
    variance: float = 0.0

    @functools.cached_property
    def scores(self) -> tuple[Array, Array]:
        """Scores of many canaries that are in, and of as many that are out."""
        rng = np.random.default_rng(0)
        spread = max(self.noise**2 + self.variance, NO_NOISE**2)
        sums = np.zeros((2, SIMULATED))
        for _ in range(self.steps):
            moved = rng.normal(scale=math.sqrt(spread), size=sums.shape)
            moved[0] += rng.random(SIMULATED) < self.rate
            sums += log_ratios(moved, spread, self.rate)
        inside, outside = sums
        return inside, outside

    def ranked(self, canaries: int, rng: np.random.Generator) -> RankedCoins:
        """The ranked coins of one run."""
        coins, drawn = rng.random(canaries) < 0.5, rng.integers(SIMULATED, size=canaries)
        return ranked_coins(np.where(coins, *(scores[drawn] for scores in self.scores)), coins)

    @functools.lru_cache(maxsize=64)  # noqa: B019  # simulations are values: equal ones share it
    def chance(self, canaries: int, claim: Plan, delta: float, alpha: float) -> float:
        """The share of the runs that refute the claim."""
        rng = np.random.default_rng(1)
        evidence = Evidence(self.ranked(canaries, rng), alpha, one_way=True)
        needed = evidence.least_right(claim, delta)
        runs, refuted = min(RUNS, max(FEWEST_RUNS, SORTED // canaries)), 0
        for _ in range(runs):
            coins = self.ranked(canaries, rng)
            refuted += any(coins.right(rule) >= enough for rule, enough in needed)
        return refuted / runs

    def needed_canaries(
        self, canaries: int, most: int, claim: Plan, delta: float, alpha: float
    ) -> int | None:
        """So many ``canaries`` if they refute the claim, else about how many do, up to ``most``."""

        def are_enough(count: int) -> bool:
            return self.chance(count, claim, delta, alpha) >= POWER

        if are_enough(canaries):
            return canaries
        if not are_enough(most):
            return None
        low, high = grow_until(are_enough, start=2 * canaries, end=most)
        return least_integer_that(are_enough, max(low, canaries), min(high, most), one_in=8)

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def epsilon_lower(self, canaries: int, delta: float, alpha: float) -> float:
        """The lower bound on epsilon that one run proves."""
        coins = self.ranked(canaries, np.random.default_rng(1))
        return Evidence(coins, alpha, one_way=True).epsilon_lower(delta)


def canary_power(
    canaries: int,
    *,
    rate: float,
    steps: int,
    noise_multiplier: float,
    claim: Plan | ClaimLike | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    batch: float = 0.0,
    parameters: int | None = None,
) -> CanaryPower:
    """Say before a training what an audit by gradient canaries can show of it.

    Parameters
    ----------
    canaries : int
        Number of canaries, at least 10 and at most the number of parameters.
    rate : float
        Probability in (0, 1] with which a step uses a record.
    steps : int
        Number of steps.
    noise_multiplier : float
        Standard deviation of the declared noise, in clipping lengths, positive.
    claim : Plan, Budget, float or (float, float), optional
        What is claimed; by default the Gaussians on Poisson samples that these numbers declare.
    delta : float, optional
        The delta in [0, 1) of the claim and of the bounds.
    confidence : float, optional
        Probability in (0, 1) with which a true claim survives.
    batch : float, optional
        Expected number of records in a step whose gradients the auditor does not know: 0 if they
        are subtracted, as `opacus_canaries` does.
    parameters : int, optional
        Number of parameters, which bounds that of canaries; needed with ``batch``, as unknown
        gradients are spread over them.

    Returns
    -------
    CanaryPower
        The chance that half the noise is falsified, and what would do if that is below 95 %.

    Raises
    ------
    ParameterError
        If a number is out of its range, or ``batch`` comes without ``parameters``.

    Examples
    --------
    >>> from audits import canary_power
    >>> canary_power(700, rate=0.05, steps=100, noise_multiplier=1.1)
    <CanaryPower: 700 canaries, 100 steps: half the noise is falsified in 98% of runs>
    """
    COUNT.check("canaries", canaries)
    STEPS.check("steps", steps)
    RATE.check("rate", rate)
    sigma = POSITIVE.check("noise_multiplier", noise_multiplier)
    tested_delta, level = DELTA.check("delta", delta), CONFIDENCE.check("confidence", confidence)
    NON_NEGATIVE.check("batch", batch)
    if batch > 0 and parameters is None:
        raise ParameterError("parameters", None, "given, as unknown gradients are spread over them")
    if parameters is not None:
        IntegerRange(canaries).check("parameters", parameters)
    claimed, alpha = checked_plan(claim), 1 - level

    def plan_of(step_count: int) -> Plan:
        return claimed or sampled_gaussians(rate, sigma, step_count)

    def simulated(
        noise: float, step_count: int = steps, unknown: float = batch
    ) -> SimulatedCanaries:
        # Each unknown record adds a clipped gradient, of length 1 at most.
        variance = unknown * (1 - rate) / (parameters or 1)
        return SimulatedCanaries(rate, step_count, noise, variance)

    def are_enough(step_count: int = steps, unknown: float = batch) -> bool:
        half = simulated(sigma / 2, step_count, unknown)
        return half.chance(canaries, plan_of(step_count), tested_delta, alpha) >= POWER

    half, plan = simulated(sigma / 2), plan_of(steps)
    chance = half.chance(canaries, plan, tested_delta, alpha)
    needed_canaries = needed_steps = needed_batch = None
    if chance < POWER:
        limit = min(parameters or MOST_CANARIES, MOST_CANARIES)
        needed_canaries = half.needed_canaries(canaries, limit, plan, tested_delta, alpha)
        if claimed is None:  # steps are doubled alone, as each number has a plan of its own
            _, enough_steps = grow_until(are_enough, start=2 * steps, end=MOST_FACTOR * steps + 1)
            needed_steps = enough_steps if enough_steps <= MOST_FACTOR * steps else None
        fewer_records = (batch / 2**halvings for halvings in range(1, 11)) if batch > 0 else ()
        needed_batch = next((size for size in fewer_records if are_enough(unknown=size)), None)
    return CanaryPower(
        canaries=canaries,
        steps=steps,
        claim=plan,
        epsilon=Tight().epsilon(plan, tested_delta),
        delta=tested_delta,
        confidence=level,
        chance=chance,
        epsilon_lower=half.epsilon_lower(canaries, tested_delta, alpha),
        provable=simulated(0.0).epsilon_lower(canaries, tested_delta, alpha),
        needed_canaries=needed_canaries,
        needed_steps=needed_steps,
        needed_batch=needed_batch,
    )


def sampled_gaussians(rate: float, noise_multiplier: float, steps: int) -> Plan:
    """The plan of a training: a Gaussian on a Poisson sample in each step."""
    return Repeat(PoissonSampled(GaussianLoss(1 / noise_multiplier), rate), steps)
