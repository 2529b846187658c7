"""jax-privacy's audits of one run, its batches and its samples of privacy losses, beside ours.

- ``one run``: a greater lower bound from the same scores is a better one, if it is below the truth.
- ``batches``: each record is in such steps as our participation admits.
- ``samples``: drawn privacy losses estimate delta; our certified interval must hold the estimate,
  up to five of its standard deviations: once in 1.7 million by chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtri

from accountant import (
    FixedEpochs,
    GaussianLoss,
    MinSeparation,
    PoissonSampled,
    RandomAllocation,
    Tight,
)
from audits import audit_scores
from audits.statistics.single_run import tail_of_right_guesses
from tests.heldout.peer_rows import PeerRow, judged

SIDE, DELTA, SIGNIFICANCE = 10_000, 1e-6, 0.05
SAMPLES, SIGMAS = 4_000, 5.0
# of `test_epsilon_one_run_close` and `test_one_run_p_value`, tests/auditing_test.py at
# google-deepmind/jax_privacy 8967688: shifts of scores at quantiles, and a grid of counts
SHIFTS = (0, 1, 2, 4)
COUNTS = ((10, 100, 1000), (1, 10, 100), (0, 1, 10, 100), (0, 0.5, 1.0), (0, 1e-6, 1e-3, 1e-1))


def one_run_rows() -> Iterator[PeerRow]:
    """Lower bounds on epsilon from the scores of one run, and chances of right guesses."""
    from jax_privacy import auditing

    suite, below = "jax-privacy, audits of one run", ndtri((np.arange(SIDE) + 0.5) / SIDE)
    for shift in SHIFTS:
        auditor = auditing.CanaryScoreAuditor(below + shift, below)
        claim = GaussianLoss(shift) if shift else None
        found = audit_scores(below + shift, below, claim, DELTA)
        truth = GaussianLoss(shift).epsilon_at(DELTA) if shift else 0.0
        mu = found.mu_lower or 0.0
        curve = GaussianLoss(mu).epsilon_at(DELTA) if mu else 0.0
        pairs = {
            "one delta": (found.epsilon_lower, auditor.epsilon_one_run(SIGNIFICANCE, DELTA)),
            "a curve": (curve, auditor.epsilon_one_run_fdp(SIGNIFICANCE, DELTA)),
        }
        for name, (ours, theirs) in pairs.items():
            greater = "a greater lower bound, below the truth" if ours > theirs else ""
            yield judged(suite, f"shift {shift}, {name}", theirs <= ours <= truth, greater,
                         f"{ours}, theirs {theirs}, truth {truth}")  # fmt: skip
    for m, guesses, wrong, epsilon, delta in itertools.product(*COUNTS):
        if not wrong <= guesses <= m:
            continue
        theirs = auditing._one_run_p_value(m, guesses, guesses - wrong, epsilon, delta)
        ours = float(tail_of_right_guesses(guesses - wrong, guesses, np.array([epsilon]),
                                           np.array([m * delta]))[0])  # fmt: skip
        case = f"{m} coins, {guesses} guesses, {wrong} wrong, epsilon {epsilon}, delta {delta}"
        smaller = "a smaller bound on the same chance" if ours < theirs * (1 - 1e-5) else ""
        yield judged(suite, case, ours <= theirs * (1 + 1e-5), smaller,
                     f"a chance of {ours}, theirs {theirs}")  # fmt: skip


def uses(strategy: Any, records: int) -> list[np.ndarray]:
    """The steps in which each record is used, in one run of the strategy."""
    batches = list(strategy.batch_iterator(records, rng=0))
    owners = np.concatenate(batches).astype(int)
    steps = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    return [np.sort(steps[owners == record]) for record in range(records)]


def batch_rows() -> Iterator[PeerRow]:
    """Each way to select batches beside the participation that a plan of ours would name."""
    from jax_privacy import batch_selection as select

    suite, records = "jax-privacy, batch selection", 60
    runs: list[tuple[str, Any, Any]] = []
    for cycle, rounds, rate in itertools.product((2, 5), (1, 4), (0.3, 1.0)):
        steps = cycle * rounds
        runs.append((f"cyclic Poisson, {cycle} groups, {rounds} rounds, rate {rate}",
                     select.CyclicPoissonSampling(rate, steps, cycle_length=cycle),
                     (FixedEpochs(rounds), rounds)))  # fmt: skip
    for cycle, rounds in itertools.product((2, 5, 10), (1, 3)):
        runs.append((f"balls in bins, {cycle} bins, {rounds} rounds",
                     select.BallsInBinsSampling(cycle * rounds, cycle),
                     (FixedEpochs(rounds), rounds)))  # fmt: skip
    for gap, rate, warm in itertools.product((1, 2, 4), (0.1, 0.9), (True, False)):
        if gap == 1 and warm:
            continue  # refused by the library at this version
        runs.append((f"{gap} apart, rate {rate}, warm start {warm}",
                     select.BMinSepSampling(rate, 40, gap, warm_start=warm),
                     (MinSeparation(10**9, gap), None)))  # fmt: skip
    for name, strategy, (participation, rounds) in runs:
        admitted = True
        for steps in uses(strategy, records):
            if isinstance(participation, FixedEpochs):
                admitted &= steps.size <= rounds
                admitted &= np.unique(steps % (strategy.iterations // rounds)).size <= 1
            else:
                admitted &= steps.size <= participation.most(strategy.iterations)
                admitted &= bool((np.diff(steps) >= participation.separation).all())
        yield judged(suite, name, admitted, why=f"a record's steps are not of {participation}")


def sample_rows() -> Iterator[PeerRow]:
    """Estimates of delta from drawn losses of both directions beside certified intervals."""
    from jax_privacy import batch_selection as select
    from jax_privacy.experimental.monte_carlo import sample_generation as losses

    suite = "jax-privacy, samples of losses"
    runs: list[tuple[str, Any, np.ndarray, float, Any]] = []
    for steps, noise in ((2, 1.0), (2, 3.0), (10, 1.0), (10, 0.5), (50, 0.7)):
        plan = RandomAllocation(GaussianLoss(1 / noise), steps)
        scheme = select.BallsInBinsSampling(steps, steps)
        runs.append((f"balls in {steps} bins", scheme, np.array([1.0]), noise, plan))
    for rate, noise in ((0.02, 0.6), (0.1, 1.0), (0.5, 2.0)):
        plan = 10 * PoissonSampled(GaussianLoss(1 / noise), rate)
        scheme = select.BMinSepSampling(rate, 10, 1, warm_start=False)
        runs.append((f"any steps, rate {rate}", scheme, np.array([1.0]), noise, plan))
    for name, scheme, column, noise, plan in runs:
        drawn = [
            np.asarray(losses.get_privacy_loss_sample(
                scheme, noise, column, seed=seed, positive_sample=included, num_samples=SAMPLES)[0])
            for seed, included in enumerate((True, False))
        ]  # fmt: skip
        for target in (0.1, 0.01):
            epsilon = Tight().epsilon(plan, target)
            least, most = Tight(1e-9).delta(plan, epsilon * (1 + 1e-9)), target
            estimates = [np.maximum(-np.expm1(epsilon - one), 0.0) for one in drawn]
            far = [(one.mean(), one.std() / math.sqrt(SAMPLES)) for one in estimates]
            low = all(mean <= most + SIGMAS * error for mean, error in far)
            high = any(mean >= least - SIGMAS * error for mean, error in far)
            yield judged(suite, f"{name}, noise {noise}, delta {target}", low and high,
                         why=f"delta {target} against {far}")  # fmt: skip


def rows() -> Iterator[PeerRow]:
    """All three."""
    yield from one_run_rows()
    yield from batch_rows()
    yield from sample_rows()
