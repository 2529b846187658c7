"""`exact`: the density's hockey stick, checked against closed forms and mpmath."""

import math

import mpmath
import numpy as np
import pytest

from accountant import ParameterError
from accountant.numerics.search import furthest_that
from audits import exact
from audits.known_densities.hockey_stick import _sign_changes, exact_epsilon, hockey_sticks
from mechanisms import Gaussian, Laplace, NoisyMax, RandomizedResponse
from mechanisms.noisy_max import laplace_difference_cdf, laplace_log_win_probabilities


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0, 50.0, 1e8])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.5, 2.0])
def test_gaussian_by_mpmath(scale, epsilon):
    mechanism = Gaussian(scale, 0.7 * scale)
    mu, e = mpmath.mpf("0.7"), mpmath.mpf(epsilon)
    truth = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
    assert exact(mechanism, epsilon) == pytest.approx(float(truth), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_laplace_by_hand(scale):
    assert exact(Laplace(scale, 2 * scale), 0.5) == pytest.approx(-math.expm1(-0.75), abs=1e-12)


def test_response_by_hand():
    mechanism = RandomizedResponse(3, 0.6)
    assert exact(mechanism, 0.3) == pytest.approx(0.6 - math.exp(0.3) * 0.2, abs=1e-15)
    assert exact_epsilon(mechanism, 0.0) == pytest.approx(math.log(3), abs=1e-9)


def test_two_laplace_candidates_by_the_law_of_the_difference():
    for gap in (-6.0, -1.0, 0.0, 0.3, 8.0):
        won = np.exp(laplace_log_win_probabilities(np.array([gap, 0.0])))
        assert won[0] == pytest.approx(float(laplace_difference_cdf(np.array(gap))), rel=1e-11)


def test_five_laplace_candidates_by_simulation():
    scores = np.array([0.0, 1.0, -2.0, 0.5, 30.0])
    won = np.exp(laplace_log_win_probabilities(scores - [0, 0, 0, 0, 29.0]))
    draws = np.random.default_rng(1).laplace(size=(400_000, 5)) + scores - [0, 0, 0, 0, 29.0]
    seen = np.bincount(draws.argmax(axis=1), minlength=5) / 400_000
    assert np.abs(won - seen).max() < math.sqrt(math.log(10 / 1e-9) / 800_000)


def test_laplace_noisy_max_is_not_bounded_range():
    # methods 1.4: an explicit instance of five candidates reaches 1.161 times the range 1
    q = np.repeat([0, -0.42414379, -0.61562093], [2, 1, 2])
    move = np.repeat([-0.5, 0.5, 0.5], [2, 1, 2])
    loss = laplace_log_win_probabilities(q + move) - laplace_log_win_probabilities(q)
    assert loss.max() - loss.min() == pytest.approx(1.161, abs=2e-3)
    assert NoisyMax(1.0, 0.5, "laplace").loss.pure == 1.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), True, "1", None])
def test_nonsense_is_refused(bad):
    with pytest.raises(ParameterError, match="epsilon must be"):
        exact(Laplace(1.0), bad)
    with pytest.raises(ParameterError, match="mechanism must be"):
        exact(bad, 1.0)


@pytest.mark.parametrize("cells", [1, 40, 3000])
def test_sign_changes_are_those_of_bisection_to_the_last_bit(cells):
    # floor(x) jumps once in each cell, somewhere; every second cell falls
    low = np.arange(cells) + np.linspace(0.001, 0.999, cells)
    rising = np.arange(cells) % 2 == 0

    def excess(x):
        return np.where(np.floor(x) % 2 == 1, 1.0, -1.0)

    found = _sign_changes(excess, low, low + 1.0, rising)
    assert found.tolist() == np.nextafter(np.arange(1.0, cells + 1), 0).tolist()
    bisected = furthest_that(lambda x: (excess(x) > 0) != rising, low, low + 1.0, steps=80)
    assert found.tolist() == bisected.tolist()


@pytest.mark.parametrize("mechanism", [Laplace(2.0), RandomizedResponse(3, 0.5)], ids=repr)
def test_one_pair_at_many_epsilons_is_one_at_a_time(mechanism):
    asked = [-1.0, 0.0, 0.4, 2.0]
    pair = mechanism.worst_pair(0.0)
    found = hockey_sticks(mechanism, pair, asked)
    assert found == [hockey_sticks(mechanism, pair, [one])[0] for one in asked]
    assert found == sorted(found, reverse=True)
