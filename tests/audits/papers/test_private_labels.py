"""The misprinted rate (methods.md 9, E15), and the lower bound of methods.md 5.5."""

import math

import numpy as np
import pytest

from accountant import ParameterError
from algorithms.label_privacy import label_randomizers
from algorithms.label_privacy.label_sgd import LabelSGD
from audits.papers.private_labels import (
    PrintedRate,
    lower_bound,
    printed_lower_rate,
    printed_upper_rate,
)


def test_the_constant_is_four_over_epsilon_squared():
    V = label_randomizers.second_moments
    assert V(100, 1e-3)["unary"] * 1e-3**2 / 100 == pytest.approx(4.0, rel=1e-4)
    assert V(10, 1e-4)["unary"] * 1e-4**2 / 10 == pytest.approx(4.0, rel=1e-4)
    # as printed it would have to settle when multiplied by epsilon alone
    assert V(100, 1e-3)["unary"] * 1e-3 > 9.9 * V(100, 1e-2)["unary"] * 1e-2


@pytest.mark.parametrize("rate", [printed_upper_rate(100), printed_lower_rate(100)])
def test_the_printed_rates_do_not_hold(rate):
    assert rate.true_power == pytest.approx(2.0, abs=0.01)
    assert not rate.holds


def test_a_true_rate_holds():
    assert PrintedRate("corrected", "E15", 2.0, lambda e: 4 * 100 / e**2 + 2).holds
    assert PrintedRate("printed, were it true", "", 1.0, lambda e: 100 / e).holds


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("classes", [10, 100])
def test_upper_and_lower_bound_are_a_constant_apart(classes, epsilon):
    users = 10**7
    upper = LabelSGD(
        epsilon=epsilon, k=classes, loss="linear", diameter=1.0, randomizer="unary"
    ).utility_bound(users, 1.0)
    ratio = upper / lower_bound(classes, epsilon, users)
    # methods.md 5.5: 115 to 210 where privacy dominates both
    assert 12 < ratio < 210
    if epsilon <= 1 and classes == 100:
        assert 85 < ratio < 210


def test_no_run_on_the_hard_labels_is_below_the_lower_bound():
    # labels in pairs (1 +- d) / K under the linear loss, of which the best theta is known
    classes, epsilon, users = 10, 1.0, 20_000
    odds = min(math.expm1(epsilon) ** 2, 4 * math.exp(epsilon))
    d = classes / (2 * math.sqrt(2 * users * odds))
    rng, excess = np.random.default_rng(0), []
    for seed in range(8):
        signs = rng.choice([-1.0, 1.0], classes // 2)
        shares = (1 + d * np.stack([signs, -signs], axis=1).ravel()) / classes
        labels = rng.choice(classes, users, p=shares)
        made = LabelSGD(
            epsilon=epsilon, k=classes, loss="linear", diameter=1.0, batch=16,
            random_state=seed,
        ).fit(np.ones((users, 1)), labels)  # fmt: skip
        slope = 1 / classes - shares  # the expected loss is linear
        least = -0.5 * np.linalg.norm(slope)
        excess.append(slope @ made.coef_[:, 0] - least)
    upper = made.utility_bound(users, made.lipschitz_)
    assert lower_bound(classes, epsilon, users, 1.0, made.lipschitz_) < np.mean(excess) < upper


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((9, 1.0, 1000), "even"), ((10, 1.0, 10), "users must be at least"),
     ((10, math.inf, 1000), "epsilon must be"), ((1, 1.0, 1000), "classes must be")],
)  # fmt: skip
def test_bad_input(arguments, words):
    with pytest.raises(ParameterError, match=words):
        lower_bound(*arguments)
