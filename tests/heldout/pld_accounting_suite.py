"""The laws of domination of PLD_accounting, with certified intervals of ours beside its pairs.

Its tests ask of a discrete loss above (``DOMINATES``) and of one below (``IS_DOMINATED``) that the
one has no mass at minus infinity and the other none at infinity, that both keep all mass, and that
the mean of the one is no less than that of the other (moshenfeld/PLD_accounting 952e91a,
tests/unit/core/test_domination_properties.py).  Here the laws are asked of random allocations:

- ``mass``: of its own laws, in both directions;
- ``order``: its loss above is nowhere below what ours proves for delta, its loss below nowhere
  above it, at many epsilons;
- ``epsilon``: its interval and ours have a point in common; ours is better where it is narrower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import brentq

from accountant import GaussianLoss, RandomAllocation, Tight
from tests.heldout.peer_rows import PeerRow, judged

# noise, steps, picks, epochs, delta
RUNS = (
    (1.0, 2, 1, 1, 1e-5),
    (0.5, 3, 1, 1, 1e-6),
    (1.0, 10, 1, 1, 1e-5),
    (2.0, 50, 1, 1, 1e-6),
    (2.0, 4, 1, 2, 1e-5),
    (1.5, 6, 2, 1, 1e-5),
)
SHARES = np.linspace(0.0, 1.2, 9)  # of the epsilon of a run, where its profile is asked
ROUNDING = 1e-9  # of its sums of floats, which it does not bound
LEAST_DELTA = 1e-10  # its tails are cut at 1e-12 in each of many steps


def profile(pairs: list[Any], epsilon: float) -> float:
    """The greater delta of discrete losses at an epsilon."""

    def delta(pair: Any) -> float:
        above = pair.x_array > epsilon
        gains = -np.expm1(epsilon - pair.x_array[above]) * pair.prob_arr[above]
        return math.fsum(gains.tolist()) + float(pair.p_max)

    return max(map(delta, pairs))


def epsilon_of(pairs: list[Any], delta: float, most: float) -> float:
    """The epsilon of discrete losses at a delta."""
    return float(brentq(lambda epsilon: profile(pairs, epsilon) - delta, -1.0, most))


def mass_rows(case: str, pairs: dict[Any, Any], above: Any) -> Iterator[PeerRow]:
    """Where its laws have no mass, that they keep all, and the order of their means."""
    means: dict[Any, dict[bool, float]] = {}
    for (direction, bound), pair in pairs.items():
        end = pair.p_min if bound is above else pair.p_max
        total = math.fsum([*pair.prob_arr.tolist(), pair.p_min, pair.p_max])
        mean = math.fsum((pair.x_array * pair.prob_arr).tolist())
        means.setdefault(direction, {})[bound is above] = mean
        yield judged("PLD_accounting, mass", f"{case}, {direction.value}, {bound.value}",
                     end == 0.0 and abs(total - 1) <= ROUNDING, why=f"{total}, {end}")  # fmt: skip
    for direction, two in means.items():
        yield judged("PLD_accounting, mass", f"{case}, {direction.value}, means",
                     two[True] >= two[False] - ROUNDING, why=f"{two}")  # fmt: skip


def rows(runs: tuple[tuple[float, int, int, int, float], ...] = RUNS) -> Iterator[PeerRow]:
    """A row for each run, law, direction and epsilon."""
    from PLD_accounting import random_allocation_api as api
    from PLD_accounting.types import (
        AllocationSchemeConfig,
        BoundType,
        ConvolutionMethod,
        Direction,
        PrivacyParams,
    )

    config = AllocationSchemeConfig(
        loss_discretization=1e-2, tail_truncation=1e-12, convolution_method=ConvolutionMethod.GEOM
    )
    above, below = BoundType.DOMINATES, BoundType.IS_DOMINATED
    for noise, steps, picks, epochs, delta in runs:
        case = f"noise {noise}, {picks} of {steps} steps, {epochs} epochs"
        plan = RandomAllocation(GaussianLoss(1 / noise), steps, picks, epochs)
        params = PrivacyParams(sigma=noise, num_steps=steps, num_selected=picks, num_epochs=epochs,
                               delta=delta)  # fmt: skip
        pairs = {
            (direction, bound): api.gaussian_allocation_directional_pld(
                params=params, config=config, direction=direction, bound_type=bound)
            for direction in (Direction.REMOVE, Direction.ADD) for bound in (above, below)
        }  # fmt: skip
        yield from mass_rows(case, pairs, above)
        low, high = Tight().bracket(plan, delta)
        for share in SHARES.tolist() if picks == epochs == 1 else ():  # the others take minutes
            epsilon = share * high
            least, most = (profile([pair for (_, b), pair in pairs.items() if b is bound], epsilon)
                           for bound in (below, above))  # fmt: skip
            ours = Tight().delta(plan, epsilon)
            slack = LEAST_DELTA + ROUNDING * most
            nearer = "nearer to the truth than its loss above" if ours < 0.999 * most else ""
            yield judged("PLD_accounting, order", f"{case}, epsilon {epsilon:.4g}",
                         least <= ours + slack and ours <= most + slack, nearer,
                         f"{least} <= {ours} <= {most}")  # fmt: skip
        theirs_low, theirs_high = (
            epsilon_of([pair for (_, b), pair in pairs.items() if b is bound], delta, 2 * high + 1)
            for bound in (below, above)
        )
        meet = max(low, theirs_low) <= min(high, theirs_high) * (1 + ROUNDING)
        better = "narrower" if high - low < theirs_high - theirs_low else ""
        yield judged("PLD_accounting, epsilon", f"{case}, delta {delta}", meet, better,
                     f"[{low}, {high}] against [{theirs_low}, {theirs_high}]")  # fmt: skip
