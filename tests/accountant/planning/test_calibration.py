"""Calibration of any plan: fields, brackets, corners and ends of a range."""

import math

import pytest

from accountant import (
    PLD,
    RDP,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Tight,
    advantage,
    calibrate,
    true_positive_rate,
)
from accountant.planning import calibration_goals, quick_search
from accountant.planning.calibration import calibrate_near
from mechanisms import Gaussian, Laplace, RandomizedResponse


def test_calibrate_takes_rising_and_falling_costs_and_a_bracket():
    noise = calibrate(lambda s: 10 * Gaussian(s), epsilon=1.0, delta=1e-5)
    assert 0.999 <= Tight().epsilon(10 * Gaussian(noise), 1e-5) <= 1.0
    share = calibrate(lambda e: 10 * PureLoss(e), epsilon=1.0)
    assert share == pytest.approx(0.1, rel=2e-6)
    assert share <= 0.1
    again = calibrate(lambda e: 10 * PureLoss(e), epsilon=1.0, bracket=(0.01, 5.0))
    assert again == pytest.approx(0.1, rel=2e-6)
    with pytest.raises(ParameterError, match="epsilon must be between the costs"):
        calibrate(lambda e: 10 * PureLoss(e), epsilon=1.0, bracket=(1.0, 5.0))
    with pytest.raises(ParameterError, match="epsilon must be between the costs"):
        calibrate(lambda e: PureLoss(2.0), epsilon=1.0)


def test_calibrate_refuses_unknown_fields_and_what_is_no_function():
    with pytest.raises(ParameterError, match="fields of Laplace other than its knob"):
        calibrate(Laplace, epsilon=1.0, k=3)
    with pytest.raises(ParameterError, match="fields of Laplace other than its knob"):
        calibrate(Laplace, epsilon=1.0, scale=3.0)
    with pytest.raises(ParameterError, match="plan_of must be"):
        calibrate(3, epsilon=1.0)
    with pytest.raises(ParameterError, match="plan_of must be"):
        calibrate(lambda s: 2 * Laplace(s), epsilon=1.0, sensitivity=2.0)
    with pytest.raises(ParameterError, match="plan must be"):
        calibrate(lambda s: s, epsilon=1.0)


@pytest.mark.parametrize(
    ("plan_of", "words"),
    [(RandomizedResponse, "fields of RandomizedResponse"), (PureLoss(1.0), "plan_of must be")],
)
def test_calibrate_says_what_is_missing(plan_of, words):
    with pytest.raises(ParameterError, match=words):
        calibrate(plan_of, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"RandomizedResponse\.k must be"):
        calibrate(RandomizedResponse, k=0, epsilon=1.0)
    for bad in (5.0, [1.0], (1.0, float("nan")), "ab"):
        with pytest.raises(ParameterError, match="bracket must be"):
            calibrate(lambda s: 2 * Gaussian(s), epsilon=1.0, delta=1e-6, bracket=bad)
    for bad in ("PLD", PLD, 3):
        with pytest.raises(ParameterError, match="accountant must be"):
            calibrate(lambda s: 2 * Gaussian(s), epsilon=1.0, delta=1e-6, accountant=bad)


def test_calibrate_finds_parameters_near_the_edge_of_their_range():
    # keep lies in (1/k, 1), near its lower end; no bracket is needed
    for k, epsilon in ((10, 1.0), (1000, 0.01), (2, 8.0), (2, 20.0)):
        keep = calibrate(lambda x, k=k: RandomizedResponse(k, x), epsilon=epsilon)
        spent = RandomizedResponse(k, keep).loss.pure
        assert (1 - 2e-6) * epsilon <= spent <= epsilon


def test_calibrate_reaches_the_ends_of_a_range():
    made = calibrate(RandomizedResponse, k=2, epsilon=30.0)
    assert 30.0 * (1 - 1e-3) <= made.loss.pure <= 30.0


def dp_sgd(noise):
    return 2000 * PoissonSampled(Gaussian(noise), 512 / 60_000)


@pytest.mark.parametrize(
    "plan_of", [dp_sgd, lambda e: 10 * PureLoss(e), lambda s: Laplace(s) + Gaussian(s)]
)
def test_an_advantage_or_a_power_is_a_goal(plan_of):
    found = plan_of(calibrate(plan_of, advantage=0.05))
    assert (1 - 1e-6) * 0.05 <= advantage(found).upper <= 0.05
    found = plan_of(calibrate(plan_of, tpr=0.05, fpr=0.01))
    assert 0.05 - 1e-6 * 0.04 <= true_positive_rate(found, 0.01).upper <= 0.05
    found = plan_of(calibrate(plan_of, epsilon=0, delta=0.02))
    assert (1 - 1e-6) * 0.02 <= Tight().delta(found, 0.0) <= 0.02


def test_rates_are_goals_of_classes_and_plans():
    # 2 Phi(1 / 2s) - 1 = .1
    noise = calibrate(Gaussian, advantage=0.1, sensitivity=2.0)
    assert noise.scale == pytest.approx(2 * 3.97894764, rel=1e-6)
    assert noise.sensitivity == 2.0
    # 1 - e^{-1 / 2s} = .1
    assert calibrate(Laplace, advantage=0.1).scale == pytest.approx(-0.5 / math.log(0.9), rel=2e-6)
    # f(a) = 1 - e^(1 / s) a
    scale = calibrate(Laplace, tpr=0.02, fpr=0.01).scale
    assert scale == pytest.approx(1 / math.log(2), rel=2e-6)
    whole = calibrate(2 * Gaussian(1.0) + Laplace(3.0), advantage=0.2)
    assert (1 - 1e-6) * 0.2 <= advantage(whole).upper <= 0.2
    # another accountant: its delta at an epsilon of 0
    loose = calibrate(Gaussian, advantage=0.1, accountant=RDP())
    assert loose.scale >= 3.97894764


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the one goal"),
        ({"epsilon": 1.0, "advantage": 0.1}, "the one goal"),
        ({"advantage": 0.1, "tpr": 0.1, "fpr": 0.01}, "the one goal"),
        ({"epsilon": 1.0, "fpr": 0.01}, "fpr must be given beside a tpr"),
        ({"tpr": 0.05}, "fpr must be given"),
        ({"tpr": 0.01, "fpr": 0.05}, "tpr must be in"),
        ({"tpr": 1.0, "fpr": 0.05}, "tpr must be in"),
        ({"tpr": True, "fpr": 0.05}, "tpr must be"),
        ({"tpr": 0.1, "fpr": math.nan}, "fpr must be"),
        ({"advantage": 0.0}, "advantage must be"),
        ({"advantage": 1.0}, "advantage must be"),
        ({"advantage": math.nan}, "advantage must be"),
        ({"advantage": 0.1, "delta": 1e-6}, "delta must be left out"),
        ({"epsilon": 0.0}, "0 with a delta above 0"),
        ({"tpr": 0.05, "fpr": 0.01, "accountant": RDP()}, "accountant must be left out"),
        ({"advantage": 0.05, "bracket": (100.0, 200.0)}, "advantage must be between the costs"),
    ],
)
def test_goals_that_do_not_fit_together_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        calibrate(lambda s: 2 * Gaussian(s), **given)


@pytest.mark.parametrize(
    "plan_of",
    [
        lambda s: 3 * PoissonSampled(Laplace(s), 0.1),
        lambda s: 2 * PoissonSampled(Gaussian(s), 0.1) + PoissonSampled(Gaussian(2 * s), 0.2),
    ],
)
def test_few_sampled_releases_are_calibrated_in_few_exact_steps(plan_of, monkeypatch):
    asked, certify = [], Tight.certify
    monkeypatch.setattr(
        Tight, "certify", lambda self, *given: asked.append(self) or certify(self, *given)
    )
    found = calibrate(plan_of, epsilon=1.0, delta=1e-3)
    assert len(asked) <= 4  # ten before
    assert 1 - 1e-6 <= Tight().epsilon(plan_of(found), 1e-3) <= 1.0


@pytest.mark.parametrize(
    ("plan_of", "asked_directions"),
    [
        (lambda s: 2 * PoissonSampled(Gaussian(s), 0.4), [2, 1]),  # one costs clearly more
        (lambda s: 2 * PoissonSampled(Gaussian(s), 0.999), [2, 2]),  # both cost about the same
        (lambda s: 2 * PoissonSampled(Gaussian(s), 0.4, "replace-one"), [1, 1]),
    ],
)
def test_a_rough_start_is_near_and_its_slope_is_that_of_the_cost(
    plan_of, asked_directions, monkeypatch
):
    target, delta, counts, rough_costs = 1.0, 1e-3, [], quick_search._rough_costs

    def counted(*given):
        costs = rough_costs(*given)
        counts.append(len(costs))
        return costs

    monkeypatch.setattr(quick_search, "_rough_costs", counted)
    start, slope = quick_search.rough_start(plan_of, target, delta)
    assert counts == asked_directions[:1] + asked_directions[1:] * (len(counts) - 1)
    cost, cost_beyond = (Tight().epsilon(plan_of(factor * start), delta) for factor in (1, 1.01))
    assert cost == pytest.approx(target, rel=1e-4)
    assert slope == pytest.approx(math.log(cost_beyond / cost) / math.log(1.01), rel=0.02)


NEAR = {
    "Laplace": lambda s: 30 * Laplace(s),
    "mixed": lambda s: 5 * Laplace(s) + 3 * Gaussian(s),
    "Gaussian": lambda s: 10 * Gaussian(s),
}


@pytest.mark.parametrize("name", NEAR)
def test_a_calibration_from_nearby_decides_by_one_certificate_and_from_far_away_as_ever(
    name, monkeypatch
):
    plan_of = NEAR[name]
    exact = calibrate(plan_of, epsilon=1.0, delta=1e-5)
    asked, certify = [], Tight.certify
    monkeypatch.setattr(
        Tight, "certify", lambda self, *given: asked.append(self.width) or certify(self, *given)
    )
    for factor, most in ((1.0, 2), (1.01, 5), (0.7, 8)):
        asked.clear()
        scale = calibrate_near(plan_of, factor * exact, 1.0, 1e-5)
        assert asked[-1] == Tight().width  # that of the default
        assert all(width < Tight().width for width in asked[:-1])
        assert len(asked) <= most
        assert scale == pytest.approx(exact, rel=2e-6)
        assert 1 - 1e-6 <= Tight().epsilon(plan_of(scale), 1e-5) <= 1.0
    rough = calibrate_near(plan_of, 1.01 * exact, 1.0, 1e-5, RDP())
    assert 1 - 1e-6 <= Tight().epsilon(plan_of(rough), 1e-5) <= 1.0
    assert calibrate_near(plan_of, 1e3 * exact, 1.0, 1e-5) == exact


@pytest.mark.parametrize("releases", [1, 2000])
def test_there_is_no_rough_start_where_the_search_is_as_quick(releases):
    def plan_of(scale):
        return releases * Gaussian(scale)

    assert quick_search.rough_start(plan_of, 1.0, 1e-6) is None
    assert quick_search.rough_start(lambda s: PoissonSampled(Laplace(s), 0.1), 1.0, 0.0) is None


@pytest.mark.parametrize(
    ("plan_of", "most"),
    [
        (lambda s: 2 * PoissonSampled(Gaussian(s), 0.01), 2),
        (lambda s: PoissonSampled(Gaussian(s), 0.01) + PoissonSampled(Gaussian(2 * s), 0.02), 2),
        (lambda s: 3 * PoissonSampled(Laplace(s), 0.01), 2),
    ],
)
def test_calibration_of_few_samples_asks_tight_rarely(monkeypatch, plan_of, most):
    asked, epsilon = [], Tight.epsilon

    def counted(self, plan, delta):
        asked.append(epsilon(self, plan, delta))
        return asked[-1]

    monkeypatch.setattr(Tight, "epsilon", counted)
    calibrate(plan_of, epsilon=0.1, delta=1e-6)
    assert len(asked) <= most
    assert (1 - 1e-6) * 0.1 <= asked[-1] <= 0.1


def test_calibration_to_a_true_positive_rate_asks_for_it_rarely(monkeypatch):
    asked = []

    def counted(plan, fpr):
        asked.append(true_positive_rate(plan, fpr))
        return asked[-1]

    monkeypatch.setattr(calibration_goals, "true_positive_rate", counted)
    calibrate(lambda s: 1000 * PoissonSampled(Gaussian(s), 0.01), tpr=0.05, fpr=0.01)
    assert len(asked) <= 2
    assert 0.05 - 1e-6 * 0.04 <= asked[-1].upper <= 0.05


def test_an_attack_rate_that_jumps_is_found_in_few_steps():
    # as where the bound of nearly no noise gives up: each step took seconds there
    asked = []

    def plan_of(scale):
        asked.append(scale)
        return PureLoss(1.0 if scale > 1.3 else 3.0)

    assert 1.3 < calibrate(plan_of, advantage=0.6) < 1.3 * (1 + 1e-7)
    assert len(asked) < 45
