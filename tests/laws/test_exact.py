"""Law: an exact release of a real number depends on its grid point alone, to the last bit."""

import numpy as np
import pytest

from mechanisms import EXACT, Mechanism, Staircase
from mechanisms.families.additive import RealNoise
from tests.laws.common import INSTANCES, example_value

ON_A_GRID = [
    one for one in INSTANCES if isinstance(one, (RealNoise, Staircase)) and one.arithmetic is EXACT
]


def violation(mechanism: Mechanism) -> str:
    """Where the law fails; "" where it holds."""
    rng = np.random.default_rng(41)
    for value in [example_value(mechanism, rng) for _ in range(5)]:
        drawn, same = (
            mechanism.release(v, 9, 1000) for v in (value, mechanism.noise_centre(value))
        )
        if drawn.tobytes() != same.tobytes():
            return f"{np.sum(drawn != same)} draws of 1000 tell {value} from its grid point"
    return ""


@pytest.mark.parametrize("mechanism", ON_A_GRID, ids=repr)
def test_numbers_of_one_grid_point_are_told_alike(mechanism):
    assert violation(mechanism) == ""
