"""Law: what pairs on a lattice say of two releases, and of sums, is true on another road."""

import math

import numpy as np

from accountant import GaussianLoss, PoissonSampled
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.grid_certificate import grid_certificate
from accountant.composition.lattice_above import LatticeAbove, LatticeCurve
from accountant.composition.profile_pairs import pairs_from_profile
from accountant.composition.tilted_law import GridLaw

# steps, rate, noise, delta: epsilon by quadrature of the profile of one step; last, with the
# record added
TRUTHS = [
    (False, 0.01, 1.0, 1e-5, 0.24546597607, 0.24546597609),
    (False, 0.004, 0.8, 1e-8, 1.12368132, 1.123681323),
    (True, 0.3, 2.0, 1e-6, 0.51896372980, 0.51896372983),
]
EPSILON, STEP = 0.25, 0.125


def interval_violation() -> str:
    """An interval without the truth."""
    for added, rate, noise, delta, low, high in TRUTHS:
        loss = PoissonSampled(GaussianLoss(1 / noise), rate)
        found = grid_certificate([(loss.reversed if added else loss, 2)], delta, 1e-6)
        if found is None or not (found.lower <= high and low <= found.upper):
            return f"[{low}, {high}] and {found} do not meet"
    return ""


def sum_violation() -> str:
    """A sum on a lattice that errs more than it says."""
    # nearly all of it is where it adds nothing: round-off is seen
    rare = np.append(np.random.default_rng(0).dirichlet(np.ones(30)), np.full(60, 1e-20))
    even = np.full(90, 1 / 90)
    for mass, tilt, log_wrapped in ((rare, 0.5, -60.0), (even, 0.5, -8.0), (even, 1.0, -8.0)):
        law = GridLaw(STEP, -31, 0.0, mass, 3)
        sums = SumOnGrid([law], tilt, (EPSILON, 1.1 * EPSILON), log_wrapped, 2**14)
        sums.convolve()
        direct = np.convolve(np.convolve(mass, mass), mass)
        losses = STEP * (np.arange(direct.size) - 93)
        for epsilon in (EPSILON, 0.27):
            truth = float(np.sum(direct * -np.expm1(np.minimum(epsilon - losses, 0.0))))
            value, error = sums.delta(epsilon)
            scale = math.exp(sums.log_scale(epsilon))
            if not abs(value * scale - truth) <= min(error, 1.0) * scale + 1e-15 * truth:
                return f"{value * scale} is not within {error * scale} of {truth}"
    return ""


def profile_violation() -> str:
    """A pair that is not above, or not below, a loss known by rough bounds on its profile."""
    epsilon = np.linspace(-1.0, 1.0, 41)
    for step, rough in ((0.013, 1e-3), (0.05, 1e-3), (0.05, 1e-9)):
        below, above = pairs_from_profile(Rough(rough), 1, 0.0, step, (-2.0, 2.0), 3.0)
        for pair, side in ((below, -1), (above, 1)):
            sticks = -np.expm1(np.minimum(epsilon[:, None] - pair.law.points, 0.0))
            off = sticks @ pair.law.mass + pair.p_beyond - LOSS.profile_any_epsilon(epsilon)
            if np.any(side * off < -1e-13):
                return f"a pair is {np.min(side * off)} on the wrong side"
    return ""


LOSS = GaussianLoss(0.7)


class Rough:
    """A normal loss, its profile known to a share of itself."""

    infinity, max_loss = 0.0, math.inf

    def __init__(self, share):
        self.share = share

    def profile_bounds(self, epsilon):
        """Return bounds that are wide."""
        value = LOSS.profile_any_epsilon(epsilon)
        share = np.random.default_rng(0).random((2, value.size)) * self.share
        return value * (1 - share[0]), value * (1 + share[1])


def above_violation() -> str:
    """An upper bound of one lattice, cut where much is above, that is below a normal loss."""
    one = GaussianLoss(0.7)
    two = GaussianLoss(0.7 * math.sqrt(2))
    found = LatticeAbove.of([(one, 2)], 0.02, 1e-3).epsilon(5e-3, 1.01 * two.epsilon_at(5e-3))
    if not found >= two.epsilon_at(5e-3) * (1 - 1e-9):
        return f"{found} is below the truth"
    epsilon = np.array([0.0, 0.3, 1.0, 2.5])
    deltas = LatticeCurve.of([(one, 2)], 0.02).profile(epsilon)
    if np.any(deltas < two.profile(epsilon) * (1 - 1e-9)):
        return f"{deltas} are below the truth"
    return ""


def violation() -> str:
    """What is wrong with any of them."""
    return interval_violation() or sum_violation() or profile_violation() or above_violation()


def test_right_lattices_hold():
    assert violation() == ""
