"""What an adversarial reading found: extremes of every bound, and rounding to the honest side."""

import itertools
import math
import time

import mpmath
import numpy as np
import pytest

from accountant.errors import ParameterError
from audits.minimax import (
    SignedBasis,
    central_rate,
    chi_squared_divergence,
    distance_information,
    enumerate_checks,
    fano_information,
    label_optimisation,
    label_regression,
    le_cam_divergence,
    private_histogram,
    private_lasso,
    private_mean,
    sparse_regression,
)
from audits.minimax.bounds.histogram import variance_near
from audits.minimax.families.paired_shares import PairedShares, report_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.group_decoding import group_delta, most_right_at_distance
from audits.minimax.information.sign_information import posterior_divergence, sign_information

CENTRAL = [{}, {"model": "central"}, {"model": "central", "delta": 1e-6}]


@pytest.mark.parametrize("more", CENTRAL)
def test_a_radius_whose_square_is_no_float_is_refused(more):
    for radius in (1e160, 1e-160):
        with pytest.raises(ParameterError, match="radius"):
            private_mean(10, 3, 1.0, radius=radius, **more)
    ratio = private_mean(10, 3, 1.0, radius=1e149, **more).value / 1e298
    assert ratio == pytest.approx(private_mean(10, 3, 1.0, **more).value, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
def test_the_lasso_of_an_epsilon_near_0_is_that_of_0(delta):
    at_zero = private_lasso(100, 16, 0.0, delta).value
    for epsilon in (5e-324, 1e-300, 1e-160, 1e-20):
        assert private_lasso(100, 16, epsilon, delta).value == pytest.approx(at_zero, rel=1e-9)


def test_scales_whose_squares_are_no_floats_are_refused_with_the_theorem():
    for wrong in (1e-300, 1e-200, 1e160, 1e300):
        for more in ({"noise_bound": wrong}, {"noise_bound": 1.0, "slope": wrong}):
            with pytest.raises(ParameterError, match=r"(noise_bound|slope).*Theorems 5, 7 and 10"):
                label_regression(100, 20, 3, 0.5, **more)
    with pytest.raises(ParameterError, match=r"noise_bound.*Theorem 1"):
        sparse_regression(100, 20, 0.5, noise_bound=1e-300)
    with pytest.raises(ParameterError, match=r"lipschitz.*Theorem 2"):
        label_optimisation(100, 20, 0.5, lipschitz=1e300, diameter=1e100)
    # the ends of what is allowed are floats all the way
    for n, epsilon, bound, slope in itertools.product(
        (1, 2**53), (0.0, 300.0), (1e-6, 1e6), (1e-6, 1e6)
    ):
        found = label_regression(n, 20, 3, epsilon, bound, slope=slope)
        assert 0 <= found.value <= 1
        assert 0 <= found.published <= 1
        found = sparse_regression(n, 20, epsilon, noise_bound=bound)
        assert 0 <= found.published <= found.value * (1 + 1e-9) + 1e-200


def test_the_reference_rate_checks_what_it_is_given():
    assert math.isfinite(central_rate(1, 10**9, 512, 1e-300, 5e-324))
    good = {"n": 10, "p": 20, "s": 2, "epsilon": 0.5, "delta": 1e-6}
    wrong = {"n": 0, "p": 0, "s": 21, "epsilon": 0.0, "delta": 0.0}
    for name, value in itertools.chain(wrong.items(), ((name, math.nan) for name in good)):
        with pytest.raises(ParameterError, match=f"{name}.*Cai, Wang and Zhang"):
            central_rate(**good | {name: value})


@pytest.mark.parametrize("wrong", [True, math.nan, math.inf, -1, "1", None])
def test_the_inequalities_check_what_they_are_given(wrong):
    family = SignedBasis(4, 0.5)
    for inequality, last in (
        (fano_information, 0.5),
        (le_cam_divergence, 0.5),
        (chi_squared_divergence, 0.5),
    ):
        with pytest.raises(ParameterError):
            inequality(family, wrong, last)
        with pytest.raises(ParameterError):
            inequality(family, 5, wrong)
    for given in ((wrong, 0.5, 0.2), (5, wrong, 0.2), (5, 0.5, wrong)):
        with pytest.raises(ParameterError):
            distance_information(*given)
    with pytest.raises(ParameterError):
        PairedShares(4, 0.5).most_right(5, wrong)
    with pytest.raises(ParameterError):
        enumerate_checks(largest_p=wrong)
    with pytest.raises(ParameterError):
        enumerate_checks(largest_p=2, users=wrong)


def test_a_great_many_labels_take_no_time_and_no_memory():
    start = time.perf_counter()
    found = private_histogram(10**9, 10**9, 1.0)
    assert 0 < found.value < 1
    assert time.perf_counter() - start < 2
    with pytest.raises(ParameterError, match="k"):
        private_histogram(10, 10**12, 1.0)
    start = time.perf_counter()
    label_regression(100, 10**7, 3, 0.5, 1.0)
    assert time.perf_counter() - start < 4


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


def test_right_decodes_are_rounded_up_where_logarithms_cancel():
    rng = np.random.default_rng(1)
    with mpmath.workdps(60):
        for _ in range(200):
            bits, records = int(10 ** rng.uniform(2, 8)), int(10 ** rng.uniform(0, 6))
            epsilon = (bits * math.log(2) + float(rng.uniform(-5, 5))) / records
            exact = 1 / (
                1 + mpmath.exp(bits * mpmath.log(2) - records * mpmath.mpf(epsilon))
                - mpmath.exp(-records * mpmath.mpf(epsilon))
            )  # fmt: skip
            assert most_right_at_distance(bits * math.log(2), records, epsilon) >= exact
            delta = math.exp(-rng.uniform(300, 700))
            epsilon = -math.log(delta) * float(rng.uniform(0.99, 1.0)) / records
            grown = mpmath.expm1(records * mpmath.mpf(epsilon)) / mpmath.expm1(epsilon)
            assert group_delta(records, epsilon, delta) >= min(1, delta * grown)


def test_what_a_sign_of_small_mean_tells_is_right_to_every_digit():
    with mpmath.workdps(50):
        for mean in np.geomspace(1e-9, 0.999, 60):
            m = mpmath.mpf(float(mean))
            exact = ((1 + m) * mpmath.log(1 + m) + (1 - m) * mpmath.log(1 - m)) / 2
            found = float(sign_information(np.array(float(mean))))
            assert abs(found - exact) <= 1e-12 * exact
