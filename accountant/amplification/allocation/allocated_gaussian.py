"""The loss of Gaussian noise in one of many steps: an epoch in which a record is used once.

With t = ``steps`` releases of N(0, 1) and a record that moves one of them, chosen at random, by mu,
the pair is P, the mean of t product laws with N(mu, 1) in one factor and N(0, 1) in the others,
against Q, N(0, 1) in all.  Its likelihood ratio P/Q is S / t, where S is the sum of the t ratios
V = e^{mu x - mu^2 / 2} of the single steps, x standard normal without the record.

`AllocatedGaussian` has the profiles of both directions, rounded up or down by their proved errors
(`allocation_profile`).  Its Rényi divergences and Chernoff bounds, rounded up, are in this file.  A
divergence of order a is

    ln E(S / t)^a / (a - 1)         the record is removed,
    ln E(S / t)^{1 - a} / (a - 1)   it is added.

At whole a the first moment is a coefficient of a power of a power series.  With p = a - 1 the
second is a Gamma integral of the Laplace transform of V,

    E S^-p = (1 / Gamma(p)) int_-oo^oo e^{py} (E e^{-e^y V})^t dy.

Proof: `docs/proofs/random_allocation.md`; one of its sections is on Rényi divergences.
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
from accountant.amplification.allocation.greatest_output import greatest_output_pair
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.lognormal_lattice import law_above
from accountant.numerics.logspace import log1p, logsumexp
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, ULP, round_up, round_up_square
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
# Of Rényi divergences and Chernoff bounds:
MAX_ORDER = 64  # largest order of a bound where the record is removed: time grows with its square
# A smaller power p takes the divergence of this one, which is larger.
MIN_POWER = 0.5
REACH = 12.0  # standard deviations of x up to which the law above V, in Chernoff's bound, is listed
# Values of a in Chernoff's bound, each of which gives a valid bound.
TILTS = np.geomspace(0.01, 1e10, 240)
BLOCK_SIZE = 2**11  # epsilons whose bounds at all tilts are in memory together: 4 MB
BLOCK_OF_TRANSFORM = 500  # values of y whose sums over x are in memory together
EFOLDINGS = 34.0  # the trapezoid rule in y misses about e^-34 = 2e-15 of the integral
RULE_POINTS = 20_000  # points of that rule, at the utmost
# Values of mu for which the Gamma integral is computed.  Below them its rule misses more than mu^2,
# and above them it is long.
MU_OF_GAMMA_INTEGRAL = (1e-6, 25.0)
OVERFLOWING_MU = 1e150  # whose square is more than a float


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

    @property
    def is_integrated(self) -> bool:
        """Whether the profile is integrated, and known from both sides."""
        return INTEGRATED_MU[0] <= self.mu <= INTEGRATED_MU[1]

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
        elif in_sum and self.is_integrated:
            closed = np.fmin(closed, chernoff_absent(self.mu, self.steps, flat))
        lower, upper = np.full(flat.shape, -np.inf), closed  # Nothing is known from below so far.
        refined = (closed > negligible) & self.is_integrated
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
        if not (self.added and self.is_integrated):
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
        return NUMERICS if self.is_integrated else replace(NUMERICS, is_upper_envelope=True)

    @property
    def attained_pair(self) -> Loss:
        """The same pair, its profile rounded down; the greatest output if none is integrated."""
        if self.is_integrated:
            return replace(self, below=True)
        greatest = greatest_output_pair(self.mu, 0.0, self.steps)
        return greatest.reversed if self.added else greatest

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
        if not self.is_integrated:
            return Loss.inverse_profile(self, delta)
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


def renyi_present(mu: float, steps: int, order: Array) -> Array:
    """Return the divergence of the data with the record from those without, rounded up."""
    # ln E(S/t)^a is convex in a, so that a chord between two whole orders is above it.
    logs = log_moments(mu, steps)
    chord = np.interp(order, np.arange(logs.size), logs) / (order - 1)
    return np.where(order <= MAX_ORDER, chord, np.inf)


def renyi_absent(mu: float, steps: int, order: Array) -> Array:
    """Return the divergence of the data without the record from those with it, rounded up."""
    from scipy.special import gammaln

    # S/t is at least the geometric mean of the V, so
    # E(S/t)^-p <= (E V^{-p/t})^t = e^{p (1 + p/t) mu^2 / 2}.
    plain: Array = (1 + (order - 1) / steps) * round_up_square(mu, 2) * (1 + 4 * ULP)
    if not MU_OF_GAMMA_INTEGRAL[0] <= mu <= MU_OF_GAMMA_INTEGRAL[1]:
        return plain
    p = np.maximum(np.ravel(order) - 1, MIN_POWER)  # A divergence grows with its order.
    y, log_power, h, log_missed = _log_transform(mu, steps)
    log_terms = np.multiply.outer(p, y) + log_power
    top, top_index = log_terms.max(axis=1), log_terms.argmax(axis=1)
    # The integrand is log-concave in y, so beyond an end the terms fall at least as fast as the two
    # last ones do: a geometric series bounds them.  1e-300 keeps its ratio below 1.
    falls = [np.minimum(log_terms[:, i] - log_terms[:, j], -1e-300) for i, j in ((0, 1), (-1, -2))]
    first_tail, last_tail = (
        log_terms[:, i] - np.log(-np.expm1(fall)) for i, fall in zip((0, -1), falls, strict=True)
    )
    log_sum = np.logaddexp(np.logaddexp(logsumexp(log_terms, axis=1), first_tail), last_tail)
    log_moment = p * math.log(steps) - gammaln(p) + log_sum + math.log(h) + log_missed
    # Each logarithm errs by some ulps of its size; 40 is more than the sizes of all others.
    size = p * (math.log(steps) + np.abs(y[top_index])) + np.abs(gammaln(p)) + np.abs(top) + 40
    divergence = (log_moment + 16 * ULP * size) / p
    # Where the largest term is at an end, the series is no good bound.
    inside = (top_index > 0) & (top_index < y.size - 1)
    return np.minimum(np.where(inside, divergence, np.inf).reshape(np.shape(order)), plain)


def chernoff_absent(mu: float, steps: int, epsilon: Array) -> Array:
    """Return upper bounds on the logarithm of delta where the record is in the second data set.

    With K = t e^-epsilon, delta = E(K - S)_+ / K, and y_+ <= e^{ay - 1} / a for every a > 0, so
    that delta <= e^{aK - 1} (E e^{-aV})^t / (aK).  A law U of `law_above` bounds E e^{-aV}.
    """
    # 1e-11 is more than the round-off of the masses of U.
    log_power = steps * (_log_power_below(mu) + 1e-11)
    log_minimum = np.empty(epsilon.size)
    for start in range(0, epsilon.size, BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        shift = np.multiply.outer(steps * np.exp(-epsilon[block]), TILTS)
        rounding = 8 * ULP * (shift + np.abs(log_power) + 8)
        log_minimum[block] = np.min(shift - 1 - np.log(TILTS) + log_power + rounding, axis=1)
    bound: Array = log_minimum + epsilon - math.log(steps) + ACCURACY
    return bound


@functools.lru_cache(maxsize=64)
def _log_power_below(mu: float) -> Array:
    """Return upper bounds on ``ln E e^{-aV}`` at `TILTS`."""
    value, weight = law_above(mu, REACH)
    log_power: Array = np.log(ordered_dot(np.exp(-np.multiply.outer(TILTS, value)), weight))
    return log_power


@functools.lru_cache(maxsize=64)
def log_moments(mu: float, steps: int) -> Array:
    """Return upper bounds on ``ln E(S/t)^n``, n from 0 to `MAX_ORDER`."""
    n = np.arange(MAX_ORDER + 1)
    if mu > OVERFLOWING_MU:  # E(S/t)^0 = E S/t = 1
        return np.where(n < 2, 0.0, np.inf)
    log_factorial = np.array([math.lgamma(k + 1) for k in range(MAX_ORDER + 1)])
    # E S^n = n! [x^n] (sum_j E V^j x^j / j!)^t with E V^j = e^{mu^2 j (j - 1) / 2}; the power by
    # repeated squaring, of logarithms of positive coefficients.
    base = mu * mu * n * (n - 1) / 2 - log_factorial
    power, exponent, result = base, steps, np.where(n == 0, 0.0, -np.inf)  # the constant 1
    while exponent:
        if exponent & 1:
            result = _product(result, power)
        exponent >>= 1
        if exponent:
            power = _product(power, power)
    logs = result + log_factorial - n * math.log(steps)
    # A product errs by some ulps of its logarithms, and the t-th power by t times as much as V's
    # series.  The last term is for log_factorial and n ln t.
    error = 64 * ULP * steps * (2 + np.abs(base)) + 16 * ULP * n * (1 + math.log(steps))
    log_upper: Array = np.maximum(logs + error, 0.0)
    log_upper[:2] = 0.0
    return log_upper


def _product(left: Array, right: Array) -> Array:
    """Return the logarithms of the coefficients of a product of power series."""
    size = left.size
    degree = np.arange(size)[:, None] - np.arange(size)
    terms = np.where(degree >= 0, left[np.maximum(degree, 0)] + right, -np.inf)
    return logsumexp(terms, axis=1)


@functools.lru_cache(maxsize=64)
def _log_transform(mu: float, steps: int) -> tuple[Array, Array, float, float]:
    """Return ``y``, ``t ln E e^{-e^y V}``, the step of y, and ``-ln(1 - the rule's error)``.

    By |E e^{-re^{id} V}| <= e^{d^2 / 2 mu^2} E e^{-rV} for every angle d below pi / 2, the
    trapezoid rule with step h misses at most 2 e^{t d^2 / 2 mu^2 - 2 pi d / h} of the integral.
    """
    d = min(mu * math.sqrt(2 * EFOLDINGS / steps), 1.5)
    h = 2 * math.pi * d / (EFOLDINGS + steps * d * d / (2 * mu * mu))
    # Any ends are valid: what lies beyond them is bounded in `renyi_absent`, from how the terms
    # fall there.
    low, high = -math.log(steps) - 2 * (EFOLDINGS + 6), 10 * mu + mu * mu / 2 + 7
    h = max(h, (high - low) / RULE_POINTS)  # a longer step misses more, which is counted
    missed = 2 * math.exp(min(steps * d * d / (2 * mu * mu) - 2 * math.pi * d / h, 700.0))
    y = np.arange(low, high, h)
    # A trapezoid rule over x, which is the sum of e^{-e^y V} - 1 where that is small, and of
    # e^{-e^y V} itself elsewhere: so nothing cancels.  1e-20 and 1e-30 are more than the errors of
    # these rules and what they leave out beyond |x| = 12.
    step = 0.1 * min(1.0, 1 / mu)
    x = np.arange(-12.0, 12.0, step)
    value = np.exp(mu * x - mu * mu / 2)
    mass = step * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    log_transform = np.empty(y.size)
    for start in range(0, y.size, BLOCK_OF_TRANSFORM):
        block = slice(start, start + BLOCK_OF_TRANSFORM)
        exponents = -np.multiply.outer(np.exp(y[block]), value)
        below_one = (mass * np.expm1(exponents)).sum(axis=1)
        is_small = below_one < -0.5
        logs = log1p(np.maximum(below_one, -0.5) + 1e-20)
        logs[is_small] = np.log((mass * np.exp(exponents[is_small])).sum(axis=1) + 1e-30)
        log_transform[block] = logs
    # A relative error of e^y V counts at most as much in ln E e^{-e^y V}, which is convex and 0 at
    # e^y = 0.  That of the exponents y and mu x - mu^2 / 2 is their size in ulps; 64 ulps are more
    # than all other operations err by.
    ulps = 64 + np.abs(y) + 12 * mu + mu * mu
    # Beyond e^{-34 t} the tail is bounded by how it falls there.
    significant = log_transform >= -34.0
    power = steps * log_transform * (1 - ulps * ULP)
    # The error is a share of the integral: at 1 or more the sum says nothing.
    log_missed = -math.log1p(-missed) if missed < 1 else math.inf
    return y[significant], power[significant], h, log_missed
