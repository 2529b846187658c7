"""Trade-off curves: the least type II error of any test between two neighbours.

With delta(epsilon) the profile of a pair of output laws, the line ``1 - delta - x alpha`` with
x = e^epsilon is below the curve at every type I error alpha, and the curve is the greatest of these
lines.  The value of a line at alpha is called its height, and the best epsilon the tangent's.  A
plan has two directions, which neighbour is the first.

References: Wasserman & Zhou (2010), Theorem 2.4; Dong, Roth & Su (2022), Proposition 2.12; the
search for the tangent is proved in `docs/proofs/tradeoff.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.composed_loss import ComposedLoss, loss_of_plan, losses_of_items
from accountant.composition.composition import Composition
from accountant.composition.finite_pairs import with_exact_cgf
from accountant.composition.profile_curve import ProfileCurve
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, ULP
from accountant.numerics.search import highest_of_one_peak
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Plan, as_plan, directions

POINTS = 65  # lines with which the search for the greatest starts, on either side of epsilon 0
PROFILE_ERROR = 1e-10  # the profile of a composition is to be at most this much too large
WIDTH = 1e-6  # relative to epsilon: how loose a composition's profile is without an accuracy
TAIL = 1e-14  # mass that finite losses in place of others may move to infinity


def tradeoff(plan: Plan, alpha: ArrayLike) -> Array:
    """Return the least type II error of any test of a plan's outputs at each type I error.

    Every epsilon gives a line below the curve, ``beta >= 1 - delta(eps) - e^eps alpha``; the
    curve is the greatest of them, found at each type I error by a search over epsilon.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    alpha : array
        Type I errors, in [0, 1].

    Returns
    -------
    array
        Of the shape of ``alpha``, rounded down, over both directions.

    Raises
    ------
    ParameterError
        If ``alpha`` is not made of numbers in [0, 1].

    References
    ----------
    Dong, Roth & Su (2022), Proposition 2.12.

    Examples
    --------
    >>> from accountant import GaussianLoss, tradeoff
    >>> tradeoff(GaussianLoss(2.0), [0.1, 0.2, 0.3]).round(8).tolist()
    [0.23624042, 0.12335475, 0.07002572]
    """
    plan, level = as_plan(plan), np.asarray(alpha)
    if level.dtype.kind not in "iuf" or not np.all((level >= 0) & (level <= 1)):
        raise ParameterError("alpha", alpha, "numbers in [0, 1]")
    level = level.astype(float)
    flat, where = np.unique(level, return_inverse=True)
    beta = 1 - flat  # a guess without the output has this type II error
    for pair in single_pairs(plan):
        beta = np.minimum(beta, greatest_lines(pair, flat)[1])
    return np.asarray(np.maximum(beta, 0.0)[where].reshape(level.shape))


def single_pairs(plan: Plan, *, both: bool = True) -> list[Plan]:
    """Return the directions of a plan, or one of them; of parallel plans, those of each part.

    A user is in one of the parallel parts, so the plan's curve is the least of the parts' curves.
    """
    pairs: list[Plan] = []
    for direction in directions(plan)[: None if both else 1]:
        items = list(direction.losses())
        if len(items) == 1 and items[0][1] == 1 and isinstance(items[0][0], Parallel):
            pairs += [
                pair for part in items[0][0].distinct for pair in single_pairs(part, both=both)
            ]
        else:
            pairs.append(direction)
    return pairs


def greatest_lines(
    plan: Plan, alpha: Array, accuracy: float = PROFILE_ERROR
) -> tuple[Array, Array]:
    """Return the tangent's epsilon at each alpha, and the height of its line, rounded down.

    They are of one direction's curve.
    """
    forward, backward = finest_profile(plan, accuracy), finest_profile(plan.reversed, accuracy)

    def heights(epsilon: Array, level: Array) -> Array:
        # 1 - delta(e) - e^e alpha; below 0 that is e^e (1 - alpha - delta_reversed(-e))
        size, result = np.abs(epsilon), np.empty(epsilon.shape)
        mask = epsilon >= 0
        delta = np.minimum(forward.profile(size[mask]) * (1 + ACCURACY), 1.0)
        result[mask] = (1 - delta) - np.exp(size[mask]) * level[mask]
        mask = ~mask
        delta = np.minimum(backward.profile(size[mask]) * (1 + ACCURACY), 1.0)
        result[mask] = np.exp(-size[mask]) * ((1 - level[mask]) - delta)
        # The terms are at most the height plus min(1, x), and so is their round-off in ulps.
        return result - 4 * ULP * (np.abs(result) + np.exp(np.minimum(epsilon, 0.0)))

    # The search for the peak of a height starts from the best of these epsilons and its neighbours.
    # A height is a linear function of the level.
    epsilon = _first_epsilons(forward, backward)
    at_zero, at_one = (heights(epsilon, np.full(epsilon.shape, end)) for end in (0.0, 1.0))
    table = at_zero + np.multiply.outer(alpha, at_one - at_zero)
    top, rows = np.argmax(table, axis=1), np.arange(alpha.size)
    around = np.clip(top + np.array([[-1], [0], [1]]), 0, epsilon.size - 1)
    points, values = epsilon[around], table[rows, around]
    values[1] = heights(points[1], alpha)
    return highest_of_one_peak(heights, alpha, points, values)


def finest_profile(plan: Plan, accuracy: float | None = None) -> Loss | ProfileCurve:
    """Return the most accurate profile of one direction, that of its loss or its composition.

    ``accuracy`` is how much too large the profile of a composition may be; without it the profile
    may be loose by `WIDTH`, relative to epsilon.
    """
    loss = loss_of_plan(plan)
    if not isinstance(loss, ComposedLoss):
        return loss
    losses = losses_of_items(list(plan.losses()))
    width = ACCURACY if accuracy is not None else WIDTH
    composition = Composition(with_exact_cgf(losses, TAIL, upper=True))
    return ProfileCurve(composition, width, accuracy)


def _first_epsilons(forward: Loss | ProfileCurve, backward: Loss | ProfileCurve) -> Array:
    """Return epsilons of both signs, dense where most of the loss lies, with all corners."""
    # ``size`` is about the standard deviation of the loss: that of a small Gaussian has a total
    # variation of 0.4 deviations.
    size = max(2.5 * float(forward.profile(np.zeros(1))[0]), 1e-9)
    sides: list[Array] = []
    for curve, sign in ((forward, 1.0), (backward, -1.0)):
        reach = max(min(curve.max_loss, MAX_EXPONENT), 0.0)
        # nearly equal steps up to ``size``, and growing ones beyond
        steps = size * np.sinh(np.linspace(0, 1, POINTS) * np.arcsinh(reach / size))
        sides += [sign * steps[:-1], np.array([sign * reach])]
        # The curve of a loss with finitely many values is made of one straight line for each.
        pmf = curve.loss_pmf
        if pmf is not None:
            sides.append(sign * pmf[0])
    epsilon = np.unique(np.concatenate(sides))
    return epsilon[np.abs(epsilon) <= MAX_EXPONENT]
