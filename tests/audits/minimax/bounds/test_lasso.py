"""The private LASSO: every step of the bound by enumeration of small data and fits."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import beta, roots_jacobi
from scipy.stats import binom

from accountant.errors import ParameterError
from audits.minimax import private_lasso
from audits.minimax.bounds.lasso import _consensus_loss, _private_loss, _two_point_bound


def _instance(w, p, weight, prior):
    """All sign matrices (m, w, p), their chances, thetas of the l1 ball, losses / w (m, thetas)."""
    matrices = np.array(list(itertools.product((-1.0, 1.0), repeat=w * p))).reshape(-1, w, p)
    ones = (matrices > 0).sum(axis=1)
    column = beta(prior + ones, prior + w - ones) / beta(prior, prior)
    grid = np.linspace(-1, 1, 9)
    thetas = np.array([t for t in itertools.product(grid, repeat=p) if np.abs(t).sum() <= 1])
    losses = ((matrices @ thetas.T - 1) ** 2).sum(axis=1) + weight * (thetas**2).sum(axis=1)
    return matrices, column.prod(axis=1), thetas, losses / w


def _mechanism(losses, strength):
    weights = np.exp(-strength * (losses - losses.min(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


def _epsilon(matrices, mechanism):
    """Exact, over every exchange of one row."""
    worst = 0.0
    for i, j in itertools.combinations(range(len(matrices)), 2):
        if (matrices[i] != matrices[j]).any(axis=1).sum() == 1:
            worst = max(worst, float(np.abs(np.log(mechanism[i] / mechanism[j])).max()))
    return worst


CASES = list(itertools.product((1, 2, 3), (0.5, 1.0), (0.3, 2.0, 8.0), (0.2, 1.0, 4.0)))


@pytest.mark.parametrize(("w", "prior", "weight", "strength"), CASES)
def test_no_exponential_mechanism_is_below_the_private_loss(w, prior, weight, strength):
    matrices, chances, _, losses = _instance(w, 2, weight, prior)
    assert chances.sum() == pytest.approx(1)
    mechanism = _mechanism(losses, strength)
    epsilon = _epsilon(matrices, mechanism)
    reached = float(chances @ (mechanism * losses).sum(axis=1))
    assert reached >= float(_private_loss(np.array([float(w)]), weight, prior, epsilon, 0.0)[0])


@pytest.mark.parametrize(("w", "prior", "weight"), [(2, 0.5, 1.0), (3, 1.0, 4.0)])
def test_the_minimiser_is_below_it_and_so_not_private(w, prior, weight):
    _, chances, _, losses = _instance(w, 2, weight, prior)
    reached = float(chances @ losses.min(axis=1))
    assert reached < float(_private_loss(np.array([float(w)]), weight, prior, 0.01, 0.0)[0])


@pytest.mark.parametrize("prior", [0.25, 0.5, 1.0])
def test_the_score_is_the_posterior_mean(prior):
    # E <theta, xbar - mu> = 2a / (w + 2a) E <theta, xbar>, mu integrated on a grid of its law
    w, p = 3, 1
    matrices, chances, thetas, losses = _instance(w, p, 1.0, prior)
    mean_theta = _mechanism(losses, 2.0) @ thetas[:, 0]
    means = matrices.mean(axis=1)[:, 0]
    # Gauss and Jacobi's rule for Beta(a, a) on [-1, 1], exact for polynomials
    mu, density = roots_jacobi(20, prior - 1, prior - 1)
    density, q = density / density.sum(), (1 + mu) / 2
    score = 0.0
    for mean, theta in zip(means, mean_theta, strict=True):
        ones = (mean + 1) / 2 * w
        score += (density * q**ones * (1 - q) ** (w - ones) * theta * (mean - mu)).sum()
    factor = 2 * prior / (w + 2 * prior)
    assert score == pytest.approx(factor * float(chances @ (mean_theta * means)))


@pytest.mark.parametrize(("w", "p", "prior"), [(5, 300, 0.5), (20, 2000, 0.25), (3, 50, 1.0)])
def test_the_consensus_columns_do_as_well_as_stated(w, p, prior):
    rng, weight = np.random.default_rng(w), 0.5 * p
    losses = []
    for _ in range(200):
        q = rng.beta(prior, prior, p)
        agree = (rng.random((w, p)) < q).sum(axis=0)
        m = int(((agree == 0) | (agree == w)).sum())
        losses.append(weight / (weight + w * m))
    stated = float(_consensus_loss(np.array([float(w)]), p, weight, prior)[0])
    # of 200 losses in [0, 1] the mean lies .19 off with chance 1e-6 (Hoeffding)
    assert np.mean(losses) <= stated + 0.19
    assert max(losses) <= stated  # fewer columns: 1e-6 each, 2e-4 of 200


@pytest.mark.parametrize("w", [10**4, 10**7])
@pytest.mark.parametrize("prior", [0.1, 0.5, 1.0])
def test_so_few_columns_agree_with_a_chance_that_is_rounded_down(w, prior, monkeypatch):
    asked = []
    monkeypatch.setattr(binom, "ppf", lambda _, n, chance: asked.append(float(chance[0])) or n)
    _consensus_loss(np.array([float(w)]), 10**9, 1.0, prior)
    with mpmath.workdps(40):
        a = mpmath.mpf(prior)
        exact = 2 * mpmath.beta(a + w, a) / mpmath.beta(a, a)
        assert exact * (1 - 1e-6) <= asked[0] <= exact


def test_two_sets_are_two_points():
    # pure: m records change e^(m eps) : 1
    value, m = _two_point_bound(1000, 0.1, 0.0)
    assert value == pytest.approx(m / 1000 / (1 + math.exp(m * 0.1)))
    assert value == pytest.approx(0.2785 / 100, rel=0.02)


def test_the_rate():
    # towards (n eps)^(-2/3), with a constant of about .4, where p is not in the way
    values = [private_lasso(4**i, 10**8, 0.1, 0.0).value for i in (7, 8, 9, 10)]
    slopes = np.diff(np.log(values)) / math.log(4)
    assert slopes == pytest.approx(np.full(3, -2 / 3), abs=0.06)
    assert slopes[0] > slopes[1] > slopes[2]
    n = 4**10
    assert values[-1] * (n * math.sinh(0.1)) ** (2 / 3) == pytest.approx(0.44, abs=0.05)
    # the upper bound of private Frank-Wolfe is above it
    assert values[-1] < 50 * math.log(2e8) / (n * 0.1) ** (2 / 3)


def test_delta_and_epsilon_weaken_it():
    bounds = [
        private_lasso(10**5, 10**5, e, d).value for e, d in ((0.1, 0), (0.1, 1e-4), (1, 1e-4))
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert private_lasso(10**5, 10**5, 0.0, 0.0).value > bounds[0]
    with pytest.raises(ParameterError, match="Theorem 3\\.1"):
        private_lasso(10, 10, 1.0, 1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
def test_the_lasso_of_an_epsilon_near_0_is_that_of_0(delta):
    at_zero = private_lasso(100, 16, 0.0, delta).value
    for epsilon in (5e-324, 1e-300, 1e-160, 1e-20):
        assert private_lasso(100, 16, epsilon, delta).value == pytest.approx(at_zero, rel=1e-9)
