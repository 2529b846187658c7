"""What linear models release: moments of features, then rounds of clipped gradients.

The moments are the mean of the rows x and of their squared lengths.  The products of the centred
rows follow.  Each is released where the budget carries it, which `worth_of` says.  Both give a
linear map of the features; for rows under this map ("mapped rows") few gradient steps are enough.
After the rounds a closing gradient may come, which clips hardly any record and serves confidence
intervals (`closing_gradient`).  Shares of classes may come first, and again with mean probabilities
last (`class_shares`).

All noise is Gaussian.  A release whose noise has the deviation s, of a value that one record moves
by at most d, has the mu d / s of Gaussian differential privacy; the squares of several releases add
up.  So each release has a share of mu^2, the squared budget, and s = d / (mu sqrt(share)).

References: Dong, Roth & Su (2022) for the composition of Gaussian noise.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, NamedTuple

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Plan, Repeat, Sequential
from algorithms.base.noisy_gradient_rounds import GradientRounds, mu_of_budget, round_mu
from algorithms.base.row_blocks import MeanOfBlocks
from algorithms.linear_models.class_shares import calibrates, calibration_moved, shares_moved
from algorithms.linear_models.descent_loss import (
    LONGEST,
    Prospect,
    Steps,
    best_steps,
    reference_spectra,
)
from algorithms.linear_models.feature_moments import (
    LEAST_CURVATURE,
    USUAL,
    BlockMoments,
    BlockProducts,
    MappedFeatures,
    Moments,
    Moves,
    mapped_features,
)
from mechanisms.gaussian import Gaussian

MOST_PRODUCTS = 1000  # largest number of features whose products are released
# Products are released also where they are expected to leave a little more loss: features usually
# have more unlike scales than `reference_spectra`.
WORTH_OF_PRODUCTS = 1.5
MOST_OF_MOMENTS = 0.2  # the largest share that moments are worth
FEWEST_ROUNDS, MOST_ROUNDS = 60, 200  # if none is asked for


class Sizes(NamedTuple):
    """Shapes that a plan depends on, all of them public."""

    records: int
    features: int
    coefficients: int
    outputs: int = 1  # scores of a record
    cells: int = 1  # shares of targets that are released, by class or by cell


class Shares(NamedTuple):
    """Shares of the squared budget, and the other settings of the releases."""

    moments: float
    products: float  # counts as 0 where products are not released
    closing: float = 0.0  # of the closing gradient, which is never sampled; 0 if there is none
    curvature: float = 0.0  # of products of mapped rows before the closing gradient, as that
    # A gradient may come with one more coordinate: the share of the records that are not clipped,
    # times this weight.  0 leaves the coordinate out.
    unclipped_weight: float = 0.0
    # The closing gradient may come with its squared length, times this weight.
    square_weight: float = 0.0
    # For their products, centred rows are shortened to this multiple of the root of their mean
    # squared length.  A larger one shortens fewer rows and takes more noise.
    # docs/classification.md says which others were tried.
    shortened_to: float = 1.2
    # Mapped rows end in a constant feature, at most this multiple of the length of the rest.
    longest_constant: float = math.inf
    shortest_constant: float = 0.0  # and at least this one
    targets: float = 0.0  # of the shares of targets, before all others; 0: not released
    calibration: float = 0.0  # of shares and mean probabilities, after all others; 0: not released

    @property
    def rounds(self) -> float:
        """The share of the rounds of gradients."""
        before = self.targets + self.moments + self.products
        return 1 - before - self.curvature - self.closing - self.calibration


def signal_of(sizes: Sizes, mu: float) -> float:
    """Return ``n mu / sqrt p``, about the length of a clipped gradient over its noise."""
    return sizes.records * mu / math.sqrt(sizes.coefficients)


def products_fit(sizes: Sizes, mu: float, shares: Shares) -> bool:
    """Return whether noise on products of features has a norm below their trace."""
    return sizes.features <= MOST_PRODUCTS and norm_of_noise(sizes, mu, shares) < 1


def norm_of_noise(sizes: Sizes, mu: float, shares: Shares) -> float:
    """Return about the norm of the noise on products of features, in units of their trace."""
    # In units of the trace, which is the mean squared length of centred rows, a row's products have
    # a length of at most shortened_to^2, and exchanging it moves their mean by at most sqrt 2 / n
    # times that.  The release has the mu sqrt(share) mu, so the noise on the diagonal deviates by
    deviation = (
        shares.shortened_to**2 * math.sqrt(2) / (sizes.records * mu * math.sqrt(shares.products))
    )
    # Entries off the diagonal are released times sqrt 2, so their noise is smaller by that.  Such a
    # symmetric p x p matrix of noise has a norm of about sqrt(2 p) times the deviation.
    return deviation * math.sqrt(2 * sizes.features)


class Worth(NamedTuple):
    """What a budget carries before the gradients, and how many of them."""

    shares: Shares  # 0 for what is not released
    rounds: int
    loss: float  # expected, over what features explain


@lru_cache(maxsize=64)
def worth_of(
    sizes: Sizes,
    mu: float,
    shares: Shares,
    moves: Moves,
    clip_square: float,
    constant: float,
    needs_products: bool = False,
) -> Worth:
    """Return the releases of the least expected loss, on average over `reference_spectra`.

    The budget of what is not released goes to the gradients.  ``clip_square`` and ``constant`` are
    those of `Prospect`.
    """
    spectra = reference_spectra(sizes.features)

    def steps_with(taken: Shares, least_ridge: float) -> Steps:
        noise = noise_of_rounds(sizes, mu, taken, moves)
        travel, longest_constant = LONGEST * MOST_ROUNDS, taken.longest_constant
        prospect = Prospect(
            noise, travel, clip_square, constant, longest_constant, taken.shortest_constant
        )
        return best_steps(spectra, prospect, least_ridge)

    # Moments are worth a share where their noise on the mean squared length is no more than what
    # is known of it before.
    moments = max(shares.moments, (moves.moments / (sizes.records * mu * USUAL)) ** 2)
    if not calibrates(sizes.records, mu, shares.calibration):
        shares = shares._replace(calibration=0.0)
    chosen = shares._replace(products=0.0, moments=moments if moments <= MOST_OF_MOMENTS else 0.0)
    steps = steps_with(chosen, math.inf)
    if products_fit(sizes, mu, shares):
        # The noise is half hidden by a ridge of half its norm.
        with_products = steps_with(shares, max(LEAST_CURVATURE, norm_of_noise(sizes, mu, shares)))
        if needs_products or with_products.loss < WORTH_OF_PRODUCTS * steps.loss:
            chosen, steps = shares, with_products
    rounds = max(FEWEST_ROUNDS, math.ceil(steps.travel / LONGEST))
    return Worth(chosen, rounds, steps.loss)


def noise_of_rounds(sizes: Sizes, mu: float, shares: Shares, moves: Moves) -> float:
    """Return the deviation of the mean of all gradients, in units of the clipping norm."""
    moved = math.hypot(moves.gradient, shares.unclipped_weight)
    return moved / (sizes.records * mu * math.sqrt(shares.rounds))


def gaussian_of_share(noise: float, moved: float, share: float, size: int) -> Gaussian:
    """Return the release of ``size`` numbers, moved by ``moved``, with its share of the budget.

    The budget is mu^2 for mu = 1 / ``noise``.
    """
    moved = round_up(moved)
    # The mechanism is declared for 2 coordinates or more; the query may return one.
    return Gaussian(noise * moved / math.sqrt(share), moved, "exact", max(size, 2))


def mean_gradient_release(
    sizes: Sizes,
    last_weight: float,
    noise: float,
    moved: float,
    share: float,
    factor: float = 1.0,
) -> Gaussian:
    """Return the release of the sum of clipped gradients times ``factor / n``.

    A record moves the sum by ``moved``, and what a last coordinate counts, with its weight, by at
    most 1; a weight of 0 leaves it out.
    """
    moved = math.hypot(factor * moved, factor * last_weight) / sizes.records
    size = sizes.coefficients + (1 if last_weight else 0)
    return gaussian_of_share(noise, moved, share, size)


@lru_cache(maxsize=64)
def private_plan(
    budget: tuple[float, float],
    sizes: Sizes,
    rounds: int,
    shares: Shares,
    relation: Adjacency,
    rate: float | None = None,
) -> Sequential:
    """Return the plan that meets the ``budget``, an epsilon and a delta.

    It has the rounds of gradients, and each other release that has a share.  Every round sees a
    Poisson sample that holds each record with the probability ``rate``; None is all records.
    ``relation`` says which data sets are neighbours.
    """
    moves, n = Moves.of(relation), sizes.records
    triangle = sizes.features * (sizes.features + 1) // 2
    curvature_triangle = sizes.coefficients * (sizes.coefficients + 1) // 2
    gradient_of = partial(mean_gradient_release, sizes, shares.unclipped_weight)
    rounds_share, outputs = shares.rounds, sizes.outputs

    def plan_of(noise: float) -> Sequential:
        """Return the plan whose noise is that of a budget of mu = 1 / ``noise``."""
        parts: list[Plan] = []
        if shares.targets:
            moved = shares_moved(sizes.cells, relation) / n
            parts.append(gaussian_of_share(noise, moved, shares.targets, sizes.cells))
        if shares.moments:
            size = sizes.features + 1
            parts.append(gaussian_of_share(noise, moves.moments / n, shares.moments, size))
        if shares.products:
            parts.append(gaussian_of_share(noise, moves.products / n, shares.products, triangle))
        round_share = rounds_share / rounds
        if rate is None:
            release: Plan = gradient_of(noise, moves.gradient, round_share)
        else:
            # The sum over a sample is divided by rate n.  `PoissonSampled` asks, for both
            # relations, what the presence of one record moves: a sum of clipped gradients by 1.  A
            # sampled round has about the rate times the mu of its release, which may have more.
            release = gradient_of(noise, 1.0, round_share * rate**-2, factor=1 / rate)
            release = PoissonSampled(release, rate, relation)
        parts.append(Repeat(release, rounds))
        if shares.curvature:
            moved = moves.products / n
            parts.append(gaussian_of_share(noise, moved, shares.curvature, curvature_triangle))
        if shares.closing:
            weight = shares.square_weight or shares.unclipped_weight
            parts.append(
                mean_gradient_release(sizes, weight, noise, moves.gradient, shares.closing)
            )
        if shares.calibration:
            moved = calibration_moved(outputs, relation) / n
            parts.append(gaussian_of_share(noise, moved, shares.calibration, 2 * outputs))
        return Sequential(parts)

    # For gradients alone, noise of 1 gives each round a mu of sqrt(rounds_share / rounds),
    # divided by the rate if rounds are sampled.
    mu = mu_of_budget(*budget)
    replaced = relation is Adjacency.REPLACE_ONE
    mu_of_round = round_mu(mu * math.sqrt(rounds_share), rounds, rate, replaced)
    start = math.sqrt(rounds_share / rounds) / mu_of_round / (1 if rate is None else rate)
    return plan_of(calibrate_near(plan_of, start, *budget))


def released_map(
    ledger: Any,
    x_bound: float,
    moments_bound: float,
    intercept: bool,
    executor: Executor | None,
    shares: Shares,
    clip_square: float,
    constant: float,
    mean_weight: float = 1.0,
    **loss: float,
) -> MappedFeatures:
    """Release the moments and the products that the plan has; return the map they give.

    Features are clipped to ``x_bound``, and rows shortened to ``moments_bound`` for the moments.
    ``clip_square`` and ``constant`` are those of `Prospect`; ``mean_weight`` is what a record
    counts in gradients on average.  ``loss`` says for which loss the map is: its arguments are
    those of `mapped_features`.
    """
    # What the plan of `private_plan` releases before its rounds: moments and products, or None.
    before = takewhile(lambda part: not isinstance(part, Repeat), ledger.plan.parts)
    for_moments, for_products = (*before, None, None)[bool(shares.targets) :][:2]
    records, features = ledger.shape
    moments = Moments.unknown(features, moments_bound)
    if for_moments is not None:
        moments_query = MeanOfBlocks(BlockMoments(x_bound, moments_bound), records, executor)
        released = ledger.release(for_moments, moments_query, shape=features + 1)
        moments = Moments.of(released, noise_of(for_moments), moments_bound, intercept)
    products, product_noise = None, 0.0
    if for_products is not None:
        unit = shares.shortened_to * math.sqrt(moments.square)
        work = BlockProducts(x_bound, moments.centre, unit)
        products_query = MeanOfBlocks(work, records, executor)
        triangle = features * (features + 1) // 2
        products = ledger.release(for_products, products_query, shape=triangle)
        product_noise = noise_of(for_products)
    rounds = GradientRounds.of(ledger.plan)
    prospect = Prospect(
        mean_noise(ledger.plan) / mean_weight,
        LONGEST * rounds.count,
        clip_square,
        constant * intercept,
        shares.longest_constant,
        shares.shortest_constant,
    )
    return mapped_features(
        moments,
        products,
        noise=product_noise,
        shortened_to=shares.shortened_to,
        x_bound=x_bound,
        prospect=prospect,
        **loss,
    )


def mean_noise(plan: Any) -> float:
    """Return the deviation of the mean of all gradients of a plan, in units of their norm."""
    rounds = GradientRounds.of(plan)
    return noise_of(rounds.mechanism) / math.sqrt(rounds.count)


def noise_of(mechanism: Any) -> float:
    """Return the standard deviation of a release's noise; 0 for a release without noise."""
    return float(getattr(mechanism, "scale", 0.0))
