"""Coarse quadratures: rules of few points, cut off early, against integrals that are known."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from accountant.amplification.sampled_gaussian import sampled_gaussian_renyi
from accountant.amplification.sampled_gaussian.sampled_gaussian_renyi import SampledGaussianRenyi
from accountant.losses import mixture_pair
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import ORIGIN, Side
from accountant.numerics.rounding import ULP

ROUND_OFF = 1e-11  # of the truths, which are floats
X = np.linspace(-14.0, 14.0, 5601)  # a fine rule: its error is below all floats
WEIGHT = np.exp(-X * X / 2) * (X[1] - X[0]) / math.sqrt(2 * math.pi)

# --- mixtures of normal laws


def _mixture(rng):
    few = int(rng.integers(1, 3))
    weights = rng.dirichlet(np.ones(few)).tolist()
    right = Side(tuple(np.sort(rng.uniform(0.1, 2.0, few)).tolist()), tuple(weights))
    away = Side((float(rng.uniform(0.1, 1.0)),), (1.0,)) if rng.random() < 0.5 else (
        Side((0.0, float(rng.uniform(0.3, 1.5))), (0.4, 0.6)))  # fmt: skip
    return MixturePair(right, away)


def _moment(pair, z):
    """E e^(zL) by a fine rule."""
    ahead, behind = pair.right.log_ratio(X), pair.left.log_ratio(-X)
    return WEIGHT @ np.exp(ahead + np.multiply.outer(z, ahead - behind)).T


def mixture_violation(seeds=(*range(60), 102)):
    """Rules of a mixture with an error of some percent, and ends that cut off as much."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        pair = _mixture(rng)
        a, h = float(10 ** rng.uniform(-1, 0.5)), float(rng.uniform(0.2, 2.0))
        z = (a + 1j * h * np.arange(6.0)).reshape(2, 3)
        deviations = float(rng.uniform(0.5, 2.0)) if seed % 3 else 9.7
        digits = float(rng.uniform(1.0, 6.0)) if seed % 3 < 2 else 42.0
        with pytest.MonkeyPatch.context() as patch:
            # the relations in which the constants of the module stand
            patch.setattr(mixture_pair, "TAIL_DEVIATIONS", deviations)
            patch.setattr(mixture_pair, "TAIL_ERROR", max(1e-20, 4 * float(ndtr(-deviations))))
            patch.setattr(mixture_pair, "DIGITS", digits)
            mixture_pair._rule.cache_clear()
            mixture_pair._reach.cache_clear()
            value, error = pair.cgf(z)
            powers = {count: pair.cf_ratio(z, count) for count in (1, 3)}
            decay = pair.log_cf_bound(a, h * np.arange(1.0, 6.0))
        mixture_pair._rule.cache_clear()
        mixture_pair._reach.cache_clear()
        truth = _moment(pair, z.ravel()).reshape(z.shape)
        room = ROUND_OFF * np.abs(truth[0, 0])
        off = np.abs(np.exp(value) - truth)
        if np.any(off > np.abs(np.exp(value)) * np.expm1(np.minimum(error, 50.0)) + room):
            return f"seed {seed}: a cumulant is {off.max()} off, {error.max()} is claimed"
        for count, (ratio, missed) in powers.items():
            off = np.abs(ratio - (truth / truth[0, 0]) ** count)
            if np.any(off > missed + ROUND_OFF):
                return f"seed {seed}: a ratio is {off.max()} off, {missed.max()} is claimed"
        least = np.log(np.abs(truth.ravel()[1:] / truth[0, 0]))
        if np.any(least > decay + ROUND_OFF):
            return f"seed {seed}: {least} is above {decay}"
    return _high_order_violation() or _decay_violation()


def _high_order_violation():
    """Rules at high orders, at which the powers of one side's ratio narrow the integrand."""
    x = np.linspace(-60.0, 60.0, 12001)
    normal = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        share = float(10 ** rng.uniform(-4, -1))
        spread = Side((0.0, float(rng.uniform(1.0, 1.6))), (share, 1 - share))
        pair, a = MixturePair(Side((0.2,), (1.0,)), spread), rng.uniform(4.0, 12.0, 2)
        if seed % 2:
            pair, a = pair.mirrored, -1 - a
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mixture_pair, "DIGITS", 6.0)
            mixture_pair._rule.cache_clear()
            value, error = pair.cgf(a)
        mixture_pair._rule.cache_clear()
        ahead, behind = pair.right.log_ratio(x), pair.left.log_ratio(-x)
        truth = np.exp(ahead + np.multiply.outer(a, ahead - behind)) @ normal
        if np.any(np.abs(np.exp(value) / truth - 1) > np.expm1(error) + ROUND_OFF):
            return f"seed {seed}: at {a} it is {np.exp(value)}, not {truth}, up to {error}"
    return ""


def _decay_violation():
    # Of one normal law the decay is -(u mu)^2 / 2, which the bound meets at some frequencies.
    lines = np.repeat(4 * np.geomspace(1e-3, 0.6, 12), 2)
    for mu, a in ((0.1, 1e4), (1.0, 1e4), (10.0, 100.0)):
        decay = MixturePair(Side((mu,), (1.0,)), ORIGIN).log_cf_bound(a, lines / mu)
        if np.any(-(lines**2) / 2 > decay):
            return f"mu {mu}: {-(lines**2) / 2} is above {decay}"
    return ""


def _exact_log_ratio(side, x):
    return mpmath.log(mpmath.fsum(
        mpmath.mpf(w) * mpmath.exp(mpmath.mpf(m) * x - mpmath.mpf(m) ** 2 / 2)
        for m, w in zip(side.shifts, side.weights, strict=True)
    ))  # fmt: skip


def edges_violation():
    """Edges of cells, as exact losses of the outputs that stand for them, with all their ulps."""
    for right, left, reach in (
        (Side((20.0,), (1.0,)), Side((20.0,), (1.0,)), 1e-3),  # large slopes at small losses
        (Side((1e-6, 3e-6), (0.3, 0.7)), Side((1e-6,), (1.0,)), 5.0),  # losses far below 1
        (Side((0.4, 1.9), (0.3, 0.7)), Side((0.0, 0.8), (0.4, 0.6)), 2.0),
        (Side((0.4,), (1.0,)), Side((0.8,), (1.0,)), 1e3),  # outputs far out
    ):
        pair = MixturePair(right, left)
        edges = np.unique(pair.loss(reach * np.linspace(-1.0, 1.0, 9)))
        claimed = pair.cell_masses(edges).edge_error
        x = pair._output_of_loss(edges)
        # masses are those between outputs each of which is so inexact (`normal_cell_masses`)
        inexact = 4 * ULP * (np.abs(x) + max(right.greatest, left.greatest))
        inexact *= right.slope(x) + left.slope(-x)
        for output, edge, more in zip(x.tolist(), edges.tolist(), inexact.tolist(), strict=True):
            with mpmath.workdps(40):
                exact = _exact_log_ratio(right, mpmath.mpf(output))
                exact -= _exact_log_ratio(left, -mpmath.mpf(output))
                off = float(abs(exact - edge)) + more
            if not off <= claimed:
                return f"{pair} at {edge}: the edge is {off} off, {claimed} is claimed"
    return ""


# --- Renyi curves of sampled Gaussians


def renyi_violation(seeds=range(60)):
    """The quadrature of a Renyi curve with an error of some percent, and early ends."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        added, windows = bool(seed % 2), seed // 2 % 2
        if not windows:
            mu, rate, z = 10 ** rng.uniform(-1, 0.4), 10 ** rng.uniform(-2, -0.1), (-1, 1.2)
        elif added:  # one window around a peak far on the left
            mu, rate, z = rng.uniform(0.05, 0.3), rng.uniform(0.3, 0.9), (0.3, 2.0)
        else:  # two, with a valley between them
            mu, rate, z = rng.uniform(1.2, 2.0), 10 ** rng.uniform(-4, -1), (0.5, 1.0)
        curve, z = SampledGaussianRenyi(float(mu), float(rate), added), 10 ** rng.uniform(*z, 4)
        # an error of the rule is a share of the integral, some percent of what is found
        coarse, short = seed % 3 != 0, seed % 3 != 1
        nats, room = ((3.0, 8.0), 3e-3) if coarse else ((37.0, 38.0), 1e-9)
        if windows and not added:  # what is between two bumps is seen where the rule is fine
            nats, room, short = (2.0, 3.0), 1e-9, True
        tail = float(rng.uniform(1.5, 4.0)) if short else 12.0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampled_gaussian_renyi, "NATS", float(rng.uniform(*nats)))
            patch.setattr(SampledGaussianRenyi, "_tail", property(lambda _, tail=tail: tail))
            if windows and not added:
                patch.setattr(SampledGaussianRenyi, "_rule", _fine_rule)
            patch.setattr(sampled_gaussian_renyi, "SHARED_REACH", 0.0 if windows else 64.0)
            found = curve.divergence(z + 1)
        truth = _divergences(curve, z)
        if np.any(found < truth * (1 - room)):
            return f"seed {seed}: {found} is below {truth}"
    return ""


def sharp_renyi_violation():
    """Settings in which what a rule or a window leaves out is nearly what it may."""
    for curve, z, nats, tail, shared in (
        (SampledGaussianRenyi(0.2, 0.98, False), 1.7e-4, 6.117, 12.0, 64.0),
        (SampledGaussianRenyi(0.3, 0.98, True), 10.8, 37.0, 4.8, 0.0),  # a window far on the left
        (SampledGaussianRenyi(0.025, 0.63, True), 239.0, 37.0, 4.75, 0.0),
        (SampledGaussianRenyi(0.02, 0.5, True), 700.0, 37.0, 0.5, 0.0),  # a short one
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampled_gaussian_renyi, "NATS", nats)
            patch.setattr(sampled_gaussian_renyi, "SHARED_REACH", shared)
            patch.setattr(SampledGaussianRenyi, "_tail", property(lambda _, tail=tail: tail))
            found = float(curve.divergence(np.array([z + 1]))[0])
        truth = float(_divergences(curve, np.array([z]))[0])
        if found < truth * (1 - 1e-9):
            return f"{curve} at {z}: {found} is below {truth}"
    return ""


def _fine_rule(curve, _):
    return sampled_gaussian_renyi.TrapezoidRule(0.05, 1.3 / curve.mu, 1.3)


def _divergences(curve, z):
    """Divergences by a fine rule, without cancellation."""
    x = np.linspace(-30.0, 60.0, 36001)
    log_ratio = np.logaddexp(
        math.log1p(-curve.rate), math.log(curve.rate) + curve.mu * x - curve.mu**2 / 2
    )
    power = -z if curve.record_added else z + 1
    y = np.multiply.outer(power, log_ratio)
    density = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    terms = np.exp(y - x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    far = np.abs(y) > 1e-3
    excess = np.where(far, terms - density * (1 + power[:, None] * np.expm1(log_ratio)), 0.0)
    ratio = np.expm1(log_ratio)
    near = density * (power * (power - 1) / 2)[:, None] * ratio**2
    near *= 1 + (power - 2)[:, None] * ratio / 3
    return np.log1p(np.where(far, excess, near).sum(axis=1)) / z
