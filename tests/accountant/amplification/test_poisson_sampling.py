"""Nodes of a plan against brute force: sampling, shuffling, groups, parallel by value."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import (
    PLD,
    RDP,
    ZCDP,
    ApproxLoss,
    Basic,
    BoundedRangeLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    Loss,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    Stated,
    Tight,
    UnsupportedPlan,
    ZCDPLoss,
)
from accountant.amplification.group_privacy import group_loss
from accountant.plans.adjacency import Adjacency
from mechanisms import Gaussian, Laplace, RandomizedResponse

LOPSIDED = PairLoss((0.2, 0.5, 0.3, 0.0), (0.5, 0.3, 0.1, 0.1))
LOSSES = [PureLoss(1.0), LOPSIDED, LaplaceLoss(0.7), GaussianLoss(0.8), ApproxLoss(0.5, 1e-3)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
rates = st.floats(0.001, 1.0)


def stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


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


@every_loss
def test_sampled_cumulants_agree_with_the_profile(loss):
    node = PoissonSampled(loss, 0.3)
    for way in (node, node.reversed):
        if not way.has_exact_cgf:
            continue
        for z in (0.5, 2.0, 1.0 + 3.0j):
            exact, by_profile = way.cumulant(z), Loss.cumulant(way, z)
            assert exact == pytest.approx(by_profile, abs=2e-6)


@given(rates, st.floats(0.05, 3.0))
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
    with pytest.raises(ParameterError, match=r"relation must be one of 'add-remove'"):
        PoissonSampled(GaussianLoss(1.0), 0.1, "replace-one")
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


def test_sampling_without_replacement_is_its_formula():
    # a bit in a sample of m of n, told exactly but for a flip: enumerate who is in the sample
    part, m, n = PureLoss(1.0), 2, 10
    node = SampledWithoutReplacement(part, m, n)
    for epsilon in (0.0, 0.1, 0.2):
        inner = math.log1p(math.expm1(epsilon) / (m / n))
        assert node.profile(epsilon) == pytest.approx(m / n * float(part.profile(inner)))
    assert node.pure == pytest.approx(math.log1p(0.2 * math.expm1(1.0)))


# --- shuffling


def clones(e0, users):
    """The clone pair as two dictionaries of masses, by its definition."""
    from scipy.stats import binom

    p, q = {}, {}
    d = math.exp(e0) / (1 + math.exp(e0))
    for c in range(users):
        w = binom.pmf(c, users - 1, 2 / (math.exp(e0) + 1))
        for a in range(c + 1):
            v = w * binom.pmf(a, c, 0.5)
            for one, chance in ((1, d), (0, 1 - d)):
                for law, i in ((p, a + one), (q, a + 1 - one)):
                    key = (i, c + 1 - i)
                    law[key] = law.get(key, 0.0) + v * chance
    keys = sorted(set(p) | set(q))
    return tuple(np.array([law.get(key, 0.0) for key in keys]) for law in (p, q))


@pytest.mark.parametrize("e0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("users", [1, 2, 17])
def test_shuffled_is_the_clone_pair(e0, users):
    p, q = clones(e0, users)
    node = Shuffled(PureLoss(e0), users)
    for epsilon in np.linspace(0, e0, 7):
        assert node.profile(epsilon) == pytest.approx(stick(p, q, epsilon), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("e0", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("users", [1, 3, 12])
def test_shuffled_binary_responses_are_exact(e0, users):
    # every data set of the others, not only those of equal answers: interior ones can be worse
    lie = 1 / (1 + math.exp(e0))
    yes, no = np.array([lie, 1 - lie]), np.array([1 - lie, lie])
    node = Shuffled(PairLoss((1 - lie, lie), (lie, 1 - lie)), users)
    for epsilon in np.linspace(0, e0, 7):
        worst = 0.0
        for others in range(users):
            law = np.ones(1)
            for user in range(users - 1):
                law = np.convolve(law, yes if user < others else no)
            worst = max(worst, stick(np.convolve(law, yes), np.convolve(law, no), epsilon))
        assert node.profile(epsilon) == pytest.approx(worst, rel=1e-9, abs=1e-13)


def test_shuffling_figures():
    high = 1 / (1 + math.exp(-1.0))
    response = PairLoss((high, 1 - high), (1 - high, high))
    assert Shuffled(PureLoss(1.0), 1000).epsilon_at(1e-6) == pytest.approx(0.14867, abs=5e-6)
    assert Shuffled(response, 1000).epsilon_at(1e-6) == pytest.approx(0.12661, abs=5e-6)
    exact = Tight().certify(Shuffled(response, 1000), 1e-6)
    assert exact.width < 1e-9
    # Feldman, McMillan & Talwar (2021), closed form: .566
    assert Tight().epsilon(2 * Shuffled(PureLoss(1.0), 1000), 1e-6) < 0.3


def test_shuffling_hides_pure_randomisers_only():
    with pytest.raises(ParameterError, match="shuffling hides bounded losses only"):
        Shuffled(GaussianLoss(1.0), 100)
    with pytest.raises(ParameterError, match="randomised by each user"):
        Shuffled(Stated(PureLoss(1.0), "add-remove"), 100)
    with pytest.raises(ParameterError, match="users must be a whole number"):
        Shuffled(PureLoss(1.0), 1.5)
    assert Shuffled(RandomizedResponse(k=4, keep=0.5), 100).relation == "replace-one"


# --- groups


def test_groups_scale_the_shift_of_noise():
    assert [item for item, _ in Grouped(7 * Gaussian(2.0), 3).losses()] == [GaussianLoss(1.5)] or (
        next(Grouped(7 * Gaussian(2.0), 3).losses())[0].mu == pytest.approx(1.5)
    )
    assert next(Grouped(Laplace(2.0), 4).losses())[0].shift == pytest.approx(2.0)
    assert next(Grouped(BoundedRangeLoss(0.1), 5).losses())[0].epsilon == pytest.approx(0.5)
    assert ZCDP().rho(Grouped(ZCDPLoss(0.1), 3)) == pytest.approx(0.9)
    assert Tight().epsilon(Grouped(5 * PureLoss(0.1), 1), 1e-6) == pytest.approx(
        Tight().epsilon(5 * PureLoss(0.1), 1e-6)
    )


def test_approximate_privacy_of_a_group_is_the_textbook_rule():
    # Vadhan (2017), Lemma 2.2: (k eps, delta (1 + e^eps + ... + e^{(k-1) eps}))
    loss = group_loss(ApproxLoss(0.5, 1e-3), 3)
    assert loss.delta_at(1.5) == pytest.approx(1e-3 * (1 + math.exp(0.5) + math.e))
    with pytest.raises(UnsupportedPlan, match="xi > 0 has no group bound"):
        group_loss(ZCDPLoss(0.1, 0.1), 2)


@pytest.mark.parametrize("size", [2, 3])
def test_the_trade_off_of_a_group_is_the_iterated_one(size):
    # power composed with power, on a fine grid
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
    level = np.concatenate([[0.0], np.cumsum(q)])
    power = np.concatenate([[0.0], np.cumsum(p)])
    fine = np.linspace(0, 1, 2_000_001)
    h = fine
    for _ in range(size):
        h = np.interp(h, level, power)
    loss = group_loss(PairLoss(tuple(p), tuple(q)), size)
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        truth = float(np.max(h - math.exp(epsilon) * fine))
        assert float(loss.profile(epsilon)) == pytest.approx(max(truth, 0.0), abs=1e-5)


def test_a_group_of_sampled_records_is_more_than_the_group_of_the_part():
    sampled = PoissonSampled(GaussianLoss(1.0), 0.1)
    one, two = (Grouped(sampled, size) for size in (1, 2))
    assert Tight().epsilon(two, 1e-5) > 1.5 * Tight().epsilon(one, 1e-5)
    # never the sensitivity through the sample: either record may be drawn
    wrong = PoissonSampled(GaussianLoss(2.0), 0.1)
    assert Tight().delta(two, 0.0) > Tight().delta(wrong, 0.0) * 1.05


# --- parallel by value


def test_a_record_that_moves_leaves_a_trace_in_both_groups():
    # histogram of two groups, Laplace noise for a count: replacing a record can change both
    kept, moved = LaplaceLoss(0.1), LaplaceLoss(1.0)
    by_index = Parallel([kept, kept])
    by_value = Parallel([kept, kept], by="value", moves=[moved, moved])
    assert Tight().epsilon(by_index, 1e-6) < 0.1 + 1e-9
    assert Tight().epsilon(by_value, 1e-6) == pytest.approx(
        Tight().epsilon(2 * moved, 1e-6), rel=1e-7
    )
    assert by_value.relation == "replace-one"
    assert Basic().epsilon(by_value, 0.0) == 2.0


def test_without_the_moves_replacing_by_value_is_refused():
    stated = Stated(LaplaceLoss(0.1), "replace-one")
    with pytest.raises(ParameterError, match="can move it to another part"):
        Parallel([stated, stated], by="value")
    with pytest.raises(ParameterError, match="one plan stated for add-remove"):
        Parallel([stated], by="value", moves=[LaplaceLoss(1.0), LaplaceLoss(1.0)])
    with pytest.raises(ParameterError, match="one plan stated for add-remove"):
        Parallel([stated], by="value", moves=[stated])
    with pytest.raises(ParameterError, match="by must be one of"):
        Parallel([PureLoss(1.0)], by="colour")
    # adding or removing a record touches one group only
    assert Tight().epsilon(Parallel([LaplaceLoss(0.1)] * 3, by="value"), 0.0) == 0.1


def test_parts_that_one_part_covers_cost_nothing():
    dearest = 4 * Parallel([GaussianLoss(0.5), GaussianLoss(0.3), GaussianLoss(0.1)])
    assert Tight().epsilon(dearest, 1e-6) == Tight().epsilon(4 * GaussianLoss(0.5), 1e-6)
    pure = 4 * Parallel([LaplaceLoss(0.5), PureLoss(0.5)])
    assert Tight().epsilon(pure, 1e-6) == Tight().epsilon(4 * PureLoss(0.5), 1e-6)
    assert RDP().epsilon(pure, 1e-6) == RDP().epsilon(4 * PureLoss(0.5), 1e-6)


def test_equal_parts_are_shown_as_a_multiple():
    one, other = PureLoss(1.0), PureLoss(0.5)
    for plan in (
        Parallel([one] * 3815), Parallel([one, one, other], by="value"), Parallel([]),
        Parallel([Stated(one, "replace-one")], by="value", moves=[Stated(other, "add-remove")]),
    ):  # fmt: skip
        assert eval(repr(plan)) == plan
        assert len(repr(plan)) < 200
