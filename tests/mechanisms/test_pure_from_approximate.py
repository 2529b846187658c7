"""Pure from approximate privacy: its bound, its law, and what it takes."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from accountant import Ledger, ParameterError, PrivateValueError
from mechanisms import Gaussian, Laplace, PureFromApproximate


def test_a_vector_does_not_pass_as_one_number_through_public_samples():
    made = PureFromApproximate(Gaussian(2.0), 0.2, 12)
    assert made.value_axes == 0
    with pytest.raises(PrivateValueError, match="a single number: a vector needs shape="):
        Ledger(np.ones((10, 50)), made, rng=0).release(made, lambda data: data.sum(0))
    with pytest.raises(ParameterError, match="a mechanism of numbers"):
        PureFromApproximate(Gaussian(2.0, 1.0, "exact", 3), 0.2, 12)
    exact_inner = PureFromApproximate(Laplace(5.0, 1.0, "exact"), 0.2, 12)
    assert exact_inner.arithmetic.name == "EXACT"


def test_pure_from_approximate_reaches_its_bound_at_the_corners():
    # methods.md 1.7: 7.99 eps at (.1, 12) and 7.70 eps at (.25, 7)
    from mechanisms import PureFromApproximate

    for epsilon, candidates, ratio in ((0.1, 12, 7.99), (0.25, 7, 7.70)):
        made = PureFromApproximate(Gaussian(40.0), 2 * epsilon, candidates)
        assert made.loss.epsilon == pytest.approx(ratio * epsilon, abs=0.006 * epsilon)
        assert made.loss.epsilon < 10 * epsilon
    # by enumeration of the bits, over corners of the box
    low, high, t = math.exp(-0.2) / 2, math.exp(0.2) / 2, 4
    made = PureFromApproximate(Gaussian(40.0), 0.2, t)

    def share(p):
        total = 0.0
        for bits in itertools.product((0, 1), repeat=t):
            chance = math.prod(x if b else 1 - x for x, b in zip(p, bits, strict=True))
            total += chance * (bits[0] / sum(bits) if any(bits) else 1 / t)
        return total

    corners = [share(p) for p in itertools.product((low, high), repeat=t)]
    assert math.log(max(corners) / min(corners)) == pytest.approx(made.loss.epsilon, rel=1e-9)


def test_pure_from_approximate_gives_nearly_the_inner_law():
    from mechanisms import PureFromApproximate

    inner = Gaussian(10.0)
    made = PureFromApproximate(inner, 0.65, 200)
    chosen = made.chosen(made.release(1.0, 1, 20_000))
    assert chosen.mean() == pytest.approx(1.0, abs=0.5)  # 7 standard errors
    assert chosen.std() == pytest.approx(10.0, abs=0.5)
    reports = made.release(np.array([1.0, -1.0, 0.5]), 1)
    assert reports.shape == (3, 201)
    assert made.log_density(reports, np.array([1.0, -1.0, 0.5]), each=True).shape == (3,)


def test_the_pure_epsilon_is_not_below_the_exact_one_however_small_it_is():
    rng = np.random.default_rng(0)
    for odds in np.geomspace(1e-6, 0.69, 60).tolist():
        made = PureFromApproximate(Gaussian(40.0), odds, int(rng.integers(2, 60)))
        low, high = (mpmath.mpf(end) for end in made._extreme_probabilities)
        t = made.candidates

        def chance(chosen, others, t=t):
            return (
                chosen * (1 - (1 - others) ** t) / (t * others)
                + (1 - chosen) * (1 - others) ** (t - 1) / t
            )

        with mpmath.workdps(50):
            exact = mpmath.log(chance(high, low) / chance(low, high))
            assert exact <= made.loss.epsilon <= exact * (1 + mpmath.mpf(1e-8))
