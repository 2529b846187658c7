"""Random allocation: its profile against other roads, and what the node refuses."""

import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from accountant import (
    PLD,
    RDP,
    ApproxLoss,
    Basic,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    Stated,
    Tight,
    UnsupportedPlan,
    calibrate,
    from_json,
    to_dp_event,
    to_json,
)
from accountant.amplification.allocation import allocation_profile
from accountant.amplification.allocation.allocated_gaussian import (
    AllocatedGaussian,
    chernoff_absent,
    log_moments,
    renyi_absent,
)
from accountant.amplification.allocation.few_steps import few_steps_bounds, lattice_across
from accountant.formats.plan_toml import file_from_toml
from accountant.losses.upper_envelope import UpperEnvelope
from accountant.numerics import lognormal_lattice
from accountant.numerics.lognormal_cut import (
    SPACINGS,
    CutTransform,
    cut_transform,
    excess_above,
)
from accountant.numerics.lognormal_lattice import CELL, law_above
from accountant.numerics.lognormal_rule import LogNormalRule, TooManyNodes, VerticalLine
from mechanisms import Gaussian

ROUND = AllocatedGaussian(1.0, 200)
# 15 digits by the trapezoid rule in 30 digits, on another line and another path
TRUTHS = [
    (ROUND, [7.32023716215926e-3, 8.08177892922828e-4, 7.73950284704417e-6]),
    (ROUND.reversed, [6.35659897089282e-3, 4.06797549159244e-4, 3.93379532071425e-8]),
]


@pytest.mark.parametrize(("loss", "truth"), TRUTHS, ids=["remove", "add"])
def test_the_profile_is_that_of_a_computation_in_30_digits(loss, truth):
    found, below = (one.profile([0.1, 0.2, 0.4]) for one in (loss, loss.attained_pair))
    assert np.all(below <= np.array(truth) * (1 + 1e-14))
    assert np.all(found >= np.array(truth) * (1 - 1e-14))
    assert found == pytest.approx(below, rel=1e-8)


@pytest.mark.parametrize(
    ("steps", "delta", "truth", "truth_added"),
    [(1000, 1e-6, 0.171728684449839, None), (200, 1e-5, 0.386496878751776, 0.294649062984003)],
)
def test_one_epoch_is_certified_to_ten_digits(steps, delta, truth, truth_added):
    plan = RandomAllocation(GaussianLoss(1.0), steps)
    found = Tight().certify(plan, delta)
    assert found.lower <= truth <= found.upper
    assert found.width <= 1e-8 * found.upper
    other = Tight().certify_one_way(plan.reversed, delta)
    assert other.width <= 1e-8 * other.upper
    if truth_added is not None:
        assert other.lower <= truth_added <= other.upper


def excess_of_two(mu, k):
    """E(V_1 + V_2 - K)_+, the second expectation in closed form (Black and Scholes)."""

    def inner(x):
        left = k - math.exp(mu * x - mu * mu / 2)
        if left <= 0:
            return (1 - left) * norm.pdf(x)
        d = (mu * mu / 2 - math.log(left)) / mu
        return (norm.cdf(d) - left * norm.cdf(d - mu)) * norm.pdf(x)

    kink = (math.log(k) + mu * mu / 2) / mu
    pieces = [(-12, 0), (0, min(kink, 12)), (min(kink, 12), 14)]
    return sum(quad(inner, a, b, epsabs=1e-14, epsrel=1e-12, limit=200)[0] for a, b in pieces)


@pytest.mark.parametrize("mu", [0.3, 0.6])
def test_two_steps_against_a_quadrature_in_one_dimension(mu):
    for epsilon in (0.05, 0.5):
        loss = AllocatedGaussian(mu, 2)
        truth = excess_of_two(mu, 2 * math.exp(epsilon)) / 2
        assert loss.attained_pair.profile(epsilon) <= truth * (1 + 1e-10) + 1e-13
        assert loss.profile(epsilon) >= truth * (1 - 1e-10) - 1e-13


def check_two_decompositions(mu, steps, epsilon):
    """The whole law against the law split at a cut: intervals of different lines meet."""
    tilts, gap = allocation_profile._tilts(mu, steps), steps * np.expm1(np.array([epsilon]))
    with np.errstate(all="ignore"):
        plain = allocation_profile._plain_excess(tilts, np.array([epsilon]), gap)
        for index in tilts.splits(gap):
            if index < 0:
                continue
            cut = float(allocation_profile.CUTS[index])
            split = allocation_profile._split_excess(tilts, gap, cut, jumps_alone=False)
            assert max(plain[0], split[0]) <= min(plain[1], split[1]) + 1e-15


@pytest.mark.parametrize(
    ("mu", "steps", "epsilon"), [(1.0, 1000, 0.1717), (1.0, 200, 0.4), (0.5, 300, 0.2)]
)
def test_two_decompositions_agree(mu, steps, epsilon):
    check_two_decompositions(mu, steps, epsilon)


@pytest.mark.parametrize(
    ("mu", "steps", "cut", "gap"),
    [
        (0.05, 1000, 12.75, 3.0),
        (0.5, 200, 22.75, 50.0),
        (1.0, 1000, 3.0, 200.0),
        (3.0, 20, 5.0, 9.0),
    ],
)
def test_the_excess_of_jumps_errs_by_less_than_its_bound(mu, steps, cut, gap):
    # the first was wrong by 140 ulps, where 17 were counted
    import mpmath as mp

    found, error = allocation_profile.excess_of_jumps(mu, steps, cut, np.array([gap]))
    with mp.workdps(200):
        q, mean = (mp.erfc((cut - mp.mpf(shift)) / mp.sqrt(2)) / 2 for shift in (0.0, mu))
        truth = steps * (1 - q) ** (steps - 1) * (mean - q) - gap * (1 - (1 - q) ** steps)
        assert abs(found.item() - truth) <= error.item()


@pytest.mark.slow
def test_bounds_are_in_order_on_random_epochs():
    rng = np.random.default_rng(20)
    for _ in range(150):
        mu, steps = math.exp(rng.uniform(-2.5, 0.7)), round(math.exp(rng.uniform(1.5, 9)))
        epsilon = mu / math.sqrt(steps) * math.exp(rng.uniform(-2, 2))
        check_two_decompositions(mu, steps, epsilon)
        for loss in (AllocatedGaussian(mu, steps), AllocatedGaussian(mu, steps, added=True)):
            high, low = loss.log_profile(epsilon), loss.attained_pair.log_profile(epsilon)
            assert low <= high <= GaussianLoss(mu).log_profile(epsilon) + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 0.9])
def test_the_pair_attains_the_profile(epsilon):
    # draws of both data sets: the mean of (1 - e^{eps - L})_+, within 5.2 deviations (2e-7)
    mu, steps, runs, rng = 1.2, 12, 200_000, np.random.default_rng(7)
    for loss in (AllocatedGaussian(mu, steps), AllocatedGaussian(mu, steps, added=True)):
        x = rng.standard_normal((runs, steps))
        if not loss.added:
            x[:, 0] += mu  # which of the steps makes no difference
        llr = np.log(np.exp(mu * x - mu * mu / 2).mean(axis=1)) * (-1 if loss.added else 1)
        stick = np.maximum(-np.expm1(epsilon - llr), 0.0)
        slack = 5.2 * stick.std() / math.sqrt(runs)
        assert abs(stick.mean() - loss.profile(epsilon)) <= slack


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_a_finite_part_is_enumerated(epsilon):
    part, steps = PairLoss((0.5, 0.3, 0.15, 0.05), (0.3, 0.4, 0.3, 0.0)), 4
    plan = RandomAllocation(part, steps)
    p, q = np.array(part.p), np.array(part.q)
    both = [0.0, 0.0]
    for outcome in itertools.product(range(4), repeat=steps):
        at = list(outcome)
        without = q[at].prod()
        there = np.mean([p[at[j]] * np.delete(q[at], j).prod() for j in range(steps)])
        both[0] += max(there - math.exp(epsilon) * without, 0.0)
        both[1] += max(without - math.exp(epsilon) * there, 0.0)
    for way, truth in zip((plan, plan.reversed), both, strict=True):
        ((loss, count),) = way.losses()
        assert count == 1
        assert loss.profile(epsilon) == pytest.approx(truth, rel=1e-11, abs=1e-15)


def test_a_finite_epoch_says_how_far_its_masses_are_from_the_true_ones():
    steps, small, large = 400, Fraction(1, 4), Fraction(3, 4)
    part = PairLoss([float(large), float(small)], [float(small), float(large)])
    ((pair, _),) = RandomAllocation(part, steps).losses()
    distance = 0.0
    for k in range(steps + 1):  # steps of the outcome that is likelier with the record
        true_q = math.comb(steps, k) * small**k * large ** (steps - k)
        true_p = true_q * (3 * k + Fraction(steps - k, 3)) / steps
        for mass, true_mass in ((pair.p[k], true_p), (pair.q[k], true_q)):
            distance = max(distance, abs(float(Fraction(mass) / true_mass - 1)))
    assert 8 * 2.0**-52 < distance < pair.rounding < 1e-10
    assert pair.reversed.rounding == pair.rounding


@pytest.mark.parametrize(
    ("part", "steps", "truth"),
    [
        (PairLoss([0.5, 0.5], [0.1, 0.9]), 400, math.log(5)),
        (PureLoss(1.0), 3000, 1.0),  # e^-3000 is no float
        (PairLoss([1e-200, 1 - 1e-200], [1 - 1e-200, 1e-200]), 2, 200 * math.log(10)),
    ],
)
def test_outcomes_of_tiny_probability_keep_their_loss(part, steps, truth):
    plan = RandomAllocation(part, steps)
    for direction in (plan, plan.reversed):
        ((loss, _),) = direction.losses()
        assert sum(loss.p) == pytest.approx(1.0, abs=1e-13)
        assert loss.infinity == 0
        orders, lowest = np.array([1e6, 1e9]), math.log(min(loss.p))
        assert np.all(loss.renyi(orders) >= loss.max_loss + lowest / (orders - 1))
    assert truth <= Tight().epsilon(plan, 0.0) <= truth * (1 + 1e-9)


def test_an_epoch_of_releases_that_reveal_the_record_reveals_it():
    ((loss, _),) = RandomAllocation(PairLoss([1.0, 0.0], [0.0, 1.0]), 3).losses()
    assert (loss.infinity, loss.reversed.infinity) == (1.0, 1.0)


def test_an_outcome_that_both_data_sets_rarely_share_keeps_its_probability():
    plan = RandomAllocation(PairLoss([1e-14, 1 - 1e-14], [1.0, 0.0]), 2)
    ((loss, _),) = plan.reversed.losses()
    assert loss.max_loss == pytest.approx(14 * math.log(10), rel=1e-12)


def test_several_picks_are_a_bound_of_several_runs():
    plan = RandomAllocation(PureLoss(0.5), steps=11, picks=3, epochs=2)
    ((loss, count),) = plan.losses()
    assert count == 6
    assert loss.numerics.is_upper_envelope
    runs = 6 * RandomAllocation(PureLoss(0.5), steps=3)
    assert Tight().epsilon(plan, 1e-6) == pytest.approx(Tight().epsilon(runs, 1e-6), rel=1e-6)
    # exact: two of three steps by enumeration
    part, epsilon = PairLoss((0.7, 0.3), (0.4, 0.6)), 0.2
    p, q = np.array(part.p), np.array(part.q)
    truth = 0.0
    for outcome in itertools.product(range(2), repeat=3):
        at = list(outcome)
        ways = [[p[a] if i in used else q[a] for i, a in enumerate(at)]
                for used in ((0, 1), (0, 2), (1, 2))]  # fmt: skip
        there, without = np.mean([np.prod(way) for way in ways]), q[at].prod()
        truth += max(there - math.exp(epsilon) * without, 0.0)
    assert Tight().delta(RandomAllocation(part, 3, picks=2), epsilon) >= truth


@pytest.mark.parametrize("steps", [2, 3, 7])
@pytest.mark.parametrize("part", [GaussianLoss(0.4), PureLoss(0.5)], ids=["Gaussian", "pure"])
def test_some_of_several_picks_alone_are_a_bound_that_no_pair_need_attain(part, steps):
    for picks in range(1, steps + 1):
        for way in (
            RandomAllocation(part, steps, picks),
            RandomAllocation(part, steps, picks).reversed,
        ):
            ((loss, count),) = way.losses()
            assert count == picks
            assert loss.numerics.is_upper_envelope == (1 < picks < steps)


@pytest.mark.parametrize(
    "part",
    [
        UpperEnvelope(PairLoss((0.6, 0.4), (0.4, 0.6)), PureLoss(0.1)),
        Grouped(PoissonSampled(LaplaceLoss(1.0), 0.2), 2),  # finitely many losses, all bounds
    ],
    ids=["envelope", "numerical"],
)
def test_a_part_that_no_pair_attains_is_refused(part):
    with pytest.raises(ParameterError, match="part must be Gaussian, or a loss of finitely many"):
        RandomAllocation(part, 3)


def test_a_part_whose_ratios_are_no_floats_is_refused_by_its_name():
    assert RandomAllocation(PureLoss(700.0), 3).loss.max_loss > 690
    with pytest.raises(
        ParameterError, match="part must be Gaussian, or of finite losses up to 700"
    ):
        RandomAllocation(PureLoss(720.0), 3)


def test_every_step_and_one_step_are_the_part_itself():
    part = GaussianLoss(0.3)
    assert list(RandomAllocation(part, 5, picks=5, epochs=2).losses()) == [(part, 10)]
    assert list(RandomAllocation(part, 1, epochs=7).losses()) == [(part, 7)]
    assert next((3 * RandomAllocation(part, 9, epochs=2)).losses())[1] == 6


@pytest.mark.parametrize(
    ("mu", "steps", "order"),
    [(1.0, 10, 53.0), (1.0, 100, 491.0), (1.0, 100, 1000.0), (0.5, 20, 200.0), (3.0, 1, 2.0)],
)
def test_divergences_of_high_orders_without_the_record_are_upper_bounds(mu, steps, order):
    # where E e^{-rV} is small it was lost in the round-off of E e^{-rV} - 1; the third was .102
    # below
    x, y = np.linspace(-16, 10, 1301), np.linspace(-20, 30, 2501)
    log_density = -x * x / 2 + math.log(26 / 1300 / math.sqrt(2 * math.pi))
    exponents = -np.multiply.outer(np.exp(y), np.exp(mu * x - mu * mu / 2))
    power = steps * logsumexp(log_density + exponents, axis=1)
    p = order - 1
    log_moment = logsumexp(p * y + power) + math.log(50 / 2500)
    truth = (p * math.log(steps) - math.lgamma(p) + log_moment) / p
    assert renyi_absent(mu, steps, np.array([order])).item() >= truth * (1 - 1e-14)


@pytest.mark.parametrize("added", [False, True])
def test_renyi_divergences_are_upper_bounds_and_near(added):
    loss, orders = AllocatedGaussian(0.8, 40, added), np.array([2.0, 3.0, 5.0])
    rng = np.random.default_rng(3)
    ratio = np.exp(0.8 * rng.standard_normal((100_000, 40)) - 0.32).mean(axis=1)
    for order, found in zip(orders, loss.renyi(orders), strict=True):
        moment = ratio ** (1 - order if added else order)
        slack = 5.2 * moment.std() / math.sqrt(ratio.size)
        assert found >= math.log(moment.mean() - slack) / (order - 1)
        if order < 4:  # few draws say something of higher moments
            assert found <= math.log(moment.mean() + slack) / (order - 1)
    assert np.all(loss.renyi([1.01, 300.0]) <= GaussianLoss(0.8).renyi([1.01, 300.0]))


def test_other_accountants_are_above_and_the_grid_meets_the_interval():
    plan = RandomAllocation(GaussianLoss(0.5), 100)
    found = Tight().certify(plan, 1e-5)
    for accountant in (Basic(), RDP()):
        assert accountant.epsilon(plan, 1e-5) >= found.lower
    lower, upper = PLD(interval=5e-3).bracket(plan, 1e-5)
    assert lower <= found.upper
    assert found.lower <= upper
    assert upper == pytest.approx(found.upper, rel=2e-2)


def test_it_costs_less_than_poisson_sampling_here_and_calibrates():
    plan = RandomAllocation(GaussianLoss(1.0), 1000)
    poisson = 1000 * PoissonSampled(GaussianLoss(1.0), 1e-3)
    assert Tight().epsilon(plan, 1e-6) < Tight().epsilon(poisson, 1e-6)
    scale = calibrate(lambda s: RandomAllocation(Gaussian(s), 50), epsilon=0.3, delta=1e-5)
    made = Tight().epsilon(RandomAllocation(Gaussian(scale), 50), 1e-5)
    assert 0.299 < made <= 0.3


def test_files_and_copies_give_an_equal_plan_back():
    plan = RandomAllocation(Gaussian(1.1), 100, picks=2, epochs=3)
    assert from_json(to_json(plan)) == plan == pickle.loads(pickle.dumps(plan))
    assert from_json(to_json(plan.reversed)) == plan.reversed != plan
    assert plan.reversed.reversed == plan
    text = """
    [[release]]
    kind = "RandomAllocation"
    steps = 100
    count = 2
    part = { kind = "PureLoss", epsilon = 0.5 }
    """
    assert dict(file_from_toml(text).plan.losses()) == dict(
        (2 * RandomAllocation(PureLoss(0.5), 100)).losses()
    )


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"steps": 0}, "steps"), ({"steps": True}, "steps"), ({"steps": 2.5}, "steps"),
        ({"picks": 0}, "picks"), ({"picks": 11}, "picks"), ({"epochs": 0}, "epochs"),
        ({"relation": "replace-one"}, "relation"), ({"part": 3}, "plan"),
        ({"part": Stated(GaussianLoss(1.0), "replace-one")}, "part"),
        ({"part": LaplaceLoss(1.0)}, "part"), ({"part": PureLoss(1.0) + LaplaceLoss(1.0)}, "part"),
        ({"part": PairLoss((0.2,) * 5, (0.1, 0.3, 0.2, 0.2, 0.2)), "steps": 1000}, "steps"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(given, argument):
    with pytest.raises(ParameterError) as error:
        RandomAllocation(**({"part": GaussianLoss(1.0), "steps": 10} | given))
    assert error.value.argument == argument


def test_there_is_no_event_of_it():
    with pytest.raises(UnsupportedPlan):
        to_dp_event(RandomAllocation(GaussianLoss(1.0), 100))


def test_outcomes_that_only_one_data_set_has_keep_their_mass():
    ((loss, _),) = RandomAllocation(ApproxLoss(0.5, 1e-4), 10).losses()
    assert loss.infinity == pytest.approx(1e-4)


@pytest.mark.parametrize("mu", [2**0.5, 5.0])
def test_a_wide_interval_is_never_above_rdp(mu):
    plan = RandomAllocation(GaussianLoss(mu), 10)
    assert Tight().epsilon(plan, 1e-6) <= RDP().epsilon(plan, 1e-6)


@pytest.mark.parametrize(
    ("mu", "epsilon", "truth"),  # E(V_1 + V_2 - 2 e^epsilon)_+ by quadrature in 30 digits
    [
        (1.0, 1.0, 0.11841300217178533),
        (2.0, 10.0, 4.1294508868865936e-06),
        (0.5, 2.0, 5.762372549556137e-08),
    ],
)
def test_a_lattice_holds_the_excess_of_two_steps(mu, epsilon, truth):
    k = np.array([2 * math.exp(epsilon)])
    low, high = lognormal_lattice.excess_bounds(mu, 2, k, below=False)
    assert low[0] <= truth <= high[0]
    assert high[0] - low[0] <= 1e-7 * truth


@pytest.mark.parametrize(
    ("mu", "epsilon", "truth"),  # those of the lattice
    [
        (1.0, 1.0, 0.11841300217178533),
        (2.0, 10.0, 4.1294508868865936e-06),
        (0.5, 2.0, 5.762372549556137e-08),
    ],
)
def test_the_cut_holds_the_excess_of_two_steps(mu, epsilon, truth):
    low, high = excess_above(mu, 2, np.array([2 * math.exp(epsilon)]))
    assert low[0] <= truth <= high[0]
    assert high[0] - low[0] <= 1e-8 * truth


def check_cut(mu, steps, epsilon):
    """The cut of the transform against vertical lines, which share no quadrature."""
    low, high = excess_above(mu, steps, steps * np.exp(epsilon))
    with np.errstate(all="ignore"):
        line = allocation_profile._contour_bounds(mu, steps, epsilon, added=False)
    assert np.all(low <= np.exp(line[1]) * steps * (1 + 1e-13))
    assert np.all(high >= np.exp(line[0]) * steps * (1 - 1e-13))
    return low, high


@pytest.mark.parametrize(
    ("mu", "steps", "least", "most"),
    # at the least epsilon S is nearly normal: there the cut's rule misses too much and says so
    [(1.0, 1000, 0.05, 2.0), (0.6, 30, 0.2, 2.0), (2.0, 50, 0.5, 9.0), (0.45, 4, 0.3, 2.0)],
)
def test_the_cut_and_contours_agree(mu, steps, least, most):
    low, high = check_cut(mu, steps, np.linspace(least, most, 6))
    assert high[-1] - low[-1] <= 1e-7 * high[-1]


def test_where_the_rule_of_the_cut_overflows_nothing_is_known():
    with np.errstate(all="ignore"):
        low, high = excess_above(1.0, 10_000, 10_000 * np.exp(np.array([0.05, 0.2, 0.5])))
    assert np.all(low == 0)
    assert np.all(np.isinf(high))


@pytest.mark.slow
def test_the_cut_and_contours_agree_on_random_epochs():
    rng = np.random.default_rng(21)
    for _ in range(100):
        mu = math.exp(rng.uniform(math.log(0.4), 1.2))
        steps = round(math.exp(rng.uniform(0.7, min(6 * mu, 9))))
        check_cut(mu, steps, mu * np.exp(rng.uniform(-2, 2, size=5)))


@pytest.mark.parametrize(
    ("scale", "steps", "delta"),
    [(2.0, 5, 1e-10), (1.0, 10, 1e-10), (0.5, 10_000, 1e-6), (0.3, 1000, 1e-4)],
)
def test_few_or_uneven_steps_are_certified_to_eight_digits(scale, steps, delta):
    found = Tight().certify(RandomAllocation(GaussianLoss(1 / scale), steps), delta)
    assert 0 < found.width <= 1e-8 * found.upper


@pytest.mark.parametrize(("mu", "steps"), [(3.0, 10), (1.0, 1000), (0.5, 30)])
def test_chernoff_bounds_of_the_other_direction_are_above_it(mu, steps):
    loss = AllocatedGaussian(mu, steps, added=True)
    for delta in (1e-4, 1e-8):
        truth = loss.attained_pair.inverse_profile(delta)
        shares = [share for share in (0.9, 0.999, 1.05, 1.2, 1.6)
                  if loss.is_surely_within(share * truth, delta)]  # fmt: skip
        assert shares
        assert min(shares) > 1
    assert not loss.reversed.is_surely_within(1e3, 0.5)


@pytest.mark.parametrize(("mu", "steps"), [(0.4, 6), (1.0, 30), (2.5, 200)])
def test_what_is_surely_within_is_below_chernoffs_bound(mu, steps):
    loss = AllocatedGaussian(mu, steps, added=True)
    for epsilon in (0.01, 0.2, 1.0):
        most = float(np.exp(chernoff_absent(mu, steps, np.array([epsilon]))[0]))
        found = [loss.is_surely_within(epsilon, share * most) for share in (0.5, 0.999, 1.001)]
        assert found == [False, False, True]


def test_the_cheaper_direction_needs_no_lines(monkeypatch):
    monkeypatch.setattr(AllocatedGaussian, "inverse_profile", only_with_the_record)
    found = Tight().certify(RandomAllocation(GaussianLoss(2.0), 20), 1e-6)
    assert found.width <= 1e-8 * found.upper


def only_with_the_record(loss, delta, inverse=AllocatedGaussian.inverse_profile):
    assert not loss.added
    return inverse(loss, delta)


@pytest.mark.parametrize(("mu", "steps", "epsilon"), [(1.0, 20, 2.03), (0.8, 37, 0.7)])
def test_a_lattice_and_a_contour_agree(mu, steps, epsilon):
    for added in (False, True):
        e = np.array([epsilon / 2 if added else epsilon])
        with np.errstate(all="ignore"):
            contour = allocation_profile._contour_bounds(mu, steps, e, added=added)
            lattice = allocation_profile._lattice_bounds(mu, steps, e, added=added)
        assert lattice[0] <= contour[1] + 1e-14
        assert contour[0] <= lattice[1] + 1e-14
        assert lattice[1] - lattice[0] <= 1e-5


@pytest.mark.parametrize(("mu", "step"), [(1.0, 2.0**-11), (3.0, 30.0), (0.5, 2.0**-13)])
def test_masses_excess_and_tail_of_a_lattice_law_belong_together(mu, step):
    for law in (
        lognormal_lattice._lattice_above(mu, step),
        lognormal_lattice._lattice_below(mu, step),
    ):
        assert np.all(law.mass >= 0)
        size = law.excess[:-1] / step  # what differences of it are inexact by
        assert np.all(np.abs(-np.diff(law.excess) / step - law.beyond[:-1]) <= 1e-11 * (1 + size))
        assert -np.diff(law.beyond) == pytest.approx(law.mass[1:], rel=1e-9, abs=1e-13)
        assert law.first + law.excess[0] == pytest.approx(1.0, rel=1e-12)  # the mean


@pytest.mark.parametrize(
    ("scale", "steps", "delta"), [(0.5, 100, 1e-6), (1.0, 2, 1e-6), (0.3, 1000, 1e-10)]
)
def test_little_noise_and_few_steps_are_narrow(scale, steps, delta):
    found = Tight().certify(RandomAllocation(GaussianLoss(1 / scale), steps), delta)
    assert 0 < found.width <= 1e-7 * found.upper
    # one large step at Gaussian cost, the others near one: about ln of the steps is saved
    alone = GaussianLoss(1 / scale).inverse_profile(delta)
    assert found.upper <= alone - 0.4


@pytest.mark.parametrize(
    ("steps", "added", "truth"),  # at mu 0.3 and epsilon 0.9, by nested quadratures
    [
        (2, False, 1.2219221843753302e-6),
        (2, True, 9.0652356017312732e-7),
        (3, False, 1.28147173450666e-8),
        (3, True, 6.5514118391653e-9),
    ],
)
def test_few_steps_hold_a_nested_quadrature(steps, added, truth):
    low, high = np.exp(few_steps_bounds(0.3, steps, np.array([0.9]), added=added))
    assert low[0] <= truth <= high[0]
    assert high[0] - low[0] <= 1e-10 * truth


@pytest.mark.parametrize(
    ("mu", "steps", "added", "epsilon"),
    [
        (0.3, 4, True, 0.5),
        (0.7, 4, False, 2.0),
        (0.4, 5, False, 0.6),
        (3.0, 2, False, 9.0),
        (1.5, 3, False, 3.0),
    ],
)
def test_few_steps_agree_with_lines_and_the_cut(mu, steps, added, epsilon):
    low, high = few_steps_bounds(mu, steps, np.array([epsilon]), added=added)
    with np.errstate(all="ignore"):
        other = allocation_profile._contour_bounds(mu, steps, np.array([epsilon]), added=added)
    if not added and mu > 0.4:
        other = allocation_profile._cut_bounds(mu, steps, np.array([epsilon]), added=added)
    assert max(low[0], other[0][0]) <= min(high[0], other[1][0])
    assert high[0] - low[0] <= 1e-10
    assert other[1][0] - other[0][0] <= 1e-4


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_a_lattice_across_has_the_moments_of_a_normal_law(steps):
    found = lattice_across(0.3, steps, 32.0, 66.0)
    assert math.fsum(found.weight) == pytest.approx(1.0, rel=1e-12)
    # E G = e^{(mu^2 / 2) (1 - 1 / t)}
    mean = math.fsum(found.weight * np.exp(found.log_mean))
    assert mean == pytest.approx(math.exp(0.045 * (1 - 1 / steps)), rel=1e-12)
    assert 0 < found.left_out < 1e-20


@pytest.mark.parametrize(
    ("scale", "steps", "delta"),
    [
        (6.0, 2, 1e-10),
        (3.0, 3, 1e-6),
        (2.6, 4, 1e-10),
        (3.0, 5, 1e-10),
        (10.0, 30_000, 1e-10),
        (0.5, 30_000, 1e-6),
    ],
)
def test_corners_of_one_epoch_are_narrow(scale, steps, delta):
    found = Tight().certify(RandomAllocation(GaussianLoss(1 / scale), steps), delta)
    assert 0 < found.width <= 1e-8 * found.upper


def test_the_cut_serves_many_uneven_steps():
    k = 30_000 * np.exp([1.1, 4.0])
    low, high = excess_above(2.0, 30_000, k)
    with np.errstate(all="ignore"):
        coarse = cut_transform(2.0, 0.03).excess_bounds(30_000, k)
    assert np.all(high - low <= 1e-8 * high)
    assert np.all(coarse[0] <= high)
    assert np.all(low <= coarse[1])


def test_several_epochs_at_a_tiny_delta_are_narrow():
    found = Tight().certify(RandomAllocation(GaussianLoss(1.0), 1000, epochs=2), 1e-8)
    assert 0 < found.width <= 1e-6 * found.upper


def wrong_cells(mu, size):
    """Return by how much cells are off, relative to 60-digit differences of distributions."""
    flint = pytest.importorskip("flint")
    step = size / lognormal_lattice.POINTS
    ends = step * np.arange(lognormal_lattice.POINTS + 1.0)
    mass, moment = lognormal_lattice._cells(mu, ends, ends[:-1])
    worst = 0.0
    with flint.ctx.workprec(400):
        m = flint.arb(mu)

        def below(value, shift):
            x = (flint.arb(value).log() + m * m / 2) / m - shift
            return (-x / flint.arb(2).sqrt()).erfc() / 2

        for j in (16, 63, 64, 255, 256, 1023, 1024, 4095, 4096, 30_000):
            left, right = float(ends[j]), float(ends[j + 1])
            p = below(right, 0) - below(left, 0)
            mean = below(right, m) - below(left, m) - flint.arb(left) * p
            if float(p) > 1e-290:
                both = (mass[j] / p - 1, moment[j] / mean - 1)
                worst = max(worst, *(abs(float(one)) for one in both))
    return worst


@pytest.mark.parametrize(("mu", "log_size"), [(0.25, -2), (0.19, 5), (0.4, -9), (1.2, 0), (5.0, 7)])
def test_cells_are_those_of_balls_with_as_few_points_as_they_need(mu, log_size, monkeypatch):
    size = 2.0**log_size
    assert wrong_cells(mu, size) <= lognormal_lattice.INEXACT
    if mu == 0.25:  # where the density is steep a few points are not enough
        monkeypatch.setattr(lognormal_lattice, "_points_of_rule", lambda *_: 4)
        assert wrong_cells(mu, size) > lognormal_lattice.INEXACT


@pytest.mark.parametrize(("mu", "steps"), [(0.3, 10), (1.0, 200), (1.0, 2000)])
def test_chernoff_is_above_the_profile_without_the_record(mu, steps):
    epsilon = np.geomspace(1e-3, 5.0, 40)
    low = AllocatedGaussian(mu, steps, added=True).log_bounds(epsilon)[0]
    bound = chernoff_absent(mu, steps, epsilon)
    assert np.all(bound >= low)
    assert np.min(bound - low) < 3  # and not far above


def test_epochs_with_rare_great_losses_are_narrow():
    plan = RandomAllocation(GaussianLoss(1 / 0.883), 1746, epochs=10)
    found = Tight().certify_one_way(plan, 2.11e-11)
    assert found.width <= 1e-6 * found.upper


def test_a_composition_makes_few_lattices():
    plan = RandomAllocation(GaussianLoss(1 / 0.548), 3, epochs=10).reversed
    sums = lognormal_lattice._SumOnLattice.of
    before = sums.cache_info().misses
    found = Tight().certify_one_way(plan, 2.14e-8)
    assert found.width <= 1e-6 * found.upper
    assert sums.cache_info().misses - before <= 24


def test_a_search_starts_near_the_answer_where_the_tail_is_that_of_one_step():
    mu, steps, delta = 1 / 0.7, 10_000, 1e-9
    found = Tight().certify(RandomAllocation(GaussianLoss(mu), steps), delta)
    rough = allocation_profile.rough_epsilon(mu, steps, delta, added=False)
    assert abs(rough / found.upper - 1) < 0.1
    assert found.width <= 1e-9 * found.upper


@pytest.mark.parametrize("wide", [1, 4, 16])
def test_a_law_on_the_ends_of_cells_is_above_whatever_their_width(wide):
    mu, highest, r = 1.4, 2.0, 0.3
    value, weight = law_above(mu, highest, wide * CELL)
    truth = quad(lambda x: math.exp(r * math.exp(mu * x - mu * mu / 2)) * norm.pdf(x), -12, highest)
    found = float(weight @ np.exp(r * value))
    assert truth[0] <= found


@pytest.mark.parametrize(("mu", "cell"), [(0.3, 0.5), (1.4, 0.25)])
def test_a_law_on_the_ends_of_cells_has_the_mass_of_both_tails(mu, cell, monkeypatch):
    lowest, highest, r = -1.5, 1.0, 0.7
    monkeypatch.setattr(lognormal_lattice, "LOWEST", lowest)
    value, weight = law_above(mu, highest, cell)
    ends = np.exp(mu * np.array([lowest, highest]) - mu * mu / 2)
    assert value[[0, 1, -1]] == pytest.approx([0.0, *ends])
    # The mass below the cells is that of 0, for falling functions, and of the least value as well,
    # for rising ones; the mass above them is that of the greatest value.
    low_tail, high_tail = norm.cdf(lowest), norm.sf(highest)
    assert weight[0] == pytest.approx(low_tail, rel=1e-12)
    assert weight.sum() == pytest.approx(1 + low_tail, rel=1e-12)
    mean_of_cells = norm.cdf(highest - mu) - norm.cdf(lowest - mu)
    expected_mean = mean_of_cells + low_tail * ends[0] + high_tail * ends[1]
    assert weight @ value == pytest.approx(expected_mean, rel=1e-12)

    def falling(x):
        return math.exp(-r * math.exp(mu * x - mu * mu / 2)) * norm.pdf(x)

    true_mean = quad(falling, -12, 12)[0]
    assert true_mean <= weight @ np.exp(-r * value) <= true_mean + 2 * low_tail + high_tail


@pytest.mark.parametrize(("tilt", "turn"), [(0.5, 3.0), (20.0, 50.0)])
def test_what_lies_beyond_the_last_node_is_part_of_the_error(tilt, turn, monkeypatch):
    monkeypatch.setattr(LogNormalRule, "_left_out", lambda *_: 1e-3)
    rule = LogNormalRule(0.7, tilt, turn, cut=5.0)
    for path in (rule._far, rule._jumps):
        assert 1e-3 <= path.error <= 1.001e-3
    assert 1e-3 <= rule._error <= 1.001e-3


def test_a_panel_in_which_the_phase_turns_often_is_no_last_one():
    # beyond this cut e^{-sV} turns by 8e11 radians in a tenth of x
    with pytest.raises(TooManyNodes):
        LogNormalRule(2.0, 1e-9, 1000.0, cut=12.0)


@pytest.mark.parametrize("mu", [0.4, 2.0])
def test_an_error_of_the_imaginary_part_is_one_of_the_phase(mu, monkeypatch):
    exact = CutTransform(mu, SPACINGS[0])
    real, _ = exact._real_part()
    imaginary, error = exact._imaginary_part()
    moved = 1e-4 * np.hypot(real, imaginary)
    monkeypatch.setattr(CutTransform, "_imaginary_part", lambda _: (imaginary + moved, moved))
    found = CutTransform(mu, SPACINGS[0])
    near = error < 1e-3 * moved
    assert near.any()
    assert np.all(np.abs(found.phase - exact.phase)[near] <= found.phase_error[near])


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("steps", [1, 7, 1000, 10**6])
def test_moments_of_an_allocation_are_bounded_from_above(mu, steps):
    # E (S/t)^n = n! / t^n [x^n] (sum_j e^{mu^2 j (j - 1) / 2} x^j / j!)^t, by the recurrence for
    # powers of a series whose constant is 1: n b_n = sum_k (k (t + 1) - n) a_k b_{n - k}
    few = 20
    with mpmath.workdps(60):
        squared = mpmath.mpf(mu) ** 2
        a = [mpmath.exp(squared * j * (j - 1) / 2) / mpmath.factorial(j) for j in range(few)]
        b = [mpmath.mpf(1)]
        for n in range(1, few):
            terms = [(k * (steps + 1) - n) * a[k] * b[n - k] for k in range(1, n + 1)]
            b.append(mpmath.fsum(terms) / n)
        exact = [mpmath.log(x * mpmath.factorial(n) / steps**n) for n, x in enumerate(b)]
        bounds = log_moments(mu, steps)[:few]
        excess = [bound - truth for bound, truth in zip(bounds, exact, strict=True)]
        assert min(excess[2:]) >= 0
        assert max(excess) <= 1e-9 + 1e-10 * steps


@pytest.mark.parametrize("tilt", [0.5, 20.0])
def test_the_claimed_error_is_at_least_that_of_the_nodes(tilt, monkeypatch):
    monkeypatch.setattr(LogNormalRule, "_left_out", lambda *_: 1e-3)
    rule = LogNormalRule(0.7, tilt, 60.0, cut=5.0)
    value, relative = rule._up_to_split(VerticalLine(tilt, 2.0, 20))
    assert np.abs(np.exp(value)).min() < 0.4
    assert np.all(relative * np.abs(np.exp(value)) >= rule._error)


def test_many_gaps_are_split_as_each_of_them_is():
    tilts = allocation_profile.Tilts(0.8, 500)
    gaps = np.linspace(0.01, 4 * tilts.widest_gap, 150)
    for alone in (False, True):
        splits = tilts.splits(gaps, jumps_alone=alone)
        each = [tilts.splits(gaps[k : k + 1], jumps_alone=alone)[0] for k in range(gaps.size)]
        assert splits.tolist() == each
        assert len(set(each)) > 1
