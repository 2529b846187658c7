"""Trade-off curves, rates of attacks and the Gaussian that fits, from few points or few digits."""

import contextlib

import mpmath
import numpy as np
import pytest

from accountant import (
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    advantage,
    bayes_risk,
    tradeoff,
    true_positive_rate,
)
from accountant.accountants import gaussian_fit, tradeoff_ends
from accountant.accountants.tradeoff_curves import greatest_lines
from accountant.numerics.rounding import ACCURACY

P, Q = (0.55, 0.25, 0.15, 0.05), (0.1, 0.3, 0.2, 0.4)
PAIR = PairLoss(P, Q)
LEVELS = np.array([0.003, 0.05, 0.17, 0.31, 0.5, 0.83])
OFF = (-0.99 * ACCURACY, 0.99 * ACCURACY)


@contextlib.contextmanager
def _rough_profile(cls, off):
    """Profiles of which as many digits are right as a profile must have."""
    exact = cls.profile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cls, "profile", lambda self, epsilon: exact(self, epsilon) * (1 + off))
        yield patch


def _normal_quantile(share):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * share - 1)


def _gaussian_power(mu, level):
    return mpmath.ncdf(mu + _normal_quantile(mpmath.mpf(level)))


def _corners(p, q):
    """The error rates of the best tests of a finite pair, as level and power."""
    order = sorted(range(len(p)), key=lambda i: -p[i] / q[i])
    levels, powers = [mpmath.mpf(0)], [mpmath.mpf(0)]
    for i in order:
        levels.append(levels[-1] + mpmath.mpf(q[i]))
        powers.append(powers[-1] + mpmath.mpf(p[i]))
    return levels, powers


def _pair_power(level):
    """The greatest power at a level, over both directions."""
    best = mpmath.mpf(0)
    for p, q in ((P, Q), (Q, P)):
        levels, powers = _corners(p, q)
        for i in range(len(p)):
            if levels[i] <= level <= levels[i + 1]:
                share = (mpmath.mpf(level) - levels[i]) / (levels[i + 1] - levels[i])
                best = max(best, powers[i] + share * (powers[i + 1] - powers[i]))
    return best


# the masses of a pair are floats: what they miss of 1 is moved to nowhere
ROOM = 1e-15


def lower_violation():
    """The curve from below, with a profile that is up to its accuracy too small."""
    for off in OFF:
        with _rough_profile(PairLoss, off):
            found = tradeoff(PAIR, LEVELS)
        for level, beta in zip(LEVELS.tolist(), found.tolist(), strict=True):
            truth = 1 - _pair_power(level)
            if beta > truth + ROOM:
                return f"off by {off}, at {level}: {beta} is above {truth}"
    return ""


def _beside_the_tangent(plan, alpha, accuracy):
    epsilon, heights = greatest_lines(plan, alpha, accuracy)
    return epsilon + 0.2, heights


def ends_violation():
    """The curve between its ends, from few lines, which end early, and from rough profiles."""
    for cls, plan, power in (
        (PairLoss, PAIR, _pair_power),
        (GaussianLoss, GaussianLoss(3.0), lambda level: _gaussian_power(3, level)),
    ):
        for off in (*OFF, 0.0):
            # the tangent is missed by some; lines that end early leave small levels open alone
            for distances, end, levels in (
                ((0.5,), 700.0, LEVELS), ((0.1, 0.8), 1.0, LEVELS[:2]), (None, 700.0, LEVELS)
            ):  # fmt: skip
                with _rough_profile(cls, off) as patch:
                    if distances is not None:
                        patch.setattr(tradeoff_ends, "DISTANCES", np.array(distances))
                        patch.setattr(tradeoff_ends, "ROUNDS", 1)
                        patch.setattr(tradeoff_ends, "greatest_lines", _beside_the_tangent)
                    patch.setattr(tradeoff_ends, "MAX_EXPONENT", end)
                    low, high, _ = tradeoff_ends.tradeoff_ends(plan, levels)
                for level, *ends in zip(levels.tolist(), low.tolist(), high.tolist(), strict=True):
                    truth = 1 - power(level)
                    if not ends[0] - ROOM <= truth <= ends[1] + ROOM:
                        return f"{plan}, {off}, {distances}, {level}: {truth} is not in {ends}"
    return ""


def rates_violation():
    """Rates of attacks, with a profile that is up to its accuracy off."""
    mu = mpmath.mpf(1)

    def delta(epsilon):
        ahead = mpmath.ncdf(mu / 2 - epsilon / mu)
        return ahead - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)

    for off in OFF:
        with _rough_profile(GaussianLoss, off):
            plan = GaussianLoss(1.0)
            cases = [("advantage", advantage(plan), delta(mpmath.mpf(0)))]
            cases += [
                (fpr, true_positive_rate(plan, fpr), _gaussian_power(1, fpr)) for fpr in (0.01, 0.2)
            ]
            for prior in (0.5, 0.2, 0.9):
                less = min(mpmath.mpf(prior), 1 - mpmath.mpf(prior))
                truth = less * (1 - delta(mpmath.log((1 - less) / less)))
                cases.append((prior, bayes_risk(plan, prior), truth))
        for name, (low, high), truth in cases:
            if not low <= truth <= high:
                return f"off by {off}: {name} is {truth}, not in [{low}, {high}]"
    return ""


def fit_violation():
    """The Gaussian that fits, from few points and from rough profiles."""
    truth = max(
        -_normal_quantile(level) - _normal_quantile(1 - power)
        for p, q in ((P, Q), (Q, P))
        for level, power in list(zip(*_corners(p, q), strict=True))[1:-1]
    )
    for off in OFF:
        with _rough_profile(PairLoss, off):
            mu = gaussian_fit.gdp_of(PAIR, 0.0).mu
        if mu < truth - ROOM:
            return f"off by {off}: mu is {mu}, below {truth}"
    epsilon = np.linspace(0.0, 4.0, 2001)
    for plan in (PAIR, LaplaceLoss(1.0), LaplaceLoss(2.5)):
        for points, end in ((3, 20.0), (2, 0.3)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(gaussian_fit, "POINTS", points)
                patch.setattr(gaussian_fit, "MAX_ROUNDS", 1)
                patch.setattr(gaussian_fit, "REGRET_POINTS", points)
                patch.setattr(gaussian_fit, "REGRET_ROUNDS", 1)
                patch.setattr(gaussian_fit, "REGRET_END", end)
                mu, regret = gaussian_fit.gdp_of(plan, 0.0)
            above = GaussianLoss(mu).profile(epsilon)
            delta = np.maximum(plan.profile(epsilon), plan.reversed.profile(epsilon))
            if np.any(above < delta * (1 - 1e-12)):
                return f"{plan}: a Gaussian of {mu} is below it"
            lost = float(np.max((above - delta) / (1 + np.exp(epsilon))))
            if regret < lost:
                return f"{plan}, {points}, {end}: a regret of {lost}, {regret} is claimed"
    return ""
