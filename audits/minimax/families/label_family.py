"""The hard family for learning from private labels: paired label probabilities and a linear loss.

A minimax lower bound needs distributions that private reports can hardly tell apart.  Here labels
come in pairs; in each pair one label is a little likelier, and a sign says which.  The minimiser
of a linear loss reveals the signs, so a learner with a small risk must have decoded them.

Reference: Chua and others (2026), whose construction this is with explicit constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.domains import POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from audits.minimax.families.paired_shares import PairedShares
from audits.minimax.information.sign_index import index_of_signs, signs_of


@final
@dataclass(frozen=True, slots=True)
class LabelFamily:
    """Pairs of labels with chances ``(1 +- d v_j) / k``, and a loss that is linear in theta.

    Point v is one of ``2^(k/2)`` sign vectors.  Theta lies in the ball of radius ``diameter / 2``
    in R^k; its loss at label y is ``lipschitz <theta, e_y - 1/k> / ||e_y - 1/k||``.

    Parameters
    ----------
    k : int
        Number of labels, even, 2 to 10^6.
    d : float
        Relative shift of a pair's chances, in (0, 1].
    lipschitz : float, optional
        Lipschitz constant of the loss.
    diameter : float, optional
        Euclidean diameter of the set of parameters.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Chua and others (2026).

    Examples
    --------
    >>> from audits.minimax import LabelFamily
    >>> family = LabelFamily(k=4, d=0.5)
    >>> family.shares(1)
    array([0.125, 0.375, 0.375, 0.125])
    >>> round(family.excess(1, -family.parameter(1)), 4)
    0.2887
    """

    k: int
    d: float
    lipschitz: float = 1.0
    diameter: float = 1.0

    def __post_init__(self) -> None:
        k = IntegerRange(2, 10**6).check("k", self.k)
        if k % 2:
            raise ParameterError("k", k, "even, as labels come in pairs")
        PairedShares(k, self.d)  # checks the shift
        POSITIVE.check("lipschitz", self.lipschitz)
        POSITIVE.check("diameter", self.diameter)

    @property
    def points(self) -> int:
        """``2^(k / 2)``, an integer of any size."""
        return 1 << (self.k // 2)

    @property
    def slope(self) -> float:
        """The factor of ``<theta, e_y - 1/k>`` in the loss; its gradient has norm ``lipschitz``."""
        return self.lipschitz / math.sqrt(1 - 1 / self.k)

    @property
    def separation(self) -> float:
        """``diameter sqrt(2 / k)`` between minimisers that differ in one pair, rounded down."""
        return self.diameter * math.sqrt(2 / self.k) * (1 - 4 * ULP)

    def shares(self, which: int) -> Array:
        """Compute the probabilities of the k labels at a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.

        Returns
        -------
        array
            Probabilities, shape (k,).
        """
        return PairedShares(self.k, self.d).parameter(which)

    def parameter(self, which: int) -> Array:
        """Compute the minimiser of the expected loss at a point.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.

        Returns
        -------
        array
            A vector of length ``diameter / 2``, shape (k,).
        """
        signs = signs_of(which, self.k // 2)
        against = np.stack([-signs, signs], axis=1).ravel()
        theta: Array = against * (self.diameter / 2 / math.sqrt(self.k))
        return theta

    def sample(self, which: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
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
        array of int64
            Labels from 0 to ``k - 1``, shape (n,).
        """
        n = IntegerRange(1).check("n", n)
        signs = signs_of(which, self.k // 2)
        pair = rng.integers(0, self.k // 2, n)
        is_even = rng.random(n) < (1 + self.d * signs[pair]) / 2
        labels: NDArray[np.int64] = 2 * pair + np.where(is_even, 0, 1)
        return labels

    def decode(self, estimate: Array) -> int:
        """Find in every pair the label with the smaller coefficient, which is the likelier one.

        Parameters
        ----------
        estimate : array
            An estimate of the minimiser, shape (k,).

        Returns
        -------
        int
            The point, from 0 to ``points - 1``.
        """
        theta = np.asarray(estimate, dtype=float)
        if theta.shape != (self.k,):
            raise ParameterError("estimate", theta.shape, f"shape ({self.k},)")
        return index_of_signs(theta[1::2] - theta[::2], self.k // 2)

    def losses(self, theta: Array) -> Array:
        """Compute the loss of theta at each of the k labels.

        Parameters
        ----------
        theta : array
            A parameter, shape (k,).

        Returns
        -------
        array
            Losses, shape (k,).
        """
        theta = np.asarray(theta, dtype=float)
        at_labels: Array = self.slope * (theta - theta.mean())
        return at_labels

    def excess(self, which: int, theta: Any) -> float:
        """Compute the expected loss of an estimate above the least expected loss.

        Parameters
        ----------
        which : int
            The point, from 0 to ``points - 1``.
        theta : array
            An estimate, shape (k,).

        Returns
        -------
        float
            The excess, not rounded to either side.
        """
        shares = self.shares(which)
        optimal_losses = self.losses(self.parameter(which))
        return float(shares @ (self.losses(theta) - optimal_losses))
