"""The loss of Gaussian noise in one of many steps: an epoch in which a record is used once.

With t = ``steps`` releases of N(0, 1) and a record that moves one of them, chosen at random, by mu,
the pair is P, the mean of t product laws with N(mu, 1) in one factor and N(0, 1) in the others,
against Q, N(0, 1) in all.  Its likelihood ratio P/Q is S / t, where S is the sum of the t ratios
e^{mu x - mu^2 / 2} of the single steps.  `AllocatedGaussian` has the profiles of both directions,
rounded up or down by their proved errors (`allocation_profile`), and Rényi divergences
(`allocation_renyi`).

Proof: `docs/proofs/random_allocation.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.allocation.allocation_profile import (
    NEGLIGIBLE_IN_SUMS,
    log_profile_bounds,
    one_decides,
    rough_epsilon,
)
from accountant.amplification.allocation.allocation_renyi import (
    chernoff_absent,
    log_moments,
    renyi_absent,
    renyi_present,
)
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, round_up, round_up_square
from accountant.numerics.search import falling_root

# Each epsilon of the profile is an integral, so that discretisations ask for fewer than usual.
NUMERICS = LossNumerics(discretisation_points=512, grid_points=2**12)
# The values of mu, from the first to the second, whose profile is integrated.  Of others only the
# bounds in closed form are known.
INTEGRATED_MU = (1e-3, 6.0)
# ln delta (delta 8e-40): where a bound without an integral is below it, nothing is integrated.
NEGLIGIBLE = -90.0
# How far, in ln delta, a probe of the inverse is put before the root, so that delta is above its
# target there in spite of the rough slope.
MARGIN = 0.1


@final
@dataclass(frozen=True, slots=True)
class AllocatedGaussian(Loss):
    """The mean of ``steps`` products, N(mu, 1) in one factor, against N(0, 1) in all.

    With ``added`` it is the pair in reverse, Q against P, as seen from the data without the record;
    `reversed` changes it.  The profile is rounded up by its proved error, for the upper end of a
    certificate, and with ``below`` down, for the lower end; `attained_pair` sets it.
    """

    mu: float
    steps: int
    added: bool = False
    below: bool = False

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the privacy profile by contour integrals, rounded up (or down)."""
        return np.exp(self.log_profile(epsilon))

    def log_profile(self, epsilon: ArrayLike) -> Array:
        """Return the logarithm of `profile`, accurate in the far tail."""
        e = epsilons(epsilon)
        lower, upper = self.log_bounds(np.ravel(e))
        return (lower if self.below else upper).reshape(e.shape)

    def log_bounds(self, flat: Array, *, in_sum: bool = False) -> tuple[Array, Array]:
        """Return logarithms of the profile at epsilons ``flat``, rounded down and up.

        Where delta is negligible the upper bound is one in closed form, and the lower one minus
        infinity (delta 0).  ``in_sum`` is for compositions, for which larger deltas are negligible.
        """
        negligible = NEGLIGIBLE_IN_SUMS if in_sum else NEGLIGIBLE
        is_within = INTEGRATED_MU[0] <= self.mu <= INTEGRATED_MU[1]
        # Bounds in closed form.  A mean of pairs is no easier to tell apart than each of them, so
        # delta is at most that of the Gaussian.  With (x - c)_+ <= x^n / c^{n-1},
        # delta = E_Q (S/t - e^eps)_+ is at most E_Q (S/t)^n e^{-(n-1) eps} for n >= 1 (Markov).
        # Where the record is added there is Chernoff's bound, which a composition takes for its
        # many tiny deltas.
        closed = GaussianLoss(self.mu).log_profile(flat)
        if not self.added:
            logs = log_moments(self.mu, self.steps)
            n = np.arange(logs.size)
            # At an infinite epsilon this may be NaN, for which `fmin` takes the other bound.
            with np.errstate(invalid="ignore"):
                markov = (logs - np.multiply.outer(flat, n - 1.0))[..., 1:].min(axis=-1)
            closed = np.fmin(closed, markov)
        elif in_sum and is_within:
            closed = np.fmin(closed, chernoff_absent(self.mu, self.steps, flat))
        lower, upper = np.full(flat.shape, -np.inf), closed  # Nothing is known from below so far.
        refined = (closed > negligible) & is_within
        if refined.any():
            lower[refined], integrated = log_profile_bounds(
                self.mu, self.steps, flat[refined], added=self.added, in_sum=in_sum
            )
            upper[refined] = np.fmin(closed[refined], integrated)
        return lower, upper

    def is_surely_within(self, epsilon: float, delta: float) -> bool:
        """Return whether Chernoff's inequality proves delta at ``epsilon`` to be at most ``delta``.

        It has an answer where the record is added.  That direction mostly costs less; where this
        proves it, a certificate need not integrate its profile.
        """
        if not (self.added and INTEGRATED_MU[0] <= self.mu <= INTEGRATED_MU[1]):
            return False
        bound = chernoff_absent(self.mu, self.steps, np.array([epsilon]))
        return float(bound[0]) <= math.log(delta)

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the upper bound of `profile_bounds`, or with ``below`` the lower one."""
        lower, upper = self.profile_bounds(np.ravel(epsilon))
        return np.clip(lower if self.below else upper, 0.0, 1.0).reshape(np.shape(epsilon))

    def profile_bounds(self, epsilon: Array) -> tuple[Array, Array]:
        """Return the profile rounded down and up, at any real epsilon."""
        # delta(-e) = 1 - e^-e + e^-e delta_reversed(e)
        bounds, is_positive = np.empty((2, epsilon.size)), epsilon >= 0
        bounds[:, is_positive] = np.exp(self.log_bounds(epsilon[is_positive], in_sum=True))
        e = -epsilon[~is_positive]
        reversed_bounds = np.exp(self.reversed.log_bounds(e, in_sum=True))
        bounds[:, ~is_positive] = -np.expm1(-e) + np.exp(-e) * reversed_bounds
        return bounds[0] * (1 - ACCURACY), bounds[1] * (1 + ACCURACY)

    @property
    def reversed(self) -> AllocatedGaussian:
        """The loss seen from the other data set."""
        return replace(self, added=not self.added)

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def rho(self) -> float:
        """mu^2 / 2, that of the Gaussian: no divergence of a mean is above the largest."""
        return round_up_square(self.mu, 2)

    @property
    def gdp_mu(self) -> float:
        """The mu of the Gaussian: no test does better on a mean of pairs than on each of them."""
        return self.mu

    @property
    def numerics(self) -> LossNumerics:
        """Composition discretises the profile: there are no exact cumulants."""
        return NUMERICS

    @property
    def attained_pair(self) -> Loss:
        """The same pair, its profile rounded down."""
        return replace(self, below=True)

    def renyi(self, order: ArrayLike) -> Array:
        """Return an upper bound on the divergence: moments of a sum of log-normal variables."""
        a = orders(order)
        divergence = (renyi_absent if self.added else renyi_present)(self.mu, self.steps, a)
        return np.minimum(divergence, a * self.rho)

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile, by a secant on its logarithm.

        It is rounded up, also where ``below`` is set.  `composition.closed_form.closed_form`, which
        takes the lower end of a certificate from it, makes up for that: it asks at a delta that is
        larger by 4 ACCURACY of itself, and lowers the answer.  Start and slope of the secant are
        rough: they only decide how long the search takes.
        """
        if not INTEGRATED_MU[0] <= self.mu <= INTEGRATED_MU[1]:
            return 0.0 if self.below else Loss.inverse_profile(self, delta)
        log_target = math.log(delta) - (0.0 if self.below else ACCURACY)

        @functools.cache
        def excess(epsilon: float) -> float:
            return float(self.log_profile(np.array([epsilon]))[0]) - log_target

        start = rough_epsilon(self.mu, self.steps, delta, added=self.added)
        # Minus the slope of ln delta there.  A normal loss of variance v has a delta of about
        # e^{-eps^2 / (2 v)} over a power of eps: the slope is about eps / v + 1 / eps, where v is
        # mu^2 where one step decides, and mu^2 / t where the mean of all t does.
        steps_that_decide = 1 if one_decides(self.mu, self.steps, added=self.added) else self.steps
        slope = 1 / start + start * steps_that_decide / self.mu**2 if start > 0 else 1.0
        limit = math.inf if self.below else GaussianLoss(self.mu).inverse_profile(delta)
        # The search may ask for epsilon = 0, where an integral takes long.  The excess falls with
        # epsilon, so it is positive at 0 if it is so at a probe a little before the root.
        excess_at_start = excess(start)
        probe = start if excess_at_start > 0 else start + (excess_at_start - MARGIN) / slope
        is_positive_at_zero = probe > 0 and excess(probe) > 0

        def excess_unless_known(epsilon: float) -> float:
            return math.inf if epsilon == 0 and is_positive_at_zero else excess(epsilon)

        root, _ = falling_root(excess_unless_known, start, tilt=slope, max_epsilon=limit)
        return round_up(root, 16)
