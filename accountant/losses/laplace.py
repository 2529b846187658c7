"""The loss of Laplace noise, and the cumulants of many such losses at a time.

With noise of scale 1 and two values ``shift`` m apart, the privacy loss has atoms (single losses
with a mass of their own) at m and -m and an exponential density between.  Its cumulant is the
closed form

    ln E_P e^{zL} = ln [(z + 1) e^{zm} + z e^{-(z + 1) m}] / (2z + 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.domains import POSITIVE, RECORDS
from accountant.losses.cell_masses import CellMasses
from accountant.losses.loss import Loss, SymmetricLoss, epsilons, mirrored, orders
from accountant.losses.loss_numerics import ExactCGF, HasCumulant, LossNumerics
from accountant.losses.ratio_law import RatioLaw, laplace_ratio_law
from accountant.numerics import Array, Complex
from accountant.numerics.chebyshev import interpolation_nodes, sum_in_blocks
from accountant.numerics.exponential_sums import (
    cf_ratios_from_cgf,
    complex_power,
    phases,
    power_round_off,
)
from accountant.numerics.logspace import log1p
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP, round_up, round_up_square, round_up_sum

# Up to 2,000 different shifts, all closed forms are summed.  For more of them, whose sum would take
# longer, the cumulant is interpolated in the shift.
MAX_EXACT_LOSSES = 2000
# The cumulant at z is interpolated where |z| times the largest shift is at most this: there it is
# smooth enough in the shift for the error that is added.
INTERPOLATION_LIMIT = 0.1


class Shifted(HasCumulant, Protocol):
    """A loss that is determined by its shift."""

    @property
    def shift(self) -> float:
        """The shift, in scales of the noise."""
        ...


@final
class LaplaceCGF(ExactCGF[Shifted]):
    """The closed form, summed over many losses at a time; see `ExactCGF`."""

    distinct_cost_cap = MAX_EXACT_LOSSES

    def sum_cgf(self, losses: Sequence[Shifted], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the closed forms, many losses at a time."""
        shifts = np.fromiter((loss.shift for loss in losses), float, len(losses))
        if shifts.size <= MAX_EXACT_LOSSES:
            return sum_in_blocks(_laplace_cgf, shifts, counts, z)
        is_smooth = np.abs(z) * np.max(shifts) <= INTERPOLATION_LIMIT
        value, error = np.empty(z.shape, dtype=z.dtype), np.empty(z.shape)
        nodes, weights = interpolation_nodes(shifts, counts)
        interpolant, size = sum_in_blocks(_laplace_cgf, nodes, weights, z[is_smooth])
        # The error of the interpolation: 5e-15 times 9 |z (z+1)| m^2 for each loss is below 1e-13
        # of the last two factors (`interpolation_nodes`).
        squares = float(ordered_dot(shifts * shifts, counts))
        size += 1e-13 * np.abs(z[is_smooth] * (z[is_smooth] + 1)) * squares
        value[is_smooth], error[is_smooth] = interpolant, size
        value[~is_smooth], error[~is_smooth] = sum_in_blocks(
            _laplace_cgf, shifts, counts, z[~is_smooth]
        )
        return value, error

    def cf_ratios(
        self, losses: Sequence[Shifted], counts: Array, z: Complex
    ) -> tuple[Complex, Array]:
        """Return powers of ``[(z+1) e^{zm} + z e^{-(z+1)m}] / (2z+1)``: two outer products."""
        if len(losses) > MAX_EXACT_LOSSES:
            return cf_ratios_from_cgf(self.sum_cgf, losses, counts, z)
        a, w = z[0, 0].real, 2 * z + 1
        product, round_off = np.ones(z.shape, dtype=complex), np.zeros(z.shape)
        for loss, count in zip(losses, counts.tolist(), strict=True):
            m = loss.shift
            turn = np.outer(phases(z[:, 0].imag * m), phases(z[0].imag * m))
            # Scaled by e^{-am}: the second term has the conjugate phase.
            low = math.exp(-(2 * a + 1) * m)
            ratio = ((z + 1) * turn + low * z * turn.conj()) / w
            ratio /= ratio[0, 0].real
            product *= complex_power(ratio, int(count))
            round_off += power_round_off(count, m, z)
        return product, round_off

    def log_cf_bounds(self, losses: Sequence[Shifted], counts: Array, a: float, u: Array) -> Array:
        """Bound each factor by ``(1 + 1/(2u)) / (1 + tanh(w m) / (2w))``, ``w = a + 1/2``.

        K = -m/2 + ln[cosh(s m) + sinh(s m) / (2s)] with s = w + iu, where |cosh(s m)| and
        |sinh(s m)| are at most cosh(w m).  At u = 0 the logarithm of the bracket is
        ln cosh(w m) + ln(1 + tanh(w m) / (2w)).
        """
        shifts = np.fromiter((loss.shift for loss in losses), float, len(losses))
        w = a + 0.5
        # Logarithms of the denominators (lowered by more than their round-off), which differ by
        # loss, and of the numerator, which all share.
        log_denominator = np.log1p(np.tanh(w * shifts) / (2 * w)) * (1 - 1e-12)
        order = np.argsort(-log_denominator)
        log_denominator, counts = log_denominator[order], counts[order]
        log_numerator = np.log1p(0.5 / u)
        # Only factors below 1 help; of a factor, 1 is a bound as well.
        factors_used = np.searchsorted(-log_denominator, -log_numerator)
        used_count = np.append(0.0, np.cumsum(counts))[factors_used]
        used_denominators = np.append(0.0, np.cumsum(counts * log_denominator))[factors_used]
        total: Array = used_count * log_numerator - used_denominators
        return np.minimum(total, 0.0)

    def max_loss_mass(self, loss: Shifted) -> float:
        """Return 1/2: that mass of P has the shift as its loss."""
        return 0.5


def _laplace_cgf(shift: Array, z: Any) -> tuple[Any, Array]:
    """Return the cumulant and its round-off, without cancellation near 1, and without overflow.

    The moment is 1 + [(z+1) (e^{zm} - 1) + z (e^{-(z+1)m} - 1)] / (2z+1), and for a large zm it is
    e^{zm} [(z+1) + z e^{-(2z+1)m}] / (2z+1).
    """
    far = shift * (z.real + 1) > 30
    with np.errstate(over="ignore", invalid="ignore"):
        m = np.where(far, 0.0, shift)
        ratio_less_1 = ((z + 1) * np.expm1(z * m) + z * np.expm1(-(z + 1) * m)) / (2 * z + 1)
        value = log1p(ratio_less_1)
        if far.any():
            s = np.broadcast_to(2 * z + 1, far.shape)[far]
            large = np.broadcast_to(shift * z, far.shape)[far]
            tail = np.exp(-s * np.broadcast_to(shift, far.shape)[far])
            value[far] = large + np.log(((s + 1) / 2 + (s - 1) / 2 * tail) / s)
        # The two terms cancel, so that their difference has an error of ulps of the terms: of the
        # exponent times e^{zm}, relative to the moment.
        terms = np.abs(z) * shift * np.exp(z.real * shift - value.real)
        size = terms + np.abs(value) + far
    return value, 16 * ULP * size


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
        """``shift - 1 + e^-shift``: the divergence over its order is greatest at order 1."""
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
        s, m = mirrored(z), self.shift
        # Left of 0 the terms of the closed form may cancel.  There the moment is, with
        # y = (2 z + 1) m, also e^{zm} [1 + e^{-y} + m (1 - e^{-y}) / y] / 2.
        cancels = (s.real < 0) & (m > np.minimum(1.0, np.abs(2 * s + 1)))
        value = np.empty(s.shape, dtype=complex)
        value[~cancels] = CGF.sum_cgf([self], np.ones(1), s[~cancels])[0]
        y = (2 * s[cancels] + 1) * m
        mean = np.where(y == 0, 1.0, -np.expm1(-y) / np.where(y == 0, 1.0, y))
        value[cancels] = m * s[cancels] + np.log((1 + np.exp(-y) + m * mean) / 2)
        return value[()]

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
