"""Coarse contours: nodes far apart, few of them, and sums in which almost everything cancels."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from accountant import GaussianLoss, LaplaceLoss, PairLoss
from accountant.composition import contour
from accountant.composition.aliasing import LADDER, AliasingBound
from accountant.composition.cgf import PlanCGF
from accountant.composition.contour import Contour
from accountant.numerics.rounding import ULP

ROUND_OFF = 1e-12  # of the truths, which are floats


def _pair(p, q):
    return PairLoss(p, q), lambda epsilon: sum(
        max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True)
    )


def _release(rng, kind):
    """A loss, its delta at any epsilon by another formula, and about its size."""
    if kind == 0:
        p, q = rng.dirichlet(np.full(int(rng.integers(2, 4)), 1.5), 2).tolist()
        p, q = [x / math.fsum(p) for x in p], [x / math.fsum(q) for x in q]
        return *_pair(p, q), max(math.log(a / b) for a, b in zip(p, q, strict=True))
    if kind == 1:
        mu = float(rng.uniform(0.2, 2.0))
        return GaussianLoss(mu), lambda e: _float_delta(mu, e), mu
    m = float(rng.uniform(0.2, 3.0))
    return LaplaceLoss(m), lambda e: -math.expm1((min(max(e, -m), m) - m) / 2), m


def _float_delta(mu, epsilon):
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def _normal_delta(mu, epsilon):  # in 40 digits
    with mpmath.workdps(40):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        far = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - far


def _coarse_contour(loss, a, epsilon, smoothing, rng):
    """A contour of few nodes far apart, and the bound on its aliases at several orders."""
    cgf, step = PlanCGF([(loss, 1)]), float(10 ** rng.uniform(-1.5, 0.8))
    found = Contour(cgf, a, epsilon, smoothing)
    found.step, found.nodes = step, float(rng.integers(2, 12))
    orders = a * LADDER
    found._aliases = AliasingBound(
        a, orders, cgf.with_smoothing(smoothing).log_chernoff(orders), 2 * math.pi / step
    )
    return found


def contour_violation(seeds=range(150)):
    """A contour whose aliases and truncation may be as large as delta."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        loss, delta, size = _release(rng, seed % 3)
        epsilon, a = float(rng.uniform(0.0, 1.0)) * size, float(10 ** rng.uniform(-0.7, 0.7))
        smoothing = 0.0 if rng.random() < 0.5 else float(10 ** rng.uniform(-3, 0))
        found = _coarse_contour(loss, a, epsilon, smoothing, rng)
        found.integrate()
        truth, bounds = delta(epsilon), found.bounds(epsilon)
        low, high = (math.exp(min(one, 700.0)) for one in bounds)
        room = ROUND_OFF * (1 + truth)
        if not low - room <= truth <= high + room:
            return f"seed {seed}: {truth} not in [{low}, {high}]"
        many = math.exp(min(found.log_upper_bounds(np.array([epsilon]))[0], 700.0))
        if not truth <= many + room:
            return f"seed {seed}: {truth} above {many}"
    return ""


def phases_violation(epsilons=(30.0, 1e4, 1e5, 1e6, 1e7)):
    """A contour's sum of its own terms, in which the phases and the exponent are inexact."""
    # the trapezoid sum itself, at epsilons far beyond the losses, in 40 digits
    cgf, a, step, smoothing = PlanCGF([(PairLoss([0.6, 0.4], [0.4, 0.6]), 1)]), 0.7, 0.3, 0.04
    found = Contour(cgf, a, 1.0, smoothing)
    found.step, found.nodes = step, 250
    found._aliases = AliasingBound(a, np.array([a / 2, 2 * a]), np.array([-1e9, -1e9]), 20.0)
    found.integrate()
    found._density = None  # of the smoothing another law tells
    terms = found._terms.ravel().tolist()
    with mpmath.workdps(40):
        height = mpmath.log(0.6 * mpmath.mpf(1.5) ** a + 0.4 * mpmath.mpf(1.5) ** -a)
        height += smoothing * (mpmath.mpf(a) ** 2 + a) / 2
        for start in epsilons:
            for epsilon in (start * (1 + 0.013 * k) for k in range(12)):
                turn = mpmath.expj(-mpmath.mpf(step) * mpmath.mpf(epsilon))
                total = mpmath.mpf(0)
                for term in terms[::-1]:
                    total = total * turn + term
                total = total.real
                if total <= 0:
                    continue
                truth = mpmath.log(total) + height - a * mpmath.mpf(epsilon)
                low, high = found.bounds(epsilon)
                many = found.log_upper_bounds(np.array([epsilon]))[0]
                if not low <= truth <= min(high, many):
                    return f"{epsilon}: {truth} not in [{low}, {min(high, many)}]"
    return ""


class RoughCGF(PlanCGF):
    """A cumulant that errs by as much as it says."""

    def __init__(self, items, height, ratio):
        super().__init__(items)
        self.errors = height, ratio

    def with_smoothing(self, smoothing):
        return self

    def value_at(self, z):
        value, error = super().value_at(z)
        off = self.errors[0] + self.errors[1] * (np.imag(z) != 0)
        return value + off, error + np.abs(off)

    def cf_ratio(self, z):
        ratio, error = super().cf_ratio(z)
        off = np.where(np.imag(z) == 0, 0.0, self.errors[1])
        return ratio * (1 + off), error + np.abs(off * ratio)


def rough_violation():
    """A cumulant that is known to some digits alone: at a point, or against its value there."""
    truth = float(mpmath.log(_normal_delta(1.0, 1.0)))
    for errors in ((1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-3), (0.0, -1e-3)):
        found = Contour(RoughCGF([(GaussianLoss(1.0), 1)], *errors), 1.0, 1.0, 0.0)
        found.integrate()
        (low, high), many = found.bounds(1.0), found.log_upper_bounds(np.array([1.0]))[0]
        if not low <= truth <= min(high, many):
            return f"{errors}: {truth} not in [{low}, {min(high, many)}]"
    return ""


def sum_violation():
    """Sums of floats, as they stand, and one node far out at epsilons whose phase is inexact."""
    rng = np.random.default_rng(0)
    terms = rng.standard_normal((40, 50)) * (1 + 0j)
    fixed, _ = contour._round_off(terms, np.zeros(terms.shape), 0 * terms)
    off = abs(float(np.sum(terms.real)) - math.fsum(terms.real.ravel().tolist()))
    if not off <= fixed:
        return f"{off} is above {fixed}"
    found = Contour(PlanCGF([(GaussianLoss(1.0), 1)]), 0.7, 1.0, 0.0)
    found.step, last = 0.3, np.zeros((5, 5), dtype=complex)
    last[-1, -1] = term = 0.8 - 0.6j
    z = 0.7 + 1j * (found.step * np.arange(25.0).reshape(5, 5))
    fixed, growing = contour._round_off(last, np.zeros(last.shape), z)
    for epsilon in np.linspace(1e5, 2e5, 60).tolist():
        with mpmath.workdps(40):
            turn = mpmath.expj(-24 * mpmath.mpf(found.step) * mpmath.mpf(epsilon))
            off = abs(found._sum(last, epsilon) - (mpmath.mpmathify(term) * turn).real)
        if not off <= fixed + growing * epsilon:
            return f"{epsilon}: {off} is above {fixed + growing * epsilon}"
    return ""


def table_violation():
    """A table by a transform whose whole error, of the size that it may have, is in one place."""
    found = Contour(PlanCGF([(GaussianLoss(1.0), 1)]), 1.0, 1.0, 0.0).integrate()
    exact_transform = np.fft.irfft
    for place, sign in itertools.product((0, 37), (0, -1)):

        def rough(half, size, place=place, sign=sign):
            sums = exact_transform(half, size)
            share = contour.FFT_ULPS * ULP * (math.log2(size) + 1)
            sums[place] += sign * share * math.sqrt(float(np.sum(sums**2)))
            return sums

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(contour, "TABLE_SIZE", 256)
            patch.setattr(contour, "FFT_ULPS", 1e10)
            patch.setattr(np.fft, "irfft", rough)
            first_index, spacing, logs = found.upper_table(-1.0, 2.0)
        epsilon = spacing * (first_index + np.arange(logs.size))
        truth = np.log([_float_delta(1.0, e) for e in epsilon.tolist()])
        if not (epsilon[0] < -1.0 and epsilon[-1] > 2.0):
            return f"a table from -1 to 2 is from {epsilon[0]} to {epsilon[-1]}"
        if np.any(logs < truth - ROUND_OFF):
            return f"{place}, {sign}: {truth} is above {logs}"
    return ""


class RoughFarOut(PlanCGF):
    """A cumulant that has half of each ratio where the smoothing decides, and says so."""

    def with_smoothing(self, smoothing):
        smoothed = RoughFarOut([], smoothing)
        smoothed._families = self._families
        return smoothed

    def cf_ratio(self, z):
        ratio, error = super().cf_ratio(z)
        missing = np.where(self.smoothing * z.imag**2 > 1, 0.5, 0.0)
        return ratio * (1 - missing), error + missing * np.abs(ratio)


def smoothed_violation():
    """A smoothed contour at an atom of the loss, where what smoothing adds is all that it may."""
    p, q = [0.05, 0.8, 0.15], [0.01, 0.4, 0.59]
    loss, delta = _pair(p, q)
    epsilon = math.log(2)
    for cgf, smoothing in ((RoughFarOut, 1e-2), (RoughFarOut, 1e-3), (PlanCGF, 2.0)):
        found = Contour(cgf([(loss, 1)]), 1.0, epsilon, smoothing).integrate()
        low, high = (math.exp(bound) for bound in found.bounds(epsilon))
        if not low <= delta(epsilon) <= high:
            return f"smoothing {smoothing}: {delta(epsilon)} not in [{low}, {high}]"
    return ""
