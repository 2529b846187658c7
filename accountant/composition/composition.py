"""Losses composed in one direction, and what engines are asked about them.

A `Composition` is the sum of independent losses.  A `Query` asks for its epsilon at a delta; a
`Neighbourhood` is where delta is wanted near an epsilon.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.composition.certificate import Certificate
from accountant.composition.cgf import PlanCGF, exact_cgf, log_chernoff, saddlepoint
from accountant.composition.contour import Contour
from accountant.losses.gaussian import GaussianLoss, sum_of_squared_mu
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, ULP, round_up

# what it costs to plan a contour: cumulants at some thirty real orders, bounds at high frequencies
PLANNING_COST_OF_A_LOSS, PLANNING_COST_OF_A_TERM, PLANNING_COST_OF_A_HIGH_TERM = 1e5, 1e4, 1e3
HIGH_FREQUENCY = 1e4
TILT_FACTORS = np.geomspace(0.5, 2.0, 21)  # real orders around the best one
LEAST_LOG_DELTA = -650.0  # deltas below are not far from what a float can be

# where an order is too large the cumulant overflows, and such orders are left out by hand
ignore_overflow = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
# A flatter contour may gain a factor of some two: it is planned where planning costs less than
# that gain, and where the contour is not out of reach.
LEAST_COST, SHARE_OF_PLANNING, HOPELESS_COST = 2.5e6, 0.1, 5e8
FLATTER_TILTS = (0.9, 0.75, 0.5)  # over the saddle point
QUICK_ACCURACY = 1e-6  # of delta, where two directions are compared
MAX_QUICK_NODES = 1024  # of a contour that costs less than a second interval
FEW_NODES, NODE_SHARE = 100, 0.75  # of the other direction's contour, for about this accuracy


def total_rounding(items: list[tuple[Loss, int]]) -> float:
    """Return how far the logarithms of the masses of all losses are from the mechanisms'."""
    return math.fsum(count * loss.rounding for loss, count in items)


class Composition:
    """The sum of independent losses with counts, in one direction.

    Parameters
    ----------
    items : list of (Loss, int)
        The losses and how often each is released.
    rounding : float, optional
        How far the logarithms of the masses of all losses together are from the mechanisms'; by
        default the sum of what the losses say of themselves.
    """

    def __init__(self, items: list[tuple[Loss, int]], rounding: float | None = None) -> None:
        self.items = items
        self.releases = sum(count for _, count in items)
        self.rounding = total_rounding(items) if rounding is None else rounding
        if items and all(isinstance(loss, GaussianLoss) for loss, _ in items):
            # one Gaussian; its mu is inexact by a few ulps, which its accuracy covers
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
        """About what it costs to find the nodes of a contour."""
        cost = PLANNING_COST_OF_A_LOSS * len(self.items)
        cost += PLANNING_COST_OF_A_TERM * self.cgf.quadrature_terms(0.0)[1]
        cost += PLANNING_COST_OF_A_HIGH_TERM * self.cgf.quadrature_terms(HIGH_FREQUENCY)[1]
        return cost

    def is_within_variations(self, delta: float) -> bool:
        """Return whether the deltas of all losses at epsilon 0 add up to at most ``delta``.

        Total variation adds up: delta(0) of the composition is at most the sum.
        """
        total = 0.0
        for loss, count in self.items:
            total += count * max(float(loss.profile(0.0)) - loss.infinity, 0.0) * (1 + ACCURACY)
            if not total <= delta:
                return False  # often after a few of many losses
        return True

    def lower_bound_of_largest_loss(self, log_delta: float) -> float:
        """Return a lower bound on epsilon from the largest loss alone; 0 where there is none."""
        # delta(e) >= p_max (1 - e^{e - max_loss}), p_max the mass of the largest loss
        if math.isinf(self.max_loss) or not self.has_exact_cgf:
            return 0.0
        log_mass = 0.0
        for loss, count in self.items:
            mass = exact_cgf(loss).max_loss_mass(loss)
            if mass <= 0:
                return 0.0
            log_mass += count * math.log(mass)
        log_share = log_delta - log_mass
        if log_share >= 0:
            return 0.0
        return max(0.0, self.max_loss * (1 - 32 * ULP) + math.log1p(-math.exp(log_share)))

    def rough_epsilon(self, log_delta: float) -> float | None:
        """Return about what sampled losses of one family cost; None for other compositions."""
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

        The orders are around ``tilt``, by default the saddle point.
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
    """The epsilons near one, where the delta of a composition is wanted.

    Parameters
    ----------
    composition : Composition
        Losses with exact cumulants.
    tilt : float
        The real part of a contour there: about minus the slope of ln delta.
    epsilon : float
        The epsilon in the middle.
    width : float
        How wide the answer may be, relative to epsilon.
    """

    def __init__(self, composition: Composition, tilt: float, epsilon: float, width: float) -> None:
        self.composition, self.width = composition, width
        self.tilt, self.epsilon = tilt, epsilon

    @functools.cached_property
    def contour(self) -> Contour:
        """The contour of the composition itself, without smoothing; not integrated yet."""
        cgf, epsilon = self.composition.cgf, self.epsilon
        contour = Contour(cgf, self.tilt, epsilon, 0.0)
        long = max(LEAST_COST, self.composition.contour_planning_cost / SHARE_OF_PLANNING)
        for share in FLATTER_TILTS:
            # near the edge of where the cumulant is small, a smaller real part needs fewer nodes
            if long < contour.operations < HOPELESS_COST:
                flatter = Contour(cgf, share * self.tilt, epsilon, 0.0)
                contour = min(contour, flatter, key=lambda candidate: candidate.operations)
        return contour

    @property
    def smoothing(self) -> float:
        """The smoothing of a contour whose sandwich, about S (a + 1) wide, has the wanted width."""
        return self.width * max(self.epsilon, 1e-3 / self.tilt) / (self.tilt + 1) * 0.6


class Query:
    """The epsilon of a composition at ``delta``, wanted with a ``width`` relative to epsilon."""

    def __init__(self, composition: Composition, delta: float, width: float) -> None:
        self.composition, self.delta, self.width = composition, delta, width
        # what remains of delta for the finite losses, between two ends
        infinity, rounding = composition.infinity, composition.rounding
        spread = (8 * ULP + 2 * min(rounding, 1.0)) * infinity
        self.finite_delta = (delta - infinity - spread, delta - infinity + spread)

    @functools.cached_property
    def log_delta(self) -> tuple[float, float]:
        """The logarithms of `finite_delta`, the upper one for the lower end of epsilon.

        With masses within e^{+-r} of the mechanisms', delta(e) <= e^r true delta(e - 2r): the lower
        end is asked for at e^r delta, and `of_mechanisms` takes 2r off.
        """
        low, high = self.finite_delta
        return math.log(low), math.log(high) + self.composition.rounding

    def of_mechanisms(self, interval: Certificate) -> Certificate:
        """Return the interval of the mechanisms, from that of their rounded losses."""
        lower = interval.lower
        if 0 < lower < math.inf:
            lower = max(0.0, lower * (1 - 4 * ULP) - 2 * self.composition.rounding)
        return Certificate(lower, interval.upper, interval.engine, interval.nodes)

    def outcome_bounds(self) -> Certificate:
        """Return the interval from the mass at infinity, total variation and the largest loss."""
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
        """Return whether an interval is as narrow as wanted, or as a given ``width``."""
        width = self.width if width is None else width
        return interval.width <= width * min(interval.upper, 1e300)

    @functools.cached_property
    def rough_epsilon(self) -> float | None:
        """About what sampled losses of one family cost; None for other compositions."""
        return self.composition.rough_epsilon(self.log_delta[0])

    @functools.cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The epsilons near the one that is wanted, seen from Chernoff's order."""
        estimate = self.rough_epsilon
        return neighbourhood_at(self.composition, self.log_delta[0], self.width, estimate)

    @functools.cached_property
    def flat_neighbourhood(self) -> Neighbourhood:
        """The same seen from the flattest tilt, less than Chernoff's where epsilon is small."""
        if self.rough_epsilon is None:
            return self.neighbourhood  # whose saddle point is the flattest one
        return neighbourhood_at(self.composition, self.log_delta[0], self.width)


def neighbourhood_at(
    composition: Composition, log_delta: float, width: float, near: float | None = None
) -> Neighbourhood:
    """Return the epsilons where a composition has about this delta, by the saddle point.

    ``near`` is an estimate of epsilon, which makes the search shorter.
    """
    # the integrand is about Gaussian around the saddle point a:
    #     ln delta = K(a) - a e - ln(2 pi K''(a) + 1) / 2 - ln a - ln(1 + a)
    tilt = saddlepoint(composition.cgf, log_delta=log_delta, near=near)
    height = composition.cgf.rough_at(tilt * np.array([0.97, 1.0, 1.03]))
    curvature = float(np.diff(height, 2)[0]) / (0.03 * tilt) ** 2
    bend = math.log(2 * math.pi * curvature + 1) / 2 if 0 < curvature < math.inf else 0.0
    log_ratio = float(height[1]) - log_delta - bend - math.log(tilt) - math.log1p(tilt)
    return Neighbourhood(composition, tilt, log_ratio / tilt, width)


@ignore_overflow
def costs_at_most(query: Query, epsilon: float, like: Query | None = None) -> bool:
    """Return whether a quick bound says that a composition costs at most ``epsilon > 0``.

    ``like``: an answered query of a composition that costs about as much.
    """
    composition, cgf = query.composition, query.composition.cgf
    finite_delta = query.delta - composition.infinity * (1 + 8 * ULP)
    if finite_delta <= 0:
        return False
    if composition.max_loss <= epsilon:
        return True
    log_delta = math.log(finite_delta)
    if like is not None and like.composition.has_exact_cgf and len(composition.items) == 1:
        like_contour = like.neighbourhood.contour
        if like_contour.nodes <= FEW_NODES:
            grid = like_contour.step, NODE_SHARE * like_contour.nodes
            contour = Contour(cgf, like_contour.tilt, epsilon, 0.0, QUICK_ACCURACY, grid=grid)
            contour.integrate()
            if contour.bounds(epsilon)[1] <= log_delta:
                return True
    if query.rough_epsilon is None:
        return composition.chernoff(query.delta) <= epsilon
    tilt = query.neighbourhood.tilt
    # where an estimate says so Chernoff's bound is asked for, at one order
    orders = tilt * TILT_FACTORS
    rough_exponents = log_chernoff(cgf.rough_at(orders), orders) - orders * epsilon
    if float(np.nanmin(rough_exponents)) <= log_delta:
        best = orders[[int(np.nanargmin(rough_exponents))]]
        exponent = float((cgf.log_chernoff(best) - best * epsilon)[0])
        if exponent + 64 * ULP * (1 + tilt * epsilon) <= log_delta:
            return True
    contour = Contour(cgf, tilt, epsilon, 0.0, QUICK_ACCURACY, only_above=True)
    if not contour.nodes <= MAX_QUICK_NODES:
        return False
    contour.integrate()
    return contour.bounds(epsilon)[1] <= log_delta
