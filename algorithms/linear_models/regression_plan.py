"""What a regression releases: where targets lie, moments and products of features, gradients.

The plan follows from the expected loss (`worth_of`) before the data are read.  Where features are
expected to explain less than their noise would cost, the plan is that of a constant alone: where
targets lie, and their mean there.
"""

from __future__ import annotations

from functools import lru_cache

from accountant.planning.calibration import calibrate_near
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Sequential
from algorithms.base.noisy_gradient_rounds import mu_of_budget
from algorithms.linear_models.class_shares import shares_moved
from algorithms.linear_models.feature_moments import Moves
from algorithms.linear_models.mapped_plan import Shares, Sizes, Worth, gaussian_of_share, worth_of
from algorithms.linear_models.target_shares import CELLS

# These constants were chosen once, on training parts of data sets: docs/proofs/linear_regression.md
# says how.  No privacy rests on them.
SHARES = Shares(targets=0.05, moments=0.05, products=0.15, unclipped_weight=0.3)
RANGE_OF_CONSTANT = 0.2  # the share of where targets lie; their mean there has the others
# Shares of targets get what makes their noise deviate by NOISE_OF_SHARES, or are not released where
# that is more than MOST_OF_TARGETS of the squared budget.
NOISE_OF_SHARES, MOST_OF_TARGETS = 0.1, 0.5
# What is assumed of targets: their deviation is a third of their reach, and features explain half
# of their variance, 1 / 18 of the square of the reach.  The first clipping norm is START of
# `regression_rounds`.  The constant may be the largest target where it is not known where targets
# lie.  In units of what features explain:
CLIP_SQUARE, CONSTANT_SQUARE, CENTRED_SQUARE = 0.72, 18.0, 8.0
# A constant alone is released where a descent is expected to leave more than this of what features
# explain.
LOSS_OF_CONSTANT = 0.6


def square_of_constant(shares: Shares) -> float:
    """Return the square of the constant that is to be reached, over what features explain."""
    return CENTRED_SQUARE if shares.targets else CONSTANT_SQUARE


def worth_of_regression(
    shape: tuple[int, int],
    budget: tuple[float, float],
    shares: Shares,
    relation: Adjacency,
    fit_intercept: bool,
    needs_products: bool = False,
    is_mean: bool = False,
) -> Worth:
    """Return what is released before the gradients, and how many of them; 0 for a constant alone.

    ``shape`` is (records, features), and ``budget`` epsilon and delta.  A constant alone is a mean,
    so it is for regressions that predict the mean of targets.
    """
    moves, mu = Moves.of(relation), mu_of_budget(*budget)
    sizes = Sizes(*shape, shape[1] + fit_intercept, cells=CELLS)
    # With the share a of the squared budget the noise of a share of targets has the deviation
    # moved / (n mu sqrt(a)).
    noise = shares_moved(CELLS, relation) / (sizes.records * mu)
    if shares.targets:
        share = max(shares.targets, (noise / NOISE_OF_SHARES) ** 2)
        limit = shares.targets if needs_products else MOST_OF_TARGETS
        shares = shares._replace(targets=share if share <= limit else 0.0)
    constant = square_of_constant(shares) * fit_intercept
    worth = worth_of(sizes, mu, shares, moves, CLIP_SQUARE, constant, needs_products)
    if is_mean and fit_intercept and not needs_products and worth.loss > LOSS_OF_CONSTANT:
        return worth._replace(rounds=0)
    return worth


@lru_cache(maxsize=64)
def constant_plan(budget: tuple[float, float], records: int, relation: Adjacency) -> Sequential:
    """Return the plan of a constant alone, which meets the ``budget``."""
    moved = shares_moved(CELLS, relation) / records, Moves.of(relation).gradient / records

    def plan_of(noise: float) -> Sequential:
        cells = gaussian_of_share(noise, moved[0], RANGE_OF_CONSTANT, CELLS)
        return Sequential([cells, gaussian_of_share(noise, moved[1], 1 - RANGE_OF_CONSTANT, 1)])

    return plan_of(calibrate_near(plan_of, 1 / mu_of_budget(*budget), *budget))
