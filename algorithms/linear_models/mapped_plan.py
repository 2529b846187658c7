"""What linear models release: moments of features, then rounds of clipped gradients.

The moments, and products where their noise is small, give a map of the features under which few
gradient steps are enough.  All noise is Gaussian, so each release has a share of the squared budget
mu^2, where mu is the parameter of Gaussian differential privacy.

References: Dong, Roth & Su (2022) for the composition of Gaussian noise.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Repeat, Sequential
from algorithms.base.noisy_gradient_rounds import mu_of_budget, round_mu
from algorithms.base.row_blocks import MeanOfBlocks
from algorithms.linear_models.feature_moments import (
    BlockMoments,
    BlockProducts,
    MappedFeatures,
    Moments,
    Moves,
    mapped_features,
)
from mechanisms.gaussian import Gaussian

MOST_PRODUCTS = 1000  # largest number of features whose products are released


class Sizes(NamedTuple):
    """Shapes that a plan depends on, all of them public."""

    records: int
    features: int
    coefficients: int


class Shares(NamedTuple):
    """Shares of the squared budget, and what else the releases depend on."""

    moments: float  # share of the mean of rows and of squared lengths
    products: float  # share of the products of features
    kept: float = 0.0  # what a record that is not clipped adds to the count of those
    closing: float = 0.0  # share of a last gradient, which is not sampled
    # Centred rows are shortened to this multiple of the root of their mean squared length.
    shortened: float = 1.2
    constant: float = math.inf  # longest constant feature over a mapped row without it


def signal_of(sizes: Sizes, mu: float) -> float:
    """Return ``n mu / sqrt p``, about the length of a clipped gradient over its noise."""
    return sizes.records * mu / math.sqrt(sizes.coefficients)


def takes_products(sizes: Sizes, mu: float, shares: Shares) -> bool:
    """Return whether noise on products of features has a norm below their trace."""
    if sizes.features > MOST_PRODUCTS:
        return False
    # In units of the mean squared length, noise is shortened^2 sqrt 2 / (n mu) on a coordinate, and
    # its norm is sqrt(2 p) times that.
    noise = shares.shortened**2 * math.sqrt(2) / (sizes.records * mu * math.sqrt(shares.products))
    return noise * math.sqrt(2 * sizes.features) < 1


@lru_cache(maxsize=64)
def private_plan(
    budget: tuple[float, float],
    sizes: Sizes,
    rounds: int,
    shares: Shares,
    products: bool,
    relation: Adjacency,
    rate: float | None = None,
) -> Sequential:
    """Return the plan that meets (epsilon, delta).

    It has the moments, the products if asked for, the rounds of gradients, on Poisson samples if
    there is a ``rate``, and a last gradient where `Shares` has a share for it.
    """
    moves, n = Moves.of(relation), sizes.records
    triangle = sizes.features * (sizes.features + 1) // 2
    counts = 1 if shares.kept else 0

    def gaussian(noise: float, moved: float, share: float, size: int) -> Gaussian:
        moved = round_up(moved)
        # The mechanism needs a vector, also for one coordinate.
        return Gaussian(noise * moved / math.sqrt(share), moved, "exact", max(size, 2))

    def plan_of(noise: float) -> Sequential:
        parts: list[Plan] = [gaussian(noise, moves.moments / n, shares.moments, sizes.features + 1)]
        remaining_share = 1 - shares.moments - shares.closing
        if products:
            parts.append(gaussian(noise, moves.products / n, shares.products, triangle))
            remaining_share -= shares.products
        # With sampling, a record is added to the sample or not, for both kinds of neighbours.
        gradient = moves.gradient if rate is None else 1 / rate
        moved = math.hypot(gradient, shares.kept) / n
        # The mu of a sampled round is about the rate times the mu of its release.
        share = remaining_share / rounds * (1 if rate is None else rate**-2)
        release = gaussian(noise, moved, share, sizes.coefficients + counts)
        sampled = release if rate is None else PoissonSampled(release, rate, relation)
        parts.append(Repeat(sampled, rounds))
        if shares.closing:
            moved = math.hypot(moves.gradient, shares.kept) / n
            parts.append(gaussian(noise, moved, shares.closing, sizes.coefficients + counts))
        return Sequential(parts)

    # For gradients alone, noise of 1 gives each round a mu of sqrt(remaining_share / rounds),
    # divided by the rate if rounds are sampled.
    remaining_share = 1 - shares.moments - shares.closing - (shares.products if products else 0.0)
    mu = mu_of_budget(*budget)
    replaced = relation is Adjacency.REPLACE_ONE
    mu_of_round = round_mu(mu * math.sqrt(remaining_share), rounds, rate, replaced)
    start = math.sqrt(remaining_share / rounds) / mu_of_round / (1 if rate is None else rate)
    return plan_of(calibrate_near(plan_of, start, *budget))


def rounds_of(plan: Sequential | Repeat) -> Any:
    """Return the part of a plan that repeats a gradient, which may be the whole plan."""
    if isinstance(plan, Repeat):
        return plan
    return next(part for part in plan.parts if isinstance(part, Repeat))


def released_map(
    ledger: Any,
    x_bound: float,
    bound: float,
    intercept: bool,
    executor: Executor | None,
    shares: Shares,
    **curvature: float,
) -> MappedFeatures:
    """Release the moments, and the products if the plan has them; return the map they give.

    Rows are shortened to ``bound`` for the moments; ``curvature`` are arguments of
    `mapped_features`.
    """
    before = [*takewhile(lambda part: not isinstance(part, Repeat), ledger.plan.parts)]
    (records, features), products = ledger.shape, None
    query = MeanOfBlocks(BlockMoments(x_bound, bound), records, executor)
    released = ledger.release(before[0], query, shape=features + 1)
    moments = Moments.of(released, noise_of(before[0]), bound, intercept)
    if len(before) == 2:
        unit = shares.shortened * math.sqrt(moments.square)
        work = BlockProducts(x_bound, moments.centre, unit)
        blocks, triangle = MeanOfBlocks(work, records, executor), features * (features + 1) // 2
        products = ledger.release(before[1], blocks, shape=triangle)
    noise = noise_of(before[-1])
    longest = shares.constant if intercept else 0.0
    return mapped_features(
        moments, products, noise, shares.shortened, x_bound, longest, **curvature
    )


def noise_of(mechanism: Any) -> float:
    """Return the standard deviation of a release's noise; 0 for a release without noise."""
    return float(getattr(mechanism, "scale", 0.0))
