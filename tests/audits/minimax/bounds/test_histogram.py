"""Private histograms: every channel enumerated, the error of the best known one, ours."""

import decimal
import itertools
import math
import time
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ParameterError
from algorithms import LocalHistogram
from algorithms.base.non_private import NotPrivateWarning
from audits.minimax import label_regression
from audits.minimax.bounds.histogram import by_pairs, private_histogram, variance_near
from audits.minimax.families.paired_shares import PairedShares, report_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.sign_information import (
    posterior_divergence,
    sign_error,
    sign_information,
)
from mechanisms import SubsetSelection
from tests.processor_time import standard, standard_seconds

EPSILONS = [0.1, 1.0, 3.0, 8.0]


def patterns(k):
    """Every report's ratios that an extreme channel can have: 1, or e^epsilon at some labels."""
    return np.array(list(itertools.product([False, True], repeat=k))[1:-1])


def points(k, shift):
    family = PairedShares(k, shift)
    return np.stack([family.parameter(v) for v in range(family.points)])


def signs(k):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=k // 2)))


def xlogx(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


# Information and variance are convex in a report's ratios: extreme channels have the most.
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shift", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("k", [2, 3, 4, 7, 8])
def test_no_channel_tells_more_than_the_bound(k, shift, epsilon):
    raw = np.where(patterns(k), math.exp(epsilon), 1.0)
    ratio = (raw @ points(k, shift).T) / raw.mean(axis=1, keepdims=True)
    information = xlogx(ratio).mean(axis=1)
    bound = report_information(k, shift, epsilon)
    full = xlogx(points(k, shift) * k).mean()  # nor more than the labels have, on average
    assert min(information.max(), full) <= bound * (1 + 1e-12)
    assert bound <= full * (1 + 1e-9)
    if epsilon <= 1:
        assert information.max() > 0.9 * bound


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_no_channel_has_more_variance(k, epsilon):
    rng, width = np.random.default_rng(k), 0.3
    raw = np.where(patterns(k), math.exp(epsilon), 1.0)
    for near in (0.0, width):
        seen = []
        for _ in range(30):
            move = rng.uniform(-near, near, k) / 2
            shares = (1 + move - move.mean()) / k
            ratio = raw / (raw @ shares)[:, None]
            seen.append(((ratio - 1) ** 2 @ shares).max())
        bound = variance_near(k, near, epsilon)
        assert max(seen) <= bound * (1 + 1e-9)
        assert near or max(seen) == pytest.approx(bound)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 10, 100])
def test_subset_selection_attains_the_variance(k, epsilon):
    # its best size has the error (k-1)^2 / (n k V), the bound for many users
    bound = (k - 1) ** 2 / (k * variance_near(k, 0.0, epsilon))
    shares = np.full(k, 1 / k)
    error = min(SubsetSelection(k, size, size / (size + (k - size) * math.exp(-epsilon))).variance(
        shares, 1).sum() for size in range(1, k)) + 1 - 1 / k  # fmt: skip
    assert error == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 4.0])
@pytest.mark.parametrize(("k", "n"), [(2, 4), (4, 3), (5, 3), (6, 2)])
def test_best_decoders_of_many_users_stay_below(k, n, epsilon):
    rng = np.random.default_rng(k)
    for shift in (0.5, 1.0):
        family = PairedShares(k, shift)
        laws = points(k, shift)
        error = k // 2 * float(sign_error(n * report_information(k, shift, epsilon) / (k // 2)))
        for _ in range(15):
            high = rng.random((3, k)) < rng.uniform(0.2, 0.8)
            odds = np.where(high, math.exp(epsilon), 1.0) / (1 + math.exp(epsilon))
            weight = rng.dirichlet(np.ones(3))[:, None]
            channel = np.concatenate([weight * odds, weight * (1 - odds)]).T
            one = laws @ channel
            joint = one / len(one)
            for _ in range(n - 1):
                joint = (joint[:, :, None] * one[:, None]).reshape(len(one), -1)
            assert joint.max(axis=0).sum() <= family.most_right(n, epsilon)
            mass = joint.sum(axis=0)
            guess = np.einsum("vz,vj->jz", joint, signs(k)) / mass
            assert k // 2 - (mass * guess**2).sum() >= error


@pytest.mark.parametrize("k", [2, 3, 9, 300])
def test_the_family_is_what_it_says(k):
    family, rng = PairedShares(k, 0.6), np.random.default_rng(0)
    last = family.points - 1
    some = sorted({0, 1, last, last // 3})
    for one in some:
        shares = family.parameter(one)
        assert shares.sum() == pytest.approx(1)
        assert shares.min() >= 0
        assert family.decode(shares) == one
    gaps = [np.linalg.norm(family.parameter(a) - family.parameter(b))
            for a, b in itertools.combinations(some, 2)]  # fmt: skip
    assert min(gaps) == pytest.approx(family.separation)
    counts = np.bincount(family.sample(last // 3, 100_000, rng), minlength=k)
    # exact, 1e-9 over 300 labels on two sides
    shares = family.parameter(last // 3)
    assert (binom.sf(counts - 1, 100_000, shares) > 1e-12).all()
    assert (binom.cdf(counts, 100_000, shares) > 1e-12).all()


def measured(algorithm, family, n, runs, seed):
    """Mean squared error over uniform points, its standard error, and right decodes."""
    errors, right = [], 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        which = int.from_bytes(rng.bytes(64), "big") % family.points
        found = algorithm.set_params(random_state=rng).fit(family.sample(which, n, rng)).shares_
        errors.append(((found - family.parameter(which)) ** 2).sum())
        right += family.decode(found) == which
    return np.mean(errors), np.std(errors) / math.sqrt(runs), right


@pytest.mark.parametrize("oracle", ["subset", "unary", "hadamard"])
@pytest.mark.parametrize(("n", "k", "epsilon"), [(2000, 10, 1.0), (500, 33, 2.0), (3000, 2, 0.5)])
def test_our_histogram_is_near_the_bound_and_never_below(n, k, epsilon, oracle):
    bound = private_histogram(n, k, epsilon)
    most = 25 if oracle == "hadamard" else 15
    made = LocalHistogram(k=k, epsilon=epsilon, randomizer=oracle)
    risk, error, _ = measured(made, bound.construction, n, 60, 1)
    # 6 standard errors: false alarms of 1e-9
    assert by_pairs(n, k, epsilon)[0] - 6 * error <= risk <= most * bound.value


def test_the_constant_for_many_users():
    n, k, epsilon = 10**9, 10, 1.0
    made = SubsetSelection.optimised(k, epsilon)
    upper = made.variance(np.full(k, 1 / k), n).sum() + (1 - 1 / k) / n
    assert 1.0 < upper / private_histogram(n, k, epsilon).value < 1.1


def test_too_accurate_histograms_are_told_and_honest_ones_are_not():
    n, k, epsilon, runs = 500, 64, 1.0, 20
    family = PairedShares(k)
    most = family.most_right(n, epsilon)
    assert 0 < most < 0.2
    bare = LocalHistogram(k=k, epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        right = measured(bare, family, n, runs, 3)[2]
    assert binom.sf(right - 1, runs, most) < 1e-6
    honest = measured(LocalHistogram(k=k, epsilon=epsilon), family, n, runs, 3)[2]
    assert binom.sf(honest - 1, runs, most) > 0.01


def test_the_bound_falls_with_n_and_epsilon():
    made = [private_histogram(n, 7, 0.5).value for n in (1, 100, 10_000, 10**6)]
    assert made == sorted(made, reverse=True)
    made = [private_histogram(1000, 7, e).value for e in (0.01, 0.1, 1.0, 10.0, 500.0)]
    assert made == sorted(made, reverse=True)
    assert private_histogram(10**9, 7, 50.0).value == pytest.approx(6 / 7 * 1e-9, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((0, 5, 1.0), "n must"), ((5, 1, 1.0), "k must"), ((5, 5, 0.0), "epsilon"),
     ((5, 5, math.nan), "epsilon"), ((5, 5, math.inf), "epsilon"), ((5, True, 1.0), "k must")],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(ParameterError, match=said):
        private_histogram(*arguments)
    with pytest.raises(ParameterError, match="estimate"):
        PairedShares(5).decode(np.zeros(4))
    with pytest.raises(ParameterError, match="which"):
        PairedShares(5).parameter(4)


def test_a_great_many_labels_take_no_time_and_no_memory():
    start = time.process_time()
    found = private_histogram(10**9, 10**9, 1.0)
    assert 0 < found.value < 1
    assert standard(time.process_time() - start) < 2
    with pytest.raises(ParameterError, match="k"):
        private_histogram(10, 10**12, 1.0)
    assert standard_seconds(lambda: label_regression(100, 10**7, 3, 0.5, 1.0)) < 4


def test_the_best_share_of_labels_is_that_of_a_search_of_all():
    rng = np.random.default_rng(0)
    for _ in range(500):
        k, epsilon = int(rng.integers(2, 60)), float(10 ** rng.uniform(-3, 2.5))
        width = float(rng.uniform(0.001, 0.999))
        rest, peak = math.exp(-epsilon), 1 / (1 + math.exp(epsilon))
        spreads = [0.0]
        for u in range(1, k):
            share = min(max(peak, (1 - width) * u / k), 1.0, (1 + width) * u / k)
            spreads.append((1 - rest) ** 2 * share * (1 - share) / (rest + share * (1 - rest)) ** 2)
        assert variance_near(k, width, epsilon) == pytest.approx(max(spreads), rel=1e-9)
        shares = np.arange(1, k // 2 + 1) / k
        uneven = (shares * (1 - rest) ** 2 / (rest + shares * (1 - rest)) ** 2).max()
        # the least of three bounds: this one, the labels themselves, and any input's
        shift = float(10 ** rng.uniform(-3, 0))
        spread = entropy_factor(shift * math.tanh(epsilon / 2)) * shift**2 / k * uneven
        labels = 2 * (k // 2) / k * float(sign_information(np.array(shift)))
        least = min(spread, labels, posterior_divergence(epsilon))
        assert report_information(k, shift, epsilon) == pytest.approx(least, rel=1e-9)


def test_bounds_at_a_tiny_epsilon_are_not_below_the_truth():
    # Where 1 - e^-epsilon is computed as a difference of floats, it loses its digits; its square
    # was up to 2e-8 too small at epsilon 1e-8, and 0 below 1e-16.
    with decimal.localcontext() as context:
        context.prec = 120
        check_tiny_epsilons()


def check_tiny_epsilons():
    for k, shift, width, epsilon in itertools.product(
        [2, 4, 7], [0.25, 1.0], [0.1, 0.5], [1e-3, 3.3e-5, 7.7e-8, 3.1e-12, 9.7e-17, 1e-30]
    ):
        odds = Decimal(epsilon).exp()

        def unevenness(share, odds=odds):
            return share * (odds - 1) ** 2 / (1 + share * (odds - 1)) ** 2

        # of the three bounds the one by ratios, with entropy_factor at its least, 1/2, and the one
        # of any report; for these epsilons that is eps^2 / 8 (1 - eps^2 / 36 ...)
        by_ratios = max(unevenness(Decimal(u) / k) for u in range(1, k // 2 + 1))
        by_ratios *= Decimal(shift) ** 2 / k / 2
        of_any_report = Decimal(epsilon) ** 2 / 8 * (1 - Decimal(epsilon) ** 2 / 36)
        truth = min(by_ratios, of_any_report)
        assert truth <= Decimal(report_information(k, shift, epsilon)) <= truth * Decimal("1.0001")
        shares = [
            min(max(1 / (1 + odds), (1 - Decimal(width)) * u / k), (1 + Decimal(width)) * u / k, 1)
            for u in range(1, k)
        ]
        variance = max(unevenness(share) * (1 - share) for share in shares)
        assert variance <= Decimal(variance_near(k, width, epsilon)) <= variance * Decimal("1.0001")
