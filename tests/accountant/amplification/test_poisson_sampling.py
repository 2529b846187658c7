"""Nodes of a plan against brute force: sampling, shuffling, groups, parallel by value."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given

from accountant import (
    PLD,
    ApproxLoss,
    Basic,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Sequential,
    Stated,
    Tight,
)
from accountant.amplification.poisson_sampling import sampled_max_loss
from accountant.losses.upper_envelope import UpperEnvelope
from accountant.plans.adjacency import Adjacency
from mechanisms import RandomizedResponse
from tests.accountant.enumeration import stick
from tests.strategies import epsilons, rates

LOPSIDED = PairLoss((0.2, 0.5, 0.3, 0.0), (0.5, 0.3, 0.1, 0.1))
LOSSES = [PureLoss(1.0), LOPSIDED, LaplaceLoss(0.7), GaussianLoss(0.8), ApproxLoss(0.5, 1e-3)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def on_the_line(loss):
    """Two laws on a fine grid that stand for a loss."""
    if isinstance(loss, PairLoss):
        return np.array(loss.p), np.array(loss.q)
    if isinstance(loss, PureLoss):
        return np.array([math.e**loss.epsilon, 1]) / (1 + math.e**loss.epsilon), np.array(
            [1, math.e**loss.epsilon]
        ) / (1 + math.e**loss.epsilon)
    if isinstance(loss, ApproxLoss):
        p = (1 - loss.delta) / (1 + math.exp(-loss.epsilon))
        both = np.array([loss.delta, p, p * math.exp(-loss.epsilon), 0.0])
        return both, both[::-1]
    x = np.linspace(-40, 40, 800_001)
    if isinstance(loss, LaplaceLoss):
        laws = [np.exp(-np.abs(x - shift)) / 2 for shift in (0.0, loss.shift)]
    else:
        laws = [np.exp(-((x - shift) ** 2) / 2) / math.sqrt(2 * math.pi) for shift in (loss.mu, 0)]
    return tuple(law * (x[1] - x[0]) for law in laws)


@every_loss
@pytest.mark.parametrize("rate", [1e-3, 0.2, 0.9, 1.0])
def test_poisson_sampling_is_the_mixture(loss, rate):
    p, q = on_the_line(loss)
    mixed = (1 - rate) * q + rate * p
    node = PoissonSampled(loss, rate)
    for epsilon in (0.0, 0.01, 0.3, 1.0, 2.5):
        assert node.profile(epsilon) == pytest.approx(stick(mixed, q, epsilon), abs=2e-5)
        assert node.reversed.profile(epsilon) == pytest.approx(stick(q, mixed, epsilon), abs=2e-5)


def sampled_laws(loss, rate, *, added):
    p, q = np.array(loss.p), np.array(loss.q)
    mixed = rate * p + (1 - rate) * q
    return (q, mixed) if added else (mixed, q)


SKEWED = PairLoss((0.05, 0.35, 0.6), (0.3, 0.4, 0.3))


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("rate", [0.01, 0.4, 0.95])
@pytest.mark.parametrize("loss", [SKEWED, LOPSIDED], ids=["skewed", "lopsided"])
def test_divergences_of_a_sampled_pair_are_its_sums(loss, rate, added):
    node = PoissonSampled(loss, rate)
    node = node.reversed if added else node
    with mp.workdps(40):
        one, other = ([mp.mpf(x) / mp.fsum(law) for x in law] for law in (loss.p, loss.q))
        laws = [(rate * p + (1 - mp.mpf(rate)) * q, q) for p, q in zip(one, other, strict=True)]
        ratios = [(q, q / p) if added else (p, p / q) for p, q in laws]
        for order in (1.5, 2.0, 3.0, 12.0, 90.0):
            moment = mp.fsum(p * ratio ** (order - 1) for p, ratio in ratios)
            truth = mp.log(moment) / (order - 1)
            assert truth <= float(node.renyi(order)) <= truth * (1 + 1e-9)
        largest = float(mp.log(max(ratio for _, ratio in ratios)))
    # rho is above the divergence of each order over the order
    orders = np.geomspace(1.001, 300.0, 40)
    assert np.all(node.renyi(orders) <= node.rho * orders * (1 + 1e-9))
    assert node.max_loss == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("rates_of_both", [(0.3, 0.5), (1.0, 0.5), (0.3, 1.0), (1e-13, 1e-12)])
def test_a_sample_of_a_sample_has_the_laws_of_both(rates_of_both):
    outer, inner = rates_of_both
    epsilon = np.array([0.0, 0.1, 0.3])
    for part, inner_added in ((SKEWED, False), (SKEWED.reversed, False), (SKEWED, True)):
        inner_node = PoissonSampled(part, inner)
        inner_laws = sampled_laws(part, inner, added=inner_added)
        inner_node = inner_node.reversed if inner_added else inner_node
        for added in (False, True):
            node = PoissonSampled(inner_node, outer)
            ((loss, count),) = (node.reversed if added else node).losses()
            p, q = inner_laws
            mixed = outer * p + (1 - outer) * q
            p, q = (q, mixed) if added else (mixed, q)
            truth = [stick(p, q, e) for e in epsilon]
            assert count == 1
            assert np.all(loss.profile(epsilon) >= np.array(truth) * (1 - 1e-9) - 1e-15)
            assert loss.profile(epsilon) == pytest.approx(truth, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("rate", [0.25, 1.0])
@pytest.mark.parametrize("part", [SKEWED, LOPSIDED, LOPSIDED.reversed])
def test_the_mass_that_shows_a_record_is_sampled(part, rate, added):
    node = PoissonSampled(part, rate)
    node = node.reversed if added else node
    p, q = sampled_laws(part, rate, added=added)
    shown = p[q == 0].sum()
    assert node.infinity == pytest.approx(shown, abs=1e-15)
    for epsilon in (0.0, 0.2, 3.0, 50.0):
        assert float(node.profile(epsilon)) == pytest.approx(stick(p, q, epsilon), abs=1e-15)
        assert float(node.profile(epsilon)) >= shown


@pytest.mark.parametrize("added", [False, True])
def test_the_lower_end_of_a_sampled_bound_is_that_of_the_sampled_pair(added):
    part = UpperEnvelope(PairLoss((0.7, 0.3), (0.3, 0.7)), PairLoss((0.6, 0.4), (0.4, 0.6)))
    nodes = [PoissonSampled(loss, 0.2) for loss in (part, part.bound, part.attained)]
    both, bound, attained = (node.reversed if added else node for node in nodes)
    epsilon = np.array([0.0, 0.05, 0.1])
    assert both.numerics.is_upper_envelope
    assert np.allclose(both.attained_pair.profile(epsilon), attained.profile(epsilon), rtol=1e-12)
    assert np.all(both.profile(epsilon) >= bound.profile(epsilon) * (1 - 1e-12))
    found = Tight().certify_one_way(4 * both, 1e-3)
    assert found.lower <= Tight().certify_one_way(4 * attained, 1e-3).upper
    assert found.upper >= Tight().certify_one_way(4 * bound, 1e-3).lower


@pytest.mark.parametrize("mu", [2.0, 8.0])  # 8: the allocation's profile is not integrated
def test_the_lower_end_of_a_sampled_allocation_is_below_it(mu):
    x, h = np.linspace(-9, 9 + mu, 901, retstep=True)
    ratio = np.exp(mu * x - mu**2 / 2)
    q = np.exp(-(x**2) / 2) * h / math.sqrt(2 * math.pi)
    q, ratio = q[:, None] * q, 0.1 + 0.9 * (ratio[:, None] + ratio) / 2
    pair = PoissonSampled(RandomAllocation(GaussianLoss(mu), 2), 0.9).attained_pair
    for epsilon in (0.5, 2.0, mu**2 / 2):
        truth = np.array([stick(q * ratio, q, epsilon), stick(q, q * ratio, epsilon)])
        shown = [float(way.profile(epsilon)) for way in (pair, pair.reversed)]
        assert np.all(shown <= truth * (1 + 1e-3) + 1e-12)


@pytest.mark.parametrize("rate", [0.3, 0.99])
def test_a_sampled_allocation_has_a_quick_profile_for_sums(rate):
    plan = PoissonSampled(RandomAllocation(GaussianLoss(1.0), 20), rate)
    epsilon = np.array([0.0, 0.1, 0.6])
    for one, other in ((plan, plan.reversed), (plan.reversed, plan)):
        assert np.allclose(one.profile_any_epsilon(epsilon), one.profile(epsilon), rtol=1e-9)
        mirrored = 1 - np.exp(-epsilon) + np.exp(-epsilon) * other.profile(epsilon)
        assert np.allclose(one.profile_any_epsilon(-epsilon), mirrored, rtol=1e-9)
    # where the record is added, Chernoff's bound of the part is enough for ten times its delta
    added = plan.reversed
    assert added.is_surely_within(0.1, 10 * float(added.profile(0.1)))
    assert not added.is_surely_within(0.1, 0.99 * float(added.profile(0.1)))
    assert not plan.is_surely_within(0.6, 0.1)


@every_loss
def test_sampled_cumulants_agree_with_the_profile(loss):
    node = PoissonSampled(loss, 0.3)
    for way in (node, node.reversed):
        if not way.numerics.has_exact_cgf:
            continue
        for z in (0.5, 2.0, 1.0 + 3.0j):
            exact, by_profile = way.cumulant(z), Loss.cumulant(way, z)
            assert exact == pytest.approx(by_profile, abs=2e-6)


@given(rates, epsilons(0.05, 3.0))
def test_sampled_pure_privacy_is_amplified_as_is_known(rate, epsilon):
    # Li, Qardaji & Su (2012): ln(1 + q (e^eps - 1))
    node = PoissonSampled(PureLoss(epsilon), rate)
    assert Basic().epsilon(node, 0.0) == pytest.approx(math.log1p(rate * math.expm1(epsilon)))


def test_sampling_at_the_ends():
    part = 3 * GaussianLoss(0.5)
    assert Tight().epsilon(PoissonSampled(part, 1.0), 1e-6) == pytest.approx(
        Tight().epsilon(part, 1e-6), rel=1e-9
    )
    assert Tight().epsilon(100 * PoissonSampled(part, 0.0), 1e-6) == 0.0
    assert Tight().epsilon(SampledWithoutReplacement(part, 0, 10), 1e-6) == 0.0
    assert Tight().epsilon(SampledWithoutReplacement(part, 10, 10), 1e-6) == pytest.approx(
        Tight().epsilon(part, 1e-6), rel=1e-9
    )


def test_a_composite_part_sees_one_sample():
    two = PoissonSampled(2 * GaussianLoss(0.5), 0.1)
    assert Tight().epsilon(two, 1e-6) == pytest.approx(
        Tight().epsilon(PoissonSampled(GaussianLoss(0.5 * math.sqrt(2)), 0.1), 1e-6), rel=1e-9
    )
    mixed = PoissonSampled(GaussianLoss(0.5) + LaplaceLoss(0.3), 0.1)
    parts = (PoissonSampled(GaussianLoss(0.5), 0.1), PoissonSampled(LaplaceLoss(0.3), 0.1))
    found = Tight().epsilon(mixed, 1e-6)
    assert found > max(Tight().epsilon(part, 1e-6) for part in parts)
    lower = PLD().bracket(mixed, 1e-6)[0]
    assert found >= lower


def test_sampling_refuses_other_neighbours_with_the_reason():
    with pytest.raises(ParameterError, match=r"one of 'add-remove', 'zero-out', 'replace-one'"):
        PoissonSampled(GaussianLoss(1.0), 0.1, "label-replace")
    for relation in set(Adjacency) - {"add-remove"}:
        with pytest.raises(ParameterError, match="Poisson sampling compares the data with and"):
            PoissonSampled(Stated(GaussianLoss(1.0), relation), 0.1)
    with pytest.raises(ParameterError, match="replace-one"):
        SampledWithoutReplacement(Stated(GaussianLoss(1.0), "add-remove"), 1, 10)
    with pytest.raises(ParameterError, match="local-replace"):
        PoissonSampled(RandomizedResponse(k=3, keep=0.5), 0.1)
    with pytest.raises(ParameterError, match="do not mix"):
        Sequential([Stated(PureLoss(1.0), "replace-one"), PoissonSampled(PureLoss(1.0), 0.5)])
    with pytest.raises(ParameterError, match="do not mix"):
        Stated(PureLoss(1.0), "replace-one") + Stated(PureLoss(1.0), "add-remove")


@pytest.mark.parametrize("bad", [math.nan, -1e-9, 1 + 1e-12, True, "0.1", None])
def test_rates_outside_their_range_are_refused(bad):
    with pytest.raises(ParameterError, match="rate must be"):
        PoissonSampled(GaussianLoss(1.0), bad)


# --- shuffling


# --- groups


# --- parallel by value


def test_bounds_of_sampled_losses_are_rounded_outwards():
    assert PoissonSampled(ApproxLoss(0.1, 0.3), 0.5).reversed.max_loss >= math.log(2)
    assert PoissonSampled(PureLoss(30.0), 1.0).reversed.max_loss >= 30.0
    nearly = PoissonSampled(PureLoss(30.0), 1 - 1e-12).reversed
    assert nearly.max_loss == pytest.approx(27.541588, rel=1e-6)


@pytest.mark.parametrize("rate", [1e-250, 1e-9, 0.3, 1 - 2**-53, 1.0])
@pytest.mark.parametrize("end", [-math.inf, -800.0, -1.0, -1e-12, 0.0, 1e-12, 1.0, 800.0, math.inf])
def test_the_end_of_a_sampled_loss_is_rounded_away_from_zero(end, rate):
    with mp.workdps(400):
        share = mp.mpf(rate)
        inside = 1 + share * (mp.exp(end) - 1) if end > -math.inf else 1 - share
        truth = mp.log(inside) if inside > 0 else -mp.inf
        found = sampled_max_loss(end, rate)
        assert abs(found) >= abs(truth)
        assert math.isinf(found) == mp.isinf(truth)
        assert mp.isinf(truth) or abs(found - truth) <= 1e-14 * abs(truth)


def sampled_gaussian(mu, rate):
    return PoissonSampled(GaussianLoss(mu), rate)


def test_a_loss_of_bound_zero_can_be_sampled_and_composed():
    plan = SampledWithoutReplacement(ApproxLoss(0.0, 1e-6), 1, 10) + LaplaceLoss(0.3)
    assert Tight().epsilon(plan, 1e-3) == pytest.approx(0.298, abs=1e-3)
    assert sampled_gaussian(1.0, 0.0).delta_at(0.1) == 0.0
    assert SampledWithoutReplacement(GaussianLoss(1.0), 0, 10).epsilon_at(0.1) == 0.0


def test_a_sample_holds_each_user_with_the_rate_and_comes_back_with_the_seed():
    node, users = PoissonSampled(LaplaceLoss(0.7), 0.3), 400_000
    sample = node.sampler.select(users, np.random.default_rng(5))
    assert sample.tolist() == sorted(set(sample.tolist()))
    assert np.array_equal(sample, node.select(users, np.random.default_rng(5)))
    # Hoeffding: a sample so far from the rate has a chance below 1e-9
    assert abs(sample.size / users - 0.3) < math.sqrt(math.log(2e9) / (2 * users))
    assert PoissonSampled(LaplaceLoss(0.7), 0.0).select(users, np.random.default_rng(5)).size == 0
    whole = PoissonSampled(LaplaceLoss(0.7), 1.0).select(users, np.random.default_rng(5))
    assert np.array_equal(whole, np.arange(users))
    assert node.part.sampler is None
