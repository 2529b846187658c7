"""The noise of the private LASSO as its paper prints it, and the true cost of this noise.

Private Frank-Wolfe takes T iterates in a polytope: T - 1 times it scores every vertex by the
gradient and moves towards the vertex with the least noisy score.  The least score is the largest
negated one, so a run is a plan of T - 1 noisy maxima.  Scores and noise scales are in units of
L C / n, with L the Lipschitz bound of the loss, C the l1 norm of the set and n the number of
records.  A replaced record moves every score by up to two units, an added or removed record by up
to one.

This file has the printed claim as a plan, a lower bound on its epsilon by an attack, and examples
against a common way to account for the noise, as if its noisy maxima had bounded range.
Derivations: docs/frank-wolfe.md.

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

# Pairs (scores, moves) of five candidates, in units of the noise scale: a neighbour's scores are
# scores + moves.  Selection with bounded range e0 = 2 max |moves| would keep the log-ratios of the
# winning probabilities within a range of e0.  With Laplace noise they span 1.173 and 1.161 times e0
# (`laplace_log_ratio_range` computes it), so it has no bounded range e0.
WIDE_RANGE_EXAMPLES = (
    ((0.0, -0.03959529, -0.03959529, -0.15069543, -0.15069543), (-0.05, 0.05, 0.05, -0.05, -0.05)),
    ((0.0, 0.0, -0.42414379, -0.61562093, -0.61562093), (-0.5, -0.5, 0.5, 0.5, 0.5)),
)


def printed_selections(
    epsilon: float, delta: float, iterates: int, noise: str = "laplace", relation: str = REPLACE
) -> PublishedClaim:
    """Algorithm 2 as a plan: ``T - 1`` selections at scale ``sqrt(8 T ln(1/delta)) / epsilon``.

    T is the number of ``iterates``.  The constant 8 is for an added or removed record; a replaced
    one moves a score by twice as much.  The printed noise is Laplace; ``noise="gumbel"`` is a
    repair that keeps the scale.
    """
    scale = math.sqrt(8 * iterates * math.log(1 / delta)) / epsilon
    adjacency = check_relation("relation", relation, RECORD_RELATIONS)
    sensitivity = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
    plan = Repeat(NoisyMax(scale, sensitivity, noise), iterates - 1)
    return PublishedClaim(
        f"private LASSO, {noise}, T={iterates}, {relation}",
        "Talwar, Thakurta & Zhang (2015), Algorithm 2",
        epsilon,
        delta,
        plan,
    )


def attacked_epsilon(claim: PublishedClaim) -> float:
    """Lower bound on the plan's epsilon, by an attack with two candidates.

    In every round the first candidate is ahead by ``gap``, in units of the noise scale, on one data
    set, and by ``gap + e0`` on the neighbour: both scores move by the sensitivity, in opposite
    directions, so e0 = 2 sensitivity / scale.  The number of its wins is then binomial on both data
    sets, with different probabilities.  The largest epsilon over 21 gaps from -1 to 1 and both
    directions is returned; each is a valid lower bound.
    """
    plan: Any = claim.plan
    e0 = 2 * plan.part.sensitivity / plan.part.scale
    # The probability that the first candidate wins if it is ahead by its argument.
    win_probability = laplace_difference_cdf if plan.part.noise == "laplace" else logistic
    epsilon_lower = 0.0
    for gap in np.linspace(-1.0, 1.0, 21):
        p_win = float(win_probability(np.array(gap)))
        neighbour_p_win = float(win_probability(np.array(gap + e0)))
        for p, q in ((neighbour_p_win, p_win), (p_win, neighbour_p_win)):
            epsilon_lower = max(epsilon_lower, binomial_epsilon(p, q, plan.count, claim.delta))
    return epsilon_lower


def binomial_epsilon(p_heads: float, q_heads: float, count: int, delta: float) -> float:
    """The epsilon at ``delta`` between Bin(count, p_heads) and Bin(count, q_heads), rounded down.

    It is the root of ``delta = sum_k P(k) max(0, 1 - e^epsilon Q(k) / P(k))``.  `smallest_root`
    returns a point at or above it, and the sum is one of floats, so it is lowered by 1e-9 of
    itself.
    """
    heads = np.arange(count + 1)
    log_choices = np.array(
        [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in heads]
    )
    log_p, log_q = (
        log_choices + heads * math.log(p) + (count - heads) * math.log1p(-p)
        for p in (p_heads, q_heads)
    )

    def hockey_stick(epsilons: Array) -> Array:
        gaps = np.minimum(epsilons[:, None] + log_q - log_p, 0.0)
        profile: Array = (np.exp(log_p) * -np.expm1(gaps)).sum(axis=1)
        return profile

    return smallest_root(hockey_stick, delta, math.inf) * (1 - 1e-9)


def verdict(claim: PublishedClaim) -> str:
    """One line: the claim, the provable epsilon, the epsilon that an attack shows, and a verdict.

    The claim is FALSIFIED if the attack shows more than it states, and HOLDS if the provable
    epsilon is at most what it states.
    """
    provable, renyi = claim.true_epsilon, RDP().epsilon(claim.plan, claim.delta)
    epsilon_lower = attacked_epsilon(claim)
    word = (
        "FALSIFIED" if epsilon_lower > claim.epsilon else "HOLDS" if claim.holds else "NOT REFUTED"
    )
    return (
        f"{claim.name}: claims epsilon {claim.epsilon:g} at delta {claim.delta:g}; "
        f"provable {provable:.2f} ({renyi:.2f} by Rényi), at least {epsilon_lower:.2f}: {word}"
    )


def laplace_log_ratio_range(scores: tuple[float, ...], moves: tuple[float, ...]) -> float:
    """The range of log-ratios of winning probabilities with Laplace noise, divided by e0.

    ``scores`` and ``moves`` are in units of the noise scale, and ``e0 = 2 max |moves|``.  If the
    noisy maximum had bounded range e0, the result would be at most 1.  The probabilities come from
    numerical quadrature.
    """
    before = np.array(scores)
    ratios = laplace_log_win_probabilities(
        before + np.array(moves)
    ) - laplace_log_win_probabilities(before)
    return float(np.ptp(ratios) / (2 * np.abs(moves).max()))


def logistic(x: Array) -> Array:
    """Distribution function of the difference of two standard Gumbel draws."""
    probability: Array = 1 / (1 + np.exp(-x))
    return probability
