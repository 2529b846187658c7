"""Canaries of gradients: verdicts, what they would show, what is refused."""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom, chi2

from accountant import ApproxLoss, GaussianLoss, ParameterError, Tight
from audits import GradientCanaries, NoiseFinding, Outcome, canary_power
from audits.one_run.canary_power import SimulatedCanaries, log_ratios

RATE, STEPS, NOISE, COUNT, PARAMETERS = 0.05, 100, 1.1, 700, 738
# about the curve of the plan, which takes a second to compute
CLAIM = GaussianLoss(0.6)


def clipped_sum(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.maximum(lengths, 1.0)).sum(axis=0)


def trained(share=1.0, count=COUNT, steps=STEPS, seed=0, length=10.0, clip=clipped_sum, **options):
    canaries = GradientCanaries(
        count, PARAMETERS, rate=RATE, noise_multiplier=NOISE, rng=seed, **options
    )
    rng = np.random.default_rng([seed, 1])
    for _ in range(steps):
        noise = rng.normal(scale=share * NOISE * canaries.clip, size=PARAMETERS)
        canaries.observe(clip(canaries.rows(length) / canaries.clip) * canaries.clip + noise)
    return canaries


@pytest.mark.slow  # ten trainings; the curve of a plan takes a second
def test_half_the_noise_falls_against_the_plan_in_nine_of_ten_runs_and_the_honest_run_does_not():
    falls = [trained(0.5, seed=seed).audit().outcome is Outcome.FALSIFIED for seed in range(10)]
    assert sum(falls) >= 9
    found = trained().audit()
    assert found.outcome is Outcome.SURVIVED
    assert found.epsilon_lower < Tight().epsilon(found.claim, 1e-5) < found.provable


def test_half_the_noise_falls_and_the_witness_says_which_noise_was_seen():
    found = trained(0.5).audit(CLAIM)
    assert found.outcome is Outcome.FALSIFIED
    assert re.search(r"looks like 0\.5\d clipping lengths, 1\.1 are declared", found.witness)
    assert found.not_tested[-1].sentence.endswith("how the loader draws records was not")
    assert found.needed_coins is None


def test_gradients_that_are_not_clipped_fall():
    found = trained(clip=lambda rows: rows.sum(axis=0), count=300, steps=40).audit(CLAIM)
    assert found.outcome is Outcome.FALSIFIED


def test_a_clipping_length_is_the_unit_of_everything():
    """The same draws give the same scores, whatever the length is."""
    plain, scaled = trained(steps=3), trained(steps=3, clip=clipped_sum)
    longer = GradientCanaries(COUNT, PARAMETERS, rate=RATE, noise_multiplier=NOISE, clip=4.0, rng=0)
    rng = np.random.default_rng([0, 1])
    for _ in range(3):
        rows = longer.rows()
        longer.observe(4 * (clipped_sum(rows) + rng.normal(scale=NOISE, size=PARAMETERS)))
    np.testing.assert_allclose(longer.scores, plain.scores)
    assert (plain.scores == scaled.scores).all()


def test_known_records_do_not_hide_canaries_and_unknown_ones_do():
    def found(known):
        canaries = GradientCanaries(300, 400, rate=1.0, noise_multiplier=2.0, rng=0)
        rng = np.random.default_rng(1)
        for _ in range(5):
            others = rng.normal(scale=3.0, size=400)
            released = clipped_sum(canaries.rows()) + others + rng.normal(scale=0.5, size=400)
            given = {"others": others} if known else {"variance": 9.0}
            canaries.observe(released, **given)
        return canaries.audit(GaussianLoss(math.sqrt(5) / 2))

    known, unknown = found(known=True), found(known=False)
    assert known.outcome is Outcome.FALSIFIED
    assert unknown.outcome is Outcome.INCONCLUSIVE
    assert known.provable > 2 * unknown.provable
    assert "half of the declared noise" in unknown.why_too_few


def test_the_score_is_the_loss_of_a_sampled_gaussian():
    moved, variance = np.array([-1.0, 0.0, 0.5, 2.0]), 1.21
    density = np.exp(-(moved**2) / 2 / variance)
    used = np.exp(-((moved - 1) ** 2) / 2 / variance)
    expected = np.log((0.95 * density + 0.05 * used) / density)
    np.testing.assert_allclose(log_ratios(moved, variance, 0.05), expected, atol=1e-15)
    np.testing.assert_allclose(log_ratios(moved, variance, 1.0), (moved - 0.5) / variance)


def test_honest_runs_fall_at_most_at_their_rate():
    """Scores of honest runs at exactly a claim that one step keeps, drawn as they are."""
    claim, fell = GaussianLoss(1.0), 0
    for seed in range(20):
        canaries = GradientCanaries(200, 200, rate=1.0, noise_multiplier=1.0, rng=seed)
        noise = np.random.default_rng([seed, 1]).normal(size=200)
        canaries.observe(canaries.rows(1.0).sum(axis=0) + noise)
        fell += canaries.audit(claim).outcome is Outcome.FALSIFIED
    assert binom.sf(8, 20, 0.05) < 1e-6
    assert fell <= 8


def test_the_noise_alone_is_judged_at_its_rate():
    falls = [NoiseFinding.of(1.1, squares, 50, 0.95).outcome is Outcome.FALSIFIED
             for squares in chi2.ppf((np.arange(1000) + 0.5) / 1000, 50)]  # fmt: skip
    assert sum(falls) == 50  # exactly the lowest twentieth
    assert NoiseFinding.of(1.1, 50.0, 50, 0.95).estimate == pytest.approx(1.1)
    assert NoiseFinding.of(1.1, 0.0, 0, 0.95).outcome is Outcome.INCONCLUSIVE


def test_noise_that_is_two_per_cent_too_small_falls_by_itself_alone():
    honest, less = trained(steps=40), trained(0.98, steps=40)
    assert honest.audit_noise().outcome is Outcome.SURVIVED
    found = less.audit_noise()
    assert found.outcome is Outcome.FALSIFIED
    assert found.estimate < found.upper < 1.1
    assert honest.audit_noise(1.15).outcome is Outcome.FALSIFIED  # another claim
    assert dict(found.to_frame().to_numpy())["outcome"] == "FALSIFIED"


def test_what_canaries_would_show_is_what_they_show():
    enough = canary_power(COUNT, rate=RATE, steps=STEPS, noise_multiplier=NOISE, claim=CLAIM)
    assert enough.enough
    assert enough.needs == ""
    assert trained(0.5).audit(CLAIM).outcome is Outcome.FALSIFIED
    few = trained(count=60).power(STEPS, CLAIM)
    assert not few.enough
    assert 60 < few.needed_canaries <= PARAMETERS
    more = canary_power(
        few.needed_canaries, rate=RATE, steps=STEPS, noise_multiplier=NOISE, claim=CLAIM
    )
    assert more.enough
    found = trained(count=60).audit(CLAIM)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.needed_coins == few.needed_canaries
    assert f"{few.needed_canaries:,} would" in found.why_too_few
    assert f"{few.needed_canaries:,} canaries would do" in repr(few)


def test_unknown_records_are_named_as_what_hides_canaries():
    options = {"rate": 0.5, "steps": 10, "noise_multiplier": 2.0, "claim": GaussianLoss(0.5)}
    power = canary_power(400, batch=20_000, parameters=500, **options)
    assert not power.enough
    assert 0 < power.needed_batch < 20_000
    fewer = canary_power(400, batch=power.needed_batch, parameters=500, **options)
    assert fewer.enough
    assert fewer.provable > power.provable


def test_a_pure_claim_is_judged_at_its_delta():
    assert trained(0.25, steps=20).audit(ApproxLoss(0.5, 1e-5)).outcome is Outcome.FALSIFIED


def test_simulated_scores_are_those_of_real_canaries():
    real = np.sort(trained(steps=20).scores)
    inside, outside = SimulatedCanaries(RATE, 20, NOISE).scores
    expected = np.quantile(np.concatenate([inside, outside]), (np.arange(COUNT) + 0.5) / COUNT)
    # 700 scores against their quantiles: correlated 0.99 and of one spread
    assert np.corrcoef(real, expected)[0, 1] > 0.98
    assert real.std() == pytest.approx(expected.std(), rel=0.2)


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda c: GradientCanaries(9, 20, rate=0.1, noise_multiplier=1.0), "10"),
        (lambda c: GradientCanaries(30, 20, rate=0.1, noise_multiplier=1.0), "parameters"),
        (lambda c: GradientCanaries(20, 20, rate=0.0, noise_multiplier=1.0), "rate"),
        (lambda c: GradientCanaries(20, 20, rate=0.1, noise_multiplier=0.0), "noise_multiplier"),
        (lambda c: c.audit(), "at least one step"),
        (lambda c: c.audit_noise(), "at least one step"),
        (lambda c: c.observe(np.zeros(20)), r"rows\(\)"),
        (lambda c: (c.rows(), c.rows()), "one observe after each"),
        (lambda c: (c.rows(), c.observe(np.zeros(19))), "20 finite numbers"),
        (lambda c: (c.rows(), c.observe(np.full(20, np.nan))), "20 finite numbers"),
        (lambda c: (c.rows(), c.observe(0.0)), "20 finite numbers"),
        (lambda c: (c.rows(), c.observe(np.zeros(20), variance=-1.0)), "20 finite numbers"),
        (lambda c: (c.rows(), c.observe(np.zeros(20), 0.0, 1.0), c.audit_noise()), "0 in every"),
        (lambda c: c.power(0), "steps"),
        (lambda c: canary_power(20, rate=1.0, steps=1, noise_multiplier=1.0, batch=5), "parameter"),
    ],
)  # fmt: skip
def test_what_is_no_training_is_refused(call, remedy):
    with pytest.raises(ParameterError, match=remedy):
        call(GradientCanaries(20, 20, rate=0.1, noise_multiplier=1.0, rng=0))


def test_a_step_that_was_refused_can_be_observed_again():
    canaries = GradientCanaries(20, 20, rate=0.1, noise_multiplier=1.0, rng=0)
    canaries.rows()
    with pytest.raises(ParameterError):
        canaries.observe(np.zeros(19))
    canaries.observe(np.zeros(20))
    assert canaries.steps == 1
    assert "1 steps" in repr(canaries)
