"""Audits of one training run: bounds beside jax-privacy's, and how often honest runs fall.

Trainings by DP-SGD with canaries of gradients are those of the how-to: rate 1/20, 100 steps, 738
parameters, noise of 1.1 clipping lengths, or half of it.  Their noise alone is audited too.

The anchor is scores N(shift, 1) inside and N(0, 1) outside at the quantiles (i + 1/2) / 10,000.
jax-privacy's figures are those of its `CanaryScoreAuditor`, run here if it is installed, else as
it gave them (commit of 2026-08-20).  Its error is divided by the corners of the ROC's hull, which
it finds by a look at who was in; ours needs no such look.
"""

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from accountant import ApproxLoss, GaussianLoss, PureLoss
from audits import GradientCanaries, audit_scores
from audits.one_run.guess_rules import planned_rule
from audits.statistics.single_run import tail_of_right_guesses
from benchmarks.measure import beside, options

DELTA, SIDE = 1e-6, 10_000
PUBLISHED = {1: (1.133, 2.165), 2: (2.312, 4.722), 4: (4.396, 9.134)}  # one run, and f-DP
EPSILON, MU, LEAKY = 1.5, 1.5, 1e-3  # of the honest runs


def jax_privacy_bounds(inside, outside, shift):
    """The two bounds of jax-privacy, and whether they were run here."""
    try:
        from jax_privacy import auditing
    except ImportError:
        return *PUBLISHED[shift], "as given"
    auditor = auditing.CanaryScoreAuditor(inside, outside)
    return (auditor.epsilon_one_run(0.05, DELTA), auditor.epsilon_one_run_fdp(0.05, DELTA),
            "run here")  # fmt: skip


def anchor():
    print(f"scores at {SIDE:,} + {SIDE:,} quantiles, delta {DELTA:g}, 95 %")
    below = ndtri((np.arange(SIDE) + 0.5) / SIDE)
    for shift in PUBLISHED:
        found = audit_scores(below + shift, below, GaussianLoss(shift), DELTA)
        curve = GaussianLoss(found.mu_lower).epsilon_at(DELTA)
        one, fdp, how = jax_privacy_bounds(below + shift, below, shift)
        print(f"  shift {shift}: epsilon {found.epsilon_lower:.3f}, "
              f"{beside(found.epsilon_lower, one, f'jax-privacy ({one:.3f}, {how})')}; by curves "
              f"{curve:.3f}, {beside(curve, fdp, f'jax-privacy ({fdp:.3f}, {how})')}, "
              f"{found.seconds:.2f} s", flush=True)  # fmt: skip


def power(seeds, coins):
    print(f"drawn scores, {coins:,} coins, medians of {seeds} seeds, 95 %")
    for shift in PUBLISHED:
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            inside = rng.random(coins) < 0.5
            scores = shift * inside + rng.normal(size=coins)
            found.append(audit_scores(scores[inside], scores[~inside], GaussianLoss(shift), 1e-5))
        epsilon = np.median([one.epsilon_lower for one in found])
        mu = np.median([one.mu_lower for one in found])
        true = GaussianLoss(shift).epsilon_at(1e-5)
        print(f"  shift {shift}: epsilon {epsilon:.3f}, {beside(epsilon, true, 'the truth')}; "
              f"mu {mu:.3f}, {beside(mu, shift, 'the truth')}", flush=True)  # fmt: skip


def responses(coins, chance, rng):
    """The coins, each turned with the chance that it is not seen."""
    return np.where(rng.random(coins.size) < chance, coins, ~coins) * 1.0


def randomised_response(coins, rng):
    return responses(coins, 1 / (1 + math.exp(-EPSILON)), rng)


def laplace(coins, rng):
    return coins + rng.laplace(scale=1 / EPSILON, size=coins.size)


def gaussian(coins, rng):
    return MU * coins + rng.normal(size=coins.size)


def one_loss_for_all(coins, rng):
    """Every coin is seen with the odds of one Gaussian loss, which all of them share."""
    loss = abs(MU * MU / 2 + MU * rng.normal())
    return responses(coins, 1 / (1 + math.exp(-loss)), rng)


def worst_of_the_planned_rule(coins, rng):
    """The (epsilon, delta)-DP channel that attains the bound of the rule of this hypothesis.

    With some chance the noise of the most extreme scores is drawn from responses of which so many
    are right that the rule refutes.
    """
    at, leak = np.array([EPSILON]), np.array([coins.size * LEAKY])
    rule = planned_rule(coins.size, at, leak, 0.05)
    right = np.arange(rule.guesses + 1)
    refuting = tail_of_right_guesses(right, rule.guesses, at, leak) <= 0.05 * rule.share
    v, q = int(np.argmax(refuting)), 1 / (1 + math.exp(-EPSILON))
    tail, mass = binom.sf(v - 1, rule.guesses, q), binom.pmf(v, rule.guesses, q)
    chance = float(leak[0]) * tail / (v * mass)
    scores = 2 * responses(coins, q, rng) - 1
    extreme = rng.permutation(coins.size)[: rule.guesses]
    seen = rng.random(rule.guesses) < q
    if rng.random() < chance:  # so many right that the rule refutes
        law = binom.pmf(np.arange(v, rule.guesses + 1), rule.guesses, q)
        seen = rng.permutation(rule.guesses) < rng.choice(
            np.arange(v, rule.guesses + 1), p=law / law.sum()
        )
    scores[extreme] = 10 * np.where(seen, 1, -1) * (2 * coins[extreme] - 1)
    return scores


HONEST = {
    "randomised response": (randomised_response, PureLoss(EPSILON)),
    "Laplace scores": (laplace, PureLoss(EPSILON)),
    "Gaussian scores, their curve": (gaussian, GaussianLoss(MU)),
    "Gaussian scores, one delta": (gaussian, ApproxLoss(GaussianLoss(MU).epsilon_at(LEAKY), LEAKY)),
    "one Gaussian loss for all coins": (one_loss_for_all, GaussianLoss(MU)),
    "the worst channel": (worst_of_the_planned_rule, ApproxLoss(EPSILON, LEAKY)),
}


def honest(sessions, coins):
    limit = int(binom.isf(1e-6, sessions, 0.05))
    print(f"honest runs of {coins:,} coins at exactly their claim, 95 %: {sessions:,} sessions "
          f"each, {limit} or fewer fall but for a chance of 1e-6")  # fmt: skip
    for name, (scores_of, claim) in HONEST.items():
        rng, fell = np.random.default_rng(0), 0
        for _ in range(sessions):
            inside = rng.random(coins) < 0.5
            scores = scores_of(inside, rng)
            found = audit_scores(scores[inside], scores[~inside], claim, rng=rng)
            fell += found.outcome.name == "FALSIFIED"
        print(f"  {name:32} {fell} fall, {fell / sessions:.2%}", flush=True)


def trainings(sessions, share):
    """How often trainings with a share of the declared noise fall, and their noise alone."""
    fell, noise_fell, epsilons = 0, 0, []
    for seed in range(sessions):
        canaries = GradientCanaries(700, 738, rate=0.05, noise_multiplier=1.1, rng=seed)
        rng = np.random.default_rng([seed, 1])
        for _ in range(100):
            moved = np.isin(canaries.along, canaries.draw())
            noise = rng.normal(scale=1.1 * share, size=moved.size)
            canaries.observe_along(moved + noise, np.zeros(moved.size))
        found = canaries.audit()
        fell += found.outcome.name == "FALSIFIED"
        noise_fell += canaries.audit_noise().outcome.name == "FALSIFIED"
        epsilons.append(found.epsilon_lower)
    print(f"  {share:4.0%} of the noise: {fell} of {sessions} fall, epsilon {np.median(epsilons):.2f} "
          f"(median); by the noise alone {noise_fell}", flush=True)  # fmt: skip


def main():
    given = options(__doc__, seeds=25, sessions=200, coins=1000, trainings=20)
    anchor()
    power(1 if given.quick else given.seeds, 1000 if given.quick else 5000)
    honest(3 if given.quick else given.sessions, given.coins)
    count = 1 if given.quick else given.trainings
    print(
        "trainings with 700 canaries of gradients, at exactly their claim or with less noise, 95 %"
    )
    for share in (1.0, 0.5):
        trainings(count, share)


if __name__ == "__main__":
    main()
