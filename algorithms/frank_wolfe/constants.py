"""Constants of private Frank-Wolfe: sensitivity, curvature, noise, error, number of rounds.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2 and Theorem 2.2; constants recomputed
(docs/why.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from accountant.accountants.advanced import Advanced
from accountant.accountants.base import Accountant
from accountant.accountants.bounded_range_composition import MAX_ADAPTIVE_RELEASES
from accountant.accountants.rdp import RDP
from accountant.accountants.zcdp import ZCDP
from accountant.domains import DELTA, POSITIVE, OneOf
from accountant.losses.gaussian import GaussianLoss
from accountant.planning.calibration import calibrate, calibrate_near
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.glm_losses import SQUARED, DeclaredLoss, LinearLoss
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip

GUMBEL, LAPLACE, PERMUTE_AND_FLIP = "gumbel", "laplace", "permute-and-flip"
# The search starts at this multiple: the bound on the accountant's grid is larger by about this.
NEAR_GAUSSIAN = 1.0022
SELECTION = OneOf((GUMBEL, LAPLACE, PERMUTE_AND_FLIP))


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Public bounds to which |x| and |y| are clipped; they bound the sensitivity.

    ``radius`` is the largest l1 norm of a point of the set.
    """

    radius: float
    x: float
    y: float

    def lipschitz(self, loss: LinearLoss | DeclaredLoss = SQUARED) -> float:
        """Return L1, the largest absolute coordinate of one record's gradient."""
        if isinstance(loss, DeclaredLoss):
            return loss.lipschitz
        return loss.bound(self.radius * self.x, self.y) * self.x

    def score_sensitivity(
        self, records: int, relation: str, loss: LinearLoss | DeclaredLoss = SQUARED
    ) -> float:
        """Return how far one record moves the gradient's product with a vertex."""
        # <s, grad> <= |s|_1 |grad|_inf
        influence = self.radius * self.lipschitz(loss) / records
        neighbours = check_relation("relation", relation, RECORD_RELATIONS)
        return 2 * influence if neighbours is Adjacency.REPLACE_ONE else influence

    def curvature(self, loss: LinearLoss | DeclaredLoss = SQUARED) -> float:
        """Return the curvature constant Gamma (Definition 2.1): ``smoothness max <x, a - b>^2``."""
        if isinstance(loss, DeclaredLoss):
            return loss.curvature
        return loss.smoothness * (2 * self.radius * self.x) ** 2


def selection_regret(vertices: int, selection: str) -> float:
    """Return the expected loss of one selection over its scale: ln|S| (Gumbel), H_|S| (Laplace).

    Permute-and-flip loses no more than Gumbel noise of its scale (McKenna & Sheldon 2020).
    """
    if selection != LAPLACE:
        return math.log(vertices)
    return math.log(vertices) + 0.5772156649 + 1 / (2 * vertices)


def utility_bound(
    curvature: float, rounds: int, noise: float, gap: float, average: bool = False
) -> float:
    """Return a bound of the expected excess loss after ``rounds`` selections, T = rounds + 1.

    ``noise`` is the expected loss of one selection, ``gap`` the excess of the first iterate:
    ``2 Gamma / (T + 1) + 2 gap / (T (T + 1)) + noise``; the second term is missing in print.
    """
    iterates = rounds + 1
    if not average:
        return 2 * curvature / (iterates + 1) + 2 * gap / (iterates * (iterates + 1)) + noise
    # iterate t weighs 2 t / (T (T + 1)); sum_t 1 / (t + 1) <= ln(T + 1)
    drift = math.log(iterates + 1) / (iterates * (iterates + 1))
    return 4 * curvature / (iterates + 1) + 4 * gap * drift + noise


def optimal_l1_rounds(
    bounds: Bounds, sensitivity: float, features: int, selection: str, epsilon: float, delta: float
) -> int:
    """Return T* for squared loss over the l1 ball; see `optimal_rounds`."""
    return optimal_rounds(bounds.curvature(), sensitivity, 2 * features, selection, epsilon, delta)


def optimal_rounds(
    curvature: float,
    sensitivity: float,
    vertices: int,
    selection: str,
    epsilon: float,
    delta: float,
) -> int:
    """Return T*, which minimises the utility bound ``2 Gamma / T + noise(T)``.

    Noise grows as sqrt T where rho is shared, and as T where pure epsilon is (delta 0).  On small
    data T* is several times too long: the bound's constants are worst cases.
    """
    regret = selection_regret(max(vertices, 2), selection)
    if delta == 0:
        # e0 = epsilon / T, scale 2 sensitivity / e0: noise(T) = a T, T* = sqrt(2 Gamma / a)
        a = 2 * sensitivity / epsilon * regret
        return max(1, round(math.sqrt(2 * curvature / a)))
    # e0 = sqrt(8 rho / T) for Gumbel, sqrt(2 rho / T) for Laplace: noise(T) = a sqrt T,
    # T* = (4 Gamma / a)^(2/3)
    rho = calibrate(zcdp_loss, epsilon=epsilon, delta=delta, accountant=ZCDP())
    range_ = math.sqrt((8 if selection == GUMBEL else 2) * rho)
    a = 2 * sensitivity / range_ * regret
    rounds: float = (4 * curvature / a) ** (2 / 3)
    return max(1, round(rounds))


def zcdp_loss(rho: float) -> Any:
    """Return the loss of any release with zCDP parameter rho."""
    from accountant.losses.zcdp import ZCDPLoss

    return ZCDPLoss(rho)


def selection_mechanism(
    scale: float, sensitivity: float, selection: str
) -> NoisyMax | PermuteAndFlip:
    """Return the mechanism of one selection."""
    if selection == PERMUTE_AND_FLIP:
        return PermuteAndFlip(scale, sensitivity)
    return NoisyMax(scale, sensitivity, selection)


def noise_scale(
    epsilon: float, delta: float, rounds: int, selection: str, sensitivity: float
) -> float:
    """Return the noise scale of one of ``rounds`` selections, by the tightest accounting."""
    epsilon, delta = POSITIVE.check("epsilon", epsilon), DELTA.check("delta", delta)
    return 2 * sensitivity / epsilon_per_selection(epsilon, delta, rounds, selection)


@lru_cache(maxsize=256)
def epsilon_per_selection(epsilon: float, delta: float, rounds: int, selection: str) -> float:
    """Return the range (Gumbel) or pure epsilon of one of ``rounds`` selections."""

    def plan_of(scale: float) -> Repeat:
        return Repeat(selection_mechanism(scale, 0.5, selection), rounds)

    if selection != GUMBEL or delta == 0:
        return 1 / calibrate(plan_of, epsilon=epsilon, delta=delta)
    # many selections of range e0 are nearly one Gaussian of mu = sqrt(rounds) e0 / 2
    deviation = calibrate(lambda scale: GaussianLoss(1 / scale), epsilon=epsilon, delta=delta)
    start = NEAR_GAUSSIAN * deviation * math.sqrt(rounds) / 2
    # One of these two accountants has the least bound of all that `Tight` compares.
    quick_accountant: Accountant = Advanced() if rounds <= MAX_ADAPTIVE_RELEASES else RDP()
    return 1 / calibrate_near(plan_of, start, epsilon, delta, quick_accountant)
