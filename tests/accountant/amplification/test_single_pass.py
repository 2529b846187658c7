"""One pass in a fixed or a random order: what it costs, and the pair below."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm

from accountant import (
    GaussianLoss,
    LaplaceLoss,
    OnePass,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    ShuffledEpoch,
    Stated,
    Tight,
    UnsupportedPlan,
    from_json,
    to_dp_event,
    to_json,
)
from accountant.amplification.allocation.greatest_output import greatest_output_pair

PASSES = [OnePass, ShuffledEpoch]


@pytest.mark.parametrize("cls", PASSES)
@pytest.mark.parametrize("part", [GaussianLoss(0.5), LaplaceLoss(0.7), 2 * PureLoss(0.1)])
def test_a_pass_costs_what_the_batch_of_the_record_does(cls, part):
    for plan, count in ((cls(part, 20), 1), (10 * cls(part, 20), 10)):
        found, alone = Tight().certify(plan, 1e-6), Tight().certify(count * part, 1e-6)
        assert found.upper == pytest.approx(alone.upper, rel=1e-6)
        assert found.upper >= alone.lower
        assert found.lower <= alone.lower * (1 + 1e-12)


def test_the_lower_end_proves_the_distance_to_poisson_batches():
    found = Tight().certify(ShuffledEpoch(GaussianLoss(1.0), 100), 1e-6)
    poisson = Tight().epsilon(100 * PoissonSampled(GaussianLoss(1.0), 0.01), 1e-6)
    assert found.lower > 4.6 > 4 * poisson
    ten = Tight().certify(10 * ShuffledEpoch(GaussianLoss(1.0), 100), 1e-6)
    assert found.upper < ten.lower < ten.upper


@pytest.mark.parametrize("offset", [1.0, 0.0])
def test_the_greatest_output_is_that_of_two_data_sets(offset):
    # by events "some output is above c", in closed form
    mu, batches = 1.0, 50
    pair = greatest_output_pair(mu, offset, batches)
    c = np.linspace(-3.0, 10.0, 20_001)
    others = norm.cdf(c) ** (batches - 1)
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        p, q = (1 - norm.cdf(c - offset - m) * others for m in (mu, 0.0))
        truth = np.max(p - math.exp(epsilon) * q)
        assert truth * (1 - 1e-3) - 1e-10 <= pair.profile(epsilon) <= truth * (1 + 1e-9)


def test_the_pairs_below_are_those_of_data_sets():
    ((blanked, _),) = ShuffledEpoch(GaussianLoss(1.0), 50).losses()
    assert blanked.attained_pair == greatest_output_pair(1.0, 1.0, 50)
    # a record that all others equal after the change: its batch alone moves
    replaced = ShuffledEpoch(GaussianLoss(1.0), 50, "replace-one")
    alone = RandomAllocation(GaussianLoss(1.0), 50)
    for count in (1, 3):
        ends = [Tight().certify(count * plan, 1e-6).lower for plan in (replaced, alone)]
        assert 0 < ends[0] == pytest.approx(ends[1], rel=1e-4)


@pytest.mark.parametrize("mu", [8.0, 20.0])  # whose profile is not integrated
def test_an_allocation_of_little_noise_costs_at_least_its_greatest_output(mu):
    epoch, pair = RandomAllocation(GaussianLoss(mu), 100), greatest_output_pair(mu, 0.0, 100)
    for plan, below in ((epoch, pair), (3 * epoch, 3 * pair)):
        found, least = Tight().certify(plan, 1e-6), Tight().certify(below, 1e-6).lower
        assert found.lower == pytest.approx(least, rel=1e-3)
        assert 0.9 * found.upper < found.lower < found.upper


@pytest.mark.parametrize("mu", [7.0, 20.0])
def test_a_replaced_record_of_little_noise_has_the_lower_end_of_its_allocation(mu):
    replaced = Tight().certify(ShuffledEpoch(GaussianLoss(mu), 100, "replace-one"), 1e-6)
    alone = Tight().certify(RandomAllocation(GaussianLoss(mu), 100), 1e-6)
    assert replaced.lower == pytest.approx(alone.lower, rel=1e-6)
    assert 0.8 * replaced.upper < replaced.lower < replaced.upper


def test_draws_of_two_data_sets_lie_between_the_ends():
    # the likelihood ratio of the pair itself: within 5.2 deviations (2e-7)
    mu, batches, epsilon, runs = 1.0, 8, 1.0, 200_000
    rng = np.random.default_rng(11)
    x = rng.standard_normal((runs, batches))
    x[:, 0] += 2 * mu
    first = np.exp(2 * mu * x - 2 * mu * mu).mean(axis=1)
    second = np.exp(mu * x - mu * mu / 2).mean(axis=1)
    stick = np.maximum(1 - math.exp(epsilon) * second / first, 0.0)
    slack = 5.2 * stick.std() / math.sqrt(runs)
    ((loss, _),) = ShuffledEpoch(GaussianLoss(mu), batches).losses()
    assert loss.attained_pair.profile(epsilon) <= stick.mean() + slack
    assert stick.mean() - slack <= loss.profile(epsilon)


def test_random_order_is_not_below_random_allocation():
    # others that contribute nothing make the pair of random allocation: a pair of data sets too
    upper = Tight().epsilon(ShuffledEpoch(GaussianLoss(1.0), 100), 1e-5)
    assert upper > Tight().epsilon(RandomAllocation(GaussianLoss(1.0), 100), 1e-5)


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_an_exchanged_epoch_is_bounded_by_the_exchanged_part(batches):
    part = PairLoss((0.5, 0.3, 0.2), (0.1, 0.3, 0.6))
    plan = ShuffledEpoch(part, batches)
    for way, expected in ((plan, part), (plan.reversed, part.reversed)):
        ((loss, count),) = way.losses()
        assert count == 1
        assert loss.numerics.is_upper_envelope == (batches > 1)
        assert loss.max_loss == expected.max_loss
        assert np.array_equal(loss.profile([0.0, 0.6, 1.2]), expected.profile([0.0, 0.6, 1.2]))
    assert plan.reversed.reversed == plan != plan.reversed


def test_one_batch_is_exact():
    found = Tight().certify(ShuffledEpoch(GaussianLoss(1.0), 1), 1e-6)
    assert found.width < 1e-9
    assert list(ShuffledEpoch(GaussianLoss(1.0), 1).losses()) == [(GaussianLoss(1.0), 1)]


@pytest.mark.parametrize("cls", PASSES)
def test_files_and_copies_give_an_equal_pass_back(cls):
    plan = cls(Stated(GaussianLoss(1.0), "add-remove"), 30)
    assert from_json(to_json(plan)) == plan == pickle.loads(pickle.dumps(plan))
    assert plan.reversed.reversed == plan
    assert plan.relation == "zero-out"  # what presence costs in its batch, all others in theirs


@pytest.mark.parametrize("cls", PASSES)
@pytest.mark.parametrize("batches", [0, True, 2.0, "3"])
def test_wrong_batches_are_refused(cls, batches):
    with pytest.raises(ParameterError, match="batches"):
        cls(GaussianLoss(1.0), batches)


def test_neighbours_must_be_the_same():
    with pytest.raises(ParameterError, match="part"):
        ShuffledEpoch(Stated(GaussianLoss(1.0), "replace-one"), 10)
    with pytest.raises(ParameterError, match="relation"):
        ShuffledEpoch(GaussianLoss(1.0), 10, "local-replace")


@pytest.mark.parametrize("mu", [30.0, 38.0, 60.0])
def test_the_pair_below_stays_below_where_masses_underflow(mu):
    # its greatest cells have no mass that a float holds: once its epsilon was infinite
    found = Tight().certify(ShuffledEpoch(GaussianLoss(mu), 10), 1e-6)
    assert found.lower <= found.upper == pytest.approx(Tight().epsilon(GaussianLoss(mu), 1e-6))


def test_events_of_passes():
    assert to_dp_event(OnePass(GaussianLoss(0.5), 10)) == to_dp_event(GaussianLoss(0.5))
    with pytest.raises(UnsupportedPlan):
        to_dp_event(ShuffledEpoch(GaussianLoss(0.5), 10))
