"""One direction of a plan whose losses have certified cumulants, and the engine that sums it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from accountant.additive import GaussianLoss, square_sum
from accountant.certificate import Certificate, invert
from accountant.contour import Contour
from accountant.cumulants import Cumulants
from accountant.enumeration import Enumeration, number_of_sums
from accountant.lattice import MOST_POINTS, Lattice, common_unit
from accountant.loss import ACCURACY, Loss
from accountant.numerics import ULP, up
from accountant.saddle import saddle

DIRECT_NODES = 2**13  # a contour of so many nodes is cheap: nothing needs smoothing
MOST_NODES = 2**20


class Engine(Protocol):
    """Bounds on the finite part of delta, near where it was made for."""

    @property
    def name(self) -> str:
        """What it is called in a certificate."""
        ...

    @property
    def nodes(self) -> float:
        """How many terms its sum has."""
        ...

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Logarithms of a lower and an upper bound on delta."""
        ...


class ClosedForm:
    """A single loss: its own profile."""

    name, nodes = "closed form", 0

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Logarithms of a lower and an upper bound on delta at ``epsilon``."""
        value = float(self._loss.log_profile(epsilon))
        return value - ACCURACY, value + ACCURACY


class Composition:
    """Losses with counts in one direction, each with a certified cumulant."""

    def __init__(self, items: list[tuple[Loss, int]], width: float) -> None:
        self._items, self._width = items, width
        gaussians = [(loss, n) for loss, n in items if isinstance(loss, GaussianLoss)]
        if len(gaussians) == len(items) and items:
            counts = np.array([n for _, n in gaussians], dtype=float)
            square = square_sum([loss for loss, _ in gaussians], counts)
            # one Gaussian; its mu is inexact by a few ulps, which Closed's accuracy covers
            self._items = [(GaussianLoss(math.sqrt(square)), 1)] if 0 < square < 1e300 else items
        nats = math.fsum(-n * math.log1p(-loss.infinity) for loss, n in items if loss.infinity)
        self.infinity = -math.expm1(-nats)
        sums = [n * loss.bound for loss, n in items]
        self.top = up(math.fsum(sums), 8) if all(map(math.isfinite, sums)) else math.inf
        self._cumulants = Cumulants(self._items)

    def certify(self, delta: float) -> Certificate:
        """Return the interval that holds epsilon at ``delta > 0``."""
        # what is left for the finite part, its two ends
        spread = 8 * ULP * self.infinity
        low, high = delta - self.infinity - spread, delta - self.infinity + spread
        if high <= 0:
            return Certificate(math.inf, math.inf, "mass at infinity")
        if low <= 0:
            return Certificate(0.0, self.top, "mass at infinity")
        if not self._items:
            return Certificate(0.0, 0.0, "closed form")
        log_delta = (math.log(low), math.log(high))
        known = self._near_top(high)
        if known is not None:
            return known
        a, epsilon = self._aim(log_delta[0])
        best: Certificate | None = None
        for engine in self._engines(a, epsilon):
            lower, upper = invert(engine.bounds, log_delta, epsilon, a, self.top)
            upper = min(upper, self.top)
            found = Certificate(min(lower, upper), upper, engine.name, math.ceil(engine.nodes))
            if best is None or found.width < best.width:
                best = found
            if found.width <= self._width * found.upper:
                break
        return best or Certificate(0.0, self.top, "sum of the bounds")

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta at ``epsilon``."""
        low, high = 0.0, 1.0
        if epsilon >= self.top or not self._items:
            return self.infinity * (1 - 8 * ULP), up(self.infinity, 16)
        a = saddle(self._cumulants, epsilon=epsilon)
        for engine in self._engines(a, epsilon):
            logs = engine.bounds(epsilon)
            low, high = max(low, math.exp(logs[0])), min(high, math.exp(min(logs[1], 0.0)))
            if high - low <= self._width * high:
                break
        return self.infinity * (1 - 8 * ULP) + low, up(self.infinity + high, 16)

    def _aim(self, log_delta: float) -> tuple[float, float]:
        """The tilt, and about the epsilon at which delta has this logarithm."""
        a = saddle(self._cumulants, log_delta=log_delta)
        # the integrand is about Gaussian: delta = its height / sqrt(2 pi K'')
        around = a * np.array([0.97, 1.0, 1.03])
        height = self._cumulants.real(around)
        curvature = float(np.diff(height, 2)[0]) / (0.03 * a) ** 2
        bend = math.log(2 * math.pi * curvature + 1) / 2 if curvature > 0 else 0.0
        return a, (float(height[1]) - log_delta - bend - math.log(a) - math.log1p(a)) / a

    def _near_top(self, delta: float) -> Certificate | None:
        """An epsilon so near the greatest possible that the greatest outcome alone decides."""
        # delta(e) >= p_top (1 - e^{e - top})
        if math.isinf(self.top):
            return None
        log_mass = 0.0
        for loss, count in self._items:
            if loss.top_mass <= 0:
                return None
            log_mass += count * math.log(loss.top_mass)
        share = math.log(delta) - log_mass
        if share > math.log(min(self._width, 1e-9) * min(self.top, 1.0)):
            return None
        lower = self.top * (1 - 32 * ULP) + math.log1p(-math.exp(share))
        return Certificate(max(0.0, lower), self.top, "greatest outcome")

    def _engines(self, a: float, epsilon: float) -> Iterator[Engine]:
        """Engines to ask, in turn, until one is narrow enough."""
        if len(self._items) == 1 and self._items[0][1] == 1:
            yield ClosedForm(self._items[0][0])
            return
        sums = number_of_sums(self._items)
        if sums <= 5_000:
            yield Enumeration(self._items)
            return
        unit = common_unit(self._items)
        if unit is not None:
            lattice = Lattice(self._cumulants, a, epsilon, unit)
            if lattice.nodes <= MOST_POINTS:
                lattice.integrate(self._cumulants)
                yield lattice
        yield from self._contours(a, epsilon)
        if sums <= 200_000:
            yield Enumeration(self._items)

    def _contours(self, a: float, epsilon: float) -> Iterator[Engine]:
        direct = Contour(self._cumulants, a, epsilon, 0.0)
        if direct.nodes <= DIRECT_NODES:
            direct.integrate()
            yield direct
            return
        # the sandwich is about S (a + 1) wide
        smoothing = self._width * max(epsilon, 1e-3 / a) / (a + 1) * 0.7
        for _ in range(3):
            contour = Contour(self._cumulants, a, epsilon, smoothing)
            while contour.nodes > MOST_NODES and smoothing < 1:
                smoothing *= 4
                contour = Contour(self._cumulants, a, epsilon, smoothing)
            if direct.nodes <= min(contour.nodes, MOST_NODES):
                direct.integrate()
                yield direct
                return
            if contour.nodes > MOST_NODES:
                return
            contour.integrate()
            yield contour
            smoothing /= 4

