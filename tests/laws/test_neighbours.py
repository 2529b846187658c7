"""Law: no pair of neighbours that a search finds costs more than the profile says.

Hill climbing on the hockey stick over values and moves within the sensitivity, in up to six
candidates; on the line also vectors whose move is split between two coordinates.
"""

import numpy as np
import pytest

from audits.known_densities.hockey_stick import hockey_stick, hockey_sticks
from mechanisms import Mechanism
from mechanisms.base.values import Categories, Reals, Scores
from mechanisms.families.additive import AdditiveNoise
from mechanisms.laplace import Laplace
from tests.laws.common import INSTANCES, every_density, neighbouring_values
from tests.laws.test_hockey_stick import profile

EPSILONS = (0.0, 0.3, 0.7, 0.9)


def violation(mechanism: Mechanism) -> str:
    """Where the law fails; "" where it holds."""
    match mechanism.values:
        case Scores():
            found = hill_climbed_pair(mechanism)
        case Reals(axes=None) if isinstance(mechanism, AdditiveNoise):
            found = split_in_the_plane(mechanism)
        case Categories(count=count):
            found = [
                (found, eps, (a, b)) for a in range(count) for b in range(count)
                for found, eps in at_every_epsilon(mechanism, (a, b))
            ]  # fmt: skip
        case _:
            found = random_pairs(mechanism)
    claims = {epsilon: profile(mechanism, epsilon) for epsilon in EPSILONS}
    for delta, epsilon, where in found:
        if not delta <= claims[epsilon] + 1e-9:
            return f"delta({epsilon}) = {delta} at {where}, claimed {claims[epsilon]}"
    return ""


def at_every_epsilon(mechanism: Mechanism, pair):
    """(delta, epsilon) of a pair at every epsilon."""
    return zip(hockey_sticks(mechanism, pair, EPSILONS), EPSILONS, strict=True)


def hill_climbed_pair(mechanism: Mechanism, seed: int = 21, longer: int = 1):
    """Best (delta, epsilon, pair) of a random climb for each epsilon and number of candidates."""
    rng = np.random.default_rng(seed)
    steps = longer * (60 if getattr(mechanism, "noise", "") == "laplace" else 200)
    found = []
    for epsilon in EPSILONS:
        for k in (2, 3, 6):
            value, move = rng.normal(size=k), rng.choice([-1.0, 1.0], size=k)
            best, size = -1.0, 2.0 * mechanism.scale
            for step in range(steps):
                trial = value + size * rng.normal(size=k) * (rng.random(k) < 0.5)
                turn = np.where(rng.random(k) < 0.2, rng.uniform(-1, 1, k), move)
                pair = (trial, mechanism.values.moved_by_fractions(trial, turn, rng))
                delta = hockey_stick(mechanism, pair, epsilon)
                if delta > best:
                    best, value, move = delta, trial, turn
                size *= 0.05 ** (1 / steps) if step else 1.0
            found.append((best, epsilon, (value, move)))
    return found


def random_pairs(mechanism: Mechanism):
    """(delta, epsilon, pair) of many random neighbours."""
    rng = np.random.default_rng(22)
    return [
        (found, eps, pair) for pair in neighbouring_values(mechanism, rng, 40)
        for found, eps in at_every_epsilon(mechanism, pair)
    ]  # fmt: skip


def split_in_the_plane(mechanism: Mechanism):
    """(delta, epsilon, move) of two-dimensional moves of the greatest norm, by quadrature."""
    width = np.exp(-float(mechanism.log_density(0.0, 0.0)))
    x, w = np.polynomial.legendre.leggauss(8)
    starts = np.linspace(-14, 14, 225)[:-1] * width
    half = 14 * width / 224
    nodes = (starts[:, None] + half * (x + 1)).ravel()
    weights = np.tile(w * half, 224)
    plane = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1)
    # an L1 ball for Laplace, an L2 ball for Gaussian: both norms of both moves are declared ones
    one_norm = isinstance(mechanism, Laplace)
    found = []
    for angle in (0.0, np.pi / 8, np.pi / 4):
        move = np.array([np.cos(angle), np.sin(angle)])
        move *= mechanism.sensitivity / (np.abs(move).sum() if one_norm else 1.0)
        log_p, log_q = (mechanism.log_density(plane, v) for v in (move, np.zeros(2)))
        for epsilon in EPSILONS:
            stick = np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0)
            # the kinks cost this rule a little accuracy, which the comparison must allow
            found.append((float(weights @ stick @ weights) - 2e-5, epsilon, move))
    return found


@every_density
def test_no_searched_neighbours_exceed_the_profile(mechanism):
    assert violation(mechanism) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "mechanism", [one for one in INSTANCES if isinstance(one.values, Scores)], ids=repr
)
def test_longer_climbs_find_nothing_either(mechanism, seed):
    for delta, epsilon, where in hill_climbed_pair(mechanism, seed, longer=4):
        assert delta <= profile(mechanism, epsilon) + 1e-9, where
