"""What printed constants really give: golden values of methods.md 3.2, 9 (E1, E1c) and 11."""

import math

import numpy as np
import pytest

from accountant import RDP, ZCDP, Tight
from algorithms import LabelIHT
from algorithms.base.hard_thresholding import default_step
from algorithms.base.non_private import NotPrivateWarning
from algorithms.sparse_regression.links import LINEAR_PLUS_COSINE
from audits import replay
from audits.papers.sparse_regression import (
    PublishedClaim,
    printed_label_noise,
    printed_probability,
    public_label_noise,
)
from experiments.papers.sparse_regression import PrintedBound, PrintedSign
from mechanisms import Gaussian


@pytest.mark.parametrize(
    ("sparsity", "noise_bound", "true"), [(1, 0.05, 11.8), (5, 0.05, 36.2236), (10, 0.05, 61.6)]
)
def test_printed_label_noise_costs_many_times_the_claim(sparsity, noise_bound, true):
    found = printed_label_noise(1.0, 1e-3, sparsity, noise_bound)
    assert found.true_epsilon == pytest.approx(true, rel=1e-3 if sparsity == 5 else 5e-3)
    assert not found.holds


def test_a_claim_holds_from_the_true_epsilon_on():
    plan = Gaussian(3.0)
    true = Tight().epsilon(plan, 1e-6)
    for epsilon in (0.0, 0.5 * true, math.nextafter(true, 0), true, 2 * true, math.inf):
        claim = PublishedClaim("claim", "source", epsilon, 1e-6, plan)
        assert claim.true_epsilon == true
        assert claim.holds == (epsilon >= true)


def test_the_golden_row():
    plan = printed_label_noise(1.0, 1e-3, 5, 0.05).plan
    assert plan.scale == pytest.approx(0.755296, rel=1e-6)
    assert plan.sensitivity == pytest.approx(4.572136, rel=1e-6)
    assert plan.loss.mu == pytest.approx(6.053437, rel=1e-6)
    assert plan.loss.rho == pytest.approx(18.32205, rel=1e-6)
    assert ZCDP().epsilon(plan, 1e-3) == pytest.approx(39.062, rel=1e-4)
    assert RDP().epsilon(plan, 1e-3) == pytest.approx(39.095, rel=1e-3)


def test_it_is_honest_where_the_noise_is_greater_than_the_signal():
    assert printed_label_noise(1.0, 1e-3, 5, 1.0).true_epsilon == pytest.approx(1.12, rel=5e-3)
    assert printed_label_noise(1.0, 1e-3, 4, 3.0).holds


def test_the_code_has_half_the_printed_noise():
    assert public_label_noise(1.0, 1e-3, 10, 0.05).true_epsilon == pytest.approx(202, rel=5e-3)


def test_labels_behind_a_link_move_further():
    # 8x + cos x, s* = 5: |f| <= 8 sqrt 5 + |cos sqrt 5| = 18.51
    found = printed_label_noise(1.0, 1e-3, 5, 0.05, LINEAR_PLUS_COSINE)
    assert found.plan.sensitivity == pytest.approx(2 * (8 * 5**0.5 + 0.6177 + 0.05), rel=1e-3)
    assert found.true_epsilon > 1000


def test_the_printed_norm_bound_is_no_mechanism():
    # methods.md E2: at theta = 0 the coin's "probability" is 11 to 23; 46 at the worst theta
    assert printed_probability(5, 5, 0.05) == pytest.approx(0.5 + (2 * 5**0.5 + 0.05) / 0.1)
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (2000, 20))
    y = x[:, :5] @ np.full(5, 5**-0.5) + rng.uniform(-0.05, 0.05, 2000)
    made = PrintedBound(epsilon=1.0, sparsity=5, noise_bound=0.05, rounds=1, random_state=0)
    asked = 0.5 + np.linalg.norm(x * y[:, None], axis=1) / (2 * made.norm_bound(20))
    assert (asked > 1).mean() > 0.85
    assert 11 < asked.max() < printed_probability(5, 5, 0.05)
    # clipped to it, reports keep their epsilon
    assert Tight().epsilon(made.plan(x.shape), 0.0) == pytest.approx(1.0, rel=1e-6)
    found = replay(made, (x, y), (-x, 1e9 * (np.arange(2000) == 0) + y), rng=1)
    assert not found.on_plan  # more than one user differs
    other = y.copy()
    other[0] = -1e9
    found = replay(made, (x, y), (x, other), rng=1)
    assert found.sound
    assert 0 < abs(found.loss) <= 1 + 1e-9


def test_the_printed_sign_runs_away_and_is_as_private():
    # methods.md E3: relative error 1.99 against .002
    rng = np.random.default_rng(0)
    theta = np.array([0.6, 0.5, 0.4] + [0.0] * 17)
    x = rng.choice([-1.0, 1.0], (5000, 20))
    y = x @ theta + rng.uniform(-0.05, 0.05, 5000)
    errors = {}
    for kind in (PrintedSign, LabelIHT):
        made = kind(epsilon=math.inf, non_private=True, delta=1e-3, sparsity=3, y_bound=9.0,
                    step=default_step())  # fmt: skip
        with pytest.warns(NotPrivateWarning):
            errors[kind] = np.linalg.norm(made.fit(x, y).coef_ - theta) / np.linalg.norm(theta)
    assert errors[PrintedSign] > 1.9
    assert errors[LabelIHT] < 0.01
    settings = {"epsilon": 1.0, "delta": 1e-3, "sparsity": 3, "y_bound": 2.0}
    assert PrintedSign(**settings).plan(x.shape) == LabelIHT(**settings).plan(x.shape)
