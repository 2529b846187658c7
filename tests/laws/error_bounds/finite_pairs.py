"""Finite pairs above and below a profile that is known at few points, or to few digits."""

import itertools
import math

import mpmath
import numpy as np

from accountant import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampled,
    PureLoss,
    SampledWithoutReplacement,
    Tight,
)
from accountant.amplification.group_privacy import GroupLoss
from accountant.losses import connect_the_dots
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics.rounding import ACCURACY

LOSSES = GaussianLoss(0.9), PureLoss(1.3)
EPSILONS = np.linspace(-3.0, 3.0, 241)


def _profile(pair, epsilon=EPSILONS):
    """The profile of a finite pair, in floats."""
    return -np.expm1(np.minimum(epsilon[:, None] - pair.loss, 0.0)) @ pair.mass + pair.infinity


def _exact_profile(pair, epsilon):
    """The profile of a finite pair, in 30 digits."""
    with mpmath.workdps(30):
        terms = [
            mpmath.mpf(float(m)) * (1 - mpmath.exp(mpmath.mpf(epsilon) - mpmath.mpf(float(x))))
            for x, m in zip(pair.loss, pair.mass, strict=True)
            if x > epsilon
        ]
        return mpmath.fsum(terms) + mpmath.mpf(float(pair.infinity))


def few_points_violation():
    """Points far apart, in even and uneven steps: the chords leave much open."""
    rng = np.random.default_rng(3)
    uneven = [np.sort(rng.uniform(-2.0, 2.0, int(rng.integers(3, 9)))) for _ in range(6)]
    even = [np.linspace(-2.0, 2.0, count) for count in (3, 6, 12)]
    for loss, points in itertools.product(LOSSES, (*even, *uneven)):
        below = connect_the_dots.pair_below(loss.profile_any_epsilon, 0.0, points)
        above = connect_the_dots.pair_above(loss.profile_any_epsilon, points)
        truth = loss.profile_any_epsilon(EPSILONS)
        low, high = _profile(below), _profile(above)
        wrong = (low > truth + 1e-12) | (high < truth - 1e-12)
        if wrong.any():
            return f"{points}: {truth[wrong]} not in {low[wrong]}, {high[wrong]}"
    return ""


def rough_profile_violation():
    """A profile of which as many digits are right as a profile must have."""
    # straight lines between the points, and no two corners beside each other: no chord leaves
    # anything open
    points = np.linspace(-1.0, 1.5, 11)
    pair = connect_the_dots.FinitePair(points[[2, 6, 10]], np.array([0.5, 0.3, 0.2]), 0.0)
    for off in (-0.99 * ACCURACY, 0.0, 0.99 * ACCURACY):

        def profile(epsilon, off=off):
            sticks = -np.expm1(np.minimum(np.asarray(epsilon)[..., None] - pair.loss, 0.0))
            return sticks @ pair.mass * (1 + off)

        below = connect_the_dots.pair_below(profile, 0.0, points)
        above = connect_the_dots.pair_above(profile, points)
        for epsilon in (-3.0, *points.tolist(), 0.1):
            truth, low, high = (_exact_profile(one, epsilon) for one in (pair, below, above))
            if not low <= truth <= high:
                return f"off by {off}, {epsilon}: {truth} not in [{low}, {high}]"
    return ""


def small_loss_violation():
    """A loss so small that its points differ in the last digits of e^epsilon alone."""
    for loss in (GaussianLoss(1e-12), PureLoss(1e-12)):
        points = 1e-12 * np.sinh(np.linspace(-2.0, 2.0, 31))
        below = connect_the_dots.pair_below(loss.profile_any_epsilon, 0.0, points)
        above = connect_the_dots.pair_above(loss.profile_any_epsilon, points)
        profile = loss.profile_any_epsilon(points) * 1.0
        for epsilon, truth in zip(points.tolist(), profile.tolist(), strict=True):
            low, high = (_exact_profile(pair, epsilon) for pair in (below, above))
            if not low <= truth <= high:
                return f"{loss}, {epsilon}: {truth} not in [{low}, {high}]"
    return ""


class Coarse:
    """A loss of which a discretisation has few points."""

    numerics = LossNumerics(discretisation_points=256)

    def __init__(self, loss):
        self.loss = loss

    def __getattr__(self, name):
        return getattr(self.loss, name)


def cut_violation():
    """A discretisation with a cut: all beyond it counts as infinite, or as nothing."""
    tail, epsilon = 0.05, np.linspace(-3.0, 3.0, 25)
    for loss in (*map(GaussianLoss, (0.7, 0.9, 1.2)), LaplaceLoss(1.5)):
        low, high = (
            _profile(connect_the_dots.discretise(Coarse(loss), tail, upper=upper), epsilon)
            for upper in (False, True)
        )
        truth = loss.profile_any_epsilon(epsilon)
        wrong = (low > truth + 1e-12) | (high < truth - 1e-12)
        wrong |= (low < truth - 1.2 * tail) | (high > truth + tail)
        if wrong.any():
            return f"{loss}: {truth[wrong]} not in {low[wrong]}, {high[wrong]}"
    return ""


def violation():
    """What is wrong with any of them."""
    return (
        few_points_violation() or rough_profile_violation() or small_loss_violation()
        or cut_violation()
    )  # fmt: skip


def little_noise_violation():
    """Discrete noise so little that masses of the neighbour are too small for a float."""
    for scale, shift in ((1 / 60, 1), (0.027, 1), (0.5, 20), (1.0, 33), (1.0, 40), (3.0, 120)):
        loss = DiscreteGaussianLoss(scale, shift)
        masses = loss.loss_pmf[1]
        if not math.isclose(loss.infinity + float(masses.sum()), 1.0, rel_tol=1e-12):
            return f"{loss}: mass {loss.infinity} at infinity beside {float(masses.sum())}"
        # at least half of the outcomes, those up to 0, have a loss of this and more
        least = 0.5 * (shift / scale) ** 2
        if not loss.epsilon_at(0.25) >= 0.99 * least:
            return f"{loss}: epsilon {loss.epsilon_at(0.25)} at delta 0.25"
    return ""


def large_group_violation():
    """Groups whose likeliest outcomes are too rare for a float without the records."""
    for scale, size in ((0.01, 5), (0.01, 8), (0.01, 50), (0.2, 160)):
        # the noise of a group is that of a shift so many times as large
        loss = GroupLoss(DiscreteLaplaceLoss(scale, 1), size)
        for delta in (1e-6, 0.25):
            truth = DiscreteLaplaceLoss(scale, size).epsilon_at(delta)
            found = Tight().certify(loss, delta)
            if not (found.lower <= truth * (1 + 1e-9) and truth * (1 - 1e-9) <= found.upper):
                return f"{size} at scale {scale}, delta {delta}: {found}, not {truth}"
    return ""


def sampled_masses_violation():
    """Samples of losses whose masses are too small for a float under one of the two laws."""
    for part in (PureLoss(0.5), PureLoss(800.0), DiscreteLaplaceLoss(0.001, 1)):
        sampled = PoissonSampled(part, 0.25)
        for one in (sampled, sampled.reversed):
            losses, masses = one.loss_pmf
            if not math.isclose(one.infinity + float(masses.sum()), 1.0, rel_tol=1e-12):
                return f"{one} has masses {masses} at {losses}"
    return ""


def far_moments_violation():
    """Rényi curves of losses so large that no point of a finite pair reaches them."""
    rate, orders = 0.01, np.array([1.1, 2.0, 30.0])
    for epsilon in (2.0, 600.0, 1000.0):
        sampled = SampledWithoutReplacement(PureLoss(epsilon), 1, 100)
        share = 1 / (1 + math.exp(-epsilon))
        largest = math.log1p(rate * math.expm1(epsilon)) if epsilon < 700 else (
            epsilon + math.log(rate)
        )  # fmt: skip
        mass = rate * share + (1 - rate) * (1 - share)
        found = sampled.renyi(orders)
        if not np.all(found >= (largest + math.log(mass) / (orders - 1)) * (1 - 1e-12)):
            return f"{sampled}: divergences {found}, and a loss {largest} of mass {mass}"
    return ""
