"""Attack rates against closed forms, against tests that are enumerated, and against mutants."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from accountant import (
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Shuffled,
    ZCDPLoss,
    advantage,
    attack_rates,
    bayes_risk,
    reconstruction,
    tradeoff,
    true_positive_rate,
)
from accountant.accountants import tradeoff_ends
from accountant.composition import profile_ends

LEVELS = [1e-6, 0.001, 0.01, 0.1, 0.5, 0.9]
DP_SGD = 200 * PoissonSampled(GaussianLoss(1.0), 0.02)


def within(bounds, truth, width=1e-8):
    """The interval holds the truth and is narrow; truths are floats."""
    assert bounds.lower <= truth * (1 + 1e-14)
    assert bounds.upper >= truth * (1 - 1e-14)
    assert bounds.upper - bounds.lower <= width


@pytest.mark.parametrize("mu", [0.1, 1.0, 2.0])
def test_rates_of_a_gaussian_are_its_closed_forms(mu):
    loss = GaussianLoss(mu)
    within(advantage(loss), 2 * ndtr(mu / 2) - 1)
    for level in LEVELS:
        within(true_positive_rate(loss, level), ndtr(ndtri(level) + mu))
    assert reconstruction(loss, 0.01) == true_positive_rate(loss, 0.01)
    for prior in (0.01, 0.3, 0.5, 0.9):
        # the best threshold of the likelihood ratio
        cut = math.log(prior / (1 - prior)) / mu + mu / 2
        within(bayes_risk(loss, prior), prior * ndtr(-cut) + (1 - prior) * ndtr(cut - mu))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_rates_of_a_response_are_its_closed_forms(epsilon):
    e = math.exp(epsilon)
    for loss in (
        PureLoss(epsilon),
        PairLoss((e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))),
    ):
        within(advantage(loss), (e - 1) / (e + 1))
        for level in LEVELS:
            truth = 1 - max(0.0, 1 - e * level, (1 - level) / e)
            within(true_positive_rate(loss, level), truth)
        for prior in (0.01, 0.4, 0.5, 0.8):
            within(bayes_risk(loss, prior), min(prior, 1 - prior, 1 / (1 + e)))


def test_rates_of_laplace_noise_are_its_closed_forms():
    shift = 1.0
    within(advantage(LaplaceLoss(shift)), 1 - math.exp(-shift / 2))
    within(true_positive_rate(LaplaceLoss(shift), 0.01), math.e * 0.01)
    within(true_positive_rate(LaplaceLoss(shift), 0.4), 1 - math.exp(-shift) / 1.6)


@pytest.mark.parametrize("runs", [1, 2, 5, 40])
def test_rates_of_a_finite_pair_are_those_of_all_its_tests(runs):
    """An asymmetric pair, composed: the truth by exact enumeration of the outcomes."""
    p, q = Fraction(9, 10), Fraction(6, 10)
    plan = runs * PairLoss((0.9, 0.1), (0.6, 0.4))
    laws = [
        [math.comb(runs, k) * x**k * (1 - x) ** (runs - k) for k in range(runs + 1)] for x in (p, q)
    ]
    within(advantage(plan), float(sum(max(a - b, 0) for a, b in zip(*laws, strict=True))))
    for level in LEVELS:
        truth = max(_power(*laws, Fraction(level)), _power(*laws[::-1], Fraction(level)))
        within(true_positive_rate(plan, level), float(truth))
    for prior in (Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)):
        rests = (prior, 1 - prior)
        truth = min(sum(min(a * x, (1 - a) * y) for x, y in zip(*laws, strict=True)) for a in rests)
        within(bayes_risk(plan, float(prior)), float(truth))


def _power(p, q, level):
    """The power of the best randomised test, by Neyman and Pearson."""
    left, power = level, Fraction(0)
    for a, b in sorted(zip(p, q, strict=True), key=lambda one: one[0] / one[1], reverse=True):
        share = min(Fraction(1), left / b)
        left, power = left - share * b, power + share * a
    return power


def test_a_composition_without_atoms_is_between_its_ends():
    n, e = 60, 0.2
    hits = np.arange(n + 1)
    p = binom.pmf(hits, n, 1 / (1 + math.exp(-e)))
    truth = float(np.sum(np.maximum(p - p[::-1], 0.0)))
    within(advantage(n * PureLoss(e)), truth, 1e-6)
    # two Gaussians are one
    mixed = GaussianLoss(0.6) + GaussianLoss(0.8) + LaplaceLoss(1e-9)
    for level in (0.001, 0.1):
        within(true_positive_rate(mixed, level), ndtr(ndtri(level) + 1.0), 1e-6)


@pytest.mark.parametrize("plan", [DP_SGD, 30 * LaplaceLoss(0.1) + GaussianLoss(0.4)])
def test_the_ends_are_near_and_hold_the_curve_below(plan):
    rates = attack_rates(plan, fpr=[0.001, 0.3], prior=[0.1])
    for row in rates:
        assert 0 <= row.lower <= row.upper <= 1
        assert row.upper - row.lower <= 1e-6
        assert row.note == ""
    below = tradeoff(plan, [0.001, 0.3])
    for row, beta in zip(rates.rows[1:3], below, strict=True):
        assert row.lower <= 1 - beta + 1e-12
        assert row.upper == pytest.approx(1 - beta, abs=1e-6)


def test_more_releases_and_higher_levels_give_an_attacker_more():
    plans = [n * PoissonSampled(GaussianLoss(1.0), 0.02) for n in (10, 100, 1000)]
    found = [attack_rates(plan, fpr=[0.01, 0.1], prior=[0.5]) for plan in plans]
    for less, more in itertools.pairwise(found):
        for one, other in zip(less, more, strict=True):
            if one.rate == "Bayes risk":
                assert other.upper < one.lower
            else:
                assert other.lower > one.upper
    assert found[0].rows[1].upper < found[0].rows[2].lower
    # of the advantage at even odds: (1 - advantage) / 2
    for rates in found:
        risk = next(row for row in rates if row.rate == "Bayes risk")
        assert risk.lower == pytest.approx((1 - rates.rows[0].upper) / 2, abs=1e-9)


def test_parallel_plans_cost_what_their_worse_part_does():
    parts = [GaussianLoss(1.0), LaplaceLoss(1.2)]
    both = true_positive_rate(Parallel(parts), 0.01)
    each = [true_positive_rate(part, 0.01) for part in parts]
    assert both.upper == max(one.upper for one in each)
    assert both.lower <= both.upper


def test_a_bound_on_many_pairs_says_so():
    for loss, words in (
        (ZCDPLoss(0.1), "many pairs"),
        (Shuffled(PureLoss(1.0), 100), "many pairs"),
    ):
        rates = attack_rates(loss, fpr=0.01, prior=0.5)
        assert all(words in row.note for row in rates)
        assert words in str(rates)
    dense = PoissonSampled(GaussianLoss(1.0) + LaplaceLoss(0.5), 0.1)
    rates = attack_rates(dense, fpr=0.01, prior=0.5)
    assert all("one end only" in row.note for row in rates)
    assert rates.rows[0].lower == 0.0
    assert rates.rows[1].lower == 0.01  # a guess has that


def test_outcomes_that_reveal_all_count():
    loss = ApproxLoss(0.0, 0.2)
    within(advantage(loss), 0.2)
    within(true_positive_rate(loss, 0.0), 0.2)
    within(true_positive_rate(GaussianLoss(1.0) + loss, 0.0), 0.2)
    sure = PairLoss((0.0, 1.0), (1.0, 0.0)) + GaussianLoss(1.0)
    within(advantage(sure), 1.0)
    within(true_positive_rate(sure, 0.01), 1.0)
    nothing = attack_rates(0 * PureLoss(1.0), 0.1, 0.3)
    assert [row.upper for row in nothing] == pytest.approx([0, 0.1, 0.3, 0.3], abs=1e-12)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, True, "a", None, [0.1, "b"]])
def test_what_is_no_rate_is_refused(bad):
    loss = GaussianLoss(1.0)
    for ask in (
        lambda: true_positive_rate(loss, bad), lambda: bayes_risk(loss, bad),
        lambda: reconstruction(loss, bad), lambda: attack_rates(loss, fpr=bad),
        lambda: attack_rates(loss, prior=bad),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=r"fpr must|prior must"):
            ask()
    for ask in (advantage, attack_rates):
        with pytest.raises(ParameterError, match="plan must"):
            ask(bad)


def lower_bounds_taken_for_upper(patch):
    made = tradeoff_ends._heights

    def wrong(*given):
        _, high = made(*given)
        return high, high

    patch.setattr(tradeoff_ends, "_heights", wrong)
    patch.setattr(tradeoff_ends, "DISTANCES", np.array([0.05, 0.3]))


def the_greatest_seen_for_the_supremum(patch):
    patch.setattr(tradeoff_ends, "_sup_of_concave", lambda epsilon, low, high: float(np.max(high)))
    patch.setattr(tradeoff_ends, "DISTANCES", np.array([0.05, 0.3]))
    patch.setattr(
        tradeoff_ends, "greatest_lines", lambda *given: (np.full(given[1].size, 0.3), given[1])
    )


def one_direction_forgotten(patch):
    ways = tradeoff_ends.single_pairs
    patch.setattr(tradeoff_ends, "single_pairs", lambda plan: ways(plan)[:1])


def the_upper_bound_for_the_lower(patch):
    near = profile_ends._SingleEnds.near

    def wrong(self, centre, epsilon):
        _, high = near(self, centre, epsilon)
        return high * 1.001, high * 1.001

    patch.setattr(profile_ends._SingleEnds, "near", wrong)


@pytest.mark.parametrize(
    "mutant", [the_greatest_seen_for_the_supremum, one_direction_forgotten,
               the_upper_bound_for_the_lower, lower_bounds_taken_for_upper],
)  # fmt: skip
def test_wrong_ends_are_caught(mutant, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):  # noqa: PT012  # one of both catches it
        within(true_positive_rate(GaussianLoss(1.0), 0.1), ndtr(ndtri(0.1) + 1.0))
        test_rates_of_a_finite_pair_are_those_of_all_its_tests(2)
