"""Constants of private Frank-Wolfe: sensitivity, curvature, noise, error, number of rounds.

Frank-Wolfe minimises a convex mean loss over a polytope: each round moves towards the vertex whose
product with the gradient is the least.  Here a private selection, such as report noisy max, chooses
the vertex; its scores are these products, and T is the number of iterates.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2 and Theorem 2.2, with constants computed
anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from accountant.accountants.advanced import Advanced
from accountant.accountants.base import Accountant
from accountant.accountants.rdp import RDP
from accountant.accountants.zcdp import ZCDP
from accountant.domains import OneOf
from accountant.losses.gaussian import GaussianLoss
from accountant.planning.calibration import calibrate, calibrate_near
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from accountant.plans.plan import Repeat
from algorithms.base.glm_losses import SQUARED, DeclaredLoss, LinearLoss
from mechanisms.noisy_max import NoisyMax
from mechanisms.permute_and_flip import PermuteAndFlip

GUMBEL, LAPLACE, PERMUTE_AND_FLIP = "gumbel", "laplace", "permute-and-flip"
# The search for the noise scale starts at this multiple of the scale by the Gaussian approximation,
# because the accountant's bound, computed on a grid, is larger than the Gaussian's by about this.
# Another start takes more steps of the search, and ends at the same scale.
NEAR_GAUSSIAN = 1.0005
MAX_ADVANCED_ROUNDS = 1000  # of more selections the Rényi bound is nearly as good, and quicker
SELECTION = OneOf((GUMBEL, LAPLACE, PERMUTE_AND_FLIP))


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Public bounds that determine the sensitivity.

    The features of a record are clipped to [-x, x], its target to [-y, y]; ``radius`` is the
    largest l1 norm of a point of the set.  A weight is clipped to [0, weight], and its record
    counts as the share of this bound: no bound below grows with weights.
    """

    radius: float
    x: float
    y: float
    weight: float = 1.0

    def lipschitz(self, loss: LinearLoss | DeclaredLoss = SQUARED) -> float:
        """Return L1, the largest absolute coordinate of one record's gradient."""
        if isinstance(loss, DeclaredLoss):
            return loss.lipschitz
        return loss.bound(self.radius * self.x, self.y) * self.x

    def score_sensitivity(
        self, records: int, relation: str, loss: LinearLoss | DeclaredLoss = SQUARED
    ) -> float:
        """Return how far one record of n moves a score, the gradient's product with a vertex s.

        As |<s, grad>| <= |s|_1 |grad|_inf, it is radius L1 / n, and twice that if it is replaced.
        """
        influence = self.radius * self.lipschitz(loss) / records
        neighbours = check_relation("relation", relation, RECORD_RELATIONS)
        return 2 * influence if neighbours is Adjacency.REPLACE_ONE else influence

    def curvature(self, loss: LinearLoss | DeclaredLoss = SQUARED) -> float:
        """Return the curvature constant Gamma (Definition 2.1): ``smoothness max <x, a - b>^2``."""
        if isinstance(loss, DeclaredLoss):
            return loss.curvature
        return loss.smoothness * (2 * self.radius * self.x) ** 2


def selection_regret(vertices: int, selection: str) -> float:
    """Return a bound of the mean gap from the best to the selected score, in units of the scale.

    With v vertices it is ln v for Gumbel noise, and the harmonic number H_v for Laplace noise, by
    its expansion ln v + gamma + 1/(2 v) with Euler's constant.  Permute-and-flip loses no more
    than Gumbel noise of its scale (McKenna & Sheldon 2020).
    """
    if selection != LAPLACE:
        return math.log(vertices)
    return math.log(vertices) + 0.5772156649 + 1 / (2 * vertices)


def utility_bound(
    curvature: float, rounds: int, noise: float, gap: float, average: bool = False
) -> float:
    """Return a bound of the expected excess loss after ``rounds`` selections, T = rounds + 1.

    With Gamma the ``curvature``, ``noise`` the mean gap of one selection, and ``gap`` the excess
    loss of the first iterate, it is for the last iterate

        2 Gamma / (T + 1) + 2 gap / (T (T + 1)) + noise,

    whose second term is missing in the reference, and for the average of the iterates

        4 Gamma / (T + 1) + 4 gap ln(T + 1) / (T (T + 1)) + noise.
    """
    iterates = rounds + 1
    if not average:
        return 2 * curvature / (iterates + 1) + 2 * gap / (iterates * (iterates + 1)) + noise
    # The bound of the last iterate is averaged with weights 2 t / (T (T + 1)), where
    # sum_t 1 / (t + 1) <= ln(T + 1) and sum_t t / (t + 1) <= T.
    gap_factor = math.log(iterates + 1) / (iterates * (iterates + 1))
    return 4 * curvature / (iterates + 1) + 4 * gap * gap_factor + noise


def optimal_rounds(
    curvature: float,
    sensitivity: float,
    vertices: int,
    selection: str,
    epsilon: float,
    delta: float,
) -> int:
    """Return the number of rounds T* that minimises about ``2 Gamma / T + noise(T)``.

    The mean gap of one selection, noise(T), grows as sqrt T where T rounds share a zCDP budget rho,
    and as T where they share a pure epsilon (delta 0).  On small data T* is several times larger
    than the best number, as the bound's constants are worst cases.
    """
    regret = selection_regret(max(vertices, 2), selection)
    if delta == 0:
        # One selection has e0 = epsilon / T and the scale 2 sensitivity / e0.  So noise(T) = a T,
        # and T* = sqrt(2 Gamma / a).
        a = 2 * sensitivity / epsilon * regret
        return max(1, round(math.sqrt(2 * curvature / a)))
    # Gumbel noise of range e0 has rho = e0^2 / 8, a pure e0 has e0^2 / 2.  So one selection has
    # e0 = sqrt(8 rho / T) or sqrt(2 rho / T), noise(T) = a sqrt T, and T* = (4 Gamma / a)^(2/3).
    rho = calibrate(zcdp_loss, epsilon=epsilon, delta=delta, accountant=ZCDP())
    single_round_epsilon = math.sqrt((8 if selection == GUMBEL else 2) * rho)
    a = 2 * sensitivity / single_round_epsilon * regret
    rounds: float = (4 * curvature / a) ** (2 / 3)
    return max(1, round(rounds))


def zcdp_loss(rho: float) -> Any:
    """Return the loss that bounds every release with zCDP parameter rho."""
    from accountant.losses.zcdp import ZCDPLoss

    return ZCDPLoss(rho)


def selection_mechanism(
    scale: float, sensitivity: float, selection: str
) -> NoisyMax | PermuteAndFlip:
    """Return the mechanism that selects one vertex by its score."""
    if selection == PERMUTE_AND_FLIP:
        return PermuteAndFlip(scale, sensitivity)
    return NoisyMax(scale, sensitivity, selection)


def noise_scale(
    epsilon: float, delta: float, rounds: int, selection: str, sensitivity: float
) -> float:
    """Return the noise scale of one of ``rounds`` selections, ``2 sensitivity / e0``."""
    return 2 * sensitivity / epsilon_per_selection(epsilon, delta, rounds, selection)


@lru_cache(maxsize=256)
def epsilon_per_selection(epsilon: float, delta: float, rounds: int, selection: str) -> float:
    """Return e0, the range (Gumbel) or pure epsilon of one of ``rounds`` selections.

    It is the largest for which the tight accountant finds the budget of all of them enough.
    """

    def plan_of(scale: float) -> Repeat:
        # with the sensitivity 1/2, e0 = 2 sensitivity / scale is 1 / scale
        return Repeat(selection_mechanism(scale, 0.5, selection), rounds)

    if selection != GUMBEL or delta == 0:
        return 1 / calibrate(plan_of, epsilon=epsilon, delta=delta)
    # Many selections of range e0 are nearly one Gaussian of mu = sqrt(rounds) e0 / 2, which has the
    # deviation 1 / mu.
    deviation = calibrate(lambda scale: GaussianLoss(1 / scale), epsilon=epsilon, delta=delta)
    start = NEAR_GAUSSIAN * deviation * math.sqrt(rounds) / 2
    # Of more than about 30 selections one of these two accountants has the least bound of all that
    # `Tight` compares; of fewer, `Tight` goes on from where this accountant ended.
    quick_accountant: Accountant = Advanced() if rounds <= MAX_ADVANCED_ROUNDS else RDP()
    return 1 / calibrate_near(plan_of, start, epsilon, delta, quick_accountant)
