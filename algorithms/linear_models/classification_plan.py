"""What private classification releases: moments of features, then rounds of clipped gradients.

References: Dong, Roth & Su (2022) for the composition of Gaussian noise.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Repeat, Sequential
from algorithms.base.noisy_gradient_rounds import mu_of_budget, round_mu
from algorithms.linear_models.feature_moments import SHORTENED, Moves
from mechanisms.gaussian import Gaussian

# chosen once, on training parts (docs/classification.md says how)
MOMENTS_SHARE = 0.05  # of the squared budget
PRODUCTS_SHARE = 0.15
CLIPS = (0.4, 0.8)  # least and largest, of the root of the mean squared length of mapped rows
STEP = 1.9  # over half the longest that is surely stable
ROUNDS_PER_SIGNAL = 3.6  # times the root of the signal
FEWEST_ROUNDS, MOST_ROUNDS = 5, 100
MOST_PRODUCTS = 1000  # features, of which products are taken


class Sizes(NamedTuple):
    """Shapes that a plan depends on, all of them public."""

    records: int
    features: int
    coefficients: int


def signal_of(sizes: Sizes, mu: float) -> float:
    """Return ``n mu / sqrt p``, about the length of a clipped gradient over its noise."""
    return sizes.records * mu / math.sqrt(sizes.coefficients)


def default_rounds(sizes: Sizes, mu: float) -> int:
    """Return more rounds for a larger signal."""
    rounds = min(ROUNDS_PER_SIGNAL * math.sqrt(signal_of(sizes, mu)), MOST_ROUNDS)
    return int(max(rounds, FEWEST_ROUNDS))


def default_clip(sizes: Sizes, mu: float) -> float:
    """Return a larger norm for a larger signal: less noise is paid with more bias."""
    low, high = CLIPS
    return min(max(low * math.sqrt(math.sqrt(signal_of(sizes, mu) / 100)), low), high)


def takes_products(sizes: Sizes, mu: float) -> bool:
    """Return whether noise on products of features has a norm below their trace."""
    if sizes.features > MOST_PRODUCTS:
        return False
    # units of the mean squared length: SHORTENED^2 sqrt 2 / (n mu) a coordinate, norm by sqrt 2p
    noise = SHORTENED**2 * math.sqrt(2) / (sizes.records * mu * math.sqrt(PRODUCTS_SHARE))
    return noise * math.sqrt(2 * sizes.features) < 1


@lru_cache(maxsize=64)
def private_plan(
    epsilon: float,
    delta: float,
    sizes: Sizes,
    rounds: int,
    products: bool,
    relation: Adjacency,
    rate: float | None,
) -> Sequential:
    """Return the plan whose noise meets (epsilon, delta): moments, products, gradients."""
    moves, n = Moves.of(relation), sizes.records
    triangle = sizes.features * (sizes.features + 1) // 2
    left = 1 - MOMENTS_SHARE - (PRODUCTS_SHARE if products else 0.0)

    def gaussian(noise: float, moved: float, share: float, size: int) -> Gaussian:
        moved = round_up(moved)
        # a vector of one coordinate is still a vector
        return Gaussian(noise * moved / math.sqrt(share), moved, "exact", max(size, 2))

    def plan_of(noise: float) -> Sequential:
        parts: list[Plan] = [gaussian(noise, moves.moments / n, MOMENTS_SHARE, sizes.features + 1)]
        if products:
            parts.append(gaussian(noise, moves.products / n, PRODUCTS_SHARE, triangle))
        # a record that is sampled adds its gradient, of whatever neighbours
        moved = moves.gradient / n if rate is None else 1 / (rate * n)
        # the mu of a sampled round is about rate times its own
        share = left / rounds * (1 if rate is None else rate**-2)
        each = gaussian(noise, moved, share, sizes.coefficients)
        sampled = each if rate is None else PoissonSampled(each, rate, relation)
        return Sequential([*parts, Repeat(sampled, rounds)])

    # gradients alone: noise of 1 gives each a mu of sqrt(left / rounds), over the rate if sampled
    mu = mu_of_budget(epsilon, delta)
    replaced = relation is Adjacency.REPLACE_ONE
    each = round_mu(mu * math.sqrt(left), rounds, rate, replaced)
    start = math.sqrt(left / rounds) / each / (1 if rate is None else rate)
    return plan_of(calibrate_near(plan_of, start, epsilon, delta))
