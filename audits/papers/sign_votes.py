"""Budgets of majority votes and of noisy hard thresholding as printed, and their true costs.

Both claims are true, with slack, although a step of the first proof is not: the proof cites
Dwork & Roth (2014), Corollary 3.21, which asks for twice the noise scale that the paper uses.  See
docs/errata.md.
"""

from __future__ import annotations

import math

from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Repeat
from algorithms.baselines.noisy_thresholding import noisy_thresholding_plan, published_scale
from algorithms.voting.peeling import peeling_stage, published_plan
from audits.papers.sparse_regression import PublishedClaim

PAPER = "Liu, Tu, Mao & Chen (2022), Algorithms 1 and 2, Theorem 1"


def printed_votes(epsilon: float, delta: float, select: int) -> PublishedClaim:
    """DPVote: peeling and signs of ``select`` features, machines being exchanged."""
    plan = published_plan(epsilon, delta, select)
    return PublishedClaim(f"DPVote, s={select}", PAPER, epsilon, delta, plan)


def printed_peeling(epsilon: float, delta: float, select: int) -> PublishedClaim:
    """Peeling alone: Laplace noise of scale ``4 sqrt(2 s ln(1 / delta)) / epsilon``.

    The proof cites Dwork & Roth (2014), Corollary 3.21, which asks for twice that scale.
    """
    scale = 4 * math.sqrt(2 * select * -math.log(delta)) / epsilon
    plan = Stated(peeling_stage(scale, select, "laplace"), Adjacency.MACHINE_REPLACE)
    return PublishedClaim(f"Peeling, s={select}", PAPER, epsilon, delta, plan)


def printed_noisy_threshold(epsilon: float, delta: float, select: int) -> PublishedClaim:
    """NoisyHT: Laplace noise of ``2 sqrt(3 s ln(1 / delta)) / epsilon`` sensitivities, twice."""
    plan = Repeat(noisy_thresholding_plan(published_scale(epsilon, delta, select), 1.0, select), 1)
    where = "Cai, Wang & Zhang (2021), NoisyHT"
    return PublishedClaim(f"NoisyHT, s={select}", where, epsilon, delta, plan)
