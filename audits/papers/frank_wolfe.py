"""The noise of the private LASSO as printed, and its true cost; derivations: docs/frank-wolfe.md.

Unit: the Lipschitz bound times the set's l1 norm over n.  A replaced record moves every score by
two units, an added one by one.

Reference: Talwar, Thakurta & Zhang (2015), Algorithm 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.accountants.rdp import RDP
from accountant.numerics import Array
from accountant.numerics.search import smallest_root
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, Adjacency, check_relation
from accountant.plans.plan import Repeat
from audits.papers.sparse_regression import PublishedClaim
from mechanisms.noisy_max import NoisyMax, laplace_difference_cdf, laplace_log_win_probabilities

# Pairs (scores, moves) over the scale: each has five candidates whose log-ratios of probabilities
# have a range above the range e0 of their moves.
WIDE_RANGE_EXAMPLES = (
    ((0.0, -0.03959529, -0.03959529, -0.15069543, -0.15069543), (-0.05, 0.05, 0.05, -0.05, -0.05)),
    ((0.0, 0.0, -0.42414379, -0.61562093, -0.61562093), (-0.5, -0.5, 0.5, 0.5, 0.5)),
)


def printed_selections(
    epsilon: float, delta: float, iterates: int, noise: str = "laplace", relation: str = REPLACE
) -> PublishedClaim:
    """Algorithm 2: ``T - 1`` noisy minima at scale ``sqrt(8 T ln(1/delta)) / epsilon``.

    The constant fits one added record; a replaced one moves a score by twice as much.  The printed
    noise is Laplace; ``noise="gumbel"`` is a repair at the same cost.
    """
    scale = math.sqrt(8 * iterates * math.log(1 / delta)) / epsilon
    stated = check_relation("relation", relation, RECORD_RELATIONS)
    moved = 2.0 if stated is Adjacency.REPLACE_ONE else 1.0
    plan = Repeat(NoisyMax(scale, moved, noise), iterates - 1)
    return PublishedClaim(
        f"private LASSO, {noise}, T={iterates}, {relation}",
        "Talwar, Thakurta & Zhang (2015), Algorithm 2",
        epsilon,
        delta,
        plan,
    )


def attacked_epsilon(claim: PublishedClaim) -> float:
    """Lower bound on the plan's epsilon: two candidates at the worst gap, alike in every round."""
    plan: Any = claim.plan
    e0 = 2 * plan.part.sensitivity / plan.part.scale
    wins = laplace_difference_cdf if plan.part.noise == "laplace" else logistic
    epsilon_lower = 0.0
    for gap in np.linspace(-1.0, 1.0, 21):
        ahead, behind = float(wins(np.array(gap + e0))), float(wins(np.array(gap)))
        for pair in ((ahead, behind), (behind, ahead)):
            epsilon_lower = max(epsilon_lower, binomial_epsilon(*pair, plan.count, claim.delta))
    return epsilon_lower


def binomial_epsilon(p_heads: float, q_heads: float, count: int, delta: float) -> float:
    """The epsilon at ``delta`` of ``count`` Bernoulli draws of two probabilities."""
    heads = np.arange(count + 1)
    log_choices = np.array(
        [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in heads]
    )
    log_p, log_q = (
        log_choices + heads * math.log(p) + (count - heads) * math.log1p(-p)
        for p in (p_heads, q_heads)
    )

    def stick(epsilons: Array) -> Array:
        gaps = np.minimum(epsilons[:, None] + log_q - log_p, 0.0)
        profile: Array = (np.exp(log_p) * -np.expm1(gaps)).sum(axis=1)
        return profile

    return smallest_root(stick, delta, math.inf) * (1 - 1e-9)


def verdict(claim: PublishedClaim) -> str:
    """One line: the claim, what can be proved, what an attack shows, and the verdict."""
    provable, renyi = claim.true_epsilon, RDP().epsilon(claim.plan, claim.delta)
    shown = attacked_epsilon(claim)
    word = "FALSIFIED" if shown > claim.epsilon else "HOLDS" if claim.holds else "NOT REFUTED"
    return (
        f"{claim.name}: claims epsilon {claim.epsilon:g} at delta {claim.delta:g}; "
        f"provable {provable:.2f} ({renyi:.2f} by Rényi), at least {shown:.2f}: {word}"
    )


def laplace_log_ratio_range(scores: tuple[float, ...], moves: tuple[float, ...]) -> float:
    """The range of the log-ratios of a Laplace noisy maximum's probabilities, over its e0.

    If the mechanism were e0-bounded-range, it would be at most 1; the probabilities are exact
    quadrature.
    """
    before = np.array(scores)
    ratios = laplace_log_win_probabilities(
        before + np.array(moves)
    ) - laplace_log_win_probabilities(before)
    return float(np.ptp(ratios) / (2 * np.abs(moves).max()))


def logistic(x: Array) -> Array:
    """Distribution function of the difference of two standard Gumbel draws."""
    below: Array = 1 / (1 + np.exp(-x))
    return below
