"""Law: densities and probabilities sum to 1."""

import numpy as np

from audits.known_densities.hockey_stick import hockey_stick
from mechanisms import Mechanism
from tests.laws.common import every_mechanism, example_value


def violation(mechanism: Mechanism) -> str:
    """Where the law fails; "" where it holds."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        value = example_value(mechanism, rng)
        # P(S) - e^-700 Q(S) over everything is the integral of p
        total = hockey_stick(mechanism, (value, value), -700.0)
        if not abs(total - 1) <= 1e-11:
            return f"total of {total} at {value}"
    return ""


@every_mechanism
def test_density_integrates_to_one(mechanism):
    assert violation(mechanism) == ""
