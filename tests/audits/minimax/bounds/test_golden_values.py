"""The golden values of the bounds, their closed forms, and the ranges that are refused."""

import itertools
import math

import numpy as np
import pytest

from accountant.errors import ParameterError
from audits.minimax import (
    SignedBasis,
    label_optimisation,
    label_regression,
    most_right,
    sparse_regression,
    sparse_regression_rdp,
    sparse_regression_zcdp,
)
from audits.minimax.bounds.label_private_regression import _packing as best_packing
from audits.minimax.families.packings import log_points

# n, p, epsilon; published and sharp: none, sequential, sum (methods.md, section 4)
GOLDEN = [
    ((10**4, 20, 0.5), (5.781e-3, 1.943e-2), (1.408e-3, 1.006e-2), (2.437e-2, 4.424e-2)),
    ((3 * 10**4, 35, 0.4), (7.175e-3, 2.165e-2), (1.429e-3, 9.72e-3), (2.455e-2, 4.24e-2)),
    ((7 * 10**5, 220, 0.8), (5.001e-4, 2.232e-3), (6.20e-5, 6.733e-4), (5.114e-3, 1.079e-2)),
    ((50, 40, 0.3), (0.4165, 0.4823), (0.2154, 0.4793), (0.4309, 0.4577)),
    ((10**6, 100, 0.5), (4.756e-4, None), (7.041e-5, None), (5.45e-3, None)),
    ((10**6, 1000, 1.0), (1.063e-3, None), (1.004e-4, None), (6.507e-3, None)),
]


@pytest.mark.parametrize(("setting", "none", "turns", "total"), GOLDEN, ids=str)
def test_sparse_regression(setting, none, turns, total):
    found = (
        sparse_regression(*setting),
        sparse_regression(*setting, interaction="sequential"),
        sparse_regression(*setting, loss="sum"),
    )
    for bound, (published, sharp) in zip(found, (none, turns, total), strict=True):
        assert bound.published == pytest.approx(published, rel=1e-3)
        if sharp is not None:
            assert bound.value == pytest.approx(sharp, rel=1e-3)
        assert bound.value >= bound.published


# n, p, epsilon, s_max in turn with d = 1
DECODES = [(30, 64, 1, 0.095), (100, 256, 1, 0.066), (200, 512, 0.5, 0.017)]
DECODES += [(200, 512, 1, 0.063), (200, 512, 2, 0.337)]


@pytest.mark.parametrize(("n", "p", "epsilon", "s"), DECODES)
def test_the_most_right_decodes(n, p, epsilon, s):
    family = SignedBasis(p, 1.0)
    # the printed values are rounded, .01647 to .017
    assert most_right(family, n, epsilon, "sequential") == pytest.approx(s, abs=5.4e-4)
    assert (
        1 / (2 * p) < most_right(family, n, epsilon) <= most_right(family, n, epsilon, "sequential")
    )


def test_closed_forms_where_the_best_separation_is_inside():
    n, p, epsilon = 10**6, 100, 0.5
    k = math.expm1(epsilon) ** 2
    fano = (1 - math.log(2) / math.log(2 * p)) ** 2 * p * math.log(2 * p) / (2 * n * k)
    assert sparse_regression(n, p, epsilon).published == pytest.approx(fano)
    turns = sparse_regression(n, p, epsilon, "sequential").published
    assert turns == pytest.approx(8 * p / (27 * n * k))
    total = sparse_regression(n, p, epsilon, loss="sum").published
    assert total == pytest.approx(math.sqrt(p / (8 * n * k)))


def test_other_noise_scales_the_bound():
    # (C / 2)^2 of the bound at C = 2, as long as the unit ball does not cut
    one = sparse_regression(10**6, 100, 0.5)
    for noise in (0.1, 1.0, 4.0):
        other = sparse_regression(10**6, 100, 0.5, noise_bound=noise)
        assert other.value == pytest.approx(one.value * (noise / 2) ** 2, rel=1e-6)
        assert other.published == pytest.approx(one.published * (noise / 2) ** 2, rel=1e-6)
    # the parameters stay in it
    assert sparse_regression(10, 100, 0.1, noise_bound=100.0).value <= 0.5


def test_chi_squared():
    bound = sparse_regression_rdp(10**6, 100, 0.5)
    assert bound.published == pytest.approx(2.908e-5, rel=1e-3)
    assert bound.published >= 100 / (27 * 10**6 * 0.25)
    assert bound.value >= bound.published
    zcdp = sparse_regression_zcdp(10**6, 100, 0.1, 0.1)
    assert zcdp.published == pytest.approx(2.084e-5, rel=1e-3)
    same = sparse_regression_rdp(10**6, 100, math.sqrt(math.expm1(0.3)))
    assert zcdp.value == pytest.approx(same.value)


LABELS = [((10**4, 1000, 5, 0.5, 1.0), 1.011e-4), ((10**4, 1000, 5, 0.5, 0.05), 2.527e-7)]
LABELS += [((10**5, 1000, 10, 0.5, 1.0), 1.862e-5)]


@pytest.mark.parametrize(("setting", "published"), LABELS, ids=str)
def test_label_regression(setting, published):
    n, p, s, epsilon, noise = setting
    bound = label_regression(*setting)
    assert bound.published == pytest.approx(published, rel=1e-3)
    assert bound.value >= 4 * bound.published
    size = s / 2 * math.log((p - s) / (s / 2))
    closed = (1 - math.log(2) / size) ** 2 * noise**2 * size
    assert bound.published == pytest.approx(closed / (32 * n * math.expm1(epsilon) ** 2))
    steeper = label_regression(*setting, rip=0.25, slope=2.0)
    assert steeper.published == pytest.approx(bound.published / 5)
    assert steeper.value == pytest.approx(bound.value / 5, rel=1e-6)


@pytest.mark.parametrize("cost", [0.0, 0.1, 1.0, 3.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize(("p", "s"), [(5, 3), (10, 3), (20, 5), (100, 2), (100, 60), (1000, 300)])
def test_the_packing_of_label_regression_is_the_best_by_fano_s_bound(p, s, cost):
    square = np.geomspace(1e-7, 1.0, 4001)  # of the norm of theta

    def fano(signs, distance):
        size = log_points(p, signs, distance)
        wrong = 1 - (cost * square + math.log(2)) / size if size > 0 else 0 * square
        return float(np.max(square * distance / (4 * signs) * wrong))

    signs, distance, size = best_packing(p, s, cost)
    assert size == log_points(p, signs, distance)
    assert 1 <= distance <= 2 * signs
    tried = {2**i for i in range(10) if 2**i <= s} | {s}
    assert signs in tried
    greatest = max(
        fano(other, max(1, round(other * i / 6))) for other in tried for i in range(1, 13)
    )
    assert fano(signs, distance) == pytest.approx(greatest, rel=1e-3)


@pytest.mark.parametrize(("n", "k", "epsilon"), [(10**6, 100, 0.5), (10**6, 100, 2.0)])
def test_label_optimisation(n, k, epsilon):
    bound = label_optimisation(n, k, epsilon, 3.0, 0.5)
    c = min(math.expm1(epsilon) ** 2, 4 * math.exp(epsilon))
    assert n >= k * k / (2 * c)
    assert bound.published == pytest.approx(1.5 * math.sqrt(k) / (32 * math.sqrt(2 * n * c)))
    assert bound.value >= 5 * bound.published
    # what no algorithm of the project beats: sqrt(V / n) with V = 2 + 4 K e^eps / (e^eps - 1)^2
    v = 2 + 4 * k * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert bound.value <= 1.5 * math.sqrt(v / n)


def test_a_large_epsilon_leaves_the_floor_of_no_privacy():
    n = 10**6
    assert label_optimisation(n, 2, 300.0).value >= 1 / (8 * math.sqrt(1.5 * n))
    assert sparse_regression(n, 2, 300.0).value >= 1 / (64 * n)


REFUSED = [
    (lambda: sparse_regression(10, 1, 1.0), "Theorem 1"),
    (lambda: sparse_regression(0, 5, 1.0, "sequential"), "Theorem 2"),
    (lambda: sparse_regression(10, 5, -1.0, loss="sum"), "Theorem 3"),
    (lambda: sparse_regression(10, 5, 301.0), "[0, 300] (Theorem 1"),
    (lambda: sparse_regression(10, 5, math.nan), "Theorem 1"),
    (lambda: sparse_regression_zcdp(10, 5, -0.1), "Theorem 4"),
    (lambda: sparse_regression_rdp(10, 0, 1.0), "Theorem 4"),
    (lambda: label_regression(10, 9, 6, 1.0, 1.0), "2p / 3"),
    (lambda: label_regression(10, 9, 2, 1.0, 1.0, rip=1.0), "Theorems 5, 7 and 10"),
    (lambda: label_optimisation(10, 1, 1.0), "Theorem 2 of Chua"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=range(len(REFUSED)))
def test_out_of_range_names_the_theorem(call, words):
    with pytest.raises(ParameterError) as raised:
        call()
    assert words in str(raised.value)


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
