"""Privacy losses composed in one direction, and the problems that engines solve for them.

A `Composition` is the sum S of independent losses.  Its cumulant is K(a) = ln E e^{aS}, and its
delta at an epsilon e is delta(e) = E (1 - e^{e - S})_+.  An `EpsilonProblem` asks for the epsilon
at a given delta; a `Neighbourhood` asks for delta near a given epsilon.  The tilt is the order
a > 0 at which Chernoff's bound ``delta(e) <= c(a) e^{-a e}`` is least, the saddle point of
K(a) - a e.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.composition.certificate import Certificate
from accountant.composition.cgf import PlanCGF, saddlepoint
from accountant.composition.contour import Contour, quickest_contour
from accountant.losses.gaussian import GaussianLoss, sum_of_squared_mu
from accountant.losses.loss import Loss, exact_cgf
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, ULP, round_up

# The cost of planning a contour, in complex products of about 2 ns: for each term of a cumulant
# (evaluated at some thirty real orders), and for each term at high frequency (bounds).  That of a
# loss is its family's, `ExactCGF.planning_cost_of_a_loss`.
PLANNING_COST_OF_A_TERM, PLANNING_COST_OF_A_HIGH_TERM = 1e4, 1e3
PLANNING_LIMIT = 3e7
# The imaginary part of an order at which the terms of a quadrature are counted
PLANNING_FREQUENCY = 1e4
# Distance, relative to the saddle point, of orders from which K'' is estimated.
APART = 0.03
# Chernoff's bound is taken at these multiples of the tilt, because the tilt is only nearly the best
TILT_FACTORS = np.geomspace(0.5, 2.0, 21)
LEAST_LOG_DELTA = -650.0  # nats: e^-650 is near the least positive float, about e^-745

# where an order is too large the cumulant overflows to infinity or NaN; callers skip such orders
ignore_overflow = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


def total_rounding(items: list[tuple[Loss, int]]) -> float:
    """Return the sum over releases of how far ln of a computed mass is from ln of the true one."""
    return math.fsum(count * loss.rounding for loss, count in items)


def attained_losses(items: list[tuple[Loss, int]]) -> list[tuple[Loss, int]]:
    """Return losses of pairs that do occur together, with counts, for lower ends."""
    return [pair for loss, count in items for pair in loss.attained_items(count)]


class Composition:
    """The sum of independent losses with counts, in one direction.

    Parameters
    ----------
    items : list of (Loss, int)
        The losses and how often each is released.
    rounding : float, optional
        A bound r on the round-off of the losses: the computed probability of any sequence of
        outcomes is within a factor e^{+-r} of the mechanisms' own.  By default the sum of the
        bounds that the losses state.
    """

    def __init__(self, items: list[tuple[Loss, int]], rounding: float | None = None) -> None:
        self.items = items
        self.releases = sum(count for _, count in items)
        self.rounding = total_rounding(items) if rounding is None else rounding
        if items and all(isinstance(loss, GaussianLoss) for loss, _ in items):
            # Gaussians compose to one Gaussian, mu^2 = sum of mu_i^2; this mu is inexact by a few
            # ulps, which the accuracy of `GaussianLoss.profile` covers
            counts = np.array([count for _, count in items], dtype=float)
            square = sum_of_squared_mu([loss for loss, _ in items], counts)
            self.items = [(GaussianLoss(math.sqrt(square)), 1)] if 0 < square < 1e300 else items
        masses_at_infinity = [(loss.infinity, count) for loss, count in items if loss.infinity]
        certain = any(mass >= 1 for mass, _ in masses_at_infinity)
        nats = math.fsum(-n * math.log1p(-mass) for mass, n in masses_at_infinity if mass < 1)
        self.infinity = 1.0 if certain else -math.expm1(-nats)
        self.max_loss = math.inf
        largest_sum = math.fsum(count * loss.max_loss for loss, count in items)
        if math.isfinite(largest_sum):
            self.max_loss = round_up(largest_sum, 8)

    @property
    def single_loss(self) -> Loss | None:
        """The only loss, where it is released once."""
        return self.items[0][0] if len(self.items) == 1 == self.items[0][1] else None

    @functools.cached_property
    def has_exact_cgf(self) -> bool:
        """Whether the cumulant of every loss is known with a bound on its round-off."""
        return all(loss.numerics.has_exact_cgf for loss, _ in self.items)

    @functools.cached_property
    def cgf(self) -> PlanCGF:
        """The cumulant of the sum."""
        return PlanCGF(self.items)

    @functools.cached_property
    def contour_planning_cost(self) -> float:
        """The estimated cost of finding the nodes of a contour, in complex products of 2 ns."""
        _, terms_of_one_loss = self.cgf.quadrature_terms(0.0)
        _, high_terms_of_one_loss = self.cgf.quadrature_terms(PLANNING_FREQUENCY)
        cost = sum(exact_cgf(loss).planning_cost_of_a_loss for loss, _ in self.items)
        cost += PLANNING_COST_OF_A_TERM * terms_of_one_loss
        cost += PLANNING_COST_OF_A_HIGH_TERM * high_terms_of_one_loss
        return cost

    @property
    def is_quickly_planned(self) -> bool:
        """Whether a contour can be planned, and quickly."""
        return self.has_exact_cgf and self.contour_planning_cost <= PLANNING_LIMIT

    def is_within_variations(self, delta: float) -> bool:
        """Return whether the deltas of all losses at epsilon 0 add up to at most ``delta``.

        Total variation adds up: delta(0) of the composition is at most the sum.
        """
        total = 0.0
        for loss, count in self.items:
            total += count * max(float(loss.profile(0.0)) - loss.infinity, 0.0) * (1 + ACCURACY)
            if not total <= delta:
                return False  # usually the first few losses already exceed delta
        return True

    def lower_bound_of_largest_loss(self, log_delta: float) -> float:
        """Return a lower bound on epsilon from the largest loss alone; 0 where there is none."""
        # delta(e) >= p_max (1 - e^{e - max_loss}), p_max the mass of the largest sum of losses.  It
        # is solved for e; 32 ulps lower `max_loss`, which is rounded up.
        if math.isinf(self.max_loss) or not self.has_exact_cgf:
            return 0.0
        log_mass = 0.0
        for loss, count in self.items:
            mass = exact_cgf(loss).max_loss_mass(loss)
            if mass <= 0:
                return 0.0
            log_mass += count * math.log(mass)
        log_share = log_delta - log_mass  # of delta over p_max
        if log_share >= 0:
            return 0.0
        return max(0.0, self.max_loss * (1 - 32 * ULP) + math.log1p(-math.exp(log_share)))

    def rough_epsilon(self, log_delta: float) -> float | None:
        """Return an estimate of epsilon for sampled losses of one family; None for others."""
        alike = len({type(loss) for loss, _ in self.items}) == 1
        if not (alike and self.has_exact_cgf and log_delta >= LEAST_LOG_DELTA):
            return None
        losses, counts = self.losses_and_counts
        return exact_cgf(losses[0]).rough_epsilon(losses, counts, math.exp(log_delta))

    @property
    def losses_and_counts(self) -> tuple[list[Loss], Array]:
        """The losses, and their counts as an array."""
        counts = np.array([count for _, count in self.items], dtype=float)
        return [loss for loss, _ in self.items], counts

    @ignore_overflow
    def chernoff(self, delta: float, tilt: float | None = None) -> float:
        """Return an upper bound on epsilon by Chernoff's inequality at real orders.

        For every order a > 0, ``epsilon <= (ln c(a) - ln delta) / a``; the orders tried are those
        around ``tilt``, by default the saddle point.
        """
        finite_delta = delta - self.infinity * (1 + 8 * ULP)
        if finite_delta <= 0 or not self.items:
            return math.inf if self.items else 0.0
        log_delta = math.log(finite_delta)
        if tilt is None:
            estimate = self.rough_epsilon(log_delta)
            tilt = saddlepoint(self.cgf, log_delta=log_delta, near=estimate)
        orders = tilt * TILT_FACTORS
        epsilons = (self.cgf.log_chernoff(orders) - log_delta) / orders
        return round_up(float(np.nanmin(epsilons)), 64)


class Neighbourhood:
    """The epsilons near a given one, at which the delta of a composition is wanted.

    Parameters
    ----------
    composition : Composition
        Losses with exact cumulants.
    tilt : float
        The real part of a contour for these epsilons: about minus the slope of ln delta.
    epsilon : float
        The epsilon in the middle.
    width : float
        How wide the interval of epsilon may be, relative to epsilon.
    """

    def __init__(self, composition: Composition, tilt: float, epsilon: float, width: float) -> None:
        self.composition, self.width = composition, width
        self.tilt, self.epsilon = tilt, epsilon

    @functools.cached_property
    def contour(self) -> Contour:
        """The contour of the composition itself, without smoothing; not integrated yet."""
        composition = self.composition
        return quickest_contour(
            composition.cgf, self.tilt, self.epsilon, composition.contour_planning_cost
        )

    @property
    def smoothing(self) -> float:
        """The smoothing S, a squared Gaussian mu, for an interval of epsilon as wide as wanted.

        Smoothing is a fictitious Gaussian release with the others, see `Contour`.  Smoothing by S
        widens the interval by about S (a + 1), a the tilt.  The factor 0.6 leaves room for the rest
        of the error; where epsilon is near 0, 1e-3 / a takes its place.
        """
        return self.width * max(self.epsilon, 1e-3 / self.tilt) / (self.tilt + 1) * 0.6


class EpsilonProblem:
    """The epsilon of a composition at ``delta``, wanted with a ``width`` relative to epsilon.

    ``known_upper`` is an upper bound on the epsilon of the plan that needs no engine.  An interval
    of the losses that lies above it is narrow enough: no engine can improve on that bound.
    ``is_bound`` says that the losses are bounds on many pairs, so that less time is worth spending.
    """

    def __init__(
        self,
        composition: Composition,
        delta: float,
        width: float,
        known_upper: float = math.inf,
        *,
        is_bound: bool = False,
    ) -> None:
        self.composition, self.delta, self.width = composition, delta, width
        self.known_upper, self.is_bound = known_upper, is_bound
        # delta(e) = P(S infinite) + delta of the finite sums.  What remains for these is known
        # between two bounds (low, high): the mass at infinity has a round-off, and is exact up to
        # e^{+-r}, r the rounding of the losses.
        infinity, rounding = composition.infinity, composition.rounding
        spread = (8 * ULP + 2 * min(rounding, 1.0)) * infinity
        self.finite_delta = (delta - infinity - spread, delta - infinity + spread)

    @functools.cached_property
    def log_delta(self) -> tuple[float, float]:
        """The logarithms of `finite_delta`, the upper one for the lower end of epsilon.

        With masses within e^{+-r} of the true ones, ``delta(e) <= e^r true_delta(e - 2r)``.  Hence
        the lower end of epsilon is computed at e^r delta, and `of_mechanisms` subtracts 2r from it.
        """
        low, high = self.finite_delta
        return math.log(low), math.log(high) + self.composition.rounding

    def of_mechanisms(self, interval: Certificate) -> Certificate:
        """Return the interval of the true mechanisms, from the interval of their rounded losses."""
        lower = interval.lower
        if 0 < lower < math.inf:
            lower = max(0.0, lower * (1 - 4 * ULP) - 2 * self.composition.rounding)
        return Certificate(lower, interval.upper, interval.engine, interval.nodes)

    def outcome_bounds(self) -> Certificate:
        """Return the interval that follows without an integral.

        It uses the mass at infinity, the total variation and the largest loss of the sum.
        """
        composition, (low, high) = self.composition, self.finite_delta
        if high <= 0:
            return Certificate(math.inf, math.inf, "mass at infinity")
        if low <= 0:
            return Certificate(0.0, composition.max_loss, "mass at infinity")
        if composition.max_loss == 0 or not composition.items:
            return Certificate(0.0, 0.0, "closed form")
        if composition.is_within_variations(low):
            return Certificate(0.0, 0.0, "sum of the bounds")
        lower = composition.lower_bound_of_largest_loss(self.log_delta[1])
        lower = min(lower, composition.max_loss)
        return self.of_mechanisms(Certificate(lower, composition.max_loss, "greatest outcome"))

    def is_narrow(self, interval: Certificate, width: float | None = None) -> bool:
        """Return whether an interval has at most the wanted relative width, or ``width``.

        One that lies above ``known_upper`` is narrow enough at any width.
        """
        width = self.width if width is None else width
        is_above = interval.lower >= self.known_upper
        return is_above or interval.width <= width * min(interval.upper, 1e300)

    @functools.cached_property
    def rough_epsilon(self) -> float | None:
        """An estimate of epsilon for sampled losses of one family; None for others."""
        return self.composition.rough_epsilon(self.log_delta[0])

    @functools.cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The epsilons near the wanted one; the tilt is the order of the least Chernoff bound."""
        estimate = self.rough_epsilon
        return neighbourhood_at(self.composition, self.log_delta[0], self.width, estimate)


def neighbourhood_at(
    composition: Composition, log_delta: float, width: float, near: float | None = None
) -> Neighbourhood:
    """Return the epsilons where a composition has about this delta, by the saddle point method.

    ``near`` is an estimate of epsilon, which makes the search shorter.
    """
    # The integrand of delta is nearly Gaussian around the saddle point a, so that
    #     ln delta = K(a) - a e - ln(2 pi K''(a) + 1) / 2 - ln a - ln(1 + a),
    # solved for e.  The 1 in the third term, called ``bend``, keeps it positive.  K'' is the second
    # difference of K at a (1 - APART), a and a (1 + APART).
    tilt = saddlepoint(composition.cgf, log_delta=log_delta, near=near)
    height = composition.cgf.rough_at(tilt * np.array([1 - APART, 1.0, 1 + APART]))
    curvature = float(np.diff(height, 2)[0]) / (APART * tilt) ** 2
    bend = math.log(2 * math.pi * curvature + 1) / 2 if 0 < curvature < math.inf else 0.0
    log_ratio = float(height[1]) - log_delta - bend - math.log(tilt) - math.log1p(tilt)
    return Neighbourhood(composition, tilt, log_ratio / tilt, width)
