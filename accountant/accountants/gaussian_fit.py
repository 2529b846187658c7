"""The fit of one Gaussian to a plan: its mu, and the regret, how much mu alone exaggerates.

A plan is mu-GDP if no test on its answers does better than a test of N(0, 1) against N(mu, 1).

References: Gomez, Kulynych, Kaissis, du Pin Calmon, Hayes, Balle & Honkela (2025); Kaissis, Kolek,
Balle, Hayes & Rueckert (2024) for the distance; the proof is in `docs/proofs/tradeoff.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from accountant.accountants.gdp import GDP
from accountant.accountants.profile_ends import ProfileEnds, profile_ends
from accountant.accountants.tradeoff_curves import MAX_EPSILON, finest_profile, single_pairs
from accountant.accountants.tradeoff_ends import ratio_gaps, steepest_slopes
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import Interval
from accountant.errors import UnsupportedPlan
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, ULP, round_up
from accountant.plans.plan import Plan, as_plan

TAIL = 1e-10  # error rate: tests with a smaller error rate of some kind are left out by default
ALMOST_SURE = 1 - 64 * ULP  # total variation: above it the difference from 1 is all round-off
TAILS = Interval(0.0, 0.01)
POINTS = 65  # epsilons of the first round
# each round divides the steps next to the corner with the greatest mu in so many; rounds at most
SPLITS, MAX_ROUNDS = 4, 14
ENOUGH = 1e-9  # relative to mu: a round that gains less is the last one
LEAST_STEP = 1e-6  # nats of epsilon: in a finer step the differences would be round-off
REGRET_POINTS, REGRET_ROUNDS, REGRET_ENOUGH = 48, 4, 1e-7
LEAST_DELTA = 1e-300  # a smaller delta is rounded up to this, so that its logarithm is finite
# nats of epsilon: beyond it the Gaussian's own delta over 1 + e^epsilon is negligible
REGRET_END = 20.0
CENTRES = 4  # epsilons at which engines are chosen; each serves the epsilons around it


@final
@dataclass(frozen=True, slots=True)
class GaussianFit:
    """The mu of a plan and the regret of reporting it alone.  Unpacks as ``mu, regret``.

    Parameters
    ----------
    mu : float
        No test does better than on N(0, 1) against N(mu, 1); infinite where no mu is known.
    regret : float
        Both error rates of the Gaussian's tests are at most this much too small.
    tail : float
        ``mu`` holds for tests both of whose error rates are at least this; for all where 0.
    reason : str
        Why ``mu`` is infinite; else empty.

    Examples
    --------
    >>> from accountant import ApproxLoss, gdp_of
    >>> fit = gdp_of(ApproxLoss(1.0, 0.01))
    >>> fit.mu, fit.reason
    (inf, 'with a chance of 0.01 an answer reveals all, and no Gaussian does')
    """

    mu: float
    regret: float
    tail: float = 0.0
    reason: str = ""

    def __iter__(self) -> Iterator[float]:
        return iter((self.mu, self.regret))


def gdp_of(plan: Plan, tail: float = TAIL) -> GaussianFit:
    """Return the least mu such that the plan is mu-GDP, and the regret of reporting it.

    Rare events spoil a mu: a thousand sampled Gaussians are as good as one Gaussian for all tests
    that anyone can run, and far out in the tail as bad as a thousand without sampling.  Hence tests
    with an error rate below ``tail`` are left out, as in the literature.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    tail : float
        The least error rate that counts, in [0, 0.01]; 0 for all.  Where both rates of one test can
        be nearly as small, the square of that is taken instead.

    Returns
    -------
    GaussianFit
        ``mu`` and ``regret``, both rounded up; ``tail`` is 0 where ``mu`` holds for all tests.
        Infinite, with the reason, where there is no mu.

    References
    ----------
    Gomez, Kulynych, Kaissis, du Pin Calmon, Hayes, Balle & Honkela (2025).

    Examples
    --------
    >>> from accountant import PureLoss, gdp_of
    >>> mu, regret = gdp_of(PureLoss(1.0))
    >>> round(mu, 6), round(regret, 3)
    (1.232035, 0.058)
    """
    plan, tail = as_plan(plan), TAILS.check("tail", tail)
    plan_loss = loss_of_plan(plan)
    if isinstance(plan_loss, GaussianLoss):
        return GaussianFit(plan_loss.mu, 0.0)
    pairs = single_pairs(plan)
    lost = max(loss_of_plan(pair).infinity for pair in pairs)
    if lost > 0:
        return _no_fit(f"with a chance of {lost:.3g} an answer reveals all, and no Gaussian does")
    added_mu = _added_mu(plan)
    curves = [finest_profile(pair) for pair in pairs]

    def profile(epsilon: Array) -> Array:
        deltas = np.maximum.reduce([curve.profile(epsilon) for curve in curves])
        delta: Array = np.minimum(deltas * (1 + ACCURACY), 1.0)
        return delta

    max_loss = max(curve.max_loss for curve in curves)
    at_zero = float(profile(np.zeros(1))[0])
    if at_zero == 0:
        return GaussianFit(0.0, 0.0)
    # the error rate that both kinds can have at once
    tail = min(tail, ((1 - at_zero) / 2) ** 2)
    mu, reached = math.inf, tail
    atoms = [np.abs(curve.loss_pmf[0]) for curve in curves if curve.loss_pmf is not None]
    corners = np.concatenate([*atoms, np.empty(0)])
    if at_zero < ALMOST_SURE and (tail > 0 or max_loss <= MAX_EPSILON):
        mu, is_whole = _greatest_mu(profile, max_loss, tail, corners)
        reached = 0.0 if is_whole else tail
    if added_mu <= mu:
        mu, reached = added_mu, 0.0
    if math.isinf(mu) and tail == 0 < at_zero < ALMOST_SURE:
        return _no_fit("of its rare events no mu is known: a tail above 0 leaves them out")
    if math.isinf(mu):
        return _no_fit("its answers tell the neighbours apart almost surely")
    return GaussianFit(mu, _regret(mu, [profile_ends(pair) for pair in pairs], corners), reached)


def _no_fit(reason: str) -> GaussianFit:
    return GaussianFit(math.inf, math.inf, 0.0, reason)


def _added_mu(plan: Plan) -> float:
    """Return the root of the sum of squares, where each release has a mu."""
    try:
        return GDP().mu(plan)
    except UnsupportedPlan:
        return math.inf


def _greatest_mu(
    profile: Callable[[Array], Array], max_loss: float, tail: float, corners: Array
) -> tuple[float, bool]:
    """Return the greatest mu over the corners of a curve below, and whether it is for all tests."""
    # a level is at most e^-epsilon
    end = min(max_loss, -math.log(tail) if tail > 0 else math.inf, MAX_EPSILON)
    size = min(2.5 * float(profile(np.zeros(1))[0]), end)
    ladder = size * np.sinh(np.linspace(0, 1, POINTS) * np.arcsinh(end / size))
    epsilon = np.unique(np.clip(np.concatenate([ladder, corners, [0.0, end]]), 0.0, end))
    delta = _known_profile(profile, epsilon, max_loss)
    best, before = math.inf, math.inf
    for _ in range(MAX_ROUNDS):
        vertices = _convex(epsilon, delta)
        mu, at = _corner_mus(epsilon[vertices], delta[vertices], tail)
        best = float(np.max(mu))
        if best > before * (1 - ENOUGH):
            break
        before = best
        steps = np.unique(np.clip(at[int(np.argmax(mu))] + np.arange(-1, 2), 0, vertices.size - 2))
        places = epsilon[vertices]
        share = np.arange(1, SPLITS) / SPLITS
        added = (places[steps, None] + np.outer(np.diff(places)[steps], share)).ravel()
        added = np.setdiff1d(
            added[np.repeat(np.diff(places)[steps] > LEAST_STEP, SPLITS - 1)], epsilon
        )
        if added.size == 0:
            break
        epsilon = np.append(epsilon, added)
        delta = np.append(delta, _known_profile(profile, added, max_loss))
        order = np.argsort(epsilon)
        epsilon, delta = epsilon[order], delta[order]
    covers_all = False
    if end == max_loss:
        vertices = _convex(epsilon, delta)
        covers_all = float(np.max(_corner_mus(epsilon[vertices], delta[vertices], 0.0)[0])) <= best
    return round_up(max(best, 0.0) + 1e-15, 64), covers_all


def _known_profile(profile: Callable[[Array], Array], epsilon: Array, max_loss: float) -> Array:
    """Return upper bounds on delta, also where they are too small for a float."""
    return np.where(epsilon < max_loss, np.maximum(profile(epsilon), LEAST_DELTA), 0.0)


def _log_levels(epsilon: Array, delta: Array) -> tuple[Array, Array]:
    """Return what delta falls between points, and ln of the level where their lines meet."""
    # (d_i - d_{i+1}) / (x_{i+1} - x_i) in x = e^epsilon
    fall, step = np.maximum(delta[:-1] - delta[1:], 0.0), np.diff(epsilon)
    with np.errstate(divide="ignore"):
        level = np.log(fall) - epsilon[:-1] - step - np.log(-np.expm1(-step))
    return fall, level


def _convex(epsilon: Array, delta: Array) -> NDArray[np.intp]:
    """Return points whose lines are all part of the curve: any choice of lines is below it."""
    vertices = np.arange(epsilon.size)
    while True:
        level = _log_levels(epsilon[vertices], delta[vertices])[1]
        good = np.concatenate([[True], level[1:] < level[:-1], [True]])
        if good.all():
            return vertices
        vertices = vertices[good]


def _corner_mus(epsilon: Array, delta: Array, tail: float) -> tuple[Array, NDArray[np.intp]]:
    """Return the mu of each corner at a level of at least ``tail``, and the line before it."""
    fall, level = _log_levels(epsilon, delta)
    with np.errstate(over="ignore"):
        power = delta[:-1] + fall / np.expm1(np.diff(epsilon))
    lines = np.arange(level.size)
    if tail > 0:
        inside = level >= math.log(tail)
        heights = delta + np.exp(epsilon) * tail
        level, power = (
            np.append(level[inside], math.log(tail)),
            np.append(power[inside], min(heights)),
        )
        lines = np.append(lines[inside], np.argmin(heights))
    # -Phi^-1(level) - Phi^-1(1 - power), its logarithms with their round-off
    size = np.abs(level) + np.max(epsilon) + 1
    log_power = np.minimum(np.log(power) + 8 * ULP, 0.0)
    return ndtri_exp(log_power) - ndtri_exp(level - 8 * ULP * size), lines


def _regret(mu: float, ends: list[ProfileEnds], corners: Array) -> float:
    """Return an upper bound on ``(delta_mu(e) - delta(e)) / (1 + e^e)`` over all e >= 0."""
    gaussian, end = GaussianLoss(mu), np.array([REGRET_END])
    ladder = np.sinh(np.linspace(0, np.arcsinh(REGRET_END / 0.1), REGRET_POINTS)) * 0.1
    added = np.unique(np.append(np.clip(ladder, 0.0, REGRET_END), corners[corners < REGRET_END]))
    epsilon, low, high = np.empty(0), np.empty(0), np.empty(0)
    beyond = float(gaussian.profile(end)[0]) / (1 + math.exp(REGRET_END))
    for _ in range(REGRET_ROUNDS):
        delta_ends = _delta_bounds(ends, added)
        epsilon, low, high = (
            np.append(a, b) for a, b in zip((epsilon, low, high), (added, *delta_ends), strict=True)
        )
        order = np.argsort(epsilon)
        epsilon, low, high = epsilon[order], low[order], high[order]
        top = gaussian.profile(epsilon) * (1 + ACCURACY)
        at_points = (top - low) / (1 + np.exp(epsilon))
        between = _regret_between(epsilon, top, low, high)
        best = float(np.max(between))
        if best <= np.max(at_points) + REGRET_ENOUGH:
            break
        i = int(np.argmax(between))
        added = np.setdiff1d(np.linspace(epsilon[i], epsilon[i + 1], SPLITS + 1), epsilon)
    return min(max(beyond, best, float(np.max(at_points)), 0.0) * (1 + 16 * ULP) + 16 * ULP, 1.0)


def _regret_between(epsilon: Array, top: Array, low: Array, high: Array) -> Array:
    """Return the ratio's bound between neighbouring points, where two lines below delta meet."""
    gap = ratio_gaps(epsilon)
    rising, falling = steepest_slopes(gap, np.append(-1.0, -high), np.append(-1.0, -low))
    width, rising, falling = np.diagonal(gap, 1)[1:], rising[1:], falling[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (low[:-1] - low[1:] + falling * width) / (rising + falling)
        inside = (cross > 0) & (cross < width)
        cross = np.where(inside, cross, 0.0)
        below = low[:-1] - np.where(inside, rising * cross, 0.0)
    # the Gaussian's delta is convex in e^epsilon, hence below its chord
    chord = top[:-1] + np.diff(top) * cross / width
    ratio: Array = (chord - below) / (1 + np.exp(epsilon[:-1]) + cross)
    return ratio


def _delta_bounds(ends: list[ProfileEnds], epsilon: Array) -> tuple[Array, Array]:
    """Return bounds on delta of the worse direction, by engines near a few of the epsilons."""
    parts = np.array_split(epsilon, min(CENTRES, epsilon.size))
    bounds = [
        np.maximum.reduce(
            [np.array(profile.near(float(np.median(part)), part)) for profile in ends]
        )
        for part in parts
    ]
    low, high = np.concatenate(bounds, axis=1)
    return low, high
