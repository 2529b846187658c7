"""Laws: an exact release depends on the grid point of its value alone, and rounding is paid for."""

import sys
from fractions import Fraction

import numpy as np
import pytest

from mechanisms import (
    EXACT,
    AboveThreshold,
    Exponential,
    LazyExponential,
    Mechanism,
    PermuteAndFlip,
    Staircase,
)
from mechanisms.exact_noise.rounding_grid import grid_step
from mechanisms.families.additive import RealNoise
from mechanisms.families.selection import ScoreMechanism
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


SCORED = [one for one in INSTANCES if isinstance(one, ScoreMechanism) and one.arithmetic is EXACT]
# a sensitivity between two multiples of the grid's step, below it, and not far above
SCORED += [
    PermuteAndFlip(2.0, 0.3),
    Exponential(2.0, 2.0**-40),
    AboveThreshold(1.0, 2.0, 1.5 * 2.0**-39),
]


def grid_violation(mechanism: ScoreMechanism) -> str:
    """Where scores are not drawn from the grid, or what rounding moves is not paid for."""
    rng, step = np.random.default_rng(43), Fraction(grid_step(mechanism.scale))
    # some neighbours lie on the two sides of the middle of two grid points
    value = rng.integers(-3, 3, 200) * 0.7 * mechanism.scale
    value += rng.random(200) * float(step)
    moved = value + rng.choice([1.0, -1.0, 0.999], 200) * mechanism.sensitivity
    paid = Fraction(mechanism.charged_sensitivity) / Fraction(mechanism.scale)
    for pair in zip(value, moved, strict=True):
        one, other = (Fraction(float(x)) for x in mechanism.noise_centre(np.array(pair)))
        if one % step or other % step:
            return f"scores are drawn at {float(one)} and {float(other)}, beside the grid"
        distance = abs(one - other) / Fraction(mechanism.drawn_scale)
        if distance > paid:
            return f"neighbours are {float(distance)} apart, and {float(paid)} is paid"
    return drawn_violation(mechanism, value)


def drawn_violation(mechanism: ScoreMechanism, value) -> str:
    """Where the sampler is handed other scores, or another scale, than the mechanism declares."""
    handed = []

    def spy(sampler, scores, scale, size, rng):
        handed.append((scores, scale))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[mechanism.__class__.__module__], "drawn_winners", spy)
        mechanism.release(value, 0)
    ((scores, scale),) = handed
    same = scores.tobytes() == mechanism.noise_centre(value).tobytes()
    return "" if same and scale == mechanism.drawn_scale else "the sampler is handed other scores"


@pytest.mark.parametrize("mechanism", SCORED, ids=repr)
def test_scores_are_drawn_from_the_grid_and_pay_for_it(mechanism):
    if isinstance(mechanism, LazyExponential):
        rounded = mechanism.noise_centre
        plain = Exponential(mechanism.scale, mechanism.sensitivity)
        scores = mechanism.values.example(np.random.default_rng(44))
        assert (rounded(scores).scores() == plain.noise_centre(scores.scores())).all()
        assert mechanism.drawn_scale == plain.drawn_scale
    else:
        assert grid_violation(mechanism) == ""
