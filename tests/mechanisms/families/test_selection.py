"""Selection: permutations by enumeration, pure epsilon by search, scores of any size."""

import dataclasses
import math

import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError
from mechanisms import AboveThreshold, Exponential, NoisyMax, PermuteAndFlip, SparseVector
from tests.mechanisms.families.selections import searched

FALSE_ALARM = 1e-9
SELECT = [Exponential, PermuteAndFlip, NoisyMax, lambda *args, **more: NoisyMax(
    *args, noise="laplace", **more
)]  # fmt: skip
ONE_OF_MANY = [make(2.0) for make in SELECT]
ALL = [*ONE_OF_MANY, AboveThreshold(0.5, 2.0), SparseVector(0.5, 2.0, 3.0)]
BOTH = pytest.mark.parametrize("monotone", [False, True])


@BOTH
@pytest.mark.parametrize("mechanism", [
    PermuteAndFlip(2.0), NoisyMax(2.0, noise="laplace"), AboveThreshold(0.5, 2.0)
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_no_log_ratio_exceeds_pure_epsilon(mechanism, monotone):
    mechanism = dataclasses.replace(mechanism, monotone=monotone)
    rng, worst = np.random.default_rng(8), 0.0
    reached = 0.85 if isinstance(mechanism, AboveThreshold) else 0.97  # it takes ten answers
    for value, moved in searched(mechanism, rng, 1500):
        outputs = mechanism.support.outcomes(value)
        log_p, log_q = (mechanism.log_density(outputs, one) for one in (value, moved))
        ratio = np.abs(log_p - log_q)[log_p > -25]  # what is rarer the quadrature may not have
        worst = max(worst, ratio.max())
    assert reached * mechanism.loss.pure < worst <= mechanism.loss.pure + 1e-9


@pytest.mark.parametrize("make", SELECT)
def test_monotone_scores_cost_exactly_half(make):
    assert make(3.0, 0.7, monotone=True).loss.max_loss == make(3.0, 0.7).loss.max_loss / 2


@pytest.mark.parametrize("bad", [0, 1, "True", None, [True], np.nan])
@pytest.mark.parametrize("make", SELECT)
def test_monotone_is_true_or_false(make, bad):
    with pytest.raises(ParameterError, match="monotone must be True or False"):
        make(2.0, monotone=bad)
    assert make(2.0, monotone=np.True_) == make(2.0, monotone=True)


def test_the_exponential_mechanism_of_mcsherry_and_talwar():
    # odds e^(e0 u / 2D), range e0, rho at most e0^2 / 8
    d, e0 = 3.0, 0.8
    mechanism, utility = Exponential(2 * d / e0, d), np.array([5.0, 1.0, 0.0])
    log_p = mechanism.log_density([0, 1, 2], utility)
    assert log_p - log_p[2] == pytest.approx(e0 * utility / (2 * d), rel=1e-13)
    assert mechanism.loss.epsilon == pytest.approx(e0, rel=1e-15)
    assert 0.99 * e0**2 / 8 < mechanism.loss.rho < e0**2 / 8


HUGE = [[1e308, -1e308, 0.0], [-1.7e308, 1.7e308, 0.0], [-1.7e308] * 3, [1.7e308] * 3]


@pytest.mark.parametrize("mechanism", ONE_OF_MANY, ids=repr)
@pytest.mark.parametrize("scores", HUGE, ids=str)
def test_huge_scores_neither_overflow_nor_lose_the_noise(mechanism, scores):
    winners = np.flatnonzero(np.array(scores) == max(scores))
    drawn = mechanism.release(scores, 5, 20_000)
    assert np.bincount(drawn, minlength=3)[winners] / 20_000 == pytest.approx(
        1 / winners.size, abs=math.sqrt(math.log(6 / FALSE_ALARM) / 40_000)
    )
    log_p = mechanism.log_density([0, 1, 2], scores)
    assert log_p[winners] == pytest.approx(-math.log(winners.size), abs=1e-12)
    assert np.all(np.delete(log_p, winners) < -1e299)


@pytest.mark.parametrize("mechanism", ONE_OF_MANY, ids=repr)
def test_scores_beside_which_floats_lose_the_noise_are_compared_by_their_gaps(mechanism):
    gaps = np.array([0.0, -1.0, 2.0])
    drawn = mechanism.release(gaps + 2.0**52, 6, 200_000)  # floats there are whole numbers
    seen = np.bincount(drawn, minlength=3) / drawn.size
    expected = np.exp(mechanism.log_density([0, 1, 2], gaps))
    assert np.abs(seen - expected).max() < math.sqrt(math.log(6 / FALSE_ALARM) / 400_000)


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_nan_is_refused_where_it_is(mechanism):
    with pytest.raises(PrivateValueError, match="index 1, 2;"):
        mechanism.release([[0.0, 1.0, 2.0], [0.0, 1.0, np.nan]], 0)
    for empty in ([], np.zeros((3, 0)), 0.0, np.zeros((2, 2, 2))):
        with pytest.raises(PrivateValueError, match="vector of scores"):
            mechanism.release(empty, 0)


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_batches_and_no_users(mechanism):
    row = (2,) if isinstance(mechanism, SparseVector) else ()
    scores = np.random.default_rng(2).normal(size=(4, 5))
    for value, size, shape in (
        (np.zeros((0, 5)), None, (0,)), (scores, None, (4,)), (scores[0], None, ()),
        (scores[0], 0, (0,)), (scores[0], 7, (7,)), (scores[:, :1], None, (4,)),
    ):  # fmt: skip
        output = mechanism.release(value, 0, size)
        assert np.shape(output) == shape + row
        each = mechanism.log_density(output, value, each=True)
        assert each.shape == shape
        if size is None:
            assert mechanism.log_density(output, value) == pytest.approx(each.sum())
    several = np.stack([mechanism.release(scores, seed) for seed in range(3)])
    assert mechanism.log_density(several, scores).shape == (3,)
    with pytest.raises(ParameterError, match="size must be None"):
        mechanism.release(scores, 0, 2)
