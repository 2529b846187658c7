"""The lowest bit of a release convicts noise of floats, and finds nothing in exact noise."""

import numpy as np
import pytest

from accountant import PureLoss
from audits.bits import NO_BIT, audit_bits, lowest_bit
from mechanisms import DiscreteLaplace, Gaussian, Laplace, Staircase, TruncatedLaplace


def test_the_lowest_bit_of_a_float():
    numbers = np.array([1.0, -3.0, 0.75, 2.0**70, 1 + 2.0**-52, 0.1, 5e-324, 0.0])
    assert lowest_bit(numbers).tolist() == [0, 0, -2, 70, -52, -55, -1074, NO_BIT]


IDEALISED = [Laplace(1.0), Gaussian(3.7306334), Staircase(1.0), TruncatedLaplace(1.0, 11.0)]
EXACT = [Laplace(1.0, 1.0, "exact"), Gaussian(3.7306334, 1.0, "exact")]


@pytest.mark.parametrize("made", IDEALISED, ids=repr)
def test_idealised_noise_is_convicted_by_ten_thousand_runs_a_side(made):
    finding = audit_bits(made, runs=20_000, rng=1)
    assert finding.outcome.name == "FALSIFIED"
    assert finding.epsilon_lower > 4


def test_so_is_the_noise_of_a_plain_function():
    def plain(value, rng, size):
        return value + rng.laplace(size=size)

    finding = audit_bits(plain, (1.0, 0.0), PureLoss(1.0), rng=1)
    assert finding.epsilon_lower > 4


@pytest.mark.parametrize("made", EXACT, ids=repr)
@pytest.mark.parametrize("pair", [None, (1 / 3, 0.0), (0.1, 1.1)], ids=str)
def test_exact_noise_tells_nothing_by_its_bits(made, pair):
    finding = audit_bits(made, pair, runs=500_000, confidence=1 - 1e-6, rng=2)
    assert finding.epsilon_lower < 0.1
    assert finding.outcome.name == "SURVIVED"


def test_integers_tell_what_they_cost_and_no_more():
    finding = audit_bits(DiscreteLaplace(1.0), runs=500_000, confidence=1 - 1e-6, rng=2)
    assert 0.5 < finding.epsilon_lower < 1.0  # 1 is odd and 0 is even


@pytest.mark.slow
@pytest.mark.parametrize("made", EXACT, ids=repr)
def test_exact_noise_tells_nothing_in_ten_million_runs_a_side(made):
    finding = audit_bits(made, runs=20_000_000, confidence=1 - 1e-6, rng=3)
    assert finding.outcome.name == "SURVIVED"
    assert finding.epsilon_lower < 0.1
