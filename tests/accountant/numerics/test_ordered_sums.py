"""Discounted sums are the recursion's, within the round-off that the proofs count."""

import math

import numpy as np
import pytest

from accountant.numerics.ordered_sums import discounted_sums


@pytest.mark.parametrize("size", [1, 2, 3, 10, 99, 1000])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.999, 1.0])
def test_discounted_sums_are_near_exact_ones(size, ratio):
    values = np.random.default_rng(size).normal(size=size)
    rate = -math.log(ratio) if ratio else math.inf
    found = discounted_sums(values, rate)
    exact, allowed, whole, bound = [], [], np.longdouble(0), np.longdouble(0)
    for value in values[::-1].tolist():
        # sum_j r^j v_j and sum_j (j + 1) r^j |v_j|, from the right
        whole = value + np.exp(-np.longdouble(rate)) * whole
        exact.append(whole)
    powers = np.exp(-np.longdouble(rate)) ** np.arange(size)
    for place in range(size):
        rest = size - place
        bound = np.sum(np.arange(1, rest + 1) * powers[:rest] * np.abs(values[place:]))
        allowed.append(float(bound))
    missed = np.abs(found - np.array(exact[::-1])).astype(float)
    assert (missed <= 5 * 2.0**-53 * 2 * np.array(allowed)).all()
    assert found.shape == values.shape


@pytest.mark.parametrize("rate", [0.0, 1e-5])
def test_round_off_of_many_discounted_sums_does_not_pile_up(rate):
    values = np.random.default_rng(1).uniform(size=2**17)
    values /= values.sum()
    exact = np.sum(values * np.exp(-np.longdouble(rate) * np.arange(values.size)))
    assert abs(discounted_sums(values, rate)[0] - exact) <= 32 * 2.0**-52
