"""The fit of one Gaussian to a plan: the least mu that bounds it, and the regret of this bound.

A plan is mu-GDP if no test that tells its neighbours apart does better than the best test of
N(0, 1) against N(mu, 1).  With alpha and beta the error rates of the first and the second kind,
the plan's trade-off curve is

    f(alpha) = sup over epsilon of 1 - delta(epsilon) - x alpha,  x = e^epsilon,

so each epsilon gives a straight line below it.  The Gaussian's curve is
G_mu(alpha) = Phi(-Phi^-1(alpha) - mu).  `_greatest_mu` takes the greatest of finitely many lines,
a convex chain of segments below f, and the least mu for which G_mu is below the chain; as G_mu is
convex, it suffices to compare them at the corners of the chain.  The regret is a kappa with
f(alpha + kappa) - kappa <= G_mu(alpha) for all alpha, namely

    kappa = sup over epsilon of (delta_mu(epsilon) - delta(epsilon)) / (1 + x).

References: Gomez, Kulynych, Kaissis, du Pin Calmon, Hayes, Balle & Honkela (2025); Kaissis, Kolek,
Balle, Hayes & Rueckert (2024) for the distance; the proof is in `docs/proofs/tradeoff.md`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from accountant.accountants.gdp import GDP
from accountant.accountants.tradeoff_curves import finest_profile, single_pairs
from accountant.accountants.tradeoff_ends import ratio_gaps, steepest_slopes
from accountant.composition.composed_loss import loss_of_plan
from accountant.composition.profile_ends import ProfileEnds, profile_ends
from accountant.domains import Interval
from accountant.errors import UnsupportedPlan
from accountant.losses.gaussian import GaussianLoss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, ULP, round_up
from accountant.plans.plan import Plan, as_plan

# Tests with an error rate, of either kind, below the tail are left out: what it is by default, and
# what a caller may choose.
TAIL, TAILS = 1e-10, Interval(0.0, 0.01)
ALMOST_SURE = 1 - 64 * ULP  # total variation: above it the difference from 1 is all round-off
POINTS = 65  # number of epsilons of the first round of the search for mu; the next ones add to them
# After each round up to three steps of epsilon around the corner with the greatest mu are divided
# into SPLITS parts; there are at most MAX_ROUNDS rounds.
SPLITS, MAX_ROUNDS = 4, 14
ENOUGH = 1e-9  # relative to mu: a round that lowers mu by less is the last one
# nats of epsilon: shorter steps are not divided, as the differences of delta would be round-off
LEAST_STEP = 1e-6
# The search for the regret: number of epsilons of its first round, largest number of rounds, and
# how far the bound between the epsilons may be above the greatest value at one of them.  The first
# epsilons have nearly equal steps up to REGRET_SCALE, and growing ones beyond.
REGRET_POINTS, REGRET_ROUNDS, REGRET_ENOUGH = 48, 4, 1e-7
REGRET_SCALE = 0.1
LEAST_DELTA = 1e-300  # a smaller delta is rounded up to this, so that its logarithm is finite
# nats of epsilon: the search for the regret ends here.  Beyond, the regret is at most
# delta_mu(20) / (1 + e^20) < 3e-9, which `_regret` takes into account.
REGRET_END = 20.0
# The epsilons are cut into this many runs of neighbours.  The engines that bound delta are chosen
# at the median of each run and serve all of it.
CENTRES = 4


@final
@dataclass(frozen=True, slots=True)
class GaussianFit:
    """The mu of a plan and the regret of reporting it alone.  Unpacks as ``mu, regret``.

    Parameters
    ----------
    mu : float
        No test does better than the best one of N(0, 1) against N(mu, 1); infinite where no mu is
        known.
    regret : float
        If this is added to both error rates of any test of N(0, 1) against N(mu, 1), the sums are
        a point on or above the plan's trade-off curve.
    tail : float
        ``mu`` holds for tests with two error rates of at least this; where it is 0, for all tests.
    reason : str
        Why ``mu`` is infinite; empty where it is finite.

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

    Rare events would make mu much larger.  A thousand sampled Gaussians are close to one Gaussian
    of small mu for all tests of practical error rates, but in the far tail they are as revealing
    as a thousand Gaussians without sampling.  Hence tests with an error rate below ``tail`` are
    left out, as in the literature.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    tail : float
        The least error rate that counts, in [0, 0.01]; with 0 all tests count.  If the best test
        with two equal error rates has the rate a, and a^2 is below ``tail``, a^2 is taken instead.

    Returns
    -------
    GaussianFit
        ``mu`` and ``regret``, both rounded up; ``tail`` is 0 where ``mu`` holds for all tests.
        Where no mu is known, both are infinite, and ``reason`` says why.

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
    infinity_mass = max(loss_of_plan(pair).infinity for pair in pairs)
    if infinity_mass > 0:
        return _no_fit(
            f"with a chance of {infinity_mass:.3g} an answer reveals all, and no Gaussian does"
        )
    added_mu = math.inf
    with contextlib.suppress(UnsupportedPlan):  # some releases have no mu of their own
        added_mu = GDP().mu(plan)  # for all tests
    curves = [finest_profile(pair) for pair in pairs]

    def profile(epsilon: Array) -> Array:
        deltas = np.maximum.reduce([curve.profile(epsilon) for curve in curves])
        delta: Array = np.minimum(deltas * (1 + ACCURACY), 1.0)
        return delta

    max_loss = max(curve.max_loss for curve in curves)
    delta_at_zero = float(profile(np.zeros(1))[0])
    if delta_at_zero == 0:
        return GaussianFit(0.0, 0.0)
    equal_error_rate = (1 - delta_at_zero) / 2  # the best test with two equal error rates has it
    tail = min(tail, equal_error_rate**2)
    mu, valid_tail = math.inf, tail
    atoms = [np.abs(curve.loss_pmf[0]) for curve in curves if curve.loss_pmf is not None]
    corners = np.concatenate([*atoms, np.empty(0)])
    if delta_at_zero < ALMOST_SURE and (tail > 0 or max_loss <= MAX_EXPONENT):
        mu, is_whole = _greatest_mu(profile, max_loss, tail, corners)
        valid_tail = 0.0 if is_whole else tail
    if added_mu <= mu:
        mu, valid_tail = added_mu, 0.0
    if math.isinf(mu) and tail == 0 < delta_at_zero < ALMOST_SURE:
        return _no_fit("of its rare events no mu is known: a tail above 0 leaves them out")
    if math.isinf(mu):
        return _no_fit("its answers tell the neighbours apart almost surely")
    return GaussianFit(mu, _regret(mu, [profile_ends(pair) for pair in pairs], corners), valid_tail)


def _no_fit(reason: str) -> GaussianFit:
    return GaussianFit(math.inf, math.inf, 0.0, reason)


def _greatest_mu(
    profile: Callable[[Array], Array], max_loss: float, tail: float, corners: Array
) -> tuple[float, bool]:
    """Return the greatest mu over the corners of the chain, and whether it holds for all tests.

    ``profile`` is delta of the worse direction, 0 from ``max_loss`` on; ``corners`` are epsilons to
    use besides those of the search.  Any epsilons give a valid mu; more of them give a smaller one.
    """
    # The tangent at epsilon touches the curve at a level of at most e^-epsilon, so beyond -ln tail
    # all levels are below the tail.
    end = min(max_loss, -math.log(tail) if tail > 0 else math.inf, MAX_EXPONENT)
    # The first epsilons have nearly equal steps up to about mu, and growing steps beyond.  For a
    # Gaussian of small mu, delta(0) is 0.4 mu.
    rough_mu = min(2.5 * float(profile(np.zeros(1))[0]), end)
    first = rough_mu * np.sinh(np.linspace(0, 1, POINTS) * np.arcsinh(end / rough_mu))
    epsilon = np.unique(np.clip(np.concatenate([first, corners, [0.0, end]]), 0.0, end))
    delta = _profile_bounds(profile, epsilon, max_loss)
    best, previous_best = math.inf, math.inf
    for _ in range(MAX_ROUNDS):
        vertices = _convex(epsilon, delta)
        mu, line_index = _corner_mus(epsilon[vertices], delta[vertices], tail)
        best = float(np.max(mu))
        if best > previous_best * (1 - ENOUGH):
            break
        previous_best = best
        # The step between the two lines of the worst corner, and its neighbours, are divided.
        worst = line_index[int(np.argmax(mu))]
        steps = np.unique(np.clip(worst + np.arange(-1, 2), 0, vertices.size - 2))
        starts, lengths = epsilon[vertices][steps], np.diff(epsilon[vertices])[steps]
        is_long = lengths > LEAST_STEP
        fractions = np.arange(1, SPLITS) / SPLITS
        divided = starts[is_long, None] + np.outer(lengths[is_long], fractions)
        added = np.setdiff1d(divided, epsilon)
        if added.size == 0:
            break
        epsilon = np.append(epsilon, added)
        delta = np.append(delta, _profile_bounds(profile, added, max_loss))
        order = np.argsort(epsilon)
        epsilon, delta = epsilon[order], delta[order]
    # Where no epsilon was left out, the same chain shows whether mu also holds without a tail.
    covers_all = False
    if end == max_loss:
        vertices = _convex(epsilon, delta)
        mu_of_all, _ = _corner_mus(epsilon[vertices], delta[vertices], tail=0.0)
        covers_all = float(np.max(mu_of_all)) <= best
    # 1e-15 is for the round-off of a mu near 0, where two quantiles of similar size are subtracted.
    return round_up(max(best, 0.0) + 1e-15, 64), covers_all


def _profile_bounds(profile: Callable[[Array], Array], epsilon: Array, max_loss: float) -> Array:
    """Return upper bounds on delta: at least `LEAST_DELTA` below ``max_loss``, and 0 from it on."""
    return np.where(epsilon < max_loss, np.maximum(profile(epsilon), LEAST_DELTA), 0.0)


def _log_levels(epsilon: Array, delta: Array) -> tuple[Array, Array]:
    """Return ``d_i - d_{i+1}``, and ln of the level at which the lines of both points meet.

    The lines 1 - d_i - x_i alpha and 1 - d_{i+1} - x_{i+1} alpha, with x = e^epsilon, meet at the
    level alpha_i = (d_i - d_{i+1}) / (x_{i+1} - x_i), where
    x_{i+1} - x_i = e^epsilon_i e^step (1 - e^-step) and step = epsilon_{i+1} - epsilon_i.
    """
    fall, step = np.maximum(delta[:-1] - delta[1:], 0.0), np.diff(epsilon)
    with np.errstate(divide="ignore"):
        level = np.log(fall) - epsilon[:-1] - step - np.log(-np.expm1(-step))
    return fall, level


def _convex(epsilon: Array, delta: Array) -> NDArray[np.intp]:
    """Return the indices of points whose lines meet at strictly falling levels: a convex chain.

    The other points are left out, which keeps the chain below the curve, as each line is below it.
    """
    vertices = np.arange(epsilon.size)
    while True:
        _, level = _log_levels(epsilon[vertices], delta[vertices])
        is_falling = np.concatenate([[True], level[1:] < level[:-1], [True]])
        if is_falling.all():
            return vertices
        vertices = vertices[is_falling]


def _corner_mus(epsilon: Array, delta: Array, tail: float) -> tuple[Array, NDArray[np.intp]]:
    """Return the mu of each corner at a level of at least ``tail``, and the index of its line.

    The Gaussian's curve passes through the corner (alpha_i, beta_i) if
    mu = Phi^-1(1 - beta_i) - Phi^-1(alpha_i), and 1 - beta_i = d_i + x_i alpha_i is the power.  If
    the tail is above 0, the point of the chain at the level of the tail is a corner too.  The index
    is that of the first of the two points whose lines meet at the corner; at the tail, that of the
    point whose line is the greatest.
    """
    fall, level = _log_levels(epsilon, delta)
    with np.errstate(over="ignore"):
        power = delta[:-1] + fall / np.expm1(np.diff(epsilon))
    lines = np.arange(level.size)
    if tail > 0:
        is_above_tail = level >= math.log(tail)
        heights = delta + np.exp(epsilon) * tail
        level, power = (
            np.append(level[is_above_tail], math.log(tail)),
            np.append(power[is_above_tail], min(heights)),
        )
        lines = np.append(lines[is_above_tail], np.argmin(heights))
    # Both quantiles are taken of logarithms.  The power is raised and the level is lowered by the
    # round-off of its terms, so that mu is rounded up.  The terms of a level are two logarithms, of
    # which that of the least step may be large, and two epsilons.
    size = np.abs(level) + np.max(epsilon) + 1 - np.log(min(np.min(np.diff(epsilon)), 1.0))
    log_power = np.minimum(np.log(power) + 8 * ULP, 0.0)
    return ndtri_exp(log_power) - ndtri_exp(level - 8 * ULP * size), lines


def _regret(mu: float, ends: list[ProfileEnds], corners: Array) -> float:
    """Return an upper bound on ``(delta_mu(eps) - delta(eps)) / (1 + e^eps)`` over all eps >= 0.

    ``ends`` are bounds on delta of each pair, of which the greatest counts; ``corners`` are
    epsilons to use besides those of the search.  Negative eps repeat the positive ones, as both
    profiles belong to symmetric curves.  Each round bounds the ratio at and between its epsilons,
    and the next one divides the worst gap.
    """
    gaussian, end = GaussianLoss(mu), np.array([REGRET_END])
    scaled_end = np.arcsinh(REGRET_END / REGRET_SCALE)
    first = np.sinh(np.linspace(0, scaled_end, REGRET_POINTS)) * REGRET_SCALE
    added = np.unique(np.append(np.clip(first, 0.0, REGRET_END), corners[corners < REGRET_END]))
    epsilon, low, high = np.empty(0), np.empty(0), np.empty(0)
    beyond = float(gaussian.profile(end)[0]) / (1 + math.exp(REGRET_END))
    for _ in range(REGRET_ROUNDS):
        delta_ends = _delta_bounds(ends, added)
        epsilon, low, high = (
            np.append(a, b) for a, b in zip((epsilon, low, high), (added, *delta_ends), strict=True)
        )
        order = np.argsort(epsilon)
        epsilon, low, high = epsilon[order], low[order], high[order]
        gaussian_delta = gaussian.profile(epsilon) * (1 + ACCURACY)
        at_points = (gaussian_delta - low) / (1 + np.exp(epsilon))
        between = _regret_between(epsilon, gaussian_delta, low, high)
        best = float(np.max(between))
        if best <= np.max(at_points) + REGRET_ENOUGH:
            break
        worst = int(np.argmax(between))
        added = np.setdiff1d(np.linspace(epsilon[worst], epsilon[worst + 1], SPLITS + 1), epsilon)
    return min(max(beyond, best, float(np.max(at_points)), 0.0) * (1 + 16 * ULP) + 16 * ULP, 1.0)


def _regret_between(epsilon: Array, gaussian_delta: Array, low: Array, high: Array) -> Array:
    """Return an upper bound on the regret's ratio at the crossing of each gap between two points.

    delta is convex in x = e^epsilon.  So at a distance s in x from the left point of a gap it is at
    least ``low_left - rising s``, and at least ``low_right - falling (width - s)``; delta_mu, which
    is convex too, is below its chord.  The ratio of a linear function and 1 + x is monotone, so it
    is greatest at one of the points or where the two lines cross.  Where they do not cross inside
    the gap, the value at its left point is returned.
    """
    gap = ratio_gaps(epsilon)
    rising, falling = steepest_slopes(gap, np.append(-1.0, -high), np.append(-1.0, -low))
    # The first point of `ratio_gaps` is x = 0, where delta is 1.  It only helps to bound slopes;
    # the gap from there to the first epsilon is left out.
    width, rising, falling = np.diagonal(gap, 1)[1:], rising[1:], falling[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (low[:-1] - low[1:] + falling * width) / (rising + falling)
        inside = (cross > 0) & (cross < width)
        cross = np.where(inside, cross, 0.0)
        below = low[:-1] - np.where(inside, rising * cross, 0.0)
    chord = gaussian_delta[:-1] + np.diff(gaussian_delta) * cross / width
    ratio: Array = (chord - below) / (1 + np.exp(epsilon[:-1]) + cross)
    return ratio


def _delta_bounds(ends: list[ProfileEnds], epsilon: Array) -> tuple[Array, Array]:
    """Return a lower and an upper bound on the greater delta of all pairs, at increasing epsilons.

    The engines that bound delta are chosen near the median of each of `CENTRES` runs of epsilons.
    """
    parts = np.array_split(epsilon, min(CENTRES, epsilon.size))
    bounds = [
        np.maximum.reduce(
            [np.array(profile.near(float(np.median(part)), part)) for profile in ends]
        )
        for part in parts
    ]
    low, high = np.concatenate(bounds, axis=1)
    return low, high
