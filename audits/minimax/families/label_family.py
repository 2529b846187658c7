"""Labels in pairs, one of each a little likelier, and a linear loss: learning from private labels.

Reference: the construction of `methods.md`, section 5.5, after Chua and others (2026).
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
    """Labels 2j and 2j + 1 have chance ``(1 +- d v_j) / k``; k even, point v one of ``2^(k/2)``.

    The loss of theta, in the ball of radius ``diameter / 2`` in R^k, at label y is
    ``lipschitz <theta, e_y - 1/k> / ||e_y - 1/k||``; with k = 2 the family is the pair.
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
        """``2^(k / 2)``, a number of any size."""
        return 1 << (self.k // 2)

    @property
    def slope(self) -> float:
        """The loss is ``slope <theta, e_y - 1/k>``, of gradient ``lipschitz`` at every label."""
        return self.lipschitz / math.sqrt(1 - 1 / self.k)

    @property
    def separation(self) -> float:
        """``diameter sqrt(2 / k)``: of two minimisers that differ in one pair; rounded down."""
        return self.diameter * math.sqrt(2 / self.k) * (1 - 4 * ULP)

    def shares(self, which: int) -> Array:
        """The chances of the k labels."""
        signs = signs_of(which, self.k // 2)
        chances: Array = (1 + self.d * np.stack([signs, -signs], axis=1).ravel()) / self.k
        return chances

    def parameter(self, which: int) -> Array:
        """The minimiser of the expected loss: against the shares, on the sphere."""
        signs = signs_of(which, self.k // 2)
        against = np.stack([-signs, signs], axis=1).ravel()
        theta: Array = against * (self.diameter / 2 / math.sqrt(self.k))
        return theta

    def sample(self, which: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The labels of n users, 0 to k - 1."""
        n = IntegerRange(1).check("n", n)
        signs = signs_of(which, self.k // 2)
        pair = rng.integers(0, self.k // 2, n)
        first = rng.random(n) < (1 + self.d * signs[pair]) / 2
        labels: NDArray[np.int64] = 2 * pair + np.where(first, 0, 1)
        return labels

    def decode(self, estimate: Array) -> int:
        """In every pair the label that the estimate has less of."""
        theta = np.asarray(estimate, dtype=float)
        if theta.shape != (self.k,):
            raise ParameterError("estimate", theta.shape, f"shape ({self.k},)")
        return index_of_signs(theta[1::2] - theta[::2], self.k // 2)

    def losses(self, theta: Array) -> Array:
        """The loss at each of the k labels."""
        theta = np.asarray(theta, dtype=float)
        at_labels: Array = self.slope * (theta - theta.mean())
        return at_labels

    def excess(self, which: int, theta: Any) -> float:
        """The expected loss of an estimate above the least."""
        shares = self.shares(which)
        least = self.losses(self.parameter(which))
        return float(shares @ (self.losses(theta) - least))
