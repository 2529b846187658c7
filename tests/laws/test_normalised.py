"""Law: densities and probabilities sum to 1."""

import numpy as np
import pytest

from audits.densities import hockey_stick
from tests.laws.common import every_mechanism, example_value


@every_mechanism
def test_density_integrates_to_one(mechanism):
    rng = np.random.default_rng(3)
    for _ in range(10):
        value = example_value(mechanism, rng)
        # P(S) - e^-700 Q(S) over everything is the integral of p
        total = hockey_stick(mechanism, (value, value), -700.0)
        assert total == pytest.approx(1.0, abs=1e-11)
