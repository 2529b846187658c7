"""Groups that take turns: the plan, and that the whole mixture of a run costs as much."""

import itertools

import numpy as np
import pytest

from accountant import (
    BandedMatrix,
    BinaryTree,
    GaussianLoss,
    ParameterError,
    PoissonSampled,
    StrategyMatrix,
    Tight,
    Toeplitz,
    calibrate,
    cyclic_poisson,
)


def test_the_plan_is_that_of_jax_privacy():
    """`amplified_bandmf_event`: iterations over bands, rounded up, of column norm 1."""
    plan = cyclic_poisson(Toeplitz((0.6, 0.8), 1001), scale=2.0, rate=0.1)
    assert plan.count == 501
    assert plan.part.rate == 0.1
    assert plan.part.part.mu == pytest.approx(0.5, rel=1e-14)
    assert cyclic_poisson(Toeplitz((1,), 9), 2.0, 0.1) == 9 * PoissonSampled(GaussianLoss(0.5), 0.1)
    assert cyclic_poisson(Toeplitz((1, 1), 9), 2.0, 0.1, groups=4).count == 3
    assert cyclic_poisson(Toeplitz((1,), 1), 2.0, 0.1, step_sensitivity=3.0).losses()


def test_a_run_costs_as_much_as_its_plan():
    # a record of the first of two groups: steps 0, 2 and 4, each with the coin .4
    strategy, scale, rate = Toeplitz((0.8, 0.6), 6), 1.0, 0.4
    columns = strategy.times(np.eye(6))[:, ::2]
    coins = np.array(list(itertools.product((0, 1), repeat=3)))
    weights = rate ** coins.sum(axis=1) * (1 - rate) ** (3 - coins.sum(axis=1))
    means = coins @ columns.T
    rng, runs = np.random.default_rng(5), 400_000
    drawn = means[rng.choice(8, runs, p=weights)] + scale * rng.standard_normal((runs, 6))
    likelihoods = np.exp(drawn @ means.T - (means**2).sum(axis=1) / 2) @ weights
    plan = cyclic_poisson(strategy, scale, rate)
    for epsilon in (0.2, 1.0):
        excess = np.maximum(1 - np.exp(epsilon) / likelihoods, 0.0)  # the record present
        wide = 5 * excess.std() / np.sqrt(runs)  # false alarms: 6e-7 each
        assert excess.mean() == pytest.approx(Tight().delta(plan, epsilon), abs=wide)


def test_noise_is_found():
    strategy = BandedMatrix(np.ones((2, 100)))
    found = calibrate(lambda scale: cyclic_poisson(strategy, scale, 0.02), epsilon=2.0, delta=1e-6)
    assert Tight().epsilon(cyclic_poisson(strategy, found, 0.02), 1e-6) == pytest.approx(
        2, abs=1e-3
    )


@pytest.mark.parametrize(
    ("strategy", "given", "match"),
    [
        (BinaryTree(8), {}, "banded"), (StrategyMatrix(np.ones((3, 3))), {}, "lower triangular"),
        (Toeplitz((1, 1, 1), 9), {"groups": 2}, "groups must be a whole number from 3 to 9"),
        (Toeplitz((1, 1), 9), {"rate": 1.5}, "rate"),
        (Toeplitz((1, 1), 9), {"scale": 0.0}, "scale"),
        (Toeplitz((1, 1), 9), {"step_sensitivity": float("nan")}, "step_sensitivity"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(strategy, given, match):
    with pytest.raises(ParameterError, match=match):
        cyclic_poisson(strategy, **{"scale": 1.0, "rate": 0.1, **given})
