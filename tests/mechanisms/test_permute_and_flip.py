"""Permute-and-flip against the average over permutations."""

import itertools
import math

import numpy as np
import pytest

from audits.known_densities.hockey_stick import exact, hockey_stick
from mechanisms import PermuteAndFlip
from tests.mechanisms.families.selections import searched


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


@pytest.mark.parametrize("count", [29, 30, 63, 64, 65, 1000, 30_000])
@pytest.mark.parametrize("gap", [0.0, 1.0, 9.0])
def test_permute_and_flip_of_many_candidates(count, gap):
    # one ahead of count - 1 ties: int_0^1 (1 - p t)^(count - 1) dt = (1 - (1 - p)^count) / count p
    scores = np.append(gap, np.zeros(count - 1))
    p = math.exp(-gap)
    best = (-math.expm1(count * math.log1p(-p)) if gap else 1.0) / (count * p)
    made = PermuteAndFlip(1.0, arithmetic="idealised")  # exact noise is wider by 1e-12
    found = np.exp(made.log_density([0, 1], scores))
    assert found == pytest.approx([best, (1 - best) / (count - 1)], rel=1e-13, abs=0)


def test_permute_and_flip_has_not_bounded_range():
    made = PermuteAndFlip(2.0, arithmetic="idealised")  # exact noise is wider by 1e-12
    e0 = made.loss.shift
    tie, gap = np.zeros(2), np.array([1.0, -1.0])
    ratio = [made.log_density(r, gap) - made.log_density(r, tie) for r in (0, 1)]
    assert ratio[0] - ratio[1] == pytest.approx(e0 + math.log(2 - math.exp(-e0)), abs=1e-12)


BOTH = pytest.mark.parametrize("monotone", [False, True])


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
