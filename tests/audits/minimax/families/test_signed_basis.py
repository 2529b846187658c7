"""The 2p points of sparse regression: their laws, samples, distances and constants."""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

from accountant.errors import ParameterError
from audits.minimax import SignedBasis
from audits.minimax.checks.enumeration import c_infinity, c_two, cube, point_distributions

FAMILIES = [SignedBasis(2, 0.7), SignedBasis(3, 1.0), SignedBasis(4, 0.3, 1.0)]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"p{f.p}-d{f.d}")


@each_family
def test_a_point_is_a_law_of_its_parameter_with_bounded_noise(family):
    x, y = family.atoms()
    for which in range(family.points):
        law, theta = family.distribution(which), family.parameter(which)
        assert law.sum() == pytest.approx(1)
        assert (law >= 0).all()
        noise = y - x @ theta
        assert np.abs(noise)[law > 0].max() <= family.noise_bound + 1e-12
        # E[noise | x] = 0 and x is uniform
        for row in np.unique(x, axis=0):
            here = (x == row).all(axis=1)
            assert law[here].sum() == pytest.approx(2.0**-family.p)
            assert law[here] @ noise[here] == pytest.approx(0, abs=1e-15)


@each_family
def test_samples_follow_the_law(family):
    draws, count = 100_000, 2 ** (family.p + 1)
    rng = np.random.default_rng(5)
    for which in (0, family.points - 1):
        x, y = family.sample(which, draws, rng)
        bits = np.concatenate([x > 0, (y > 0)[:, None]], axis=1)
        seen = np.bincount(bits @ (1 << np.arange(family.p + 1)), minlength=count)
        expected = draws * family.distribution(which)
        assert not seen[expected == 0].any()
        some = expected > 0
        statistic = ((seen - expected)[some] ** 2 / expected[some]).sum()
        # false alarms: 1e-8 for each of 6
        assert statistic < chi2.isf(1e-8, some.sum() - 1)


def test_another_law_would_be_noticed():
    # 100,000 draws of lean .7 against the law of lean .72
    family, other = SignedBasis(2, 0.7), SignedBasis(2, 0.72)
    x, y = family.sample(0, 100_000, np.random.default_rng(5))
    agreeing = int((x[:, 0] * y > 0).sum())
    assert agreeing < binom.isf(1 - 1e-8, 100_000, (1 + other.lean) / 2)


def test_samples_are_bytes_of_every_dtype_asked_for():
    family = SignedBasis(5, 0.5)
    x, y = family.sample(3, 7, np.random.default_rng(1))
    same, also = family.sample(3, 7, np.random.default_rng(1), dtype=float)
    assert x.dtype == np.int8
    assert same.dtype == float
    assert (x == same).all()
    assert (y == also).all()
    assert set(np.unique(x)) == {-1, 1}


@each_family
def test_the_constants_by_brute_force(family):
    law = point_distributions(family)
    assert c_infinity(law) == pytest.approx(family.c_infinity)
    assert c_two(law) == pytest.approx(family.c_two)


def test_the_law_of_the_sufficient_sign():
    # w = y x / a gathers two atoms each
    family = SignedBasis(3, 0.6)
    x, y = family.atoms()
    w = x * y[:, None]
    for which, law in enumerate(point_distributions(family)):
        whole = family.distribution(which)
        gathered = [whole[(w == row).all(axis=1)].sum() for row in cube(3)]
        assert gathered == pytest.approx(law)


@each_family
def test_separation_is_the_least_distance(family):
    points = [family.parameter(i) for i in range(family.points)]
    distances = [np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[i + 1 :]]
    assert family.separation <= min(distances)
    assert family.separation == pytest.approx(min(distances))


@each_family
def test_a_parameter_decodes_to_its_point(family):
    for which in range(family.points):
        assert family.decode(family.parameter(which)) == which
        # anything nearer than half the separation too
        moved = family.parameter(which) + 0.499 * family.separation / math.sqrt(family.p)
        assert family.decode(moved) == which


@pytest.mark.parametrize(
    "arguments",
    [(0, 0.5), (3, 0.0), (3, 1.01), (3, 0.6, 1.0), (3, math.nan), (2.0, 0.5), (3, 0.5, 0.0)],
)
def test_impossible_families_are_refused(arguments):
    with pytest.raises(ParameterError):
        SignedBasis(*arguments)


def test_wrong_calls_are_refused():
    family = SignedBasis(3, 0.5)
    for call in (
        lambda: family.parameter(6),
        lambda: family.parameter(-1),
        lambda: family.sample(0, 0, np.random.default_rng(0)),
        lambda: family.decode(np.zeros(4)),
        lambda: SignedBasis(40, 0.5).atoms(),
    ):
        with pytest.raises(ParameterError):
            call()
