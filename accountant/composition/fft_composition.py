"""Sums of independent losses on one lattice, by a Fourier transform with bounded round-off.

A law has the mass m_k at the loss l_k.  It is tilted by a > 0: w_k = m_k e^{a l_k} / M, with the
moment M = sum_k m_k e^{a l_k}.  This makes the sums near the wanted epsilon e likely.  Sums of n
draws have the n-th power of its Fourier transform.  With the law of the tilted sum S, the product M
of the moments of all draws and y = S - e,

    delta(e) = M e^{-a e} E [ k(y); y > 0 ],   k(y) = e^{-a y} (1 - e^{-y}) <= 1 / (1 + a).

k is called the kernel.  The transform is periodic, so rare sums wrap around: they appear at places
where they do not belong.  Their mass is bounded by Chernoff's inequality.  The round-off of the
transform is bounded in the 2-norm (Higham 2002, Theorem 24.2); see `docs/proofs/grid_pairs.md`,
steps 4, 5 and 11.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.composition.tilted_law import GridLaw, TiltedLaw, tilted
from accountant.numerics import Array
from accountant.numerics.exponential_sums import complex_power
from accountant.numerics.fast_length import fast_length
from accountant.numerics.ordered_sums import discounted_sums
from accountant.numerics.rounding import ULP

# Relative round-off of each of the log2(length) + 1 levels of a transform, in ulps and in the
# 2-norm; Higham's constant is about 4.
FFT_ULPS = 8.0
KERNEL_NATS = 60.0  # the kernel is left out where e^{-a y} is below e^-60; that is added as error
# Chernoff's bounds on the ends of the tilted sum are tried at tilts that differ from a by -1 times
# these shares of a (lower end) and by 2 times them (upper end).  All are valid, and the sharpest is
# taken.
BESIDE = np.array([0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])


class SumOnGrid:
    """The law of a sum S: bounds on ``E (1 - e^{e - S})_+`` for e between the two ends ``near``.

    ``tilt`` is a, and ``log_wrapped`` the logarithm of the tilted mass that may wrap around at each
    end.  ``points`` is the length of the transform.  ``is_small`` is False, and nothing can be
    asked, where more than ``max_points`` lattice points are needed.  ``log_moment`` is ln M, and
    ``size`` the sum of the sizes of its terms.

    The place k is the sum ``offset + step k``; masses are known from the place ``_first`` on and
    below ``_end``.  Once `convolve` was called, ``error_2`` bounds the 2-norm of the errors that
    the transform made in the masses, and ``error_1`` the sum of those that the inputs had.
    """

    def __init__(
        self,
        laws: list[GridLaw],
        tilt: float,
        near: tuple[float, float],
        log_wrapped: float,
        max_points: int,
    ) -> None:
        self.step, self.tilt = laws[0].step, tilt
        parts = [tilted(law, tilt) for law in laws]
        self.log_moment = math.fsum(part.law.count * part.log_moment for part in parts)
        self.size = math.fsum(part.law.count * abs(part.log_moment) for part in parts)
        self.offset = math.fsum(part.law.count * part.law.offset for part in parts)
        self._first = math.floor((near[0] - self.offset) / self.step)
        self._wrapped = 2 * math.exp(log_wrapped)
        self._cache: dict[int, tuple[float, float, float]] = {}
        self._parts, self.points, self.is_small = parts, 0, False
        if any(part.outline[0].size == 0 for part in parts):
            return  # Epsilon is so far from the mass that no weight is a number.
        bottom, top = _likely_range(parts, tilt, log_wrapped)
        # A transform of N points shows a sum at all places that differ from its own by multiples of
        # N.  Sums up to the top are to appear at no other of the N places from near[0] on.  Sums
        # from the bottom on are to appear again only beyond near[1] + beyond, where the kernel is
        # at most e^{-a y} = e^log_wrapped / (1 + a).
        beyond = (math.log1p(tilt) - log_wrapped) / tilt
        length = max(top - near[0], near[1] + beyond - bottom) / self.step
        if not length <= max_points:
            return
        # some places more, for the rounding of the ends to places
        self.points = fast_length(math.ceil(max(length, 4.0)) + 8)
        end = math.floor((bottom - self.offset) / self.step) + self.points - 2
        self._end = min(self._first + self.points, end)
        self.is_small = self.points <= max_points

    def convolve(self) -> None:
        """Compute the law of the sum and bounds on its round-off, if the range is short enough."""
        parts = self._parts
        if not self.is_small:
            return
        n = self.points
        # of one transform, relative to the 2-norm of its input or of its result
        round_off = FFT_ULPS * ULP * (math.log2(n) + 1)
        product = np.ones(n // 2 + 1, dtype=complex)
        power_error = weight_error = factors = 0.0
        for part in parts:
            count = part.law.count
            folded = np.bincount((part.law.first + np.arange(part.weight.size)) % n, part.weight, n)
            power = complex_power(np.fft.rfft(folded), count)
            product = product * power
            # |phi^n - psi^n| <= n |phi - psi| if |phi| and |psi| are at most 1.
            power_error += count * round_off * math.sqrt(float(np.sum(folded * folded)))
            # The like holds for the laws themselves, in the 1-norm.
            weight_error += count * part.round_off
            factors += count + 1
        sums = np.fft.irfft(product, n)
        size = math.sqrt(float(np.sum(sums * sums)))
        # Computed factors may exceed 1 by their error, which in a product grows to this factor.
        slack = math.exp(min(2 * power_error * math.sqrt(n), 700.0))
        # An n-th power has the round-off of n products, each of 4 ulps at most; the transform back
        # has its own.
        self.error_2 = slack * (power_error + (4 * ULP * factors + round_off) * size)
        # 1 % more, and 8 ulps for each factor, are room for products of these errors.
        self.error_1 = 1.01 * weight_error + 8 * ULP * factors
        self._sums = np.roll(sums, -(self._first % n))

    def log_scale(self, epsilon: float) -> float:
        """Return ``ln(M e^{-a epsilon})``, the logarithm of the unit of `delta`."""
        return self.log_moment - self.tilt * epsilon

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return ``E (1 - e^{epsilon - S})_+`` in units of ``e^{log_scale}``, and its error."""
        a, h = self.tilt, self.step
        # the first place above epsilon, and how far above it is
        position = math.floor((epsilon - self.offset) / h) + 1
        above = self.offset + position * h - epsilon
        if position < self._first or not self.is_small:
            return 0.0, math.inf
        # Places from `_end` on have sums that wrapped around; the kernel is at most 1 / (1 + a).
        terms = self._end - position
        wrapped = self._wrapped / (1 + a)
        if terms <= 1:
            return 0.0, wrapped + 1 / (1 + a)
        terms = min(terms, math.ceil(KERNEL_NATS / (a * h)) + 1)
        wrapped += math.exp(-a * (terms - 1) * h)
        far_sum, near_sum, size = self._tails(position - self._first, terms)
        # With y = above: 1 - e^{-(y + jh)} = (1 - e^{-jh}) + e^{-jh} (1 - e^{-y}), whose two terms
        # have the far and the near sum of `_all_tails`.
        value = math.exp(-a * above) * (far_sum - math.expm1(-above) * near_sum)
        error = self.error_2 * size + self.error_1 / (1 + a) + wrapped
        # Exponents of the kernel are at most KERNEL_NATS, so that it is good to some 100 ulps; the
        # sum adds some 50.
        error += 1000 * ULP * abs(value)
        return value, error

    def upper_deltas(self, epsilon: Array) -> Array:
        """Return upper bounds on `delta`, its error added, at many epsilons within ``near``."""
        a, h = self.tilt, self.step
        position = np.floor((epsilon - self.offset) / h).astype(int) + 1
        above = self.offset + position * h - epsilon
        terms = np.maximum(self._end - position, 1)
        index = np.clip(position - self._first, 0, self._end - self._first - 1)
        far_sums, near_sums, missed = self._all_tails
        value = np.exp(-a * above) * (far_sums[index] - np.expm1(-above) * near_sums[index])
        value += 1000 * ULP * np.abs(value) + missed
        value += self._wrapped / (1 + a) + np.exp(-a * (terms - 1) * h)
        return np.where(position < self._first, math.inf, value)

    @functools.cached_property
    def _all_tails(self) -> tuple[Array, Array, float]:
        """Return (far sums, near sums, error) for all places at once.

        From a place on, with r = e^{-a h} and the law s of the sum, the far sum is
        ``sum_j r^j (1 - e^{-jh}) s_j`` and the near sum ``sum_j r^j e^{-jh} s_j``.
        """
        a, h = self.tilt, self.step
        sums = self._sums[: self._end - self._first]
        # The sums sum_j r^j s_j are computed from the right.  Each of the two is off by at most 5
        # ulps of sum_j (j + 1) r^j |s_j| (`docs/proofs/grid_pairs.md`, step 11).
        total, near_sums = (discounted_sums(sums, rate * h) for rate in (a, a + 1))
        j = h * np.arange(min(sums.size, math.ceil(KERNEL_NATS / (a * h)) + 1))
        size = math.sqrt(float(np.sum((np.exp(-a * j) * -np.expm1(-j - h)) ** 2)))
        # That sum is bounded by Cauchy and Schwarz, or by its greatest factor (j + 1) r^j.
        norm = math.sqrt(2 * float(np.sum(sums * sums))) / (-math.expm1(-2 * a * h)) ** 1.5
        greatest = float(np.sum(np.abs(sums))) * max(math.exp(min(a * h, 1.0) - 1) / (a * h), 1.0)
        missed = 16 * ULP * min(norm, greatest)
        # What is left out of the kernel is far less than a millionth of it.
        missed += 1.000001 * self.error_2 * size + self.error_1 / (1 + a)
        return total - near_sums, near_sums, missed

    def _tails(self, position: int, terms: int) -> tuple[float, float, float]:
        """Return (far sum, near sum, 2-norm of the kernel) from a place on; see `_all_tails`."""
        tails = self._cache.get(position)
        if tails is None:
            a, h = self.tilt, self.step
            j = h * np.arange(terms)
            kernel, sums = np.exp(-a * j), self._sums[position : position + terms]
            near_kernel = kernel * np.exp(-j)
            far_kernel = kernel * -np.expm1(-j)
            shifted_kernel = far_kernel - math.expm1(-h) * near_kernel
            size = math.sqrt(float(np.sum(shifted_kernel * shifted_kernel)))
            tails = float(np.sum(far_kernel * sums)), float(np.sum(near_kernel * sums)), size
            self._cache[position] = tails
        return tails


def _likely_range(parts: list[TiltedLaw], tilt: float, log_wrapped: float) -> tuple[float, float]:
    """Return (bottom, top); the tilted sum is beyond each with probability <= ``e^log_wrapped``.

    K is the cumulant of the untilted sum: P(S >= x) <= e^{K(a + t) - K(a) - t x} for every t > 0,
    and likewise P(S <= x) for every t < 0.
    """

    def ends(shifts: Array) -> list[float]:
        """Return for each t the x at which the bound is ``e^log_wrapped``."""
        log_ratios = [
            math.fsum(part.law.count * part.log_ratio(t) for part in parts) for t in shifts.tolist()
        ]
        return [
            (log_ratio - log_wrapped) / t
            for log_ratio, t in zip(log_ratios, shifts.tolist(), strict=True)
        ]

    return max(ends(-BESIDE * tilt)), min(ends(2 * BESIDE * tilt))
