"""Coarse sums on a lattice: short transforms, kernels cut early, and masses that cancel."""

import math

import mpmath
import numpy as np
import pytest

from accountant import PairLoss
from accountant.composition import fft_composition, lattice, pld_grid
from accountant.composition.enumeration import Enumeration
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.tilted_law import GridLaw
from accountant.numerics.rounding import ULP
from tests.laws.error_bounds.contours import RoughCGF

STEP = 0.125


def _laws():
    """Masses at few losses, a tilt, what may wrap around, and how far the kernel reaches."""
    rare = np.append(np.random.default_rng(0).dirichlet(np.ones(30)), np.full(60, 1e-20))
    even, ends = np.full(90, 1 / 90), np.zeros(90)
    ends[[0, 89]] = 0.999, 0.001
    for mass in (rare, even, ends):
        for tilt, log_wrapped, nats in (
            (0.5, -60.0, 60.0), (0.5, -8.0, 60.0), (1.0, -8.0, 60.0), (0.5, -60.0, 2.0),
            (0.1, -4.0, 60.0),
        ):  # fmt: skip
            yield mass, tilt, log_wrapped, nats


def transform_violation():
    """A sum on a lattice by transforms, one epsilon at a time and at many."""
    for mass, tilt, log_wrapped, nats in _laws():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fft_composition, "KERNEL_NATS", nats)
            law = GridLaw(STEP, -31, 0.0, mass, 3)
            sums = SumOnGrid([law], tilt, (0.25, 4.0), log_wrapped, 2**14)
            sums.convolve()
            direct = np.convolve(np.convolve(mass, mass), mass)
            losses = STEP * (np.arange(direct.size) - 93)
            epsilon = np.array([0.25, 0.27, 1.0, 3.9])
            many = sums.upper_deltas(epsilon)
            for e, most in zip(epsilon.tolist(), many.tolist(), strict=True):
                truth = float(direct @ -np.expm1(np.minimum(e - losses, 0.0)))
                value, error = sums.delta(e)
                scale = math.exp(sums.log_scale(e))
                room = 1e-14 * truth
                if not abs(value * scale - truth) <= min(error, 1e9) * scale + room:
                    return f"{value * scale} is not within {error * scale} of {truth}"
                if not truth <= most * scale + room:
                    return f"{truth} is above {most * scale}"
    return ""


def rough_transform_violation():
    """Transforms of which each errs by as much as it may, along the kernel."""
    tilt, epsilon = 0.5, 0.25
    law = GridLaw(STEP, -31, 0.0, np.full(90, 1 / 90), 1)
    exact = SumOnGrid([law], tilt, (epsilon, epsilon), -30.0, 2**14)
    exact.convolve()
    truth, _ = exact.delta(epsilon)
    share = 1e-6  # the error of a transform, of the 2-norm
    place = math.floor((epsilon - exact.offset) / STEP) + 1 + np.arange(exact._end - exact._first)
    above = exact.offset + STEP * place - epsilon
    along = np.zeros(exact.points)
    along[place % exact.points] = np.exp(-tilt * above) * -np.expm1(-above)
    along *= share / math.sqrt(float(np.sum(along**2)))
    forward, back = np.fft.rfft, np.fft.irfft

    def rough_forward(folded):
        return forward(folded - along * math.sqrt(float(np.sum(folded**2))))

    def rough_back(product, size):
        sums = back(product, size)
        return sums - along * math.sqrt(float(np.sum(sums**2)))

    with pytest.MonkeyPatch.context() as patch:
        levels = math.log2(exact.points) + 1
        patch.setattr(fft_composition, "FFT_ULPS", share / (ULP * levels))
        patch.setattr(np.fft, "rfft", rough_forward)
        patch.setattr(np.fft, "irfft", rough_back)
        sums = SumOnGrid([law], tilt, (epsilon, epsilon), -30.0, 2**14)
        sums.convolve()
        value, error = sums.delta(epsilon)
        most = float(sums.upper_deltas(np.array([epsilon]))[0])
    if not abs(value - truth) <= error:
        return f"rough transforms: {value} is not within {error} of {truth}"
    return "" if truth <= most else f"rough transforms: {truth} is above {most}"


def factors_above_one_violation():
    """Thirty draws of one place, whose factor at the frequency 0 is 1.2 where it is 1."""
    step, tilt, count, excess = 8.0, 0.02, 30, 0.2
    forward = np.fft.rfft

    def rough_forward(folded):
        return forward(folded) + excess * (np.arange(folded.size // 2 + 1) == 0)

    with pytest.MonkeyPatch.context() as patch:
        near = step / 2, step / 2
        sums = SumOnGrid([GridLaw(step, 0, 0.0, np.ones(1), count)], tilt, near, -5.0, 2**14)
        share = excess / (ULP * (math.log2(sums.points) + 1) * math.sqrt(sums.points))
        patch.setattr(fft_composition, "FFT_ULPS", share)
        patch.setattr(np.fft, "rfft", rough_forward)
        sums.convolve()
        value, error = sums.delta(near[0])  # the sum is 0, so that delta is
    return "" if value <= error else f"factors above 1: {value} is above {error}"


def wrapped_violation():
    """A rare sum above the range that is likely, which appears a little above epsilon."""
    step, tilt, log_wrapped, epsilon = 0.25, 0.05, -4.0, 0.1
    rare = 0.7 * math.exp(log_wrapped)  # of the tilted law
    for place in range(1000, 1030):
        mass = np.zeros(place + 1)
        mass[0], mass[place] = 1 - rare, rare * math.exp(-tilt * step * place)
        sums = SumOnGrid(
            [GridLaw(step, 0, 0.0, mass, 1)], tilt, (epsilon, epsilon), log_wrapped, 2**14
        )
        sums.convolve()
        value, error = sums.delta(epsilon)
        truth = math.exp(-sums.log_scale(epsilon)) * mass[-1] * -math.expm1(epsilon - step * place)
        if not abs(value - truth) <= error:
            return f"{place}: {value} is not within {error} of {truth}"
    return ""


def rough_violation():
    """What is wrong with any of them."""
    return rough_transform_violation() or factors_above_one_violation() or wrapped_violation()


def _exact_delta(p, q, count, epsilon):
    """Delta of equal releases of two outcomes, in 40 digits."""
    with mpmath.workdps(40):
        p, q, growth = mpmath.mpf(p), mpmath.mpf(q), mpmath.exp(mpmath.mpf(epsilon))
        terms = (
            mpmath.binomial(count, k)
            * (p**k * (1 - p) ** (count - k) - growth * q**k * (1 - q) ** (count - k))
            for k in range(count + 1)
        )
        return mpmath.log(mpmath.fsum(max(one, mpmath.mpf(0)) for one in terms))


def few_outcomes_violation():
    """Many releases of two outcomes, by all their sums and by one period of a transform."""
    p, q = 0.7, 0.6
    for count in (1, 40, 300):
        plan = [(PairLoss([p, 1 - p], [q, 1 - q]), count)]
        listed = Enumeration(plan)
        for share in np.linspace(-0.6, 0.9, 9).tolist():
            epsilon = count * (share * math.log(p / q) + 0.013)
            truth = _exact_delta(p, q, count, epsilon)
            low, high = listed.bounds(epsilon)
            if not low <= truth <= high:
                return f"{count}, {epsilon}: {truth} not in [{low}, {high}] by enumeration"
            if not _on_a_lattice(plan, 0.5 + share**2, epsilon, truth):
                return f"{count}, {epsilon}: {truth} is not in the interval of a lattice"
    return ""


def _on_a_lattice(plan, a, epsilon, truth):
    """Whether the truth is in the interval of every lattice, coarse and rough ones included."""
    for errors, nodes in (
        ((0.0, 0.0), None), ((0.0, 0.0), 4), ((1e-3, 0.0), None), ((-1e-3, 0.0), None),
        ((0.0, 1e-3), None), ((0.0, -1e-3), None),
    ):  # fmt: skip
        cgf = RoughCGF(plan, *errors)
        found = lattice.Lattice(cgf, a, epsilon, lattice.common_unit(plan))
        found.nodes = nodes or found.nodes
        found.integrate(cgf)
        low, high = found.bounds(epsilon)
        if not low <= truth <= high:
            return False
    return True


def noise_violation():
    """Masses that a transform gave with noise of one sign, and with a part cut off or wrapped."""
    mass = np.exp(-((np.arange(400.0) - 150) ** 2) / 800.0)
    mass /= mass.sum()
    loss, epsilon = 0.01 * (np.arange(400.0) - 100.0), np.array([0.2, 0.9, 1.5])
    truth = -np.expm1(np.minimum(epsilon[:, None] - loss, 0.0)) @ mass
    lost = float(mass[190:].sum())
    for noise, cut in ((0.0, 0.0), (1e-9, 0.0), (0.0, lost)):
        for upper in (True, False):
            given = mass + (-noise if upper else noise)
            given[0] = -noise  # where no mass is, noise is seen
            if cut:
                given[190:] = 0.0
            if cut and not upper:  # what wraps around may be anywhere
                given[-1] += cut
            found = pld_grid.grid_of_sum(given, 1, -100, 0.01, 0.0, cut, upper=upper)
            value = found.delta(epsilon)
            wrong = (
                value + found.delta_error < truth if upper else value - found.delta_error > truth
            )
            if np.any(wrong):
                return f"{noise}, {cut}, {upper}: {value}, {found.delta_error}, {truth}"
    # The error of many releases may be positive everywhere, so that no mass is negative.
    releases = 10**10
    given = mass + 0.3 * releases * ULP / mass.size
    found = pld_grid.grid_of_sum(given, releases, -100, 0.01, 0.0, 0.0, upper=False)
    value = found.delta(epsilon)
    if np.any(value - found.delta_error > truth):
        return f"{releases}: {value}, {found.delta_error}, {truth}"
    return ""
