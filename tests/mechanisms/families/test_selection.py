"""Selection: permutations by enumeration, pure epsilon by search, scores of any size."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from accountant import ParameterError, PrivateValueError
from audits.known_densities.hockey_stick import exact, hockey_stick
from mechanisms import AboveThreshold, Exponential, NoisyMax, PermuteAndFlip, SparseVector

FALSE_ALARM = 1e-9
SELECT = [Exponential, PermuteAndFlip, NoisyMax, lambda *args, **more: NoisyMax(
    *args, noise="laplace", **more
)]  # fmt: skip
ONE_OF_MANY = [make(2.0) for make in SELECT]
ALL = [*ONE_OF_MANY, AboveThreshold(0.5, 2.0), SparseVector(0.5, 2.0, 3.0)]
BOTH = pytest.mark.parametrize("monotone", [False, True])


def by_permutations(scores, scale):
    heads = np.exp((scores - scores.max()) / scale)
    won = np.zeros(scores.size)
    orders = list(itertools.permutations(range(scores.size)))
    for order in orders:
        reached = 1.0
        for r in order:
            won[r] += reached * heads[r] / len(orders)
            reached *= 1 - heads[r]
    return won


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_permute_and_flip_is_the_average_over_permutations(count):
    scores = np.random.default_rng(count).normal(scale=3, size=count)
    found = np.exp(PermuteAndFlip(1.5).log_density(np.arange(count), scores))
    assert found == pytest.approx(by_permutations(scores, 1.5), rel=1e-13)


@pytest.mark.parametrize("count", [63, 64, 65, 1000, 10_000])
@pytest.mark.parametrize("gap", [0.0, 1.0, 9.0])
def test_permute_and_flip_of_many_candidates(count, gap):
    # one ahead of count - 1 ties: int_0^1 (1 - p t)^(count - 1) dt = (1 - (1 - p)^count) / count p
    scores = np.append(gap, np.zeros(count - 1))
    p = math.exp(-gap)
    best = (-math.expm1(count * math.log1p(-p)) if gap else 1.0) / (count * p)
    found = np.exp(PermuteAndFlip(1.0).log_density([0, 1], scores))
    assert found == pytest.approx([best, (1 - best) / (count - 1)], rel=1e-11)


def test_permute_and_flip_has_not_bounded_range():
    e0 = PermuteAndFlip(2.0).loss.shift
    tie, gap = np.zeros(2), np.array([1.0, -1.0])
    ratio = [PermuteAndFlip(2.0).log_density(r, gap) - PermuteAndFlip(2.0).log_density(r, tie)
             for r in (0, 1)]  # fmt: skip
    assert ratio[0] - ratio[1] == pytest.approx(e0 + math.log(2 - math.exp(-e0)), abs=1e-12)


@BOTH
def test_permute_and_flip_costs_no_more_than_laplace_noise(monotone):
    # the density of the gap of two maxima is below both its tails, as is that of Laplace noise
    mechanism = PermuteAndFlip(2.0, monotone=monotone)
    e0 = mechanism.loss.shift
    rng = np.random.default_rng(7)
    for epsilon in (0.0, 0.1, 0.4):
        laplace = -math.expm1((epsilon - e0) / 2)
        assert exact(mechanism, epsilon) == pytest.approx(laplace, abs=1e-12)
        for pair in searched(mechanism, rng, 300):
            assert hockey_stick(mechanism, pair, epsilon) <= laplace + 1e-12


def searched(mechanism, rng, count):
    """Neighbours of two to seven scores, near and far, moved as far as they may."""
    for _ in range(count):
        size = rng.integers(2, 8)
        value = rng.normal(scale=rng.choice([0.5, 3.0, 15.0]) * mechanism.scale, size=size)
        if rng.random() < 0.5:  # all but one alike
            value[1:] = value[1]
        yield value, mechanism.values.moved_by_fractions(value, rng.uniform(-1, 1, size), rng)


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


@BOTH
def test_ten_answers_attain_the_epsilon_of_above_threshold(monotone):
    mechanism = AboveThreshold(0.0, 2.0, monotone=monotone)
    assert mechanism.loss.pure == (0.75 if monotone else 1.0)
    low = np.append(np.full(10, 28.0), -80.0)  # ten surely above, yet the last is found
    moved = low + np.append(np.full(10, 1.0), 0.0 if monotone else -1.0)
    ratio = float(mechanism.log_density(10, low) - mechanism.log_density(10, moved))
    assert ratio == pytest.approx(mechanism.loss.epsilon, rel=1e-9)


@BOTH
def test_no_pair_of_answers_exceeds_the_profile_of_sparse_vector(monotone):
    mechanism = SparseVector(0.5, 2.0, 1.5, monotone=monotone)
    assert mechanism.loss.epsilon == pytest.approx((0.75 if monotone else 1) + 1 / 1.5)
    for pair in searched(mechanism, np.random.default_rng(9), 200):
        for epsilon in (-0.5, 0.0, 0.6, 1.2, mechanism.loss.epsilon):
            found = hockey_stick(mechanism, pair, epsilon)
            assert found <= mechanism.loss.profile_any_epsilon(np.array(epsilon)) + 1e-11


def test_a_found_answer_costs_as_laplace_noise():
    mechanism = SparseVector(0.0, 1e-3, 2.0)  # the index is certain
    for epsilon in (0.0, 0.2, 0.45):
        found = hockey_stick(mechanism, (np.array([51.0]), np.array([50.0])), epsilon)
        assert found == pytest.approx(-math.expm1((epsilon - 0.5) / 2), abs=1e-7)
        assert found <= -math.expm1((epsilon - 0.5) / 2) + 1e-12  # cells can only merge


def test_cells_of_sparse_vector_hold_what_is_drawn():
    mechanism = SparseVector(0.5, 2.0, 1.5)
    first, second = np.array([0.0, 2.0, -1.0]), np.array([1.0, 1.0, 0.0])
    cells = mechanism.support.cells(first, second)
    for value in (first, second):
        mass = cells.measure * np.exp(mechanism.log_density(cells.outputs, value))
        assert mass.sum() == pytest.approx(1, abs=1e-12)
        where = cells.locate(mechanism.release(value, 3, 200_000))
        seen = np.cumsum(np.bincount(where, minlength=mass.size)) / 200_000
        allowed = math.sqrt(math.log(2 / FALSE_ALARM) / 400_000)
        assert np.abs(seen - np.cumsum(mass)).max() < allowed


def test_the_told_answer_has_fresh_laplace_noise():
    mechanism, value = SparseVector(0.5, 2.0, 1.5), np.array([1.0, -2.0, 4.0])
    told = mechanism.release(value, 4, 1_000_000)
    index = told[:, 0].astype(int)
    expected = np.exp(mechanism.comparison.log_density(np.arange(4), value))
    seen = np.bincount(index, minlength=4) / len(told)
    assert np.abs(seen - expected).max() < math.sqrt(math.log(8 / FALSE_ALARM) / 2e6)
    assert np.array_equal(np.isnan(told[:, 1]), index == 3)
    for found in range(3):  # given the index the noise is that of nobody's comparison
        noise = np.sort(told[index == found, 1] - value[found]) / 1.5
        cdf = np.where(noise < 0, np.exp(-np.abs(noise)) / 2, 1 - np.exp(-np.abs(noise)) / 2)
        steps = np.arange(noise.size + 1) / noise.size
        gap = max(np.abs(cdf - steps[1:]).max(), np.abs(cdf - steps[:-1]).max())
        assert gap < math.sqrt(math.log(6 / FALSE_ALARM) / (2 * noise.size))


@pytest.mark.parametrize("output", [
    [0, np.nan], [3, 1.0], [0.5, 1.0], [-1, 1.0], [4, np.nan], [1, np.inf], [np.nan, 1.0],
    [np.inf, np.nan],
])  # fmt: skip
def test_impossible_outputs_of_sparse_vector(output):
    assert np.isneginf(SparseVector(0.5, 2.0, 1.5).log_density(output, np.zeros(3)))


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
    # odds e^(e0 u / 2D), range e0, rho e0^2 / 8
    d, e0 = 3.0, 0.8
    mechanism, utility = Exponential(2 * d / e0, d), np.array([5.0, 1.0, 0.0])
    log_p = mechanism.log_density([0, 1, 2], utility)
    assert log_p - log_p[2] == pytest.approx(e0 * utility / (2 * d), rel=1e-13)
    assert mechanism.loss.epsilon == pytest.approx(e0, rel=1e-15)
    assert mechanism.loss.rho == pytest.approx(e0**2 / 8, rel=1e-14)


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


@pytest.mark.parametrize(("answers", "first"), [
    ([1e308, 0.0], 0), ([-1e308, 1e308], 1), ([-1.7e308, -1e308], 2), ([0.0, 1.7e308], None),
])  # fmt: skip
def test_huge_answers(answers, first):
    finder = AboveThreshold(-1e300 if first is None else 0.5, 2.0)
    first = 0 if first is None else first
    assert np.all(finder.release(answers, 1, 100) == first)
    log_p = finder.log_density([0, 1, 2], answers)
    assert log_p[first] == pytest.approx(0, abs=1e-14)
    assert np.all(np.delete(log_p, first) < -1e299)
    with_value = SparseVector(0.5, 2.0, 1.0)
    told = with_value.release([1e308, -1e308], 1)
    assert told.tolist() == [0, 1e308]
    assert np.isfinite(with_value.log_density(told, [1e308, -1e308]))
    assert np.isneginf(with_value.log_density([0, np.inf], [1e308, -1e308]))


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
