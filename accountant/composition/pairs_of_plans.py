"""Pairs below and above plans of one pair, on the same points of a lattice, for a choice of them.

Of more than two plans only two stay where the others are hardly worse than they.  A group that is
split between the two neighbours is such a case: the profile of a middle split is at most the mean
of the two outer ones, but for a little.  These two are raised by that.  What is greatest under a
mean of two pairs is no greater than under the better of the two.

Proof: `docs/proofs/choices.md`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.composition.grid_pairs import PairOnGrid
from accountant.composition.loss_outline import PROFILE_POINTS, Outline
from accountant.composition.plan_profile import PlanProfile
from accountant.composition.profile_pairs import bounds_at_knots, pairs_at_knots, places_by_weight
from accountant.composition.tilted_law import GridLaw
from accountant.losses.connect_the_dots import lower_hull, pair_above
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.numerics.rounding import ULP
from accountant.plans.plan import Plan

# All of these decide how sharp and how quick the pairs are; any choice is right.
LOWER_TAIL = 1e-10  # mass of P below the least loss of a lattice
NO_TILT = 1e-300  # so small that it does not limit the range of a lattice
DENSE = 2.5  # nats: points whose weight is that close to the greatest one are all knots
KNOTS = 1200  # points at which a profile that takes long is evaluated
SHARES = np.linspace(0.0, 1.0, 41)[:, None]  # means of two profiles that are tried
# How often the two profiles are raised at most, by how much more than is missing, and the share of
# themselves less (1 - x)_+ by which they may be raised in all.
RAISES, RAISED_BY, MOST_RAISED = 8, 1.01, 0.05


@functools.lru_cache(maxsize=512)
def ends_of_losses(plan: Plan, tail: float) -> tuple[float, float]:
    """Return a least and a greatest loss; beyond is little mass, above the greatest ``tail``."""
    outline = Outline(PlanProfile(plan), 1)
    (low, _), (_, high) = (
        outline.component(0.0, math.inf, 0.0, left_out, NO_TILT).ends
        for left_out in (LOWER_TAIL, tail)
    )
    return low, high


@functools.lru_cache(maxsize=256)
def pairs_of_plans(
    plans: tuple[Plan, ...], step: float, tail: float, tilt: float
) -> list[tuple[PairOnGrid, PairOnGrid]]:
    """Return pairs below and above each of the plans, or below and above two that serve for all.

    The lattice has this ``step``.  ``tail`` is the mass of P that may be beyond it, and ``tilt``
    about the order of Chernoff's bound of the whole plan.
    """
    losses = [PlanProfile(plan) for plan in plans]
    outer = [losses[0], losses[-1]] if len(losses) > 1 else losses
    lows, highs = zip(*[ends_of_losses(plan, tail) for plan in plans], strict=True)
    first, last = math.floor(min(lows) / step) - 1, math.ceil(max(highs) / step) + 1
    lattice = GridLaw(step, first, 0.0, np.zeros(last - first + 1), 1)
    points, chosen = lattice.points, np.zeros(last - first + 1, dtype=bool)
    for loss in outer:
        # Knots are dense where the law has mass with tilts from 0 to that of the whole plan.
        pair = pair_above(loss.profile_any_epsilon, PROFILE_POINTS)
        log_weights = np.log(np.maximum(pair.mass, 1e-300)) + np.multiply.outer(
            [0.0, tilt / 2, tilt], pair.loss
        )
        log_weights -= logsumexp(log_weights)[:, None]
        chosen[places_by_weight(points, pair.loss, np.max(log_weights, axis=0), DENSE)] = True
    knots = np.flatnonzero(chosen)
    if not all(isinstance(plan, Loss) for plan in plans):  # smooth profiles, which take long
        knots = np.union1d(knots[:: -(-knots.size // KNOTS)], knots[[0, -1]])
    bounds = [bounds_at_knots(loss, lattice, knots) for loss in losses]
    if len(losses) > 2 and (raised := two_above(bounds)) is not None:
        losses, bounds = outer, raised
    return [
        pairs_at_knots(loss, lattice, knots, *of_loss)
        for loss, of_loss in zip(losses, bounds, strict=True)
    ]


def two_above(bounds: list[tuple[Array, Array, Array]]) -> list[tuple[Array, Array, Array]] | None:
    """Return the first and the last bounds, raised so that means of them are above all others.

    Bounds are x = e^epsilon, and lower and upper bounds on a profile there.  The result is None
    where the two would be raised by much.
    """
    (x, first_low, first), *others, (_, last_low, last) = bounds
    size = first + last - 2 * np.maximum(1 - x, 0.0)
    size = np.maximum(size, 1e-10 * np.max(size))
    means = SHARES * first + (1 - SHARES) * last
    shares = [SHARES[np.argmin(np.max((high - means) / size, axis=1))] for _, _, high in others]
    two = [first, last]
    for _ in range(RAISES):
        excess = np.zeros(x.size)
        for share, (_, _, high) in zip(shares, others, strict=True):
            mean = share * two[0] + (1 - share) * two[1]
            # What is within round-off is covered by the slack of `ValueFunction.before_release`.
            excess = np.maximum(excess, np.where(high > mean * (1 + 8 * ULP), high - mean, 0.0))
        if not excess.any():
            return [(x, first_low, two[0]), (x, last_low, two[1])]
        for side, values in enumerate(two):
            raised = np.minimum(values + RAISED_BY * excess, 1.0)
            corners = lower_hull(x, raised)
            two[side] = np.interp(x, x[corners], raised[corners])
        if np.max((two[0] - first) / size) > MOST_RAISED:
            return None
    return None
