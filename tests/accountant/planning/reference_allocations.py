"""Other roads to the least error: a supporting plane, and a general convex solver."""

import math

import numpy as np
from scipy.optimize import minimize

from accountant import Sequential, Tight

EXACT_ACCOUNTANT = Tight(width=1e-7)


def epsilon_of_scales(releases, scales, delta):
    """The exact epsilon."""
    parts = zip(releases, scales, strict=True)
    return EXACT_ACCOUNTANT.epsilon(
        Sequential([one.count * one.plan(s) for one, s in parts]), delta
    )


def optimality_gap(found, step=1e-3):
    """How far above the least error an allocation can be, where admissible log-scales are convex.

    Their set lies on one side of its tangent plane at the allocation, and the least error on that
    side has a closed form: with p the shares of the cost's slope and q those of the error's, the
    ratio is at most exp(KL(p, q)). (Gaussians and Rényi curves are convex in log-scales.)
    """
    slopes, errors = [], []
    for i, (one, scale) in enumerate(zip(found.releases, found.scales, strict=True)):
        if one.weight is None:
            continue

        def moved(factor, i=i, scale=scale):
            scales = list(found.scales)
            scales[i] = scale * factor
            return epsilon_of_scales(found.releases, scales, found.budget.delta)

        up, down = math.exp(step), math.exp(-step)
        slopes.append(moved(down) - moved(up))
        errors.append(
            one.count * one.weight * (one.error_at(scale * up) - one.error_at(scale * down))
        )
    p, q = np.array(slopes) / sum(slopes), np.array(errors) / sum(errors)
    return math.expm1(p @ np.log(p / q))


def slsqp_least_error(releases, budget, start):
    """The least error that SLSQP finds in log-scales, from ``start``."""

    def error(logs):
        pairs = zip(releases, np.exp(logs), strict=True)
        return sum(one.count * one.weight * one.error_at(float(s)) for one, s in pairs)

    def left(logs):
        return 1 - epsilon_of_scales(releases, np.exp(logs), budget.delta) / budget.epsilon

    size = error(start)
    done = minimize(
        lambda logs: error(logs) / size,
        start,
        method="SLSQP",
        options={"maxiter": 60, "ftol": 1e-7},
        constraints={"type": "ineq", "fun": left},
    )
    assert epsilon_of_scales(releases, np.exp(done.x), budget.delta) <= budget.epsilon * (1 + 1e-6)
    return float(done.fun) * size
