"""How many runs detect that a claim is false: with the guess test, and with any test.

A pair is the distributions of an output at two neighbouring values.  It violates the claim of
(epsilon, delta), here ``claim`` and ``delta``.  Each run draws one of the values by a fair coin.
The guess test guesses the value of a run whose loss ln(p / q) is at least a cut in size, and counts
the right guesses.  ``alpha`` is the probability that a true claim is refuted, ``power`` that a
false one is.

The limit is that of the best possible test of a pair of distributions against every pair that
keeps the claim: Neyman and Pearson's, against the pair nearest to the truth (the reverse
information projection), in the normal approximation of its sum over runs.  The guess test is
exact: one binomial of right guesses, leaks counted if delta is positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.numerics import Array
from accountant.numerics.search import grow_until, least_float_that, least_integer_that
from audits.known_densities.outcome_models import OutcomePair
from audits.statistics.binomial_bounds import leak_count_quantile, max_correct_probability

POWER = 0.95  # probability with which reports say that runs detect a violation
MAX_RUNS = 2**50  # more runs than this count as infinitely many
MAX_CUTS = 60  # cuts that are tried; with more the guess test may need a few runs less


@final
@dataclass(frozen=True, slots=True)
class RunsNeeded:
    """Runs in total, both values together, that detect a violation with probability ``power``."""

    name: str  # of the pair
    power: float
    limit: float  # runs of the best possible test
    guess: float  # runs of the guess test


def runs_needed(
    pair: OutcomePair, claim: float, delta: float, alpha: float, power: float
) -> RunsNeeded:
    """Runs that the best possible test and the guess test need; infinite if no number suffices."""
    limit = neyman_pearson_runs(pair, claim, delta, alpha, power)
    guess = best_guess_test_runs(pair, claim, delta, alpha, power)
    return RunsNeeded(pair.name, power, min(limit, guess), guess)


def best_guess_test_runs(
    pair: OutcomePair, claim: float, delta: float, alpha: float, power: float
) -> float:
    """Runs that the guess test needs; infinite if no number suffices."""
    cuts = promising_cuts(pair, claim, delta, alpha, power)
    runs = (guess_test_runs(pair, cut, claim, delta, alpha, power) for cut in cuts)
    return min(runs, default=math.inf)


def every_run_test_runs(pair: OutcomePair, delta: float, alpha: float, power: float) -> float:
    """Runs that the test of (0, delta) needs, which guesses the likelier value in every run.

    Under (0, delta)-DP a guess is right with probability (1 + delta) / 2 at most.  That is what a
    pure claim of the log-odds of this probability allows.
    """
    nearly_zero = 0.0 if delta <= 0 else math.log1p(delta) - math.log1p(-delta)
    right = float(np.maximum(pair.first, pair.second).sum()) / 2
    return _fewest_runs(1.0, right, nearly_zero, 0.0, alpha, power)


def neyman_pearson_runs(
    pair: OutcomePair, claim: float, delta: float, alpha: float, power: float
) -> float:
    """Neyman & Pearson's runs against the nearest pair that keeps the claim."""
    from scipy.special import ndtri

    nearest = nearest_allowed_pair(pair, claim, delta)
    truth = 0.5 * np.concatenate([pair.first, pair.second])
    null = 0.5 * np.concatenate(nearest)
    possible = truth > 0
    truth, null = truth[possible], null[possible]
    score = np.log(truth) - np.log(null)
    gap = truth @ score - null @ score
    if gap <= 0:
        return math.inf
    null_deviation, true_deviation = (
        math.sqrt(max(law @ score**2 - (law @ score) ** 2, 0.0)) for law in (null, truth)
    )
    # N gap = z_alpha sqrt(N) null_deviation + z_power sqrt(N) true_deviation
    root = (-ndtri(alpha) * null_deviation + ndtri(power) * true_deviation) / gap
    return float(max(root, 0.0) ** 2) or 1.0


def nearest_allowed_pair(pair: OutcomePair, claim: float, delta: float) -> tuple[Array, Array]:
    """The (claim, delta)-indistinguishable pair p0, q0 that is nearest to the truth p, q.

    Nearest means the least sum of the divergences KL(p || p0) and KL(q || q0).  The claim allows,
    for p0 over q0 and the other way round, a sum of (p0 - e^claim q0)_+ up to delta.  With lam the
    Lagrange multiplier of this constraint and ``nu = 1 - lam delta``, there are three kinds of
    outcomes:

    - one with odds p / q up to e^claim, both ways, has ``p0 = p / nu`` and ``q0 = q / nu``;
    - one whose odds exceed e^claim by little gets the odds e^claim: it is *tight*;
    - one with larger odds is *free*: ``p0 = p / (nu + lam)`` and ``q0 = q / (nu - lam e^claim)``.
    """
    odds, p, q = math.exp(claim), pair.first, pair.second
    pooled = p + q

    def at(lam: float) -> tuple[Array, Array, float]:
        """Return p0 and q0 at a multiplier, and the delta that they spend; it falls in lam."""
        nu = 1 - lam * delta
        spent, solutions = [], []
        for higher, lower in ((p, q), (q, p)):
            # The multiplier at which the outcome is just about tight; at a smaller one it is free.
            tight_from = nu * (higher - odds * lower) / (odds * pooled)
            is_free, is_tight = tight_from > lam, (tight_from > 0) & (tight_from <= lam)
            higher_allowed = np.where(is_tight, odds * pooled / (nu * (1 + odds)), higher / nu)
            lower_allowed = np.where(is_tight, pooled / (nu * (1 + odds)), lower / nu)
            higher_allowed = np.where(is_free, higher / (nu + lam), higher_allowed)
            lower_allowed = np.where(is_free, lower / (nu - lam * odds), lower_allowed)
            spent.append(
                float(np.sum(np.maximum(higher_allowed - odds * lower_allowed, 0.0)[is_free]))
            )
            solutions.append((higher_allowed, lower_allowed, is_free | is_tight))
        (p_as_higher, q_as_lower, p_exceeds), (q_as_higher, p_as_lower, q_exceeds) = solutions
        return (
            np.where(q_exceeds, p_as_lower, p_as_higher),
            np.where(q_exceeds, q_as_higher, q_as_lower),
            max(spent) if p_exceeds.any() else 0.0,
        )

    def spends_no_more(lam: float) -> bool:
        _, _, spent = at(lam)
        return spent <= delta

    multiplier = 1 / (odds + delta) * (1 - 1e-12)  # below it nu - lam e^claim is positive
    if delta > 0:
        multiplier = least_float_that(spends_no_more, 0.0, multiplier, steps=100)
    first_masses, second_masses, _ = at(multiplier)
    return first_masses, second_masses


def guess_test_runs(
    pair: OutcomePair, cut: float, claim: float, delta: float, alpha: float, power: float
) -> float:
    """Fewest runs with which the guess test at this cut detects the violation; by bisection."""
    return _fewest_runs(*guess_rates(pair, cut), claim, delta, alpha, power)


def _fewest_runs(
    guess_rate: float, right: float, claim: float, delta: float, alpha: float, power: float
) -> float:
    if right <= max_correct_probability(claim):
        return math.inf

    def suffice(runs: int) -> bool:
        return guess_test_power(runs, guess_rate, right, claim, delta, alpha) >= power

    _, high = grow_until(suffice, 2, MAX_RUNS + 1)
    if high > MAX_RUNS:
        return math.inf
    return float(least_integer_that(suffice, high // 2, high, one_in=2000))


def guess_rates(pair: OutcomePair, cut: float) -> tuple[float, float]:
    """The share of runs with a guess, and the share of right guesses among them."""
    up, down = pair.losses >= cut, pair.losses <= -cut
    right = float(pair.first[up].sum() + pair.second[down].sum()) / 2
    guess_rate = right + float(pair.first[down].sum() + pair.second[up].sum()) / 2
    return min(guess_rate, 1.0), right / guess_rate if guess_rate > 0 else 0.0


def guess_test_power(
    runs: int, guess_rate: float, right: float, claim: float, delta: float, alpha: float
) -> float:
    """Probability that the bound from ``runs`` runs exceeds the claim."""
    from scipy.stats import binom

    # A tenth of alpha bounds the number of runs that leak with probability delta each.
    leaks = leak_count_quantile(runs, delta, alpha / 10)
    share = alpha if delta == 0 else 0.9 * alpha
    # The number of guesses is binomial; its mass at 201 points is enough.
    low, high = (int(binom.ppf(x, runs, guess_rate)) for x in (1e-9, 1 - 1e-9))
    guesses = np.unique(np.linspace(low, high, 201).astype(np.int64))
    edges = np.concatenate([[-1.0], (guesses[1:] + guesses[:-1]) // 2, [runs]])
    weight = np.diff(binom.cdf(edges, runs, guess_rate))
    tried = np.maximum(guesses - leaks, 0)
    # fewest right guesses k with P(Bin(tried, allowed) >= k) <= share
    allowed = max_correct_probability(claim)
    fewest_right = leaks + binom.isf(share, tried, allowed) + 1
    return float(
        weight @ np.where(guesses >= leaks, binom.sf(fewest_right - 1, guesses, right), 0.0)
    )


def promising_cuts(
    pair: OutcomePair, claim: float, delta: float, alpha: float, power: float
) -> list[float]:
    """The two cuts, or fewer, that need the fewest runs by the normal approximation.

    Each is a little below a loss in size, so that this loss is guessed; 700 stands for infinity.
    """
    from scipy.special import ndtri

    sizes = np.unique(np.abs(pair.losses[np.isfinite(pair.losses)]))
    sizes = sizes[sizes > 0]
    if np.isinf(pair.losses).any():
        sizes = np.append(sizes, 700.0)
    cuts = sizes[np.unique(np.linspace(0, sizes.size - 1, MAX_CUTS).astype(int))] * (1 - 1e-9)
    allowed, approximate_runs = max_correct_probability(claim), []
    # Normal quantiles of the errors of the binomial tail, of the power, and of the count of leaks.
    z_alpha = -ndtri(alpha if delta == 0 else 0.9 * alpha)
    z_power, z_leak = ndtri(power), -ndtri(alpha / 10)
    for cut in cuts:
        guess_rate, right = guess_rates(pair, float(cut))
        if right <= allowed or guess_rate <= 0:
            continue
        # N guess_rate (right - allowed) = sd sqrt(N guess_rate)
        #   + (N delta + z_leak sqrt(N delta)) (1 - allowed)
        gain = guess_rate * (right - allowed) - delta * (1 - allowed)
        if gain <= 0:
            continue
        sd = z_alpha * math.sqrt(allowed * (1 - allowed)) + z_power * math.sqrt(right * (1 - right))
        root = (z_leak * math.sqrt(delta) * (1 - allowed) + sd * math.sqrt(guess_rate)) / gain
        approximate_runs.append((root**2, float(cut)))
    return [cut for _, cut in sorted(approximate_runs)[:2]]
