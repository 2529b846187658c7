"""The Rényi curve of a Poisson-sampled Gaussian at real orders, rounded up, by one quadrature.

q is the sampling rate, r(x) = 1 - q + q e^w with w = mu x - mu^2/2 the likelihood ratio, and X ~
N(0, 1) the output without the record.  With z = order - 1 > 0, the power p of r is z + 1 where the
record is removed and -z where it is added, and the divergence is ln(1 + I) / z,

    I = E[r^p - 1 - p (r - 1)]        (as E r = 1).

In t = ln r and psi(y) = e^y - 1 - y, which is never negative, all terms have one sign, so that
nothing cancels in the sum of a trapezoid rule:

    removed:  I = E e^t [psi(zt) + z psi(-t)]        added:  I = E [psi(-zt) + z psi(t)].

In both, I = E g, and the integrand is g e^{-x^2/2} / sqrt(2 pi).  Orders that move its mass little
share one grid.  Larger ones have windows: around x = 0 and around the peak of r^p e^{-x^2/2}.  The
rule's error is that of a strip |Im x| < d in which the integrand is analytic; angle means mu d.

References: Mironov, Talwar & Zhang (2019); Trefethen & Weideman (2014), Theorem 5.1; the errors of
the rule, of windows and of floats: `docs/proofs/renyi.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from accountant.numerics import Array
from accountant.numerics.exponential_sums import BLOCK_SIZE
from accountant.numerics.logspace import log_mixture, log_ndtr
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

# Above it N(0, 1) and N(mu, 1) overlap by e^{-mu^2/8} = e^-78: closed bounds are exact.
MAX_MU = 25.0
# Points of the grid of one order, at most: 16 MB.  An order that needs more has no bound here.
MAX_POINTS = 2**21
NATS = 37.0  # the rule misses about e^-37 = 9e-17 of I, less than an ulp
# Factors of the left and of the right tail, what lies beyond the ends of a grid, in the error.
NO_TAIL, LEFT_TAIL, RIGHT_TAIL, BOTH_TAILS = (0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)
# Orders that move the mass no farther, in deviations, share grids; for larger ones a grid over the
# whole range would be long, and most of it negligible.
SHARED_REACH = 64.0
LOG_ROOT_2_PI = math.log(2 * math.pi) / 2
TINY = 1e-300  # stands for a divergence that is not 0, but too small for a float


class TrapezoidRule(NamedTuple):
    """A rule with equal steps, and the strip |Im x| < d that bounds its error."""

    step: float
    half_width: float  # d
    angle: float  # mu d, by which e^w turns on the edges of the strip


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianRenyi:
    """The curve of one (mu, rate) in one direction; ``record_added``: the record is only in Q."""

    mu: float
    rate: float
    record_added: bool

    def divergence(self, order: Array) -> Array:
        """Return the divergence at each order, rounded up; infinite where none is found."""
        if self.rate == 0:
            return np.zeros(order.shape)
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            if self.rate == 1:
                bound = order * (self.mu * (self.mu / 2))
            elif self.mu > MAX_MU:
                bound = self._of_separate_parts(order - 1)
            else:
                bound = self._by_quadrature(np.ravel(order) - 1).reshape(order.shape)
            # Where the record is added the loss -ln r is at most -ln(1 - q).
            largest = -math.log1p(-self.rate) if self.record_added and self.rate < 1 else math.inf
            return np.maximum(np.minimum(bound, largest) * (1 + 16 * ULP), TINY)

    def _of_separate_parts(self, z: Array) -> Array:
        """Return a bound for a large mu, where hardly an outcome is likely for both parts."""
        mu, q = self.mu, self.rate
        if self.record_added:  # The bound -ln(1 - q) of all orders is enough.
            return np.full(z.shape, np.inf)
        half = mu * (mu / 2)
        # Exponents are inexact by ulps of their parts; of what is small this is relative.
        inexact = 4 * ULP * (16 + np.minimum((z + 1) * half - math.log(q), 1400.0))
        # With a = z + 1, Minkowski:  (E r^a)^{1/a} <= 1 - q + q e^{(a-1) mu^2 / 2}
        log_far = np.logaddexp(math.log1p(-q), math.log(q) + z * half)  # where e^{z half} overflows
        log_norm = np.where(z * half > 600, log_far, log_mixture(np.minimum(z * half, 600.0), q))
        norm_bound = (z + 1) * ((log_norm + inexact * np.minimum(log_norm, 1.0)) / z)
        # (A + B)^a <= A^a + B^a + a (AB)^{a/2} for a <= 2, since min(A, B) <= sqrt(AB): A = 1 - q,
        # B = q e^w.  E A^a - 1 + E B^a is written by psi, as it may be small.
        log_missed, log_hit = math.log1p(-q), math.log(q) + (z + 1) * half
        linear = (1 - q) * log_missed + q * log_hit
        curved = (1 - q) * np.exp(_log_psi(z * log_missed)) + q * np.exp(_log_psi(z * log_hit))
        log_cross = (z + 1) / 2 * (math.log(q) + log_missed) + (z * z - 1) / 4 * half
        cross = (z + 1) * np.exp(log_cross)
        size = z * q * (2 + np.exp(z * log_hit)) + cross
        moment = z * linear + curved + cross + 2 * inexact * size
        split_bound = np.where((z <= 1) & (moment > 0), np.log1p(moment) / z, np.inf)
        return np.minimum(norm_bound, split_bound) * (1 + 32 * ULP)

    def _by_quadrature(self, z: Array) -> Array:
        """Return ``ln(1 + I) / z``, I raised by its error; infinite where a grid is too long."""
        log_moment, error = np.full(z.shape, np.inf), np.zeros(z.shape)
        # Orders whose reach is in one octave share a grid; those with the largest reach have
        # windows.
        reach = self._reach(z)
        shared = reach <= max(SHARED_REACH, 2 * self.mu)
        octaves = np.ceil(np.log2(np.maximum(reach, 32.0)))
        for octave in np.unique(octaves[shared]):
            in_octave = shared & (octaves == octave)
            sums = self._sum_on(z[in_octave], self._edges(float(np.max(reach[in_octave]))))
            log_moment[in_octave], error[in_octave] = sums
        far = np.flatnonzero(~shared)
        if far.size:
            peak = self._peak(z[far])
            # Windows that reach two deviations farther than needed on either side of the peak.
            around = np.stack((peak - self._tail - 2, peak + self._tail + 2), axis=1)
            of_far = self._of_one_bump if self.record_added else self._of_two_bumps
            log_moment[far], error[far] = of_far(z[far], peak, around)
        # For I > e^30, ln(1 + I) < ln I + 1e-13.
        total = np.where(
            log_moment < 30, np.log1p(np.exp(log_moment + error)), log_moment + error + 1e-13
        )
        return np.where(np.isnan(total), np.inf, total) / z

    def _reach(self, z: Array) -> Array:
        """Return about how far r^p moves the mass: to the right, or left where p is negative."""
        if not self.record_added:
            return self.mu * (z + 1)
        flat = np.log1p(z * self.rate / (1 - self.rate)) / self.mu
        return np.minimum(flat, z * self.rate * self.mu)

    def _peak(self, z: Array) -> Array:
        """Return about where ``r^p e^{-x^2/2}`` has its rightmost peak, p t'(x) = x.

        Where the record is removed, p t' is near its bound mu p at a large order, and that is
        returned.  Where it is added there is one peak, found by bisection.
        """
        if not self.record_added:
            return self.mu * (z + 1)
        low, high = -self._reach(z) - 1, np.zeros(z.shape)
        for _ in range(60):
            x = (low + high) / 2
            is_right_of_peak = -z * self._slope(x) < x
            low, high = np.where(is_right_of_peak, low, x), np.where(is_right_of_peak, x, high)
        return (low + high) / 2

    @property
    def _tail(self) -> float:
        """The deviations beyond which e^-48 is left, also of an I as small as mu^2."""
        return math.sqrt(2 * (48 + 2 * max(0.0, -math.log(self.mu))))

    def _edges(self, reach: float) -> tuple[float, float]:
        """Return the ends of a grid that serves orders up to this reach (see `_reach`)."""
        if self.record_added:
            return -reach - self._tail, 2 * self.mu + self._tail
        return -self._tail, max(reach, 2 * self.mu) + self._tail

    def _of_one_bump(self, z: Array, peak: Array, around: Array) -> tuple[Array, Array]:
        """Return ``ln I`` and its error where the record is added: from a window at the peak."""
        window_sums = [
            self._sum_on(z[i : i + 1], (float(low), float(high)), NO_TAIL)
            for i, (low, high) in enumerate(around)
        ]
        value, error = (np.concatenate(column) for column in zip(*window_sums, strict=True))
        # Outside the window r^-z is bounded by log-concavity, and z r has the mean z at most.
        height = math.log(2) - z * self._log_ratio(peak) - peak * peak / 2
        left_out = np.logaddexp(height + log_ndtr(np.array(-self._tail)), np.log(z))
        return value, error + np.exp(left_out - value)

    def _of_two_bumps(self, z: Array, peak: Array, around: Array) -> tuple[Array, Array]:
        """Return ``ln I`` and its error where the record is removed: from two windows, if enough.

        One lies around x = 0 and 2 mu, one around the peak.  They are enough where the integrand
        has no third peak between them and is negligible there; else one grid spans both.
        """
        edges = self._edges(0.0)
        value, error = self._sum_on(z, edges, LEFT_TAIL)
        # Rows: the right end of the first window, and the left end of the second.
        x = np.stack([np.full(z.shape, edges[1]), around[:, 0]])
        height = (z + 1) * self._log_ratio(x) - x * x / 2
        rise = (z + 1) * self._slope(x) - x
        # The slope of k = p t - x^2/2 is a sigmoid less a line, so that k has at most two peaks and
        # a valley.  Between the ends it has no third peak if its slope is positive at the right
        # end and negative at the left one, or concave from there on, or negative left of it.
        grid = np.linspace(*edges, 200)
        falls_before = np.any(np.multiply.outer(z + 1, self._slope(grid)) < grid, axis=1)
        is_concave = self.mu * edges[1] - self.mu**2 / 2 >= math.log((1 - self.rate) / self.rate)
        one_valley = (x[1] > x[0]) & (rise[1] > 0) & ((rise[0] < 0) | is_concave | falls_before)
        between = np.log(np.maximum(x[1] - x[0], 0.0) + 1) + np.max(height, axis=0)
        for i in range(z.size):
            order, window = z[i : i + 1], (float(around[i, 0]), float(around[i, 1]))
            if one_valley[i]:
                moments, errors = self._sum_on(order, window, RIGHT_TAIL)
                total = float(np.logaddexp(value[i], moments[0]))
                if between[i] - total < -NATS:
                    error[i] = max(float(error[i]), float(errors[0])) + math.exp(between[i] - total)
                    value[i] = total
                    continue
            sums = self._sum_on(order, self._edges(float(peak[i])))
            value[i], error[i] = float(sums[0][0]), float(sums[1][0])
        return value, error

    def _sum_on(
        self, z: Array, edges: tuple[float, float], tails: tuple[float, float] = BOTH_TAILS
    ) -> tuple[Array, Array]:
        """Return ``ln I`` between the edges, and a bound on its error, with these tails.

        Errors are of ln I, that is relative to I.
        """
        rule = self._rule(edges[0])
        first_index = math.floor(edges[0] / rule.step)
        last_index = math.ceil(edges[1] / rule.step)
        if last_index - first_index > MAX_POINTS:
            return np.full(z.shape, np.inf), np.zeros(z.shape)
        x: Array = rule.step * np.arange(first_index, last_index + 1, dtype=float)
        rows = max(1, BLOCK_SIZE // x.size)
        block_sums = [
            self._sum_block(z[i : i + rows], x, rule, tails) for i in range(0, z.size, rows)
        ]
        value, error = (np.concatenate(column) for column in zip(*block_sums, strict=True))
        return value, error

    def _rule(self, left: float) -> TrapezoidRule:
        """Return the rule of a grid with this left end.

        It misses about e^{d^2/2 - 2 pi d / step} of I, where the record is added times
        cos(mu d)^{x / mu} at the left end.  Of some d, each of which gives a valid bound, the one
        is taken that allows the longest step.
        """
        angles = np.array([0.1, 0.3, 0.6, 1.0, 1.3] if self.record_added else [2.6])
        d = np.minimum(np.append(angles / self.mu, [1.0, 2.0, 3.0, 6.0]), angles[-1] / self.mu)
        nats = NATS + d * d / 2
        if self.record_added:
            nats = nats - np.log(np.cos(self.mu * d)) / self.mu * (abs(left) - self._tail + 3)
        best = int(np.argmax(d / nats))
        width = float(d[best])
        return TrapezoidRule(float(2 * math.pi * width / nats[best]), width, self.mu * width)

    def _sum_block(
        self, z: Array, x: Array, rule: TrapezoidRule, tails: tuple[float, float]
    ) -> tuple[Array, Array]:
        """Return ``ln I`` of some orders by the points x, and a bound on its error."""
        t = self._log_ratio(x)
        terms, top = self._terms(z, x, t)
        total = np.maximum(np.sum(terms, axis=1), 1e-300)
        value = np.log(total) + top + math.log(rule.step) - LOG_ROOT_2_PI
        weight = terms / total[:, None]
        error = self._rule_error(z, x, weight, rule) + self._round_off(z, x, t, weight)
        if any(tails):
            tail_shares = self._tail_shares(z, x, weight)
            error = error + ordered_dot(tail_shares, np.array(tails)) / rule.step
        return value, error

    def _terms(self, z: Array, x: Array, t: Array) -> tuple[Array, Array]:
        """Return ``g e^{-x^2/2 - top}`` of each order at each point, and the orders' tops.

        With the sign + where the record is removed and - where it is added, and ``base`` = -x^2/2,
        and + t where it is removed:  g e^{-x^2/2} = e^base [psi(+-zt) + z psi(-+t)].
        """
        sign = -1.0 if self.record_added else 1.0
        base = -x * x / 2 if self.record_added else -x * x / 2 + t
        log_second = base + _log_psi(-sign * t)  # without the factor z
        y = np.multiply.outer(sign * z, t)
        size = y + base
        top = np.maximum(np.max(size, axis=1), np.max(log_second) + np.log(z))
        scale = np.exp(base - top[:, None])
        # psi(y) = e^y - 1 - y would cancel near 0: there it is y^2 / 2 times its series.
        is_small, small_y = np.abs(y) < 0.5, np.clip(y, -0.5, 0.5)
        near_zero = small_y * small_y / 2 * _psi_series(small_y, 15) * scale
        far = np.exp(size - top[:, None]) - (1 + y) * scale
        terms: Array = np.where(is_small, near_zero, far)
        terms += np.exp(log_second + (np.log(z) - top)[:, None])
        return terms, top

    def _rule_error(self, z: Array, x: Array, weight: Array, rule: TrapezoidRule) -> Array:
        """Return a bound on what the trapezoid rule misses, relative to I."""
        # 2.1 and 4.2 are factors of 2 and 4 in the proof, section 2, raised for the -1 of e^nats -
        # 1.
        step, d, angle = rule
        nats = 2 * math.pi * d / step - d * d / 2  # at least `NATS`
        if not self.record_added:
            power = np.maximum(1 - z, 0.0)  # 2 - p, where that is positive
            strip = 1 + d * d * (1 + power * self.mu**2 / 4)
            return 2.1 * math.exp(-nats) * strip / math.cos(angle / 2) ** power
        # The integral over the line Im x = d is summed on the same points, shifted by ``shift``,
        # and doubled.
        shift = -math.log(math.cos(angle)) / self.mu
        w = self.mu * x - self.mu**2 / 2
        distance = np.maximum(np.abs(np.expm1(-w)), 1e-140)
        line = np.exp(-shift * x - shift**2 / 2 - nats) * (1 + (math.tan(angle) / distance) ** 2)
        result: Array = 4.2 * ordered_dot(weight, line)
        return result

    def _round_off(self, z: Array, x: Array, t: Array, weight: Array) -> Array:
        """Return a bound on what floats change in the sum, relative to I."""
        # |d ln g / dt| <= 1 + max(z, 1) + 2 / |t|, and t is inexact by 4 ulps and by those of w.
        slope = self._slope(x) / self.mu
        inexact = 4 * np.abs(t) + slope * (self.mu * np.abs(x) + self.mu**2)
        share = np.where(t != 0, inexact / np.where(t != 0, np.abs(t), 1.0), 0.0)
        fixed = ordered_dot(weight, 2 * share + x * x + 64)
        growing = ordered_dot(weight, inexact)
        total: Array = ULP * (fixed + (1 + np.maximum(z, 1.0)) * growing + math.sqrt(x.size))
        return total

    def _tail_shares(self, z: Array, x: Array, weight: Array) -> Array:
        """Return bounds on what lies beyond either end of the grid, relative to I, times the step.

        Beyond an end ln g grows by at most ``growth`` a unit (proof, section 3), so that the
        integrand f is at most f(end) e^{-|x - end| (|end| - growth)}; its integral is
        f(end) / (|end| - growth), and unknown, 1e300, where |end| <= growth.
        """
        w = self.mu * x[[0, -1]] - self.mu**2 / 2
        powers = np.array([1.0 - z, z - 1.0]) if not self.record_added else np.array([z + 2, 0 * z])
        psi_growth = 2 * self.mu / np.abs(np.expm1(np.array([-w[0], w[1]]) * [1.0, -1.0]))
        slope = np.array([self._slope(x[:1])[0], self.mu])
        decay = np.abs(x[[0, -1]]) - psi_growth - np.maximum(powers, 0.0).T * slope
        ends = np.maximum(weight[:, [0, -1]], 1e-300)
        return np.where(decay > 0, ends / decay, 1e300)

    def _log_ratio(self, x: Array) -> Array:
        """Return ``t = ln r(x)``."""
        return log_mixture(self.mu * x - self.mu * self.mu / 2, self.rate)

    def _slope(self, x: Array) -> Array:
        """Return ``t'(x) = mu q e^w / r``, between 0 and mu."""
        w = self.mu * x - self.mu * self.mu / 2
        slope: Array = self.mu / (1 + (1 - self.rate) / self.rate * np.exp(-w))
        return slope


def _log_psi(y: Array) -> Array:
    """Return ``ln(e^y - 1 - y)``, to a few ulps of e^y - 1 - y; minus infinity at 0."""
    size = np.abs(y)
    central = 2 * np.log(size) - math.log(2) + np.log(_psi_series(np.clip(y, -1.0, 1.0), 19))
    above = np.maximum(y, 1.0)
    positive_branch = above + np.log1p(-(1 + above) * np.exp(-above))
    below = np.minimum(y, -1.0)
    negative_branch = np.log(np.exp(below) - 1 - below)
    return np.where(size <= 1, central, np.where(y > 0, positive_branch, negative_branch))


def _psi_series(y: Array, terms: int) -> Array:
    """Return ``(e^y - 1 - y) / (y^2 / 2)`` near 0, 1 + y/3 (1 + y/4 (1 + ...))."""
    series = np.ones(y.shape)
    for k in range(terms, 2, -1):
        series *= y / k
        series += 1
    return series
