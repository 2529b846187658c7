"""The profile of a composition by one contour integral, with proved bounds on its error.

    delta(e) = (1/pi) int_0^inf Re[ e^{K(z) - z e} / (z (z+1)) ] du,   z = a + iu,  any a > 0.

References: Zhu, Dong & Wang (2022) for the characteristic function; trapezoid rule, aliases,
truncation and the smoothing sandwich: `docs/proofs/contour.md`.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.cumulants import Cumulants
from accountant.numerics import ULP, Array, Complex
from accountant.saddle import SMALL, Aliases, logarithm


class Contour:
    """A contour at tilt ``a``: nodes once, then a dot product for each epsilon.

    ``epsilon`` is about where it will be asked.  With ``smoothing`` the integral is that of the
    plan beside a fictitious Gaussian, from which `bounds` comes back to the plan's own.
    """

    def __init__(self, cumulants: Cumulants, a: float, epsilon: float, smoothing: float) -> None:
        self.name = "smoothed contour" if smoothing else "contour"
        self.tilt, self.smoothing = a, smoothing
        self._cumulants = cumulants = cumulants.smoothed(smoothing)
        self._height = float(cumulants.real(np.array([a]))[0])  # K(a)
        self._aliases = Aliases(cumulants, a, self._height, epsilon)
        self.step = 2 * math.pi / self._aliases.period
        self.reach = self._reach(epsilon)
        self.nodes = self.reach / self.step + 2

    def _reach(self, epsilon: float) -> float:
        """Where the integrand has died out."""
        # beyond U lies at most (1/pi) e^{K(a) - ae + decay(U)} / U
        u = np.geomspace(1e-2, 1e12, 400) * max(min(1.0, self.tilt), 1e-6)
        a = self.tilt
        rest = self._cumulants.decay(a, u) - np.log(math.pi * u)
        enough = rest <= math.log(SMALL) - math.log(20 * a * (a + 1))
        return float(u[np.argmax(enough)]) if enough.any() else math.inf

    def integrate(self) -> None:
        """Evaluate the cumulant on the nodes."""
        a, h = self.tilt, self.step
        rows = max(1, math.isqrt(math.ceil(self.nodes)))
        count = rows * (math.ceil(self.nodes) // rows + 1)
        z = a + 1j * (h * np.arange(count).reshape(rows, -1))
        value, error = self._cumulants.at(z)
        with np.errstate(under="ignore"):
            terms = np.exp(value - self._height) / (z * (z + 1)) * (h / math.pi)
        terms[0, 0] /= 2
        last = h * (count - 1)
        self._truncated = float(self._cumulants.decay(a, np.array([last]))[0])
        self._truncated -= math.log(math.pi * last)
        self._terms, self._noise = terms, _round_off(terms, error, z)
        self._density = None
        if self.smoothing:
            self._density = terms * z * (z + 1)
            fixed, growing = _round_off(self._density, error, z)
            fixed += math.exp(self._truncated) / self.smoothing
            self._density_noise = fixed, growing

    def _sum(self, terms: Complex, epsilon: float) -> float:
        # sum_k terms[k] e^{-i u_k e}: the phases of a uniform grid are an outer product
        width = terms.shape[1]
        outer = np.exp(-1j * self.step * epsilon * width * np.arange(terms.shape[0]))
        inner = np.exp(-1j * self.step * epsilon * np.arange(width))
        return float((outer @ (terms @ inner)).real)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Logarithms of a lower and an upper bound on delta at ``epsilon``."""
        scale = self._height - self.tilt * epsilon
        total = self._sum(self._terms, epsilon)
        noise = self._noise[0] + self._noise[1] * abs(epsilon) + 4 * ULP * abs(scale) * abs(total)
        noise += math.exp(min(self._truncated, 700.0))
        high = total + noise
        low = total - noise - math.exp(min(self._aliases.log_size(epsilon) - scale, 700.0))
        if self._density is not None:
            # D_S - delta = int_0^S p_s / 2 ds with p_s <= e^{(S-s)/8} sqrt(S/s) p_S
            density = self._sum(self._density, epsilon)
            density += self._density_noise[0] + self._density_noise[1] * abs(epsilon)
            low -= math.exp(self.smoothing / 8) * self.smoothing * max(density, 0.0)
        return logarithm(low) + scale, logarithm(high) + scale


def _round_off(terms: Complex, error: Array, z: Complex) -> tuple[float, float]:
    """Round-off of ``sum terms e^{-ze}``: a constant, and what multiplies ``|e|``."""
    size = np.abs(terms)
    return float(np.sum(size * (error + 64 * ULP))), 4 * ULP * float(np.sum(size * np.abs(z)))
