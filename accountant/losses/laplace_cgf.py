"""The cumulants of Laplace losses, many at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np

from accountant.losses.loss_numerics import ExactCGF, HasCumulant
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
from accountant.numerics.rounding import ULP

MAX_EXACT_LOSSES = 2000  # losses; more are interpolated
INTERPOLATION_LIMIT = 0.1  # |z| shift up to which a cumulant is smooth in the shift


class Shifted(HasCumulant, Protocol):
    """A loss that is determined by its shift."""

    @property
    def shift(self) -> float:
        """The shift, in scales of the noise."""
        ...


@final
class LaplaceCGF(ExactCGF[Shifted]):
    """``ln [(z+1) e^{zm} + z e^{-(z+1)m}] / (2z+1)``."""

    distinct_cost_cap = MAX_EXACT_LOSSES  # more are interpolated

    def sum_cgf(self, losses: Sequence[Shifted], counts: Array, z: Any) -> tuple[Any, Array]:
        """Return the sum of the closed forms, many losses at a time."""
        shifts = np.fromiter((loss.shift for loss in losses), float, len(losses))
        if shifts.size <= MAX_EXACT_LOSSES:
            return sum_in_blocks(_laplace_cgf, shifts, counts, z)
        interpolated = np.abs(z) * np.max(shifts) <= INTERPOLATION_LIMIT
        value, error = np.empty(z.shape, dtype=z.dtype), np.empty(z.shape)
        standing, weights = interpolation_nodes(shifts, counts)
        interpolant, size = sum_in_blocks(_laplace_cgf, standing, weights, z[interpolated])
        # The error of the interpolation, see `interpolation_nodes`.
        squares = float(ordered_dot(shifts * shifts, counts))
        size += 1e-13 * np.abs(z[interpolated] * (z[interpolated] + 1)) * squares
        value[interpolated], error[interpolated] = interpolant, size
        value[~interpolated], error[~interpolated] = sum_in_blocks(
            _laplace_cgf, shifts, counts, z[~interpolated]
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
            # scaled by e^{am}; the second term is that of the conjugate phase
            low = math.exp(-(2 * a + 1) * m)
            ratio = ((z + 1) * turn + low * z * turn.conj()) / w
            ratio /= ratio[0, 0].real
            product *= complex_power(ratio, int(count))
            round_off += power_round_off(count, m, z)
        return product, round_off

    def log_cf_bounds(self, losses: Sequence[Shifted], counts: Array, a: float, u: Array) -> Array:
        """Bound each factor by ``(1 + 1/(2u)) / (1 + tanh(w m) / (2w))``, ``w = a + 1/2``."""
        # K = -m/2 + ln[cosh(s m) + sinh(s m) / (2s)], s = w + iu; both are below cosh(w m)
        shifts = np.fromiter((loss.shift for loss in losses), float, len(losses))
        w = a + 0.5
        gain = np.log1p(np.tanh(w * shifts) / (2 * w)) * (1 - 1e-12)
        order = np.argsort(-gain)
        gain, counts = gain[order], counts[order]
        loss = np.log1p(0.5 / u)
        factors_used = np.searchsorted(-gain, -loss)  # only factors that are below 1 help
        number = np.append(0.0, np.cumsum(counts))[factors_used]
        total: Array = number * loss - np.append(0.0, np.cumsum(counts * gain))[factors_used]
        return np.minimum(total, 0.0)

    def max_loss_mass(self, loss: Shifted) -> float:
        """Return 1/2: that mass of P has the shift as its loss."""
        return 0.5


def _laplace_cgf(shift: Array, z: Any) -> tuple[Any, Array]:
    # the ratio is 1 + [(z+1) expm1(zm) + z expm1(-(z+1)m)] / (2z+1); where e^{zm} would overflow
    # it is e^{zm} [(z+1) + z e^{-(2z+1)m}] / (2z+1)
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
        # The difference of the terms has an error of an ulp of the terms.
        terms = np.abs(z) * shift * np.exp(z.real * shift - value.real)
        size = terms + np.abs(value) + far
    return value, 16 * ULP * size
