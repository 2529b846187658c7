"""Contours of hits: moments against 30 digits, answers against nested quadrature."""

import math

import mpmath
import numpy as np
import pytest

from accountant import GaussianLoss, PoissonSampled, Tight
from accountant.amplification.sampled_gaussian import hit_rules
from accountant.amplification.sampled_gaussian.hit_rules import POWER, Hits, log_rest
from accountant.amplification.sampled_gaussian.sampled_gaussian_cgf import SampledGaussian
from accountant.amplification.sampled_gaussian.sampled_gaussian_hits import (
    HitSampledGaussian,
    with_a_hit,
)
from accountant.composition.certified_composition import CertifiedComposition
from accountant.composition.cgf import PlanCGF
from accountant.composition.contour import Contour
from accountant.composition.grid_certificate import grid_certificate

CASES = [(4.0, 0.01, 2.0, 4.0), (2.0, 1e-4, 0.5, 5.0)]  # mu, rate, odds, highest power


def moments(mu, rate, odds, s, points):
    """Return E r^s phi and E r^s (1 - phi) by a trapezoid rule in 30 digits."""
    hit = rest = mpmath.mpf(0)
    step, c = mpmath.mpf(30) / points, mpmath.mpf(odds) * (1 - mpmath.mpf(rate))
    for k in range(points + 1):
        x = step * k - 10
        share = rate * mpmath.exp(mu * x - mpmath.mpf(mu) ** 2 / 2)
        term, miss = step * mpmath.npdf(x) * (1 - rate + share) ** s, mpmath.exp(-share / c)
        hit += term * (1 - miss) ** POWER
        rest += term * -mpmath.expm1(POWER * mpmath.log1p(-miss))
    return hit, rest


@pytest.mark.parametrize(("mu", "rate", "odds", "highest"), CASES)
def test_cumulants_of_hits_are_within_their_error(mu, rate, odds, highest):
    hits, n, a = Hits(mu, rate, odds, highest), 5, 0.8
    part = HitSampledGaussian(hits, n)
    with mpmath.workdps(30):
        at = {}
        for v in (0.0, 25.0):
            hit, rest = moments(mu, rate, odds, mpmath.mpc(1 + a, v), 1000)
            at[v] = (hit + rest) ** n - rest**n
            if v == 0:
                value, error = hits.log_moments(np.array([1 + a]))
                assert abs(value[0] - mpmath.log(hit.real)) <= error[0] < 1e-9
        value, error = part.cgf(np.array([a]))
        assert abs(value[0] - mpmath.log(at[0.0].real)) <= error[0] < 1e-8
        ratio, error = part.cf_ratio(a + 1j * np.array([[0.0, 25.0]]))
        for i, v in enumerate(at):
            true = complex(at[v] / at[0.0])
            assert abs(ratio[0, i] - true) <= error[0, i] < 1e-8
            assert math.log(abs(true)) <= part.log_cf_bound(a, np.array([v]))[0] + 1e-12


def test_the_bound_falls_with_the_frequency():
    bound = HitSampledGaussian(Hits(4.0, 0.01, 2.0, 4.0), 3).log_cf_bound(
        0.8, np.geomspace(0.1, 1e4, 20)
    )
    assert np.all(np.diff(bound) <= 0)
    assert bound[-1] < -25


def test_powers_above_the_highest_are_not_answered():
    value, _ = HitSampledGaussian(Hits(4.0, 0.01, 2.0, 4.0), 3).cgf(np.array([2.9, 3.1]))
    assert math.isfinite(value[0])
    assert value[1] == math.inf


@pytest.mark.parametrize(("mu", "rate", "odds"), [case[:3] for case in CASES])
def test_the_others_are_bounded(mu, rate, odds, monkeypatch):
    # Chernoff's bound by E r^p (1 - phi) of one release in 30 digits
    count, epsilon, orders = 7, 3.0, np.array([1.0, 20.0, 60.0])
    bounds = []
    with mpmath.workdps(30):
        for b in orders / epsilon:
            _, rest = moments(mu, rate, odds, mpmath.mpf(1 + b), 430)
            own = count * mpmath.log(rest) - b * epsilon
            bounds.append(float(own) + b * math.log(b) - (1 + b) * math.log1p(b))
    monkeypatch.setattr(hit_rules, "ORDERS", orders)
    found = log_rest(mu, rate, odds, count, epsilon)
    assert min(bounds) <= found <= min(bounds) + 1e-6


def test_what_a_rule_of_others_misses_is_an_amount(monkeypatch):
    # nearly every output is a hit: the others lie beyond the rule, e^-9000 is all it sees of them
    epsilon, order = 2.1220540007719007, 1.0174373593782697
    monkeypatch.setattr(hit_rules, "ORDERS", np.array([order * epsilon]))
    # ln E r^p (1 - phi) by a sum over 400,001 places from -45 on
    truth = -198.30124
    found = log_rest(1.6034877978700905, 0.9999999999961142, 0.030815223305990888, 1, epsilon)
    assert found >= truth


@pytest.mark.parametrize(
    ("scale", "rate", "delta", "truth"),
    [
        # 20 digits by nested quadrature over one release
        (0.25, 0.01, 1e-8, 27.063628268681627748),
        (0.3, 1e-5, 1e-7, 2.033863619048744245),
        (0.45, 0.1, 1e-10, 17.399244221237350228),
        (0.6, 0.02, 1e-6, 3.7721015782801640106),
    ],
)
def test_two_steps_agree_with_nested_quadrature(scale, rate, delta, truth):
    found = Tight().certify(2 * PoissonSampled(GaussianLoss(1 / scale), rate), delta)
    assert found.engine == "hit contour"
    assert found.lower <= truth <= found.upper
    assert found.width < 1e-9 * truth


@pytest.mark.parametrize(
    ("rate", "scale", "steps", "delta"),
    [
        (0.00632, 0.302, 3, 3e-10),
        (1.82e-5, 0.192, 9, 1e-9),
        (0.000581, 0.249, 74, 5e-6),
        (0.0266, 0.176, 35, 6e-4),
        (0.0456, 0.293, 12, 1e-4),
    ],
)
def test_certificates_overlap_with_those_of_the_grid(rate, scale, steps, delta):
    loss = PoissonSampled(GaussianLoss(1 / scale), rate)
    found = Tight().certify(steps * loss, delta)
    assert found.width < 1e-8 * found.upper
    grid = grid_certificate([(loss, steps)], delta, 1e-5)
    assert max(found.lower, grid.lower) <= min(found.upper, grid.upper)


@pytest.mark.parametrize(
    ("rate", "scale", "steps", "delta"),
    [
        (2.3e-6, 0.202, 3418, 7e-9),
        (1.33e-5, 0.15, 616_508, 4e-6),
        (0.00482, 0.101, 757, 1e-4),
        (1.75e-6, 33.8, 928_670, 2.7e-12),
        (1.28e-6, 26.5, 64_215, 9e-9),
    ],
)
def test_certificates_that_were_wide_are_narrow(rate, scale, steps, delta):
    found = Tight().certify(steps * PoissonSampled(GaussianLoss(1 / scale), rate), delta)
    assert 0 < found.width < 1e-8 * found.upper


def test_the_odds_of_many_hits_are_those_of_one():
    part = with_a_hit(SampledGaussian(1 / 0.107, 0.138, False), 4, 300.0, math.log(3.5e-8))
    assert part is not None
    assert math.log1p(part.hits.odds) < 40


@pytest.mark.parametrize(
    ("rate", "scale", "steps", "delta"),
    [(0.0222, 5.33, 145_708, 3e-12), (0.00268, 13.2, 14_216, 1e-4), (0.01, 1.0, 500, 1e-6)],
)
def test_a_direction_is_below_what_it_costs_and_no_less(rate, scale, steps, delta):
    added = PoissonSampled(GaussianLoss(1 / scale), rate).reversed
    composition = CertifiedComposition([(added, steps)], 1e-8)
    found = composition.certify(delta)
    assert not composition.is_surely_within(found.lower * (1 - 1e-6), delta)
    assert composition.is_surely_within(found.upper * (1 + 1e-3), delta)
    # and along the nodes of the other direction, which any contour may use
    removed = CertifiedComposition([(added.reversed, steps)], 1e-8)
    assert removed.certify(delta).lower > found.upper
    assert not composition.is_surely_within(found.lower * (1 - 1e-6), delta, removed)
    assert composition.is_surely_within(found.upper * (1 + 1e-3), delta, removed)


def test_any_nodes_give_an_upper_bound():
    removed = PoissonSampled(GaussianLoss(0.2), 0.02)
    of_removed = Contour(PlanCGF([(removed, 10_000)]), 5.0, 2.0, 0.0)
    added = CertifiedComposition([(removed.reversed, 10_000)], 1e-8)
    for share in (0.1, 0.5, 1.0):
        grid = of_removed.step, share * of_removed.nodes
        contour = Contour(PlanCGF(added.items), 5.0, 2.0, 0.0, grid=grid)
        contour.integrate()
        for epsilon in (0.5, 1.0, 2.0):
            least, most = contour.bounds(epsilon)
            low, high = added.delta(epsilon)
            assert least == -math.inf
            assert math.log(low) <= most
            assert share < 1 or most <= math.log(high) + 1e-6


def test_a_contour_without_a_lower_end_has_the_same_upper_end():
    cgf = PlanCGF([(PoissonSampled(GaussianLoss(0.2), 0.02), 10_000)])
    both, above = (Contour(cgf, 5.0, 2.0, 0.0, only_above=only) for only in (False, True))
    both.integrate()
    above.integrate()
    assert above.bounds(2.0)[0] == -math.inf
    low, high = both.bounds(2.0)
    assert low <= above.bounds(2.0)[1] <= high + 1e-9
