"""What engines are asked: the epsilon of a composition at a delta, or delta near an epsilon."""

from __future__ import annotations

import functools
import math

import numpy as np

from accountant.composition.certificate import Certificate
from accountant.composition.composition import Composition
from accountant.composition.contour import Contour
from accountant.composition.saddlepoint import saddlepoint
from accountant.numerics.rounding import ULP

# A flatter contour may gain a factor of some two: it is planned where planning costs less than
# that gain, and where the contour is not out of reach.
LEAST_COST, SHARE_OF_PLANNING, HOPELESS_COST = 2.5e6, 0.1, 5e8
FLATTER_TILTS = (0.9, 0.75, 0.5)  # over the saddle point


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
        near = self.rough_epsilon
        return neighbourhood_at(self.composition, self.log_delta[0], self.width, near)

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
