"""Law: no pattern of participation moves the rows of a strategy further than its sensitivity.

Every pattern of small strategies is tried, with contributions that are equal vectors, opposite
ones, and vectors of the plane.  Where the sensitivity is said to be exact, one pattern attains it.
The noise of a release pays for all that its rounding to whole steps of a grid can move.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np

from accountant import (
    BandedMatrix,
    BinaryTree,
    BufferedToeplitz,
    FixedEpochs,
    MinSeparation,
    Once,
    StrategyMatrix,
    Toeplitz,
)
from accountant.correlated_noise import gram_bounds, poisson_groups
from accountant.correlated_noise.strategy import _sensitivity_of
from mechanisms import MatrixMechanism
from mechanisms import matrix_mechanism as module
from mechanisms.exact_noise.rounding_grid import grid_exponent
from mechanisms.exact_noise.whole_products import product_in_steps

SLACK = 1e-9  # of an exact sensitivity
ANGLES = np.random.default_rng(60).uniform(0, 2 * math.pi, (6, 16))


def _random(seed, *shape, signed=False):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) if signed else rng.random(shape)


STRATEGIES = [
    BinaryTree(11), BinaryTree((5, 7)), Toeplitz((1.0, 0.75, 0.5, 0.25, 0.125), 10),
    Toeplitz((1.0, 0.0, 0.0, 0.9), 10), Toeplitz((1.0, 0.8, -0.9), 10), Toeplitz((1.0, 0.5), 12),
    BufferedToeplitz((0.9, 0.4), (0.3, 0.2), 10), BufferedToeplitz((0.9, 0.5), (0.6, -0.4), 8),
    BandedMatrix(_random(61, 2, 10)), BandedMatrix(_random(62, 4, 10, signed=True)),
    StrategyMatrix(np.tril(_random(63, 9, 9))), StrategyMatrix(_random(64, 5, 8, signed=True)),
    StrategyMatrix(_random(65, 12, 9)),
]  # fmt: skip
PARTICIPATIONS = [
    Once(), MinSeparation(2, 2), MinSeparation(3, 2), MinSeparation(3, 1), MinSeparation(3, 4),
    FixedEpochs(2), FixedEpochs(5),
]  # fmt: skip
RUNS = [
    MatrixMechanism(strategy, 2.7, participation, dimension=dimension)
    for strategy, participation, dimension in (
        (Toeplitz((1 / 3, 0.3, 0.1), 6), MinSeparation(3, 2), None),
        (BinaryTree(7), MinSeparation(2, 3), 3),
        (StrategyMatrix(np.tri(5) / 7), FixedEpochs(5), 2),
    )
]


def patterns(participation, steps):
    """All steps that may use one record."""
    match participation:
        case Once():
            return [(step,) for step in range(steps)]
        case FixedEpochs():
            period = steps // participation.epochs
            return [tuple(range(first, steps, period)) for first in range(period)]
    uses, apart = participation.participations, participation.separation
    chosen = itertools.chain.from_iterable(
        itertools.combinations(range(steps), count) for count in range(1, uses + 1)
    )
    return [one for one in chosen if all(b - a >= apart for a, b in itertools.pairwise(one))]


@functools.cache
def greatest_moves(strategy, participation):
    """The greatest norms that equal or opposite vectors attain, and those of any direction."""
    columns = strategy.times(np.eye(strategy.columns))
    aligned, turned = 0.0, 0.0
    for used in patterns(participation, strategy.columns):
        own = columns[:, used]
        signs = np.array(list(itertools.product((1, -1), repeat=len(used))))[: 1 << 4].T
        aligned = max(aligned, float(np.linalg.norm(own @ signs, axis=0).max()))
        for angles in ANGLES[:, : len(used)]:
            turned = max(turned, float(np.linalg.norm(own @ np.exp(1j * angles))))
    return aligned, turned


def violation() -> str:
    """Where a record moves rows further than the sensitivity, or not as far as it says."""
    for most, (strategy, participation) in itertools.product(
        (gram_bounds.MAX_PATTERNS, 10), itertools.product(STRATEGIES, PARTICIPATIONS)
    ):
        if isinstance(participation, FixedEpochs) and strategy.columns % participation.epochs:
            continue
        if most == 10 and not isinstance(strategy, (BandedMatrix, StrategyMatrix)):
            continue
        kept, gram_bounds.MAX_PATTERNS = gram_bounds.MAX_PATTERNS, most
        try:
            found = strategy.sensitivity_under(participation)
        finally:
            gram_bounds.MAX_PATTERNS = kept
        aligned, turned = greatest_moves(strategy, participation)
        if found.value < max(aligned, turned) * (1 - 1e-15):
            return f"{strategy} is moved by {aligned} or {turned} under {participation}: {found}"
        if found.exact and found.value > aligned * (1 + SLACK):
            return f"{strategy} is moved by {aligned} at most under {participation}: {found}"
        if found.exact is not (not found.reason.endswith(": a bound")):
            return f"{found} under {participation} does not say whether it is a bound"
    return turns_violation()


def turns_violation() -> str:
    """Where a plan of groups that take turns is not that of the longest column, often enough."""
    varied = BandedMatrix([[1.0, 2.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0]])
    plan = poisson_groups.cyclic_poisson(varied, scale=2.0, rate=0.25)
    longest = math.sqrt(5) / 2
    if plan.count != 3 or not longest <= plan.part.part.mu <= longest * (1 + 1e-12):
        return f"five steps of two groups cost {plan}"
    return ""


def grid_violation() -> str:
    """Where rows on their grid lie farther apart than the noise pays for."""
    for cached in (module._rounded_sensitivity, _sensitivity_of):
        cached.cache_clear()
    rng = np.random.default_rng(66)
    for run in RUNS:
        k = grid_exponent(run.scale)
        steps, coordinates = run.strategy.columns, run.dimension or 1
        for used in patterns(run.participation, steps):
            # on the two sides of the middle of two grid points, in every coordinate
            value = (rng.integers(-9, 9, (steps, coordinates)) + 0.5 - 1e-4) * 2.0**k
            moved = value.copy()
            moved[list(used)] += run.sensitivity / math.sqrt(coordinates) + 2e-4 * 2.0**k
            pair = [product_in_steps(run.strategy, one, k) for one in (value, moved)]
            distance = float(np.sqrt(float(((pair[0] - pair[1]) ** 2).sum()))) * 2.0**k
            paid = Fraction(run.loss.mu) * Fraction(run.drawn_scale)
            allowed = float(paid) * (1 + 1e-3 * 2.0**k)
            if distance > allowed:
                return f"{run} draws rows {distance} apart, and {allowed} is paid"
    return ""


def test_no_pattern_moves_rows_further_than_the_sensitivity():
    assert violation() == ""


def test_noise_pays_for_the_grid_of_steps_and_rows():
    assert grid_violation() == ""
