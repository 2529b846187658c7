"""Sparse regression in the central model: the bound's steps, and the reference rate beside it."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from accountant.errors import ParameterError
from audits.minimax import central_rate, central_regression
from audits.minimax.bounds.central_regression import _chernoff_tail, _right_by_group_privacy


@pytest.mark.parametrize(("n", "chance"), [(100, 0.01), (1000, 0.3), (50, 0.9), (10**5, 1e-4)])
def test_the_tail_of_the_changed_records(n, chance):
    for changed in range(0, n, max(1, n // 40)):
        assert _chernoff_tail(n * chance, changed) >= binom.sf(changed, n, chance) * (1 - 1e-9)
    assert _chernoff_tail(0.0, 0) == 0.0


def _responses(n, epsilon, delta):
    """Laws of n randomised responses that slip with delta, of records all 0 or all 1 but some."""
    true = delta + (1 - delta) / (1 + math.exp(-epsilon))
    bits = np.array(list(itertools.product((0, 1), repeat=n)))
    return lambda data: np.where(bits == data, true, 1 - true).prod(axis=1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.0), (0.5, 0.01), (1.0, 0.001)])
def test_group_privacy_bounds_the_decodes(epsilon, delta):
    # two data sets all of whose n records differ, distinguished by n responses
    for n in (1, 2, 4):
        law = _responses(n, epsilon, delta)
        right = np.maximum(law(np.zeros(n)), law(np.ones(n))).sum() / 2
        assert right <= _right_by_group_privacy(n, float(n), math.log(2), epsilon, delta) + 1e-12


@pytest.mark.parametrize(("signs", "d"), [(1, 1.0), (2, 0.6), (3, 1.0)])
def test_information_and_distance_of_the_records(signs, d):
    # theta = (d / signs) v: TV <= d / (2 sqrt signs), KL(P_v || P_0) <= c_2(d) d^2 / signs
    from audits.minimax.information.contraction import entropy_factor

    x = np.array(list(itertools.product((-1, 1), repeat=signs)))
    mean = x.sum(axis=1) * d / signs
    assert np.abs(mean).mean() / 2 <= d / (2 * math.sqrt(signs)) + 1e-12
    some = np.minimum(np.abs(mean), 1 - 1e-15)
    nats = ((1 + some) * np.log1p(some) + (1 - some) * np.log1p(-some)) / 2
    assert nats.mean() <= entropy_factor(d) * d * d / signs * (1 + 1e-9)


def test_zero_is_no_worse_than_the_bound():
    # theta^ = 0 is off by ||theta||_2 <= 1
    for setting in ((10, 100, 3, 0.01, 0.0), (1, 10, 1, 1.0, 0.5)):
        assert 0 < central_regression(*setting).value <= 1


def test_ranges():
    with pytest.raises(ParameterError, match="2p / 3"):
        central_regression(10, 9, 6, 1.0, 0.0)
    with pytest.raises(ParameterError, match="Cai, Wang and Zhang"):
        central_regression(10, 9, 2, 0.0, 0.0)


def test_the_central_rate_stands_beside_its_bound():
    bound = central_regression(10**4, 1000, 5, 0.1, 1e-8)
    rate = math.sqrt(5 * math.log(1000) / 1e4)
    rate += 5 * math.log(1000) * math.sqrt(math.log(1e8)) / (1e4 * 0.1)
    assert bound.published == pytest.approx(rate)
    assert 0 < bound.value < rate
    # without privacy the packing alone: epsilon large
    free = central_regression(10**4, 1000, 5, 300.0, 0.0)
    assert free.value > 0.1 * math.sqrt(math.log(1000) / 1e4)
    assert bound.value >= free.value
    tight = central_regression(10**4, 1000, 5, 0.001, 0.0)
    assert tight.value > 5 * free.value


def test_the_reference_rate_checks_what_it_is_given():
    assert math.isfinite(central_rate(1, 10**9, 512, 1e-300, 5e-324))
    good = {"n": 10, "p": 20, "s": 2, "epsilon": 0.5, "delta": 1e-6}
    wrong = {"n": 0, "p": 0, "s": 21, "epsilon": 0.0, "delta": 0.0}
    for name, value in itertools.chain(wrong.items(), ((name, math.nan) for name in good)):
        with pytest.raises(ParameterError, match=f"{name}.*Cai, Wang and Zhang"):
            central_rate(**good | {name: value})
