"""Sparse vector and AboveThreshold against their profiles."""

import math

import numpy as np
import pytest

from audits.known_densities.hockey_stick import hockey_stick
from mechanisms import AboveThreshold, SparseVector
from tests.mechanisms.families.selections import searched

BOTH = pytest.mark.parametrize("monotone", [False, True])


@BOTH
def test_ten_answers_attain_the_epsilon_of_above_threshold(monotone):
    mechanism = AboveThreshold(0.0, 2.0, monotone=monotone)
    assert mechanism.loss.pure == (0.75 if monotone else 1.0)
    low = np.append(np.full(10, 28.0), -80.0)  # ten surely above, yet the last is found
    moved = low + np.append(np.full(10, 1.0), 0.0 if monotone else -1.0)
    ratio = float(mechanism.log_density(10, low) - mechanism.log_density(10, moved))
    assert ratio == pytest.approx(mechanism.loss.epsilon, rel=1e-9)


@BOTH
def test_the_worst_pair_is_that_of_above_threshold(monotone):
    mechanism = SparseVector(1.0, 2.0, 1.5, monotone=monotone)
    for epsilons in ((), (0.0,), (1.0,)):
        pair = mechanism.worst_pair(*epsilons)
        assert np.array_equal(pair, mechanism.comparison.worst_pair(*epsilons))


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


FALSE_ALARM = 1e-9


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
    outputs = mechanism.release(value, 4, 1_000_000)
    index = outputs[:, 0].astype(int)
    expected = np.exp(mechanism.comparison.log_density(np.arange(4), value))
    seen = np.bincount(index, minlength=4) / len(outputs)
    assert np.abs(seen - expected).max() < math.sqrt(math.log(8 / FALSE_ALARM) / 2e6)
    assert np.array_equal(np.isnan(outputs[:, 1]), index == 3)
    for found in range(3):  # given the index the noise is that of nobody's comparison
        noise = np.sort(outputs[index == found, 1] - value[found]) / 1.5
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
    answer = with_value.release([1e308, -1e308], 1)
    assert answer.tolist() == [0, 1e308]
    assert np.isfinite(with_value.log_density(answer, [1e308, -1e308]))
    assert np.isneginf(with_value.log_density([0, np.inf], [1e308, -1e308]))


@BOTH
@pytest.mark.parametrize("kind", [AboveThreshold, SparseVector])
def test_a_worst_pair_is_one_of_neighbours(kind, monotone):
    settings = (0.0, 2.0, 3.0) if kind is SparseVector else (0.0, 2.0)
    mechanism = kind(*settings, sensitivity=0.5, monotone=monotone)
    for epsilon in (0.0, 0.3):
        first, second = map(np.asarray, mechanism.worst_pair(epsilon))
        moved = second - first
        assert np.abs(moved).max() == 0.5
        assert not monotone or moved.min() >= 0 or moved.max() <= 0
