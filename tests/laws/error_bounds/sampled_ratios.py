"""Cumulants of sampled Laplace noise by rules of few points, against a fine rule."""

import itertools
import math

import numpy as np
import pytest

from accountant.amplification import sampled_ratio_cgf, sampled_ratio_filon
from accountant.amplification.sampled_ratio_cgf import SampledRatioLaw
from accountant.amplification.sampled_ratio_filon import FilonRule
from accountant.losses.ratio_law import laplace_ratio_law
from accountant.numerics.quadrature import gauss_legendre_panels

ROUND_OFF = 1e-12  # of the truths, which are floats
CASES = [
    (laplace_ratio_law(3.0), 0.2), (laplace_ratio_law(6.0), 0.5),
    (laplace_ratio_law(9.0, 8.0), 0.95),  # nearly without atoms
]  # fmt: skip
# where e^y - 1 + q loses 9 digits at the least log-ratio
LOUD = (laplace_ratio_law(20.0), 0.3)


def _outcomes(law, rate, power):
    """Values of ln r and masses ``r^power dQ``, by a fine rule."""
    panels = math.ceil(max(400, 30 * (law.high - law.low)))
    x, w, _ = gauss_legendre_panels(np.linspace(law.low, law.high, panels + 1), 16)
    ratios = np.append(x, [ratio for ratio, _ in law.atoms])
    masses = np.append(w * law.scale * np.exp(-x / 2), [mass for _, mass in law.atoms])
    log_r = np.log1p(rate * np.expm1(ratios))
    return log_r, masses * np.exp(power * log_r)


def _cases(laws=CASES):
    for (law, rate), added in itertools.product(laws, (False, True)):
        for a in (0.3, 6.0):
            power = -a if added else a + 1
            log_r, masses = _outcomes(law, rate, power)
            yield law, rate, added, a, power, -log_r if added else log_r, masses


def rule_violation():
    """Rules that miss up to some percent of a moment, along a contour."""
    for law, rate, added, a, _, loss, masses in _cases():
        sampled = SampledRatioLaw(law, rate, added)
        z = (a + 1j * np.linspace(0.0, 40.0, 12)).reshape(3, 4)
        truth = np.exp(1j * np.multiply.outer(z.imag, loss)) @ masses
        for goal, points in ((0.3, (2, 3)), (1e-2, (3, 4, 6, 8, 12)), (1e-5, (4, 6, 8, 12, 24))):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sampled_ratio_cgf, "GOAL", goal)
                patch.setattr(sampled_ratio_cgf, "POINTS", points)
                patch.setattr(sampled_ratio_cgf, "PARTS", (1, 2, 4))
                patch.setattr(sampled_ratio_cgf, "FILON_POINTS", 1e9)  # that rule has its own law
                sampled_ratio_cgf._grid_of_size.cache_clear()
                value, error = sampled.cgf(z)
                ratio, missed = sampled.cf_ratio(z, 3)
                decay = sampled.log_cf_bound(a, z.imag.ravel()[1:])
            sampled_ratio_cgf._grid_of_size.cache_clear()
            known = np.isfinite(value)
            off = np.abs(np.exp(value[known]) - truth[known])
            allowed = np.abs(np.exp(value[known])) * np.expm1(np.minimum(error[known], 50.0))
            if np.any(off > allowed + ROUND_OFF * abs(truth[0, 0])):
                return f"{sampled} at {a}, {points}: {off} off, {allowed} is claimed"
            off = np.abs(ratio - (truth / truth[0, 0]) ** 3)
            if np.any(off > missed + ROUND_OFF):
                return f"{sampled} at {a}, {points}: a ratio is {off} off, {missed} is claimed"
            least = np.log(np.abs(truth.ravel()[1:] / truth[0, 0]))
            if np.any(least > decay + ROUND_OFF):
                return f"{sampled} at {a}: {least} is above {decay}"
    return ""


def filon_violation():
    """Polynomials of few terms, and sums of few points where a panel makes few turns."""
    for law, rate, added, a, power, loss, masses in _cases([*CASES, LOUD]):
        sign = -1.0 if added else 1.0
        z = a + 1j * np.linspace(0.0, 400.0, 60).reshape(6, 10)
        truth = np.exp(1j * np.multiply.outer(z.imag, loss)) @ masses / masses.sum()
        for degree, points, turns in ((4, 96, 8.0), (28, 5, 56.0), (28, 12, 56.0), (8, 24, 1.0)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sampled_ratio_filon, "TERMS", degree)
                patch.setattr(sampled_ratio_filon, "POINTS", points)
                patch.setattr(sampled_ratio_filon, "STABLE_RADIANS", turns)
                rule = FilonRule(law, rate, power, float(np.log(masses.sum())))
                value, error = rule.ratio(z, sign)
            off = np.abs(value - truth)
            if np.any(off > error + ROUND_OFF):
                return f"{law}, {rate}, {power}, {degree}, {points}: {off.max()} off"
        # as a cumulant asks for it: the sign of a turn, and the power
        value, error = SampledRatioLaw(law, rate, added).cf_ratio(z, 3)
        off = np.abs(value - truth**3)
        if np.any(off > error + 3 * ROUND_OFF):
            return f"{law}, {rate}, {power}: {off.max()} off, {error.max()} is claimed"
    return ""
