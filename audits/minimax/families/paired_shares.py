"""Shares of labels that come in pairs: the hard family of histograms under local privacy.

A minimax lower bound needs distributions that private reports can hardly tell apart.  Here a sign
v_j for each pair of labels says which of the two is a little more frequent.  A *point* of the
family is the vector of these signs.  An estimate of the histogram that is closer than half of
``separation`` would decode the signs, but the reports carry little information about them.

Proofs: `docs/proofs/minimax_histogram.md`.  References: Duchi, Jordan & Wainwright (2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from accountant.domains import POSITIVE, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import round_up
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.sign_index import index_of_signs, power_of_two, signs_of
from audits.minimax.information.sign_information import posterior_divergence, sign_information

LABELS = IntegerRange(2, 10**9)  # number of labels
SHIFT = Interval(0.0, 1.0, "(]")


@final
@dataclass(frozen=True, slots=True)
class PairedShares:
    """Labels in pairs with shares ``(1 + shift v_j) / k`` and ``(1 - shift v_j) / k``.

    Point v is one of ``2^floor(k/2)`` sign vectors.  If k is odd, the last label has share ``1 /
    k``.

    Parameters
    ----------
    k : int
        Number of labels, at least 2.
    shift : float, optional
        Relative shift of a pair's shares, in (0, 1].  At 1, the default, only one label of each
        pair occurs.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Duchi, Jordan & Wainwright (2018).  Proof: ``docs/proofs/minimax_histogram.md``.

    Examples
    --------
    >>> from audits.minimax import PairedShares
    >>> family = PairedShares(k=4, shift=0.5)
    >>> family.parameter(1)
    array([0.125, 0.375, 0.375, 0.125])
    >>> round(family.most_right(n=100, epsilon=1.0), 4)
    0.9946
    """

    k: int
    shift: float = 1.0
    # An audit of utility reads it: these bounds hold for reports of each user (the local model),
    # and not for answers of a curator who sees all data.
    central: ClassVar[bool] = False

    def __post_init__(self) -> None:
        LABELS.check("k", self.k)
        SHIFT.check("shift", self.shift)

    @property
    def pairs(self) -> int:
        """``floor(k / 2)``, the number of pairs."""
        return self.k // 2

    @property
    def points(self) -> int:
        """``2^pairs``, an integer of any size."""
        return 1 << self.pairs

    @property
    def separation(self) -> float:
        """The Euclidean distance of shares that differ in one pair."""
        return 2 * math.sqrt(2) * self.shift / self.k

    def parameter(self, which: int) -> Array:
        """Compute the shares of the labels at a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.

        Returns
        -------
        array
            Shares that sum to 1, shape (k,).
        """
        signs = signs_of(which, self.pairs)
        shares = np.ones(self.k)
        shares[: 2 * self.pairs] += self.shift * np.repeat(signs, 2) * np.tile([1, -1], self.pairs)
        return shares / self.k

    def sample(self, which: int, n: int, rng: np.random.Generator) -> Any:
        """Draw the labels of ``n`` users.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.
        n : int
            Number of users.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array of int
            Labels from 0 to ``k - 1``, shape (n,).
        """
        labels = rng.integers(self.k, size=IntegerRange(1).check("n", n))
        signs = signs_of(which, self.pairs)
        pair = np.minimum(labels // 2, self.pairs - 1)
        # Labels are drawn uniformly; then a user with the rarer label of a pair takes the other one
        # with probability shift.
        rarer = (labels < 2 * self.pairs) & ((labels % 2 == 1) == (signs[pair] > 0))
        return np.where(rarer & (rng.random(n) < self.shift), labels ^ 1, labels)

    def decode(self, estimate: Array) -> int:
        """Find the larger estimated share of each pair.

        Parameters
        ----------
        estimate : array
            Estimated shares, shape (k,).

        Returns
        -------
        int
            The point, from 0 to ``points - 1``.
        """
        shares = np.asarray(estimate, dtype=float)
        if shares.shape != (self.k,):
            raise ParameterError("estimate", f"shape {shares.shape}", f"shape ({self.k},)")
        even, odd = shares[: 2 * self.pairs].reshape(-1, 2).T
        return index_of_signs(even - odd, self.pairs)

    def most_right(self, n: int, epsilon: float) -> float:
        """Bound the probability of a right decode from non-interactive epsilon-LDP reports.

        Parameters
        ----------
        n : int
            Number of users.
        epsilon : float
            Positive.

        Returns
        -------
        float
            The probability, rounded up.
        """
        information = IntegerRange(1).check("n", n) * report_information(
            self.k, self.shift, epsilon
        )
        return most_right_given_information(information, power_of_two(self.pairs))


def report_information(k: int, shift: float, epsilon: float) -> float:
    """Upper bound in nats on the information of one report about the pairs' signs; rounded up."""
    epsilon = POSITIVE.check("epsilon", epsilon)
    # The least of three upper bounds on the information.
    #
    # The first: let 1 + L be the ratio of a report's probability given the signs to its mean, and
    # d = shift, R = e^epsilon.  L is symmetric and in [-t, t] with t = d tanh(epsilon / 2).  So the
    # information, the expectation of (1 + L) ln(1 + L), is at most c_2(t) times that of L^2, where
    # c_2 is `entropy_factor`.  Let f k be a number of pairs; the expectation of L^2 is largest if
    # the report favours one label of each of these pairs, by the factor R.  Then it is
    #     (d^2 / k) f (R - 1)^2 / (1 + f (R - 1))^2.
    factor = entropy_factor(shift * math.tanh(epsilon / 2))
    # As a function of f this has one peak, at f = 1 / (R - 1), and f k is a whole number.  Both
    # squares are divided by R^2, so that none overflows.
    inverse, gap = math.exp(-epsilon), -math.expm1(-epsilon)  # 1 / R and 1 - 1 / R
    favoured_share = integers_near(k * inverse / gap, k // 2) / k
    unevenness = favoured_share * gap**2 / (inverse + favoured_share * gap) ** 2
    by_ratios = factor * shift**2 / k * float(unevenness.max())
    # The second is the information in a label itself, the third that of any report about any data.
    of_label = 2 * (k // 2) / k * float(sign_information(np.array(shift)))
    # In all of these operations the largest error is that of `entropy_factor` for a t just above
    # 1e-3: two terms of size t cancel to t^2, which leaves a relative error below 5e-13.  The
    # result is raised by 1e4 units in the last place, 2.2e-12.
    return round_up(min(by_ratios, of_label, posterior_divergence(epsilon)), ulps=1e4)


def integers_near(peak: float, largest: int) -> Array:
    """Whole numbers from 1 to ``largest`` on both sides of a function's peak.

    If the function has no other peak, its largest value at whole numbers is at one of these.
    """
    middle = math.floor(min(peak, float(largest)))
    neighbours: Array = np.clip(np.arange(middle - 1.0, middle + 3.0), 1.0, float(largest))
    return neighbours
