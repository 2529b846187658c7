"""Coarse inversions of sums of log-normals: lines of few nodes, rules of few points, rough laws."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from accountant.numerics import lognormal_inversion, lognormal_lattice, lognormal_rule
from accountant.numerics.lognormal_inversion import Law, Line
from accountant.numerics.lognormal_lattice import Terms
from accountant.numerics.lognormal_rule import LogNormalRule, VerticalLine
from accountant.numerics.quadrature import gauss_legendre_panels

ROUND_OFF = 1e-9  # of the truths, which are sums of floats


def excess_of_sum(mu, k, steps, cut=10.0):
    """E (k - S)_+ of a sum of log-normals all below a cut, by rules over all of them but one."""
    if steps == 1:
        at = np.minimum(np.log(np.maximum(k, 1e-300)) / mu + mu / 2, cut)
        return np.where(k > 0, k * ndtr(at) - ndtr(at - mu), 0.0)
    rule = (np.linspace(-9.0, cut, 121), 24) if steps == 2 and k.ndim == 1 else (
        np.linspace(-9.0, cut, 41), 8)  # fmt: skip
    x, weight, _ = gauss_legendre_panels(*rule)
    weight = weight * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    left = np.subtract.outer(k, np.exp(mu * x - mu * mu / 2))
    return excess_of_sum(mu, left, steps - 1, cut) @ weight


def _truth(law, mu, k, steps, cut):
    """What a line inverts."""
    if law is Law.NO_JUMPS:  # E (S - k)_+ where all are below the cut
        mass, mean = ndtr(cut), ndtr(cut - mu)
        first = steps * mean * mass ** (steps - 1) - k * mass**steps
        return excess_of_sum(mu, k, steps, cut) + first
    whole = excess_of_sum(mu, k, steps)
    return whole if law is Law.WHOLE else whole - excess_of_sum(mu, k, steps, cut)


def line_violation(seeds=range(60)):
    """A line of two log-normals whose nodes and reach leave errors of some percent."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        law = (Law.WHOLE, Law.JUMPS, Law.NO_JUMPS)[seed % 3]
        mu, cut = float(rng.uniform(0.2, 1.0)), float(rng.uniform(0.5, 2.5))
        tilt = float(10 ** rng.uniform(-0.7, 0.7)) * (-1 if law is Law.NO_JUMPS else 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lognormal_inversion, "WANTED", float(rng.uniform(0.5, 6.0)))
            line = Line(law, mu, 2, tilt, math.inf if law is Law.WHOLE else cut)
        if not line.usable:
            continue
        k = 10 ** rng.uniform(-0.3, 1.3, 4)
        value, error, height = line.excess(k - 2 * line.centre)
        truth = _truth(law, mu, k, 2, cut)
        low, high = (value - error) * np.exp(height), (value + error) * np.exp(height)
        if not np.all((low <= truth + ROUND_OFF) & (truth - ROUND_OFF <= high)):
            return f"seed {seed}, {law}: {truth} not in [{low}, {high}]"
    return ""


def rough_line_violation():
    """A line whose transform, or that of its jumps, errs by as much as it says."""
    k = np.array([1.8, 2.6, 3.9])
    for law, tilt in ((Law.WHOLE, 0.8), (Law.JUMPS, 0.8), (Law.NO_JUMPS, -0.8)):
        cut = math.inf if law is Law.WHOLE else 1.0
        for name, off in itertools.product(("transform", "jump"), (0.01, -0.01, 0.01j, -0.01j)):
            made = getattr(LogNormalRule, name)

            def rough(self, s, made=made, off=off):
                value, error = made(self, s)
                if not isinstance(s, VerticalLine):
                    return value, error
                turned = np.where(np.arange(s.count) > 0, off, 0.0)
                if made.__name__ == "transform":
                    return value + turned, error + np.abs(np.expm1(turned))
                return value * (1 + turned), error + np.abs(value * turned)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(LogNormalRule, name, rough)
                patch.setattr(lognormal_inversion, "WANTED", 12.0)
                line = Line(law, 0.7, 3, tilt, cut)
                value, error, height = line.excess(k - 3 * line.centre)
            truth = _truth(law, 0.7, k, 3, cut)
            low, high = (value - error) * np.exp(height), (value + error) * np.exp(height)
            if not np.all((low <= truth + 1e-6) & (truth - 1e-6 <= high)):
                return f"{law}, {name} {off}: {truth} not in [{low}, {high}]"
    return ""


def _log_of_law(law, mu, s, steps, centre, cut):
    """ln |transform| of what a line inverts at each s, relative to ``steps`` times the centre."""
    x, weight, _ = gauss_legendre_panels(np.linspace(-10.0, 10.0, 201), 24)
    away = np.exp(mu * x - mu * mu / 2) - centre
    mass = weight * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    whole = np.exp(-np.multiply.outer(s, away)) @ mass if law is not Law.NO_JUMPS else 0.0
    x, weight, _ = gauss_legendre_panels(np.linspace(-10.0, min(cut, 10.0), 201), 24)
    away = np.exp(mu * x - mu * mu / 2) - centre
    mass = weight * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    below = np.exp(-np.multiply.outer(s, away)) @ mass if law is not Law.WHOLE else 0.0
    power = {Law.WHOLE: whole**steps, Law.NO_JUMPS: below**steps}
    return np.log(np.abs(power.get(law, whole**steps - below**steps)))


def line_bounds_violation():
    """The transform at other places than the nodes: far up, and where aliases are bounded."""
    cases = itertools.product(
        (Law.WHOLE, Law.JUMPS, Law.NO_JUMPS), ((0.5, 2), (0.5, 40), (1.2, 40)), (0.3, 1.5)
    )
    for law, (mu, steps), tilt in cases:
        cut = math.inf if law is Law.WHOLE else 2.0
        with np.errstate(over="ignore", invalid="ignore"):  # as its callers ignore it
            line = Line(law, mu, steps, -tilt if law is Law.NO_JUMPS else tilt, cut)
        if not line.usable:
            continue
        u = np.array([1e-3, 0.03, 0.3, 1.0])
        above = np.multiply.outer(u, np.array([1.0, 1.2, 2.0]))
        sizes = _log_of_law(law, mu, line._tilt + 1j * above.ravel(), steps, line._rule.centre, cut)
        highest = np.max(sizes.reshape(above.shape), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            decay = line._log_decay(u)
        if not np.all(decay >= highest - ROUND_OFF):
            return f"{law}, {steps} of {mu}: {highest} above {decay}"
        tilts = line._alias_tilts
        moments = _log_of_law(law, mu, tilts + 0j, steps, line._rule.centre, cut)
        bounds = moments - 1 - np.log(np.abs(tilts))
        if not np.all(line._log_alias_bounds >= bounds - ROUND_OFF):
            return f"{law}, {steps} of {mu}: aliases {bounds} above {line._log_alias_bounds}"
    return ""


def line_sum_violation():
    """A line's sum of terms that are exact: its exponent, its phases and its additions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lognormal_inversion, "WANTED", 3.0)
        line = Line(Law.WHOLE, 0.7, 2, 0.8, math.inf)
    line._missed, line._log_cut_off, line._log_alias = 0.0, -1e9, lambda gap: gap - 1e9
    one, k = np.array([0.8 - 0.6j]), np.linspace(10.0, 20.0, 20)
    near_mean = 0.37e5 + np.linspace(0.1, 2.0, 20)
    for name, tilt, u, terms, log_power, (centre, steps), sums in (
        ("exponent", 97.3, [0.0], one.real, 0.0, (1.0, 2), 1e3 * k),
        ("power", 1e-3, [0.0], one.real, -1e4 / 3, (1.0, 2), k),
        ("phase", 1e-3, [900.0], one, 0.0, (1.0, 2), k),
        ("centre", 7.3, [0.0], one.real, 0.0, (0.37, 10**5), near_mean),
        ("phase from a centre", 1e-3, [900.0], one, 0.0, (0.37, 10**5), near_mean),
        ("additions", 1e-9, np.zeros(6000), np.full(6000, 1 / 3), 0.0, (1.0, 2), k[:1]),
    ):
        line._tilt, line._u, line._terms = tilt, np.array(u), terms
        line._log_power, line.centre, line._steps = log_power, centre, steps
        value, error, height = line.excess(sums - steps * centre)
        for at, *found in zip(sums, value, error, height, strict=True):
            found_value, claimed, found_height = (float(number) for number in found)
            with mpmath.workdps(40):
                gap = mpmath.mpf(float(at)) - steps * mpmath.mpf(centre)
                turn = mpmath.expj(mpmath.mpf(float(u[0])) * gap)
                total = terms.size * (mpmath.mpmathify(complex(terms[0])) * turn).real
                off = total * mpmath.exp(mpmath.mpf(tilt) * gap + log_power - found_height)
                off = abs(off - found_value)
            if not off <= claimed:
                return f"{name} at {at}: {off} off, {claimed} is claimed"
    return ""


def rule_violation(seeds=range(60)):
    """The rule of one log-normal's transform with few points and early ends."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        mu, cut = float(rng.uniform(0.3, 1.2)), float(rng.uniform(-0.5, 2.0))
        tilt = float(10 ** rng.uniform(-1, 1)) * (-1 if seed % 4 == 0 else 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lognormal_rule, "POINTS", int(rng.integers(2, 6)))
            patch.setattr(lognormal_rule, "GROWTH", float(rng.uniform(1.0, 4.0)))
            patch.setattr(lognormal_rule, "DEVIATIONS", float(rng.uniform(0.5, 6.0)))
            patch.setattr(lognormal_rule, "NEGLIGIBLE", float(rng.uniform(1.0, 10.0)))
            rule = LogNormalRule(mu, tilt, float(rng.uniform(2.0, 8.0)), cut)
        line = VerticalLine(tilt, 0.3, 6)
        value, error = rule.transform(line)
        s = line.points()
        parts = [(-11.0, cut)] if tilt < 0 else [(-11.0, cut), (cut, 11.0)]
        below, *jumps = (_transform(mu, s, rule.centre, *ends) for ends in parts)
        truth = below + sum(jumps)
        off = np.abs(np.exp(value) - truth) / np.abs(np.exp(value))
        if np.any(off > error + ROUND_OFF):
            return f"seed {seed}: a transform is {off} off, {error} is claimed"
        upper = rule.log_upper(np.array([tilt]))[0]
        if not math.log(truth[0].real) <= upper + ROUND_OFF:
            return f"seed {seed}: {truth[0]} is above e^{upper}"
        for jump in jumps:
            found, error = rule.jump(line)
            if np.any(np.abs(found - jump) > error + ROUND_OFF):
                return f"seed {seed}: jumps are {np.abs(found - jump)} off, {error} is claimed"
    return ""


def _transform(mu, s, centre, low, high):
    """E e^(-s (V - c)) between two values of the normal variable."""
    x, weight, _ = gauss_legendre_panels(np.linspace(low, high, 81))
    weight = weight * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return np.exp(-np.multiply.outer(s, np.exp(mu * x - mu * mu / 2) - centre)) @ weight


def product_violation():
    """Products of power series of which each factor errs by as much as it says."""
    n = lognormal_lattice.POINTS
    ones, far = np.zeros(n), np.zeros(n)
    ones[:40] = far[:40] = 1.0
    far[n - 40 :] = 1.0
    for left, right in ((0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3), (1e-3, 1e-3)):
        found = lognormal_lattice._product(Terms(far + left, left), Terms(ones + right, right))
        truth = np.convolve(far[:80], ones[:80])[:80]
        off = float(np.max(np.abs(found.value[:79] - truth[:79])))
        off = max(off, abs(float(found.value[n - 1] - 40.0)))  # all of both errors, and their own
        off = max(off, float(np.max(np.abs(found.value[200 : n - 200]))))  # where it is 0
        if off > found.error:
            return f"{left}, {right}: {off} is above {found.error}"
    half = Terms(np.full(n, 0.5), 0.5)  # of factors of ones
    found = lognormal_lattice._product(half, half)
    if n - found.value[n - 1] > found.error:
        return f"{n - found.value[n - 1]} is above {found.error}"
    total = lognormal_lattice._sum(Terms(ones + 1e-3, 1e-3), Terms(far + 1e-4, 1e-4))
    off = float(np.max(np.abs(total.value - ones - far)))
    return "" if off <= total.error * (1 + 1e-9) else f"{off} is above {total.error}"


def lattice_violation():
    """Sums of log-normals on a lattice whose products err by as much as they say."""
    made, mu, steps, k = lognormal_lattice._product, 0.7, 3, np.array([2.2, 3.9])
    below_k = excess_of_sum(mu, k, steps)
    for below, sign in ((False, 1), (False, -1), (True, 1), (True, -1)):

        def rough(left, right, sign=sign):
            found = made(left, right)
            off = 1e-5 * float(np.max(np.abs(found.value)))
            return Terms(found.value + sign * off, found.error + off)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lognormal_lattice, "_product", rough)
            lognormal_lattice._SumOnLattice.of.cache_clear()
            low, high = lognormal_lattice.excess_bounds(mu, steps, k, below=below)
        lognormal_lattice._SumOnLattice.of.cache_clear()
        truth = below_k if below else below_k + steps - k
        if not np.all((low <= truth + ROUND_OFF) & (truth - ROUND_OFF <= high)):
            return f"below {below}, {sign}: {truth} not in [{low}, {high}]"
    return ""


def cells_violation():
    """Cells whose masses and means err by as much as a rule may."""
    made, mu, steps, k = lognormal_lattice._cells, 0.7, 3, np.array([2.2, 3.9])
    below_k = excess_of_sum(mu, k, steps)
    for below, sign in ((False, 1), (False, -1), (True, 1), (True, -1)):

        def rough(*given, sign=sign):
            return tuple(one * (1 + sign * 1e-3) for one in made(*given))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lognormal_lattice, "_cells", rough)
            patch.setattr(lognormal_lattice, "INEXACT", 1e-3)
            patch.setattr(lognormal_lattice, "_points_of_rule", lambda *_: 8)
            lognormal_lattice._SumOnLattice.of.cache_clear()
            low, high = lognormal_lattice.excess_bounds(mu, steps, k, below=below)
        lognormal_lattice._SumOnLattice.of.cache_clear()
        truth = below_k if below else below_k + steps - k
        if not np.all((low <= truth + ROUND_OFF) & (truth - ROUND_OFF <= high)):
            return f"below {below}, {sign}: {truth} not in [{low}, {high}]"
    return ""
