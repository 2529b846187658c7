"""Claims as papers print them, and what the printed constants really give.

Each specimen is a plan of declared mechanisms with the noise as printed and the sensitivity as it
is; accountants say the rest.  Derivations: docs/sparse-regression.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from accountant.plan import Plan
from accountant.tight import Tight
from mechanisms.gaussian import Gaussian


@final
@dataclass(frozen=True, slots=True)
class Published:
    """A claim in print: where it stands, what it says, and the plan that its constants make."""

    name: str
    where: str
    epsilon: float
    delta: float
    plan: Plan

    @property
    def true_epsilon(self) -> float:
        """What the plan really costs at the claimed delta."""
        return Tight().epsilon(self.plan, self.delta)

    @property
    def holds(self) -> bool:
        """Whether the claim is true."""
        return self.true_epsilon <= self.epsilon


def printed_label_noise(
    epsilon: float, delta: float, true_sparsity: int, noise_bound: float
) -> Published:
    """Label noise of Wang & Xu (2021), Algorithm 2: ``tau^2 = 32 C^2 ln(1.25/delta) / eps^2``.

    That is the Gaussian mechanism for a sensitivity of 4 C.  A label moves by up to
    ``2 (sqrt s* + C)``: the proof bounds ``<x, theta>`` by ``|x|_inf |theta|_2``.
    """
    tau = noise_bound * math.sqrt(32 * math.log(1.25 / delta)) / epsilon
    moved = 2 * (math.sqrt(true_sparsity) + noise_bound)
    return Published(
        f"label noise, s*={true_sparsity}, C={noise_bound:g}",
        "Wang, Smith & Xu (2018); Wang & Xu (2021), Algorithms 2 and 5",
        epsilon, delta, Gaussian(tau, moved),
    )  # fmt: skip


def public_label_noise(
    epsilon: float, delta: float, true_sparsity: int, noise_bound: float
) -> Published:
    """The same in public code for the experiments: ``tau = 2 sqrt2 C sqrt(ln(1/delta)) / eps``."""
    tau = noise_bound * math.sqrt(8 * math.log(1 / delta)) / epsilon
    moved = 2 * (math.sqrt(true_sparsity) + noise_bound)
    return Published(
        f"label noise in code, s*={true_sparsity}, C={noise_bound:g}",
        "public MATLAB code with the same experiment (authorship unverified)",
        epsilon, delta, Gaussian(tau, moved),
    )  # fmt: skip
