"""The shares of k labels from local reports: how well any private algorithm can know them.

Proofs: `docs/proofs/minimax_histogram.md`.  References: Duchi, Jordan & Wainwright (2018) for the
pairs; Ye & Barg (2018), whose subset selection the constant for many users meets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from accountant.domains import POSITIVE, Interval, Whole
from accountant.errors import ParameterError
from accountant.numerics import Array, up
from audits.minimax.bounds.bound import LowerBound
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.sign_index import number_of, power_of_two, signs_of
from audits.minimax.information.sign_information import (
    posterior_divergence,
    sign_error,
    sign_information,
)
from audits.minimax.information.theorem_domains import USERS

LABELS = Whole(2, 10**9)
SHIFT = Interval(0.0, 1.0, "(]")
SHIFTS = np.geomspace(1e-6, 1.0, 500)


@final
@dataclass(frozen=True, slots=True)
class PairedShares:
    """Labels 2j and 2j + 1 have shares ``(1 + shift v_j) / k`` and ``(1 - shift v_j) / k``.

    Point v is one of ``2^floor(k/2)``; of an odd number of labels the last one has ``1 / k``.
    """

    k: int
    shift: float = 1.0
    central: ClassVar[bool] = False  # who is trusted with the data

    def __post_init__(self) -> None:
        LABELS.check("k", self.k)
        SHIFT.check("shift", self.shift)

    @property
    def pairs(self) -> int:
        """Half the labels."""
        return self.k // 2

    @property
    def points(self) -> int:
        """``2^pairs``, a number of any size."""
        return 1 << self.pairs

    @property
    def separation(self) -> float:
        """Euclidean distance of shares that differ in one pair."""
        return 2 * math.sqrt(2) * self.shift / self.k

    def parameter(self, which: int) -> Array:
        """The shares, (k,)."""
        signs = signs_of(which, self.pairs)
        shares = np.ones(self.k)
        shares[: 2 * self.pairs] += self.shift * np.repeat(signs, 2) * np.tile([1, -1], self.pairs)
        return shares / self.k

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Any:
        """Labels of n users."""
        labels = rng.integers(self.k, size=Whole(1).check("n", n))
        signs = signs_of(which, self.pairs)
        own = np.minimum(labels // 2, self.pairs - 1)
        # whoever has the rarer label of a pair takes the other one with probability shift
        rarer = (labels < 2 * self.pairs) & ((labels % 2 == 1) == (signs[own] > 0))
        return np.where(rarer & (rng.random(n) < self.shift), labels ^ 1, labels)

    def decode(self, estimate: Array) -> int:
        """The greater share of each pair."""
        given = np.asarray(estimate, dtype=float)
        if given.shape != (self.k,):
            raise ParameterError("estimate", f"shape {given.shape}", f"shape ({self.k},)")
        first, second = given[: 2 * self.pairs].reshape(-1, 2).T
        return number_of(first - second, self.pairs)

    def most_right(self, n: int, epsilon: float) -> float:
        """Largest probability of a right decode, non-interactive epsilon-LDP; see the proof."""
        known = Whole(1).check("n", n) * report_information(self.k, self.shift, epsilon)
        return most_right_given_information(known, power_of_two(self.pairs))


def private_histogram(n: int, k: int, epsilon: float) -> LowerBound:
    """Least worst-case ``E sum_x (estimate_x - share_x)^2`` over all laws of k labels."""
    n, k = USERS.check("n", n), LABELS.check("k", k)
    epsilon = POSITIVE.check("epsilon", epsilon)
    pairs, shift = by_pairs(n, k, epsilon)
    curved, width = by_information(n, k, epsilon)
    found = f"pairs shifted by {shift:.4g}: {pairs:.4g}; shares within {width:.4g}: {curved:.4g}"
    return LowerBound(
        value=max(pairs, curved),
        published=None,
        statement=f"worst-case E |estimate - shares|^2 over laws of {k:,} labels, {n:,} users, "
        f"each epsilon = {epsilon:g} for their own label",
        construction=PairedShares(k, shift),
        valid_for="non-interactive epsilon-LDP, delta = 0, every epsilon, n and k",
        optimised_over=f"the shift of pairs, and the width of a prior on shares; {found}",
    )


def by_pairs(n: int, k: int, epsilon: float) -> tuple[float, float]:
    """``max_d floor(k/2) 2 d^2 / k^2 (1 - m^2)``, m the most n users tell of a pair; and d."""
    informations = np.array([report_information(k, float(d), epsilon) for d in SHIFTS])
    risks = k // 2 * 2 * SHIFTS**2 / k**2 * sign_error(n * informations / (k // 2))
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - 1e-12), float(SHIFTS[best])


def by_information(n: int, k: int, epsilon: float) -> tuple[float, float]:
    """``max_w (k-1)^2 / (n k V_w / (1-w) + 4 pi^2 k^3 / w^2)``, by van Trees' inequality; and w.

    V_w is the greatest variance of a report's ratio where shares are within ``(1 +- w) / k``.
    Holds for sequential interaction, too.
    """
    widths = SHIFTS[:-1]
    variance = np.array([variance_near(k, float(w), epsilon) for w in widths])
    prior = 4 * math.pi**2 * k**3 / widths**2
    risks = (k - 1) ** 2 / (n * k * variance / (1 - widths) + prior)
    best = int(np.argmax(risks))
    return float(risks[best]) * (1 - 1e-12), float(widths[best])


def report_information(k: int, shift: float, epsilon: float) -> float:
    """Most nats that a user's report tells of the pairs' signs."""
    epsilon = POSITIVE.check("epsilon", epsilon)
    # E (1+L) ln(1+L) of a symmetric L in [-t, t] is at most c_2(t) E L^2, and E L^2 at most
    # d^2 / k f (E-1)^2 / (1 + f (E-1))^2, where one label of each of f k pairs is the likelier one
    curve = entropy_factor(shift * math.tanh(epsilon / 2))
    rest = math.exp(-epsilon)
    # one peak, at the share 1 / (E - 1)
    share = beside(k * rest / (1 - rest) if rest < 1 else k, k // 2) / k
    uneven = share * (1 - rest) ** 2 / (rest + share * (1 - rest)) ** 2
    spread = curve * shift**2 / k * float(uneven.max())
    seen = 2 * (k // 2) / k * float(sign_information(np.array(shift)))
    return up(min(spread, seen, posterior_divergence(epsilon)), 1e4)


def variance_near(k: int, width: float, epsilon: float) -> float:
    """Greatest variance of a report's ratios where shares are within ``(1 +- width) / k``.

    ``(E-1)^2 f (1-f) / (1 + f (E-1))^2`` with ``E = e^epsilon``, f the share of the labels that are
    E times as likely to report it; rounded up.
    """
    # one peak, at the share 1 / (e^epsilon + 1)
    peak = 1 / (1 + math.exp(min(epsilon, 700.0)))
    # the last range that begins before it, or one beside that, is nearest
    count = beside(k * peak / (1 - width), k - 1)
    low = np.minimum((1 - width) * count / k, 1.0)
    high = np.minimum((1 + width) * count / k, 1.0)
    share, rest = np.clip(peak, low, high), math.exp(-epsilon)
    # over E^2 above and below, so that nothing overflows
    spread = (1 - rest) ** 2 * share * (1 - share) / (rest + share * (1 - rest)) ** 2
    return up(float(spread.max()), 64)


def beside(place: float, most: int) -> Array:
    """Whole numbers from 1 to ``most`` next to a place: what has one peak there is best at one."""
    middle = math.floor(min(place, float(most)))
    around: Array = np.clip(np.arange(middle - 1.0, middle + 3.0), 1.0, float(most))
    return around
