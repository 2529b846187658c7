"""Losses with counts, composed in one direction: the value that all engines are asked about."""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.composition.cgf import PlanCGF, exact_cgf
from accountant.composition.saddlepoint import saddlepoint
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
            near = self.rough_epsilon(log_delta)
            tilt = saddlepoint(self.cgf, log_delta=log_delta, near=near)
        orders = tilt * TILT_FACTORS
        epsilons = (self.cgf.log_chernoff(orders) - log_delta) / orders
        return round_up(float(np.nanmin(epsilons)), 64)
