"""Claims on sparse regression and feature selection as papers print them, and their true costs.

Each claim is a plan of declared mechanisms with the noise as printed and the true sensitivity;
accountants compute the rest.  Derivations: docs/sparse-regression.md.  The claims on majority votes
and noisy hard thresholding are true, with slack, although a step of the first proof is not: it
cites Dwork & Roth (2014), Corollary 3.21, which asks for twice the noise scale that the paper uses
(docs/errata.md).

References: Wang, Smith & Xu (2018); Wang & Xu (2021); Liu, Tu, Mao & Chen (2022); Cai, Wang &
Zhang (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat
from algorithms.baselines.noisy_thresholding import noisy_thresholding_plan, published_scale
from algorithms.sparse_regression.links import Link, link_of
from algorithms.voting.peeling import peeling_stage, published_plan
from mechanisms.gaussian import Gaussian

VOTES_PAPER = "Liu, Tu, Mao & Chen (2022), Algorithms 1 and 2, Theorem 1"


@final
@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A printed claim: its source, what it states, and the plan with its constants."""

    name: str
    source: str
    epsilon: float  # as claimed, at delta
    delta: float
    plan: Plan  # with the noise as printed and the true sensitivity

    @property
    def true_epsilon(self) -> float:
        """The plan's epsilon at the claimed delta, by `Tight`; rounded up."""
        return Tight().epsilon(self.plan, self.delta)

    @property
    def holds(self) -> bool:
        """True if the plan costs at most the claimed epsilon."""
        return self.true_epsilon <= self.epsilon


def label_bound(true_sparsity: int, noise_bound: float, link: str | Link = "identity") -> float:
    """The largest label ``f(<x, theta>) + noise``: ``max |f(+-sqrt s*)| + C``.

    The features are signs, theta has ``true_sparsity`` s* entries and norm 1, f is the link
    function and C the ``noise_bound``.
    """
    ends = link_of(link).function(math.sqrt(true_sparsity) * np.array([-1.0, 1.0]))
    return float(np.abs(ends).max()) + noise_bound


def printed_label_noise(
    epsilon: float,
    delta: float,
    true_sparsity: int,
    noise_bound: float,
    link: str | Link = "identity",
) -> PublishedClaim:
    """Label noise of Wang & Xu (2021), Algorithms 2 and 5: ``tau^2 = 32 C^2 ln(1.25/delta)/eps^2``.

    That is the Gaussian mechanism for a sensitivity of 4 C.  A label moves by up to twice its
    bound, ``2 (sqrt s* + C)`` without a link: the proof bounds ``<x, theta>`` by
    ``|x|_inf |theta|_2``.
    """
    tau = noise_bound * math.sqrt(32 * math.log(1.25 / delta)) / epsilon
    moved = 2 * label_bound(true_sparsity, noise_bound, link)
    return PublishedClaim(
        f"label noise, s*={true_sparsity}, C={noise_bound:g}, {link_of(link).name}",
        "Wang, Smith & Xu (2018); Wang & Xu (2021), Algorithms 2 and 5",
        epsilon,
        delta,
        Gaussian(tau, moved),
    )


def public_label_noise(
    epsilon: float, delta: float, true_sparsity: int, noise_bound: float
) -> PublishedClaim:
    """The label noise of public code: ``tau = 2 sqrt2 C sqrt(ln(1/delta)) / eps``."""
    tau = noise_bound * math.sqrt(8 * math.log(1 / delta)) / epsilon
    return PublishedClaim(
        f"label noise in code, s*={true_sparsity}, C={noise_bound:g}",
        "public MATLAB code with the same experiment (authorship unverified)",
        epsilon,
        delta,
        Gaussian(tau, 2 * label_bound(true_sparsity, noise_bound)),
    )


def printed_probability(
    sparsity: int, true_sparsity: int, noise_bound: float, link: str | Link = "identity"
) -> float:
    """The probability that the printed norm bound implies: ``1/2 + |gradient| / (2 bound)``."""
    # A gradient x f' (f(<x, theta>) - y) has at most the norm sqrt p b (b (sqrt s + sqrt s*) + C),
    # with b the largest slope f' and s entries of the iterate.  The printed bound is b C sqrt p.
    reach = link_of(link).high * (math.sqrt(sparsity) + math.sqrt(true_sparsity))
    return 0.5 + (reach + noise_bound) / (2 * noise_bound)


def printed_votes(epsilon: float, delta: float, select: int) -> PublishedClaim:
    """DPVote: peeling and signs of ``select`` features, machines being exchanged."""
    plan = published_plan(epsilon, delta, select)
    return PublishedClaim(f"DPVote, s={select}", VOTES_PAPER, epsilon, delta, plan)


def printed_peeling(epsilon: float, delta: float, select: int) -> PublishedClaim:
    """Peeling alone: Laplace noise of scale ``4 sqrt(2 s ln(1 / delta)) / epsilon``.

    The proof cites Dwork & Roth (2014), Corollary 3.21, which asks for twice that scale.
    """
    scale = 4 * math.sqrt(2 * select * -math.log(delta)) / epsilon
    plan = Stated(peeling_stage(scale, select, "laplace"), Adjacency.MACHINE_REPLACE)
    return PublishedClaim(f"Peeling, s={select}", VOTES_PAPER, epsilon, delta, plan)


def printed_noisy_threshold(epsilon: float, delta: float, select: int) -> PublishedClaim:
    """NoisyHT: Laplace noise of ``2 sqrt(3 s ln(1 / delta)) / epsilon`` sensitivities, twice."""
    plan = Repeat(noisy_thresholding_plan(published_scale(epsilon, delta, select), 1.0, select), 1)
    where = "Cai, Wang & Zhang (2021), NoisyHT"
    return PublishedClaim(f"NoisyHT, s={select}", where, epsilon, delta, plan)
