"""Lower and upper bounds on a trade-off curve, the least type II error at each type I error.

At the level alpha the curve is the supremum over epsilon of H = 1 - delta(epsilon) - x alpha, with
x = e^epsilon; H is called the height, since 1 - delta - x alpha is a line below the curve.  The
epsilon of the supremum is the tangent's.  The lower end is the greatest H at some epsilons, with
upper bounds on delta.  For the upper end H is concave in x: from lower bounds on delta at some
points follow upper bounds between them.  The proof is in `docs/proofs/tradeoff.md`.

A plan has two directions: its outputs with and without a record are the pair (P, Q), or (Q, P).
H at a negative epsilon is computed from the profile of the reversed pair.
"""

from __future__ import annotations

import numpy as np

from accountant.accountants.tradeoff_curves import greatest_lines, single_pairs
from accountant.composition.profile_ends import ProfileEnds, profile_ends
from accountant.numerics import Array
from accountant.numerics.rounding import MAX_EXPONENT, ULP
from accountant.plans.plan import Plan

ROUGH_ACCURACY = 1e-6  # error of the profile in the first search for the tangent's epsilon
# Distances, in epsilon, of the points from the tangent's epsilon.  The bound between two points
# grows with the ratio of neighbouring distances, and near a corner of the profile with the least
# distance.
DISTANCES = np.geomspace(1e-10, 0.3, 22)
# `RoughPower` looks at no more than ROUGH_MOVES grids of five epsilons.  The first has the half
# width FIRST_REACH, or NEXT_REACH around the tangent's epsilon of the last plan.  A grid that
# contains the peak is divided by SHRINKING, unless its half width is below ENOUGH_REACH, where a
# parabola fits well.  All three reaches are in epsilon.
ROUGH_MOVES, SHRINKING = 12, 5
FIRST_REACH, NEXT_REACH = 1.0, 0.03
ENOUGH_REACH = 0.01
ROUNDS = 2  # rounds of points, the second of them around the best point of the first


def tradeoff_ends(plan: Plan, alpha: Array) -> tuple[Array, Array, bool]:
    """Return lower and upper bounds on the least type II error at each level, over both directions.

    The third value is True where no lower bound on a profile is known; the upper end is then only
    1 - alpha.  ``alpha`` has one axis, and the plan is checked.
    """
    # An adversary picks the best direction or parallel part, so the plan's curve is the least of
    # their curves; a guess without the output already has the error 1 - alpha.
    lower, upper, is_upper_only = 1 - alpha, 1 - alpha, False
    for pair in single_pairs(plan):
        forward, backward = profile_ends(pair), profile_ends(pair.reversed)
        is_upper_only |= forward.is_upper_only or backward.is_upper_only
        start, _ = greatest_lines(pair, alpha, ROUGH_ACCURACY)  # the tangent's epsilons, roughly
        for i, level in enumerate(alpha.tolist()):
            low, high = _at_level(forward, backward, float(start[i]), level)
            lower[i], upper[i] = min(lower[i], low), min(upper[i], high)
    return np.maximum(lower, 0.0), np.maximum(upper, 0.0), is_upper_only


class RoughPower:
    """An estimate of the power of the best test at one level, for a series of similar plans.

    Calibration calls it for one plan after another, with other noise.  For each it starts at the
    tangent's epsilon of the plan before, which it remembers by the number of the direction.
    """

    def __init__(self, level: float) -> None:
        self._level = level
        self._centres: dict[int, float] = {}

    def __call__(self, plan: Plan) -> float:
        """Return the estimate, over both directions of a checked plan."""
        heights = [self._height(i, pair) for i, pair in enumerate(single_pairs(plan))]
        return 1 - min(heights)

    def _height(self, i: int, pair: Plan) -> float:
        """Return roughly the greatest height of the pair with number ``i``."""
        forward, backward = profile_ends(pair), profile_ends(pair.reversed)
        ends = (-min(backward.max_loss, MAX_EXPONENT), min(forward.max_loss, MAX_EXPONENT))
        reach = NEXT_REACH if i in self._centres else FIRST_REACH
        centre, height = self._centres.get(i, 0.0), np.zeros(5)
        for _ in range(ROUGH_MOVES):
            epsilon = np.clip(centre + reach * np.linspace(-1, 1, 5), *ends)
            height, _ = _heights(forward, backward, centre, epsilon, self._level)
            best = int(np.argmax(height))
            centre = float(epsilon[best])
            if 0 < best < 4:
                if reach < ENOUGH_REACH:
                    break
                reach /= SHRINKING
        self._centres[i] = centre
        # The top of the parabola through the best point and its neighbours; if the best point is an
        # end of the grid, through the three points nearest to that end.
        left, top, right = np.take(height, np.arange(-1, 2) + min(max(best, 1), 3)).tolist()
        bend = 2 * top - left - right
        return float(top + (right - left) ** 2 / (8 * bend) if bend > 0 else top)


def _at_level(
    forward: ProfileEnds, backward: ProfileEnds, centre: float, level: float
) -> tuple[float, float]:
    """Return bounds on the greatest height at ``level``, whose epsilon is near ``centre``."""
    ends = (-min(backward.max_loss, MAX_EXPONENT), min(forward.max_loss, MAX_EXPONENT))
    epsilon = np.empty(0)
    low, high = np.empty(0), np.empty(0)
    for _ in range(ROUNDS):
        added = np.concatenate([centre - DISTANCES, [centre], centre + DISTANCES, [0.0, *ends]])
        added = np.setdiff1d(np.clip(added, *ends), epsilon)
        added_low, added_high = _heights(forward, backward, centre, added, level)
        epsilon = np.append(epsilon, added)
        low, high = np.append(low, added_low), np.append(high, added_high)
        order = np.argsort(epsilon)
        epsilon, low, high = epsilon[order], low[order], high[order]
        centre = float(epsilon[np.argmax(low)])
    # Beyond the last epsilon delta is at least the mass at infinity, so that a height is at most 1
    # less this mass, less x alpha.  If the last epsilon is the largest loss, delta is constant
    # beyond it, and the heights fall from the last one.
    beyond = 1 - forward.infinity - np.exp(ends[1]) * level
    if forward.max_loss <= MAX_EXPONENT:
        beyond = float(high[-1])
    greatest = max(beyond, _sup_of_concave(epsilon, low, high))
    return float(np.max(low)), min(greatest + 4 * ULP, 1 - level)


def _sup_of_concave(epsilon: Array, low: Array, high: Array) -> float:
    """Return an upper bound on a function that is concave in ``x = e^epsilon``, and 0 at x = 0.

    At each of the increasing points it is between ``low`` and ``high``.  The bound holds up to the
    last point.
    """
    # Between two neighbours the function is below two lines: one that starts at the left point's
    # upper bound and rises by the steepest slope possible there, and one that starts at the right
    # point's upper bound and rises to the left.  The bound over the gap is the maximum of the lower
    # of the two lines: it is at an end of the gap, or where the lines cross.
    # gap[i, j] is x_j - x_i, without cancellation; the first point is x = 0.
    gap = ratio_gaps(epsilon)
    low, high = np.append(0.0, low), np.append(0.0, high)
    rising, falling = steepest_slopes(gap, low, high)
    left, right, width = high[:-1], high[1:], np.diagonal(gap, 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cross = (right - left + falling * width) / (rising + falling)
        inside = (cross > 0) & (cross < width)
        peak = np.where(inside, left + rising * cross, -np.inf)
        ends = np.maximum(
            np.minimum(left, right + falling * width), np.minimum(right, left + rising * width)
        )
        size = np.abs(left) + np.where(inside, np.abs(rising * cross), 0.0)
    return float(np.max(np.maximum(peak, ends) + 16 * ULP * size))


def ratio_gaps(epsilon: Array) -> Array:
    """Return the matrix of ``x_j - x_i``, where x is 0 and then ``e^epsilon``, increasing."""
    x, step = np.exp(epsilon), np.clip(epsilon - epsilon[:, None], -1.0, 1.0)
    gap = np.where(np.abs(step) < 1, x[:, None] * np.expm1(step), x - x[:, None])
    return np.vstack([np.append(0.0, x), np.column_stack([-x, gap])])


def steepest_slopes(gap: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return upper bounds on how steeply a concave function rises right, and left, of a point.

    The line through a lower bound at another point and the upper bound at this point is above the
    function on the far side of this point.  The first result has a slope for each point but the
    last, which has no gap on its right, the second for each point but the first.
    """
    # A gap may be so small that a slope is no float.  The least float is above a falling one.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = np.maximum((high - low[:, None]) / np.abs(gap), np.finfo(float).min)
    before = np.triu(np.ones(slope.shape, dtype=bool), 1)
    rising = np.min(np.where(before, slope, np.inf), axis=0)[:-1]
    falling = np.min(np.where(before.T, slope, np.inf), axis=0)[1:]
    return rising, falling


def _heights(
    forward: ProfileEnds, backward: ProfileEnds, centre: float, epsilon: Array, level: float
) -> tuple[Array, Array]:
    """Return bounds on the heights ``1 - delta(e) - e^e level`` at epsilons of both signs.

    ``centre`` is near the epsilons that matter: bounds on delta are closest around it.
    """
    size, low, high = np.abs(epsilon), np.empty(epsilon.shape), np.empty(epsilon.shape)
    for mask, side, near_epsilon in (
        (epsilon >= 0, forward, max(centre, 0.0)),
        (epsilon < 0, backward, max(-centre, 0.0)),
    ):
        if not mask.any():
            continue
        delta_lower, delta_upper = side.near(near_epsilon, size[mask])
        if side is forward:
            cost = np.exp(size[mask]) * level
            low[mask], high[mask] = (1 - delta_upper) - cost, (1 - delta_lower) - cost
        else:  # e^e (1 - level - delta_reversed(-e)), where nothing cancels
            scale = np.exp(-size[mask])
            low[mask] = scale * ((1 - level) - delta_upper)
            high[mask] = scale * ((1 - level) - delta_lower)
    # 1 - delta and its difference to the other term have a round-off of some ulps of their sizes,
    # which are at most the height plus min(1, x).
    error = 4 * ULP * (np.maximum(np.abs(low), np.abs(high)) + np.exp(np.minimum(epsilon, 0.0)))
    return low - error, high + error
