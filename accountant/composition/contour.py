"""The profile of a composition by one contour integral, with proved bounds on its error.

    delta(e) = (1/pi) int_0^inf Re[ e^{K(z) - z e} / (z (z+1)) ] du,   z = a + iu,  any a > 0.

K(z) = ln E e^{zL} is the cumulant of the summed loss L of all releases, and e is epsilon.  The line
of all z is the contour, a its tilt, and u the frequency.  The integral becomes a trapezoid sum over
the nodes u = 0, h, 2h, ..., in which the term of u = 0 counts half.  Its error has three parts:
aliases, because h is not 0 (copies of delta at epsilons that are multiples of the period 2 pi / h
away; they are never negative, so that the sum of all nodes is not below delta); truncation, because
the sum ends at a cutoff frequency; and round-off.  `Contour.bounds` includes all of them.

All terms are stored divided by e^{K(a)}, so that none is large.  Delta is their sum times
e^{K(a) - a e}, the *scale*, whose exponent is known up to `Contour._scale_error`.

References: Zhu, Dong & Wang (2022) for the characteristic function; trapezoid rule, aliases,
truncation and smoothing: `docs/proofs/contour.md`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.composition.aliasing import RELATIVE_ERROR, aliasing_bound
from accountant.composition.cgf import PlanCGF
from accountant.composition.fft_composition import FFT_ULPS
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log_interval
from accountant.numerics.ordered_sums import ordered_dot, ordered_product
from accountant.numerics.rounding import ULP

# Estimated costs in complex products of about 2 ns: of one node without its exponentials, and of
# preparing one term of the largest quadrature.  They only decide which engine is tried first.
NODE_COST, RULE_COST = 300, 2000
# nats: a sum is not used if the exponent of its scale may be off by more
USABLE_SCALE_ERROR = 0.1
USABLE_SMOOTHING = 1000  # with more, e^{S/8} is too large for a lower bound
MANY_EPSILONS = 256  # epsilons whose sums are computed at a time, so that memory stays small
TABLE_SIZE = 2**19  # the least number of epsilons in one period of a table
# Candidates for the cutoff: first as multiples of the cutoff of a normal loss, and then, where none
# of these is high enough, as multiples of the highest one.  Truncation is bounded at any cutoff.
FIRST_CUTOFFS, LATER_CUTOFFS = 1.1 * 1.45 ** np.arange(5), 3.0 ** np.arange(1, 6)
CLOSE = 1.1  # the search for a smaller cutoff ends within this factor of one that is too low
# A contour with a lesser real part may need far fewer nodes.  Those with these multiples of the
# real part are planned where planning costs at most this share of the contour.
FLATTER_TILTS, SHARE_OF_PLANNING = (0.9, 0.75, 0.5, 0.25), 0.1
MOST_NODES = 2**24  # the search for a higher cutoff ends here: no engine can afford as many nodes


class Contour:
    """A contour with real part ``a``: its terms once, then a dot product for each epsilon.

    The constructor only chooses the nodes, and estimates in ``operations`` what they cost;
    `integrate` evaluates the terms, which all methods with bounds need.

    ``epsilon`` is about where delta will be wanted: the nodes are chosen for it.  With
    ``smoothing`` S > 0 the integral is that of the plan and a fictitious Gaussian release of
    squared mu S.  Its integrand decays sooner, so that fewer nodes do; `bounds` corrects for the
    Gaussian.
    """

    def __init__(self, cgf: PlanCGF, a: float, epsilon: float, smoothing: float) -> None:
        self.name = "smoothed contour" if smoothing else "contour"
        self.tilt, self.smoothing = a, smoothing
        self._cgf = cgf = cgf.with_smoothing(smoothing)
        aliasing = aliasing_bound(cgf, a, epsilon)
        self._aliases, self._height, self._height_error = aliasing  # the height is K(a)
        # Where K(a) is out of reach there is no period, and the step is 0.
        period = self._aliases.period
        self.step = 2 * math.pi / period if period > 0 else 0.0
        cutoff = self._find_cutoff() if self.step else math.inf
        self.nodes = cutoff / self.step + 2 if self.step else math.inf
        self.operations = math.inf
        if math.isfinite(self.nodes):
            # A node also costs one product for each of its exponentials.
            total, largest_rule = cgf.quadrature_terms(cutoff)
            self.operations = self.nodes * (NODE_COST + total) + RULE_COST * largest_rule

    def _find_cutoff(self) -> float:
        """Return a frequency above which the integrand is negligible; infinite if out of reach."""
        # The integral beyond U is at most (1/pi) e^{K(a) - ae + D(U)} / U, where D(U) is
        # `log_cf_bound`.  This bound falls with U.  It may be RELATIVE_ERROR of delta, which is
        # taken to be at least e^{K(a) - ae} / (20 a (a + 1)), as in `aliasing.py`: the saddle point
        # method has 1 / sqrt(2 pi K''(a)) in place of 1/20.  The factor e^{K(a) - ae} cancels.
        a = self.tilt
        target = math.log(RELATIVE_ERROR) - math.log(20 * a * (a + 1))

        def is_enough(u: Any) -> Any:
            return self._cgf.log_cf_bound(a, u) - np.log(math.pi * u) <= target

        # For a normal loss whose nodes have this period, U = -2 ln(error) / period is enough.
        u: Any = FIRST_CUTOFFS * (-2 * math.log(RELATIVE_ERROR) / self._aliases.period)
        are_enough, below = is_enough(u), 0.0
        while not are_enough.any():
            below = float(u[-1])
            if not below < MOST_NODES * self.step:
                return math.inf
            u = below * LATER_CUTOFFS
            are_enough = is_enough(u)
        # The least candidate that is enough, and the one before it, which is not; then those
        # between.
        index = int(np.argmax(are_enough))
        cutoff, below = float(u[index]), float(u[index - 1]) if index else below
        while cutoff > CLOSE * below > 0:
            u = np.geomspace(below, cutoff, u.size + 2)
            index = int(np.argmax(np.append(is_enough(u[1:-1]), True)))
            below, cutoff = float(u[index]), float(u[index + 1])
        return cutoff

    def log_height(self, epsilon: float) -> float:
        """Return ``K(a) - a epsilon``, the logarithm of the scale: delta is the sum times it."""
        return self._height - self.tilt * epsilon

    def integrate(self) -> Contour:
        """Evaluate the terms of the sum at all nodes, with bounds on their errors; return itself.

        With smoothing, also those of the density of the smoothed loss, which is the same integral
        without 1 / (z (z+1)).
        """
        a, h = self.tilt, self.step
        rows = max(1, math.isqrt(math.ceil(self.nodes)))
        count = rows * (math.ceil(self.nodes) // rows + 1)
        z = (a + 1j * (h * np.arange(count).reshape(rows, -1))).astype(complex)
        terms, error = self._cgf.cf_ratio(z)
        kernel = h / math.pi / (z * (z + 1))
        kernel[0, 0] /= 2
        terms *= kernel
        error *= np.abs(kernel)
        last_frequency = h * (count - 1)
        # ln of the bound on what is left out, as in `_find_cutoff`
        self._truncated = float(self._cgf.log_cf_bound(a, np.array([last_frequency]))[0])
        self._truncated -= math.log(math.pi * last_frequency)
        # c0 and c1 of the error c0 + c1 |e| of the sum
        self._terms, self._sum_error = terms, _round_off(terms, error, z)
        self._density = None
        if self.smoothing:
            kernel = z * (z + 1)
            self._density = terms * kernel
            fixed, growing = _round_off(self._density, error * np.abs(kernel), z)
            # beyond U: int_U^inf e^{-S u^2 / 2} du <= e^{-S U^2 / 2} / (S U)
            fixed += math.exp(self._truncated) / self.smoothing
            self._density_error = fixed, growing
        return self

    def _sum(self, terms: Complex, epsilon: float) -> float:
        """Return ``sum_k Re terms[k] e^{-i u_k e}`` at one epsilon."""
        # Nodes are equally far apart and terms are in rows: phases are products of two short lists.
        width = terms.shape[1]
        outer = np.exp(-1j * self.step * epsilon * width * np.arange(terms.shape[0]))
        inner = np.exp(-1j * self.step * epsilon * np.arange(width))
        return float(np.sum(outer * ordered_dot(terms, inner)).real)

    def log_upper_bounds(self, epsilon: Array) -> Array:
        """Return the logarithm of an upper bound on delta at each epsilon, as in `bounds`."""
        rows, width = self._terms.shape
        sums = []  # of Re terms[k] e^{-i u_k e} over k, at each epsilon
        for part in np.array_split(epsilon, -(-epsilon.size // MANY_EPSILONS) or 1):
            turn = -1j * self.step * part[:, None]
            inner = ordered_product(np.exp(turn * np.arange(width)), self._terms)
            sums.append(np.sum(np.exp(turn * (width * np.arange(rows))) * inner, axis=1).real)
        return self._log_upper(epsilon, np.concatenate(sums), 0.0)

    def _log_upper(self, epsilon: Array, total: Array, error: float) -> Array:
        """Return logarithms of upper bounds on delta; each sum in ``total`` is up to an error.

        They are infinite where the exponent of the scale is not known to `USABLE_SCALE_ERROR`.
        """
        scale = self._height - self.tilt * epsilon
        scale_error = self._scale_error(scale)
        high = total + error + self._sum_error[0] + self._sum_error[1] * np.abs(epsilon)
        high += scale_error * np.abs(total) + math.exp(min(self._truncated, 700.0))
        is_usable = (scale_error <= USABLE_SCALE_ERROR) & (high >= 0)
        logs: Array = np.where(is_usable, np.log(np.where(is_usable, high, 1.0)) + scale, math.inf)
        return logs

    def upper_table(self, low: float, high: float) -> tuple[int, float, Array] | None:
        """Return (first_index, spacing, logs): bounds at epsilons ``spacing * (first_index + i)``.

        They reach from below ``low`` to above ``high``.  The sum has the period ``2 pi / step`` in
        epsilon, so that one Fourier transform gives it at ``size`` equidistant epsilons.  None
        where the range is longer than one period.
        """
        terms, size = self._terms.ravel(), TABLE_SIZE
        while size < 8 * terms.size:  # more points make the chords between them closer to delta
            size *= 2
        spacing = 2 * math.pi / (self.step * size)
        if not (high - low) / spacing < size:
            return None
        # ``irfft`` sums the terms and their conjugates, which counts all but the first twice, and
        # divides by the size.
        half = np.zeros(size // 2 + 1, dtype=complex)
        half[: terms.size] = np.conj(terms)
        half[0] *= 2
        sums = np.fft.irfft(half, size) * (size / 2)
        # The error of each sum is at most the 2-norm of all errors, which is relative to that of
        # all sums; by Parseval this is at most sqrt(2 size) times that of the terms.
        error = FFT_ULPS * ULP * (math.log2(size) + 1)
        error *= math.sqrt(2 * size * float(np.sum(np.abs(terms) ** 2)))
        first_index, end_index = math.floor(low / spacing) - 1, math.ceil(high / spacing) + 2
        epsilon: Array = spacing * np.arange(float(first_index), end_index)
        indices = np.arange(first_index, end_index) % size
        return first_index, spacing, self._log_upper(epsilon, sums[indices], error)

    def _scale_error(self, scale: Any) -> Any:
        """Return a bound on the relative error of ``e^scale``, where ``scale = K(a) - a epsilon``.

        It is twice that of K(a): up to `USABLE_SCALE_ERROR`, e^x - 1 is less than 2 x.
        """
        return 2 * self._height_error + 4 * ULP * (abs(scale) + abs(self._height))

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return logarithms of a lower and an upper bound on delta at ``epsilon``."""
        scale = self._height - self.tilt * epsilon
        if self._scale_error(scale) > USABLE_SCALE_ERROR:
            return -math.inf, math.inf
        total = self._sum(self._terms, epsilon)
        noise = self._sum_error[0] + self._sum_error[1] * abs(epsilon)
        noise += self._scale_error(scale) * abs(total)
        noise += math.exp(min(self._truncated, 700.0))
        high = total + noise
        low = total - noise - math.exp(min(self._aliases.log_bound(epsilon) - scale, 700.0))
        if self._density is not None:
            # With D_s the delta at smoothing s, smoothing adds D_S - delta = int_0^S p_s / 2 ds,
            # where p_s is the density of the smoothed loss at epsilon.  As p_s is at most
            # e^{(S-s)/8} sqrt(S/s) p_S, it adds at most e^{S/8} S p_S.
            density = self._sum(self._density, epsilon)
            density += self._density_error[0] + self._density_error[1] * abs(epsilon)
            if self.smoothing > USABLE_SMOOTHING:
                low = -math.inf
            added = math.exp(min(self.smoothing / 8, 700.0)) * self.smoothing * max(density, 0.0)
            low -= added
        return log_interval(low, high, scale)


def quickest_contour(cgf: PlanCGF, a: float, epsilon: float, planning_cost: float) -> Contour:
    """Return the contour with real part ``a``, or with a lesser one that costs less.

    ``planning_cost`` is that of one contour, in complex products.  Near the largest ``a`` at which
    the cumulant is small, a lesser one can need a thousandth of the nodes.
    """
    contour = Contour(cgf, a, epsilon, 0.0)
    for share in FLATTER_TILTS:
        if contour.operations > planning_cost / SHARE_OF_PLANNING:
            flatter = Contour(cgf, share * a, epsilon, 0.0)
            contour = min(contour, flatter, key=lambda candidate: candidate.operations)
    return contour


def _round_off(terms: Complex, error: Array, z: Complex) -> tuple[float, float]:
    """Return c0 and c1 of a bound ``c0 + c1 |e|`` on the round-off of ``sum_k terms e^{-z_k e}``.

    ``error`` bounds that of the terms.  c0 also has 64 ulps of each term, and c1 has 4 ulps of
    ``|z_k|`` times each term, which is what the rounding of a phase z_k e may change.
    """
    size = np.abs(terms)
    fixed = float(np.sum(error)) + 64 * ULP * float(np.sum(size))
    return fixed, 4 * ULP * float(np.sum(size * np.abs(z)))
