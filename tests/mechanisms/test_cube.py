"""The cube: probability ratios, unbiasedness, its constants, by enumeration."""

import itertools
import math

import numpy as np
import pytest

from mechanisms import CubeLinf
from mechanisms.cube import central_binomial_probability, majority_probability

KEEP = math.e / (1 + math.e)  # ln-odds 1


@pytest.mark.parametrize(
    ("dimension", "end"), [(1, 2.163953), (3, 4.327907), (4, 4.770542), (10, 7.793208)]
)
def test_end_of_the_cube(dimension, end):
    # where the dimension is odd coth(eps/2) / central, where it is even 1 less
    assert CubeLinf(dimension, 1.0, KEEP).end == pytest.approx(end, abs=1e-6)
    less = 1 - dimension % 2
    formula = 1 / math.tanh(0.5) / central_binomial_probability(dimension // 2) - less
    assert CubeLinf(dimension, 1.0, KEEP).end == pytest.approx(formula, rel=1e-13)


def test_central_is_the_middle_binomial():
    for m in range(200):
        assert central_binomial_probability(m) == pytest.approx(
            math.comb(2 * m, m) / 4**m, rel=1e-14
        )


def vectors(oracle, rng, count):
    """Values of an oracle, half of them at full length."""
    return np.stack([np.asarray(oracle.values.example(rng)) for _ in range(count)])


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_the_cube_is_unbiased_by_enumeration(dimension):
    oracle, rng = CubeLinf(dimension, 2.0, KEEP), np.random.default_rng(1)
    corners = oracle.support.make_rows()
    for value in [*vectors(oracle, rng, 10), np.zeros(dimension), np.full(dimension, 2.0)]:
        law = np.exp(oracle.log_density(corners, value))
        assert law.sum() == pytest.approx(1, abs=1e-13)
        assert law @ corners == pytest.approx(value, abs=1e-12)
        spread = law @ np.square(corners - value).sum(axis=1)
        assert float(oracle.variance(value)) == pytest.approx(spread, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_probability_ratios_on_the_cube(dimension):
    oracle, rng = CubeLinf(dimension, 2.0, KEEP), np.random.default_rng(8)
    corners = oracle.support.make_rows()
    values = [*vectors(oracle, rng, 300), *(corners / oracle.end * 2.0)]
    logs = np.stack([oracle.log_density(corners, value) for value in values])
    assert np.ptp(logs, axis=0).max() == pytest.approx(1.0, abs=1e-12)
    profile = oracle.loss.profile(np.array([0.0, 0.3, 0.9]))
    laws = np.exp(logs)
    for law in laws[:40]:
        sticks = [np.maximum(law - e * laws, 0).sum(axis=1).max() for e in np.exp([0, 0.3, 0.9])]
        assert (np.array(sticks) <= profile + 1e-12).all()


@pytest.mark.parametrize("dimension", [2, 4, 6])
def test_both_closed_halves_would_cost_more(dimension):
    # as published: {<z, V> >= 0} with probability keep, else {<z, V> <= 0}
    corners = np.array(list(itertools.product([-1, 1], repeat=dimension)))
    sides = np.sign(corners @ corners.T)
    half = (sides[0] >= 0).sum()
    law = (KEEP * (sides >= 0) + (1 - KEEP) * (sides <= 0)) / half
    assert law.sum(axis=1) == pytest.approx(1)
    worst = np.ptp(np.log(law), axis=0).max()
    assert worst == pytest.approx(math.log(1 + math.e))  # and not 1


def test_more_than_half_by_enumeration():
    rng = np.random.default_rng(9)
    for d in range(1, 8):
        p, outcomes = rng.random((3, d)), np.array(list(itertools.product([0, 1], repeat=d)))
        for row, got in zip(p, majority_probability(p), strict=True):
            law = np.where(outcomes, row, 1 - row).prod(axis=1)
            assert got == pytest.approx(law[2 * outcomes.sum(axis=1) > d].sum())
