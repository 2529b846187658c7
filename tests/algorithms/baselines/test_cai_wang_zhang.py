"""Published baselines: constants, budgets, sensitivity."""

import math

import numpy as np
import pytest

from accountant import Budget, ParameterError, Tight
from algorithms import ThresholdedMean
from algorithms.baselines.cai_wang_zhang import GradientStep, ThresholdedRegression
from audits import privacy_losses, replay


def test_published_constants_that_break_the_claim_are_refused():
    with pytest.raises(ParameterError, match="small enough for the published constants"):
        ThresholdedMean(20.0, 1e-3, 100, 1.0, form="published").plan((200, 200))
    made = ThresholdedMean(1.0, 1e-5, 10, 1.0, form="published")
    assert Tight().epsilon(made.plan((200, 200)), 1e-5) <= 1.0


RNG = np.random.default_rng(6)


BASELINES = [
    ThresholdedMean(2.0, 1e-4, 3, 1.0),
    ThresholdedMean(2.0, 1e-4, 3, 1.0, form="published"),
    ThresholdedRegression(2.0, 1e-4, 2, 1.0, 2.0, 1.0, rounds=3),
    ThresholdedRegression(2.0, 1e-4, 2, 1.0, 2.0, 1.0, rounds=3, form="published"),
]


def baseline_data(baseline, rng):
    if isinstance(baseline, ThresholdedMean):
        return rng.uniform(-1, 1, (20, 6))
    X = rng.uniform(-1, 1, (20, 15, 6))
    return X, X[:, :, 0] - X[:, :, 1]


def with_another_machine(data, rng):
    if not isinstance(data, tuple):
        other = data.copy()
        other[0] = 1e6 * rng.choice([-1.0, 1.0], 6)
        return other
    other = data[0].copy(), data[1].copy()
    other[0][0] = 1e6 * rng.choice([-1.0, 1.0], (15, 6))
    other[1][0] = 1e6 * rng.choice([-1.0, 1.0], 15)
    return other


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda b: f"{type(b).__name__}-{b.form}")
def test_baselines_keep_their_budget_and_leak_nothing(baseline):
    data = baseline_data(baseline, RNG)
    first = data[0] if isinstance(data, tuple) else data
    plan = baseline.plan(first.shape)
    spent = Budget(2.0, 1e-4).check(plan)
    assert plan.relation == "machine-replace"
    assert spent >= 0.999 * 2.0 if baseline.form == "calibrated" else spent < 2.0
    found = replay(baseline, data, with_another_machine(data, RNG), rng=1)
    assert found.leak_free, found.witness
    assert found.on_plan
    losses = privacy_losses(baseline, data, with_another_machine(data, RNG), 30, rng=2)
    assert 0 < np.abs(losses).max() <= sum(n * loss.pure for loss, n in plan.losses()) + 1e-9


def test_no_machine_moves_a_baseline_query_by_more_than_declared():
    greatest = 0.0
    made = ThresholdedRegression(1.0, 1e-4, 2, 1.0, 2.0, 1.0, rounds=3)
    declared = made.plan((20, 15, 6)).part.part.parts[0].part.sensitivity
    assert declared == pytest.approx(2 * 0.5 * (2 + math.sqrt(2)) / 20)
    beta = np.array([1, 1, 0, 0, 0, 0]) / math.sqrt(2)
    for _ in range(200):
        data, steps = baseline_data(made, RNG), [GradientStep(0.5, 1.0, 2.0) for _ in range(2)]
        other = data[0].copy(), data[1].copy()
        one = RNG.choice([-1.0, 1.0])
        # the two worst machines: residuals of opposite sign at the same features
        data[0][0], data[1][0] = one, -one * 2.0
        other[0][0], other[1][0] = 50.0 * one, one * 1e6 * RNG.choice([1, -1])
        if RNG.random() < 0.5:
            other[0][0, :, 2:] *= -1
        for step in steps:
            step.start(beta)
        greatest = max(greatest, np.abs(steps[0](data) - steps[1](other)).max())
    assert 0.75 * declared < greatest <= declared * (1 + 1e-12)
    assert ThresholdedMean(1.0, 1e-4, 2, 3.0).plan((20, 6)).part.part.parts[0].part.sensitivity == (
        2 * 3.0 / 20
    )


def test_published_baselines_have_the_printed_noise():
    plan = ThresholdedMean(1.0, 1e-5, 10, 3.0, form="published").plan((100, 50)).part
    expected = 2 * 3 / 100 * 2 * math.sqrt(30 * math.log(1e5))
    assert plan.part.parts[0].part.scale == pytest.approx(expected)
    made = ThresholdedRegression(1.0, 1e-3, 4, 0.5, 2.0, 1.0, rounds=20, form="published")
    # B = 4 (R + c0 c_x) c_x / sqrt s with c_x = sqrt(s) x_bound; every round has epsilon / T
    lam = 0.5 * 4 * (2 + 2 * 0.5) * 0.5 / 100
    expected = lam * 2 * math.sqrt(12 * math.log(20 / 1e-3)) * 20
    assert made.plan((100, 9, 30)).part.part.parts[1].part.scale == pytest.approx(expected)


SIGNALS = np.zeros(200)


SIGNALS[:10] = 0.5 * np.array([1, -1] * 5)


def scores(signs):
    """Sign-aware false discovery rate and power."""
    right = (signs != 0) & (signs == np.sign(SIGNALS))
    return np.array([np.sum((signs != 0) & ~right) / max(np.sum(signs != 0), 1), right.sum() / 10])


def test_baselines_without_noise_worth_mentioning_are_right():
    mean = ThresholdedMean(1e6, 1e-3, 10, 3.0, random_state=0)
    machines = [SIGNALS + RNG.normal(size=(50, 200)) for _ in range(100)]
    assert scores(mean.fit(machines).signs_).tolist() == [0.0, 1.0]
    beta = np.array([0.6, -0.5] + [0.0] * 6)
    pairs = [(X, X @ beta) for X in RNG.uniform(-1, 1, (40, 30, 8))]
    found = ThresholdedRegression(1e6, 1e-3, 2, 1.0, 2.0, 1.0, step=1.0, random_state=0).fit(pairs)
    assert found.coef_ == pytest.approx(beta, abs=0.01)


@pytest.mark.parametrize(
    "machines",
    [[], [np.ones((4, 5))], [np.ones((4, 5)), np.ones((4, 6))], None, ["secret"] * 3],
    ids=lambda machines: str(machines)[:20],
)  # fmt: skip
def test_baselines_refuse_bad_machines(machines):
    baseline = ThresholdedMean(1.0, 1e-3, 2, 1.0)
    with pytest.raises(ParameterError, match="must be") as caught:
        baseline.fit(machines)
    assert "secret" not in str(caught.value)
    assert not hasattr(baseline, "ledger_")
