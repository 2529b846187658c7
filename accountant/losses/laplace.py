"""The loss of Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, RECORDS
from accountant.losses.cell_masses import CellMasses
from accountant.losses.laplace_cgf import LaplaceCGF
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, orders
from accountant.losses.loss_numerics import LossNumerics
from accountant.losses.ratio_law import RatioLaw, laplace_ratio_law
from accountant.numerics import Array
from accountant.numerics.rounding import ULP, round_up, round_up_square, round_up_sum

CGF = LaplaceCGF()
NUMERICS = LossNumerics(CGF)


@final
@dataclass(frozen=True, slots=True)
class LaplaceLoss(SymmetricLoss):
    """Laplace(0, 1) against Laplace(shift, 1): the loss of Laplace noise.

    Parameters
    ----------
    shift : float
        Sensitivity over noise scale, above 0.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006); Mironov (2017), Table II for its Rényi curve.

    Examples
    --------
    >>> from accountant import LaplaceLoss
    >>> LaplaceLoss(shift=0.5).epsilon_at(0.0)
    0.5
    """

    shift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", POSITIVE.check("shift", self.shift))

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return ``1 - e^{(eps - shift) / 2}`` below the shift, 0 above."""
        e = epsilons(epsilon)
        inside: Array = -np.expm1(np.minimum(e - self.shift, 0.0) / 2)
        return inside

    @property
    def max_loss(self) -> float:
        """The largest loss, in nats: the shift."""
        return self.shift

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def rho(self) -> float:
        """``shift - 1 + e^-shift``: the divergence at order 1, where the ratio is greatest."""
        m = self.shift
        return min(round_up_square(m, 2), max(m + math.expm1(-m) + 4 * ULP * m, 1e-300))

    @property
    def numerics(self) -> LossNumerics:
        """The cumulant is exact: a closed form."""
        return NUMERICS

    @property
    def ratio_law(self) -> RatioLaw | None:
        """Atoms at both ends, of the noise that is not between the two centres."""
        return laplace_ratio_law(self.shift)

    def renyi(self, order: ArrayLike) -> Array:
        """Return the Rényi divergence of two shifted Laplace laws."""
        # ln[ a/(2a-1) e^{(a-1)m} + (a-1)/(2a-1) e^{-am} ] / (a-1)
        a, m = orders(order), self.shift
        log_moment = np.logaddexp(
            np.log(a / (2 * a - 1)) + (a - 1) * m, np.log((a - 1) / (2 * a - 1)) - a * m
        )
        divergence: Array = np.minimum(round_up_sum(log_moment, a * m) / (a - 1), round_up(m))
        return divergence

    def cumulant(self, z: ArrayLike) -> Any:
        """Return ``ln [(z+1) e^{zm} + z e^{-(z+1)m}] / (2z+1)``."""
        s = np.asarray(z, dtype=complex)
        return CGF.sum_cgf([self], np.ones(1), s)[0][()]

    def cell_masses(self, edges: Array) -> CellMasses:
        """Return the masses of the two atoms at ``+-shift`` and of what lies between."""
        # P(L <= b) = e^{(b - m) / 2} / 2 for b in [-m, m), and Q(L > b) = e^{-(b + m) / 2} / 2
        m, inside = self.shift, np.clip(edges, -self.shift, self.shift)
        width = -np.expm1(-np.diff(inside) / 2) / 2
        p, q = width * np.exp((inside[1:] - m) / 2), width * np.exp(-(inside[:-1] + m) / 2)
        top, bottom = ((edges[:-1] < at) & (at <= edges[1:]) for at in (m, -m))
        p += top / 2 + bottom * math.exp(-m) / 2
        q += top * math.exp(-m) / 2 + bottom / 2
        # The losses m and -m are inexact by an ulp, and so are the edges of their cells.
        rounded = (8 + m) * ULP
        return CellMasses(p, q, rounded * p, rounded * q, 4 * ULP * m)

    def dominates(self, other: Loss) -> bool:
        """Return whether ``other`` is a Laplace loss with no greater shift."""
        return isinstance(other, LaplaceLoss) and self.shift >= other.shift

    def for_group(self, size: int) -> LaplaceLoss:
        """Return the Laplace loss with ``size`` times the shift."""
        return LaplaceLoss(round_up(RECORDS.check("size", size) * self.shift))

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile, in closed form."""
        # 1 - e^{(eps - shift) / 2} = delta
        epsilon_upper = self.shift + 2 * math.log1p(-delta) + 4 * ULP * self.shift
        return min(self.shift, max(0.0, epsilon_upper))
