"""Law of false alarms: an early stop must have bet on fair coins of the sides."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from accountant import PureLoss
from audits import Outcome
from audits.attacks.sequential import watch

CHANCE = 1e-9


def one_sided(value, rng, size):
    """Says 1 with chance 1/2 of the first value and 1/2e of the second: 0 says much less."""
    return rng.random(size) < (0.5 if value == 0 else 0.5 / math.e)


@pytest.mark.parametrize("runs", [1500, 6000])
def test_an_honest_one_sided_release_is_seldom_convicted(runs):
    repeats = 40
    found = [watch(one_sided, (0, 1), PureLoss(1.0), runs, rng=seed) for seed in range(repeats)]
    alarms = sum(one.outcome is Outcome.FALSIFIED for one in found)
    assert alarms <= binom.ppf(1 - CHANCE, repeats, 0.05)
    assert np.isfinite([one.epsilon_lower for one in found]).all()
