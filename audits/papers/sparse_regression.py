"""Claims as papers print them, and the true cost of the printed constants.

Each specimen is a plan of declared mechanisms with the noise as printed and the true sensitivity;
accountants compute the rest.  Derivations: docs/sparse-regression.md.

References: Wang, Smith & Xu (2018); Wang & Xu (2021).
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.numerics import Array
from accountant.plans.plan import Plan
from algorithms import LabelIHT, LocalIHT
from algorithms.sparse_regression.links import Link, link_of
from mechanisms.gaussian import Gaussian


@final
@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A printed claim: its source, what it states, and the plan with its constants."""

    name: str
    source: str
    epsilon: float
    delta: float
    plan: Plan

    @property
    def true_epsilon(self) -> float:
        """The plan's epsilon at the claimed delta, by `Tight`; rounded up."""
        return Tight().epsilon(self.plan, self.delta)

    @property
    def holds(self) -> bool:
        """True if the plan costs at most the claimed epsilon."""
        return self.true_epsilon <= self.epsilon


def label_bound(true_sparsity: int, noise_bound: float, link: str | Link = "identity") -> float:
    """The largest label of the model: ``max |f(+-sqrt s*)| + C``."""
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


class PrintedBound(LocalIHT):
    """LocalIHT with gradients clipped to the printed bound, ``b C sqrt p``: private, and biased.

    As printed the gradients are not clipped, and `printed_probability` exceeds 1: that is no
    mechanism (docs/errata.md, the erratum on the norm bound).
    """

    def norm_bound(self, features: int) -> float:
        """Wang & Xu (2021), Algorithms 1 and 4."""
        return link_of(self.link).high * math.sqrt(features) * self.noise_bound


def printed_probability(
    sparsity: int, true_sparsity: int, noise_bound: float, link: str | Link = "identity"
) -> float:
    """The probability that the printed norm bound implies: ``1/2 + |gradient| / (2 bound)``."""
    # a gradient is x f' (f(<x, theta>) - y): sqrt p b (b (sqrt s + sqrt s*) + C) over b C sqrt p
    reach = link_of(link).high * (math.sqrt(sparsity) + math.sqrt(true_sparsity))
    return 0.5 + (reach + noise_bound) / (2 * noise_bound)


class PrintedSign(LabelIHT):
    """LabelIHT with the printed sign of the gradient: as private, and its iterates diverge.

    See docs/errata.md, the erratum on the sign.
    """

    def gradient(self, theta: Array, data: Any, executor: Executor | None = None) -> Array:
        """Wang, Smith & Xu (2018), Algorithm 2, line 5."""
        return -super().gradient(theta, data, executor)
