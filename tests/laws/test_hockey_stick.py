"""Law: the density's hockey stick is the profile at the worst pair, and below it elsewhere."""

import numpy as np

from audits.known_densities.hockey_stick import exact, hockey_sticks
from mechanisms import Mechanism
from tests.laws.common import every_density, neighbouring_values

EPSILONS = (-2.0, -0.5, 0.0, 0.2, 0.5, 0.8, 0.95, 1.0, 1.5)
TOLERANCE = 1e-10
PAIRS = 20


def violation(mechanism: Mechanism, pairs_tried: int = PAIRS) -> str:
    """Where the law fails; "" where it holds."""
    rng = np.random.default_rng(11)
    claims = [profile(mechanism, eps) for eps in EPSILONS]
    pairs = list(neighbouring_values(mechanism, rng, pairs_tried))
    worst = [mechanism.worst_pair(eps) for eps in EPSILONS]
    pairs += {repr(pair): pair for pair in worst}.values()  # often the same for every epsilon
    for pair in pairs:
        for one in (pair, pair[::-1]):
            for eps, found, claimed in zip(
                EPSILONS, hockey_sticks(mechanism, one, EPSILONS), claims, strict=True
            ):
                if not found <= claimed + TOLERANCE:  # nor is it NaN
                    return f"delta({eps}) = {found} at {one}, claimed {claimed}"
    for eps, claimed in zip(EPSILONS, claims, strict=True):
        found = exact(mechanism, eps)
        if not (mechanism.loss_is_upper_bound or found >= claimed - TOLERANCE):
            return f"worst pair reaches {found} at {eps}, claimed {claimed} and not loose"
    return ""


def profile(mechanism: Mechanism, epsilon: float) -> float:
    """Worse direction of the declared profile."""
    both = (mechanism.loss, mechanism.loss.reversed)
    return max(float(loss.profile_any_epsilon(np.array(epsilon))) for loss in both)


@every_density
def test_hockey_stick_of_the_density_is_the_profile(mechanism):
    assert violation(mechanism) == ""
