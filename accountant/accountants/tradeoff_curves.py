"""Trade-off curves: the least type II error of any test between two neighbours.

References: Wasserman & Zhou (2010), Theorem 2.4; Dong, Roth & Su (2022), Proposition 2.12.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.composed_loss import loss_of_plan
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY
from accountant.plans.plan import Plan, as_plan, directions

POINTS = 512


def tradeoff(plan: Plan, alpha: ArrayLike) -> Array:
    """Return the least type II error of any test of a plan's outputs at each type I error.

    Every epsilon gives a line below the curve, ``beta >= 1 - delta(eps) - e^eps alpha``; this is
    the greatest of 512 of them.

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

    References
    ----------
    Dong, Roth & Su (2022), Proposition 2.12.

    Examples
    --------
    >>> from accountant import PureLoss, tradeoff
    >>> tradeoff(PureLoss(1.0), [0.0, 0.5]).round(4).tolist()
    [1.0, 0.1839]
    """
    plan, level = as_plan(plan), np.asarray(alpha, dtype=float)
    if not np.all((level >= 0) & (level <= 1)):
        raise ParameterError("alpha", alpha, "numbers in [0, 1]")
    beta = np.ones(level.shape)
    for way in directions(plan):
        epsilon, delta = _supporting_lines(loss_of_plan(way))
        heights = 1 - delta - np.exp(epsilon) * level[..., None]
        beta = np.minimum(beta, np.max(heights, axis=-1, initial=0.0))
    return beta


def _supporting_lines(loss: Loss) -> tuple[Array, Array]:
    """Return epsilons of both signs, dense where the loss mostly is, and delta there."""
    size = max(2.5 * float(loss.profile(0.0)), 1e-9)
    reach = min(max(loss.max_loss, loss.reversed.max_loss), 60.0)
    epsilon = size * np.sinh(np.linspace(-1, 1, POINTS) * np.arcsinh(reach / size))
    delta = np.minimum(loss.profile_any_epsilon(epsilon) * (1 + ACCURACY), 1.0)
    return epsilon, delta
