"""The mu of a plan and the regret of reporting it, against closed forms and brute force."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from accountant import (
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    ZCDPLoss,
    gdp_of,
    tradeoff,
)
from accountant.accountants import gaussian_fit

DP_SGD = 2000 * PoissonSampled(GaussianLoss(1 / 9.4), 2**14 / 50000)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0.75, 0.93080679), (1.0, 1.23203539), (1.5, 1.81232047), (2.0, 2.35796149)],
)
def test_a_binary_response_has_the_published_mu(epsilon, mu):
    e = math.exp(epsilon)
    pair = PairLoss((e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e)))
    for loss in (PureLoss(epsilon), pair):
        found = gdp_of(loss)
        assert found.mu == pytest.approx(mu, abs=1e-8)
        assert found.mu >= -2 * ndtri(1 / (1 + e)) * (1 - 1e-15)
        assert found.tail == 0
        # (G's delta - its own) / (1 + e^x), its own 0 beyond epsilon
        x = np.linspace(0, 6, 20_001)
        own = np.maximum(e - np.exp(x), 0.0) / (1 + e)
        top = found.mu / 2 - x / found.mu
        theirs = ndtr(top) - np.exp(x) * ndtr(top - found.mu)
        truth = float(np.max((theirs - own) / (1 + np.exp(x))))
        assert truth - 1e-12 <= found.regret <= truth + 1e-5


def test_dp_sgd_has_the_published_mu_and_hardly_any_regret():
    mu, regret = found = gdp_of(DP_SGD)
    assert mu == pytest.approx(1.567, abs=5e-4)
    assert 0 < regret <= 0.01
    assert found.tail == 1e-10
    # no point of the curve is below the Gaussian's, and some is nearly on it
    alpha = np.array([1e-10, 1e-7, 1e-4, 0.01, 0.1, 0.2])
    mus = -ndtri(alpha) - ndtri(tradeoff(DP_SGD, alpha))
    assert np.all(mus <= mu + 1e-6)
    assert np.max(mus) >= mu - 2e-3
    # far out it is as bad as without sampling
    assert gdp_of(DP_SGD, tail=1e-30).mu > mu
    assert math.isinf(gdp_of(DP_SGD, tail=0).mu)


def test_gaussians_have_no_regret():
    assert tuple(gdp_of(GaussianLoss(2.0))) == (2.0, 0.0)
    mu, regret = gdp_of(100 * GaussianLoss(0.1))
    assert (mu, regret) == (pytest.approx(1.0, abs=1e-12), 0.0)
    assert mu >= 1.0
    assert tuple(gdp_of(0 * GaussianLoss(1.0))) == (0.0, 0.0)


@pytest.mark.parametrize(
    "plan",
    [
        LaplaceLoss(1.0),
        8 * PureLoss(0.4),
        pytest.param(3 * LaplaceLoss(0.5), marks=pytest.mark.slow),
    ],
)
def test_a_pure_plan_has_a_mu_for_all_rates(plan):
    found = gdp_of(plan, tail=0)
    assert found.tail == 0
    alpha = np.geomspace(1e-14, 0.5, 80)
    beta = tradeoff(plan, alpha)
    mus = -ndtri(alpha) - ndtri(beta)
    assert np.all(mus <= found.mu + 1e-5)
    assert np.max(mus) >= found.mu - 0.05
    # the regret, by the definition: f(a + k) - k <= G(a)
    grid = np.linspace(0, 1 - found.regret, 400)
    above = tradeoff(plan, grid + found.regret) - found.regret
    assert np.all(above <= ndtr(-ndtri(grid) - found.mu) + 1e-7)
    less = 0.9 * found.regret
    assert np.any(tradeoff(plan, grid + less) - less > ndtr(-ndtri(grid) - found.mu) + 1e-6)


def test_an_asymmetric_pair_takes_its_worse_direction():
    pair = PairLoss((0.9, 0.1), (0.6, 0.4))
    assert gdp_of(pair) == gdp_of(pair.reversed)
    # corners: (0.6, 0.1) and, reversed, (0.1, 0.6)
    assert gdp_of(pair).mu == pytest.approx(-ndtri(0.6) - ndtri(0.1), abs=1e-9)


def test_parallel_plans_take_the_worse_part():
    mus = [gdp_of(part).mu for part in (GaussianLoss(1.0), PureLoss(1.5))]
    assert gdp_of(Parallel([GaussianLoss(1.0), PureLoss(1.5)])).mu >= max(mus) * (1 - 1e-9)


def test_what_is_no_gaussian_says_why():
    found = gdp_of(ApproxLoss(1.0, 1e-6))
    assert tuple(found) == (math.inf, math.inf)
    assert "1e-06 an answer reveals all" in found.reason
    assert "tail above 0" in gdp_of(ZCDPLoss(0.1), tail=0).reason
    assert "almost surely" in gdp_of(ZCDPLoss(1e5)).reason
    for bad in (-1e-3, 0.5, math.nan, True, "a", None):
        with pytest.raises(ParameterError, match="tail must"):
            gdp_of(GaussianLoss(1.0), tail=bad)
    with pytest.raises(ParameterError, match="plan must"):
        gdp_of(1.0)


def test_a_tail_is_less_where_both_rates_are_small():
    found = gdp_of(GaussianLoss(9.0) + PureLoss(0.01))
    assert found.tail < 1e-10
    assert 9.0 <= found.mu <= 9.1


def points_in_place_of_corners(patch):
    """Takes the curve at the points themselves, between which it is not below."""

    def wrong(epsilon, delta, tail):
        fall, level = gaussian_fit._log_levels(epsilon, delta)
        inside = level >= math.log(max(tail, 1e-300))
        power = delta[:-1] + 0 * fall
        mus = -ndtri(np.exp(level[inside])) + ndtri(power[inside])
        return mus, np.arange(level.size)[inside]

    patch.setattr(gaussian_fit, "_corner_mus", wrong)


def one_direction_alone(patch):
    ways = gaussian_fit.single_pairs
    patch.setattr(gaussian_fit, "single_pairs", lambda plan: ways(plan)[1:])


def regret_not_divided(patch):
    regret = gaussian_fit._regret
    patch.setattr(gaussian_fit, "_regret", lambda *given: 2 * regret(*given))


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (
            points_in_place_of_corners,
            lambda: test_a_pure_plan_has_a_mu_for_all_rates(8 * PureLoss(0.4)),
        ),
        (one_direction_alone, test_an_asymmetric_pair_takes_its_worse_direction),
        (regret_not_divided, lambda: test_a_binary_response_has_the_published_mu(1.0, 1.23203539)),
    ],
)  # fmt: skip
def test_wrong_fits_are_caught(mutant, law, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises((AssertionError, ValueError, IndexError)):
        law()
