"""The combined tail of blocks, against binomials and enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from scipy.integrate import quad
from scipy.stats import binom, norm

from audits.claims.findings import GuessCounts
from audits.statistics.combined_tests import (
    MIN_FIRST_SCORE,
    block_schedule,
    clipped_normal_tail,
    combined_epsilon_lower,
    combined_p_value,
)
from tests.strategies import right_guesses, wrong_guesses


def test_the_schedule_wastes_no_runs():
    for runs in (10, 1999, 2000, 123_456, 999_999, 10**6, 10**8):
        for pure in (True, False):
            blocks = block_schedule(runs, pure)
            learned, tested = blocks[-1]
            assert learned + tested == runs
            assert learned <= max(100_000, 0.3 * runs)
            assert all(sum(one) == later[0] for one, later in itertools.pairwise(blocks))


@given(right_guesses, wrong_guesses)
def test_one_block_is_one_binomial(right, more):
    alone = GuessCounts(right, right + more, 2000).epsilon_lower(0.0, 0.95)
    assert combined_epsilon_lower([(right, right + more, 2000)], 0.05) == pytest.approx(
        alone, abs=1e-7
    )


def test_the_combined_tail_is_uniform_at_most():
    rng = np.random.default_rng(1)
    q = 1 / (1 + math.exp(-1.0))
    few, many = rng.binomial(300, q, 3000).tolist(), rng.binomial(900, q, 3000).tolist()
    blocks = [[(a, 300, 400), (b, 900, 1400)] for a, b in zip(few, many, strict=True)]
    found = np.array([combined_p_value(both, 1.0) for both in blocks])
    for level in (0.01, 0.05, 0.5):
        count = np.count_nonzero(found <= level)
        assert binom.ppf(1e-6, 3000, 0.7 * level) <= count <= binom.ppf(1 - 1e-6, 3000, level)


@pytest.mark.parametrize(("score", "one"), [(1.645, 0.47), (-1.0, 0.5), (5.0, 0.6), (12.0, 0.47)])
def test_the_law_of_the_combined_score(score, one):
    two = math.sqrt(1 - one * one)

    def inside(x):
        return norm.pdf(x) * norm.sf((score - one * x) / two)

    peak = max(one * score, MIN_FIRST_SCORE)
    parts = [quad(inside, a, b, epsrel=1e-11, epsabs=0)[0]
             for a, b in ((MIN_FIRST_SCORE, peak), (peak, peak + 12)) if b > a]  # fmt: skip
    truth = norm.cdf(MIN_FIRST_SCORE) * norm.sf((score - one * MIN_FIRST_SCORE) / two) + sum(parts)
    assert clipped_normal_tail(score, one, two) == pytest.approx(truth, rel=1e-8)
    assert clipped_normal_tail(score, one, two) >= truth  # rounded to the claim's side


def test_a_poor_first_rule_does_not_undo_the_second():
    # 730 of 1,000 are more than e^.9 to 1; a first rule of odds e^.4 says nothing about that
    alone = combined_epsilon_lower([(730, 1000, 140_000)], 0.05)
    both = combined_epsilon_lower([(1200, 2000, 40_000), (730, 1000, 140_000)], 0.05)
    assert alone - 0.05 < both < alone


@pytest.mark.parametrize(("right", "made"), [(0, 0), (0, 50), (1, 1), (50, 50)])
def test_edges_of_the_combined_bound(right, made):
    bound = combined_epsilon_lower([(right, made, 100), (right, made, 100)], 0.05)
    assert 0.0 <= bound < math.inf
    assert (bound > 0) == (right > 10)
