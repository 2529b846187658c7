"""A ledger with a part of the noise: each kind of mechanism, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from accountant import ParameterError, Repeat
from algorithms.base.non_private import NoPrivacy
from audits.adapters.reduced_noise import ReducedNoiseLedger, release_with_less_noise
from mechanisms import (
    BinaryLabel,
    Gaussian,
    HadamardResponse,
    HemisphereL2,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    PureFromApproximate,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)


def test_additive_noise_has_the_smaller_scale():
    rng, value = np.random.default_rng(0), np.full(20_000, 3.0)
    drawn = release_with_less_noise(Laplace(scale=2.0, sensitivity=1.0), value, 0.1, rng)
    assert kstest(drawn - 3, "laplace", (0, 0.2)).pvalue > 1e-6
    drawn = release_with_less_noise(Gaussian(scale=2.0), value, 0.5, rng)
    assert kstest(drawn - 3, "norm", (0, 1.0)).pvalue > 1e-6
    assert (release_with_less_noise(Gaussian(scale=2.0), value, 0.0, rng) == value).all()
    assert release_with_less_noise(Gaussian(scale=2.0, arithmetic="exact"), 1.5, 0.0, rng) == 1.5


@pytest.mark.parametrize("kind", [NoisyMax, PermuteAndFlip])
def test_selections_without_noise_take_the_greatest(kind):
    rng, scores = np.random.default_rng(0), np.array([1.0, 5.0, 4.9])
    mechanism = kind(scale=10.0)
    assert release_with_less_noise(mechanism, scores, 0.0, rng) == 1
    drawn = [release_with_less_noise(mechanism, scores, 0.001, rng) for _ in range(100)]
    # a gap of .1 at scale .01: wrong with probability 1e-4 each; 8 wrong below 1e-6
    assert sum(one != 1 for one in drawn) < 8
    full = [release_with_less_noise(mechanism, scores, 1.0, rng) for _ in range(100)]
    assert sum(one != 1 for one in full) > 0


def test_randomised_means_move_towards_the_value():
    mechanism = HemisphereL2(dimension=4, radius=1.0, keep=0.7)
    value = np.array([[0.5, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    full = release_with_less_noise(mechanism, value, 1.0, np.random.default_rng(1))
    part = release_with_less_noise(mechanism, value, 0.3, np.random.default_rng(1))
    assert np.allclose(part, value + 0.3 * (full - value))
    assert (release_with_less_noise(mechanism, value, 0.0, np.random.default_rng(1)) == value).all()
    label = BinaryLabel(bound=1.0, keep=0.7)
    given = np.array([0.25, -0.5])
    assert (release_with_less_noise(label, given, 0.0, np.random.default_rng(1)) == given).all()


@pytest.mark.parametrize(
    "mechanism",
    [RandomizedResponse(k=10, keep=0.2319693), HadamardResponse(k=5, keep=0.7310586),
     SubsetSelection(k=6, size=2, keep=0.5761169), UnaryEncoding(k=5, q=0.2689414)],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_responses_get_the_greater_epsilon(mechanism):
    from audits.adapters.reduced_noise import _sharper_response

    assert mechanism.loss.pure == pytest.approx(1.0, abs=1e-5)
    assert _sharper_response(mechanism, 0.5).loss.pure == pytest.approx(2.0, abs=1e-4)
    assert _sharper_response(mechanism, 0.0).loss.pure > 30


def test_a_response_without_noise_is_the_truth():
    rng, labels = np.random.default_rng(0), np.arange(10).repeat(100)
    released = release_with_less_noise(RandomizedResponse(k=10, keep=0.2), labels, 0.0, rng)
    assert (released == labels).all()


def test_what_has_no_noise_stays_and_what_has_no_factor_is_refused():
    rng = np.random.default_rng(0)
    assert release_with_less_noise(NoPrivacy(), 3.0, 0.5, rng) == 3.0
    odd = PureFromApproximate(Gaussian(scale=40.0), 0.2, 12)
    with pytest.raises(ParameterError, match="less noise"):
        release_with_less_noise(odd, np.zeros(3), 0.5, rng)


def test_the_ledger_charges_in_full_and_keeps_the_order_of_draws():
    plan = Repeat(Gaussian(scale=2.0), 2)
    full = ReducedNoiseLedger(np.arange(4.0), plan, 1.0, 3)
    part = ReducedNoiseLedger(np.arange(4.0), plan, 0.25, 3)
    for _ in range(2):
        one, other = (led.release(Gaussian(scale=2.0), np.sum) for led in (full, part))
        assert other - 6 == pytest.approx((one - 6) / 4)
    with pytest.raises(RuntimeError, match="allows nothing more"):
        part.release(Gaussian(scale=2.0), np.sum)


def test_the_factor_is_checked():
    for factor in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="noise"):
            ReducedNoiseLedger(np.arange(4.0), Repeat(Gaussian(scale=2.0), 1), factor, 0)
