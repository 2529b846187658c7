"""One direction of a plan whose losses have certified cumulants, and the engine that sums it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from accountant.composition.certificate import Certificate, invert
from accountant.composition.cgf import Cumulants
from accountant.composition.closed_form import ClosedForm, Engine, closed_form
from accountant.composition.contour import Contour
from accountant.composition.enumeration import MOST_SUMS, Enumeration, number_of_sums
from accountant.composition.lattice import MOST_POINTS, Lattice, common_unit
from accountant.composition.saddlepoint import saddle
from accountant.losses.gaussian import GaussianLoss, square_sum
from accountant.losses.loss import Loss
from accountant.numerics import ULP, Array, up

DIRECT_NODES = 2**13  # a contour of so many nodes is cheap: nothing needs smoothing
MOST_NODES = 2**20
FEW_SUMS = 5_000  # enumerated before anything else is tried
MOST_WORK = 2e8  # exponentials, multiplied in half a second
AIMS = (0.2, 0.03, 1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-50)  # deltas that a profile is aimed at
NEAR = np.geomspace(0.5, 2.0, 21)  # tilts around the best one


# where a tilt is too great the cumulant overflows, and such tilts are left out by hand
quiet = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


class Composition:
    """Losses with counts in one direction, each with a certified cumulant."""

    def __init__(self, items: list[tuple[Loss, int]], width: float) -> None:
        self._items, self._width = items, width
        if items and all(isinstance(loss, GaussianLoss) for loss, _ in items):
            # one Gaussian; its mu is inexact by a few ulps, which its accuracy covers
            counts = np.array([n for _, n in items], dtype=float)
            square = square_sum([loss for loss, _ in items], counts)
            self._items = [(GaussianLoss(math.sqrt(square)), 1)] if 0 < square < 1e300 else items
        atoms = [(loss.infinity, n) for loss, n in items if loss.infinity]
        certain = any(d >= 1 for d, _ in atoms)
        nats = math.inf if certain else math.fsum(-n * math.log1p(-d) for d, n in atoms)
        self.infinity = -math.expm1(-nats)
        self.top = math.inf
        if all(math.isfinite(loss.bound) for loss, _ in items):
            self.top = up(math.fsum(n * loss.bound for loss, n in items), 8)
        self._cumulants = Cumulants(self._items)

    @quiet
    def certify(self, delta: float) -> Certificate:
        """Return the interval that holds epsilon at ``delta > 0``."""
        if len(self._items) == 1 and self._items[0][1] == 1:
            return closed_form(self._items[0][0], delta)
        # what is left for the finite part, its two ends
        spread = 8 * ULP * self.infinity
        low, high = delta - self.infinity - spread, delta - self.infinity + spread
        if high <= 0:
            return Certificate(math.inf, math.inf, "mass at infinity")
        if low <= 0:
            return Certificate(0.0, self.top, "mass at infinity")
        if self.top == 0 or not self._items:
            return Certificate(0.0, 0.0, "closed form")
        log_delta = (math.log(low), math.log(high))
        least = self._least(high)
        if math.isfinite(self.top) and self.top - least <= self._width * self.top:
            return Certificate(least, self.top, "greatest outcome")
        a, epsilon = self._aim(log_delta[0])
        best: Certificate | None = None
        for engine in self._engines(a, epsilon):
            lower, upper = invert(engine.bounds, log_delta, epsilon, a, self.top)
            upper = min(upper, self.top)
            lower = min(max(lower, least), upper)
            found = Certificate(lower, upper, engine.name, math.ceil(engine.nodes))
            if best is None or found.width < best.width:
                best = found
            if found.width <= self._width * found.upper:
                break
        return best or Certificate(least, self.top, "sum of the bounds")

    @quiet
    def chernoff(self, delta: float) -> float:
        """An upper bound on epsilon from real tilts alone."""
        left = delta - self.infinity * (1 + 8 * ULP)
        if left <= 0 or not self._items:
            return math.inf if self._items else 0.0
        a = saddle(self._cumulants, log_delta=math.log(left))
        near = a * NEAR
        size = self._cumulants.log_chernoff(near) - math.log(left)
        return up(float(np.nanmin(size / near)), 64)

    @quiet
    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta at ``epsilon``."""
        low = 0.0
        if epsilon >= self.top or not self._items:
            return self.infinity * (1 - 8 * ULP), up(self.infinity, 16)
        a = saddle(self._cumulants, epsilon=epsilon)
        # real tilts alone give a bound already
        size = self._cumulants.log_chernoff(a * NEAR) - a * NEAR * epsilon
        least = float(np.min(size[np.isfinite(size)], initial=0.0))
        high = math.exp(min(least + 1e-12 * (1 + abs(least)), 0.0))
        for engine in self._engines(a, epsilon):
            logs = engine.bounds(epsilon)
            low, high = max(low, math.exp(logs[0])), min(high, math.exp(min(logs[1], 0.0)))
            # a width of epsilon is about `a` times as much of delta
            if high - low <= 4 * max(1.0, a * epsilon) * self._width * high:
                break
        return self.infinity * (1 - 8 * ULP) + low, up(self.infinity + high, 16)

    @quiet
    def profile(self, epsilons: Array) -> Array:
        """Upper bounds on delta at many epsilons, from a few engines that serve a range each."""
        flat = np.ravel(epsilons)
        inside = flat < self.top
        result = np.full(flat.shape, up(self.infinity, 16))
        if not self._items or not inside.any():
            return result.reshape(np.shape(epsilons))
        aims = [(saddle(self._cumulants, epsilon=0.0), 0.0)]
        aims += [self._aim(math.log(delta)) for delta in AIMS]
        aims = sorted({e: a for a, e in aims if e >= 0}.items())
        served = np.searchsorted([e for e, _ in aims[1:]], flat, side="right")
        for i, (epsilon, a) in enumerate(aims):
            some = inside & (served == i)
            if some.any():
                engine = next(self._engines(a, epsilon), None)
                if engine is None:
                    result[some] = 1.0
                    continue
                logs = np.array([min(engine.bounds(e)[1], 0.0) for e in flat[some].tolist()])
                result[some] += np.exp(logs)
        capped: Array = np.minimum(result, 1.0).reshape(np.shape(epsilons))
        return capped

    def _aim(self, log_delta: float) -> tuple[float, float]:
        """The tilt, and about the epsilon at which delta has this logarithm."""
        a = saddle(self._cumulants, log_delta=log_delta)
        # the integrand is about Gaussian: delta = its height / sqrt(2 pi K'')
        around = a * np.array([0.97, 1.0, 1.03])
        height = self._cumulants.real(around)
        curvature = float(np.diff(height, 2)[0]) / (0.03 * a) ** 2
        bend = math.log(2 * math.pi * curvature + 1) / 2 if curvature > 0 else 0.0
        return a, (float(height[1]) - log_delta - bend - math.log(a) - math.log1p(a)) / a

    def _least(self, delta: float) -> float:
        """A lower bound on epsilon from the greatest outcome alone."""
        # delta(e) >= p_top (1 - e^{e - top})
        if math.isinf(self.top) or any(loss.top_mass <= 0 for loss, _ in self._items):
            return 0.0
        share = math.log(delta)
        share -= math.fsum(count * math.log(loss.top_mass) for loss, count in self._items)
        if share >= 0:
            return 0.0
        return max(0.0, self.top * (1 - 32 * ULP) + math.log1p(-math.exp(share)))

    def _engines(self, a: float, epsilon: float) -> Iterator[Engine]:
        """Engines to ask, in turn, until one is narrow enough."""
        if len(self._items) == 1 and self._items[0][1] == 1:
            yield ClosedForm(self._items[0][0])
            return
        sums = number_of_sums(self._items)
        if sums <= FEW_SUMS:
            yield Enumeration(self._items)
            return
        unit = common_unit(self._items)
        if unit is not None:
            lattice = Lattice(self._cumulants, a, epsilon, unit)
            if lattice.nodes <= MOST_POINTS:
                lattice.integrate(self._cumulants)
                yield lattice
        yield from self._contours(a, epsilon)
        if sums <= MOST_SUMS:
            yield Enumeration(self._items)

    def _contours(self, a: float, epsilon: float) -> Iterator[Engine]:
        direct = Contour(self._cumulants, a, epsilon, 0.0)
        for share in (0.9, 0.75, 0.5):
            # near the edge of where the cumulant is small, a smaller tilt needs fewer nodes
            if direct.nodes > DIRECT_NODES / 4:
                other = Contour(self._cumulants, share * a, epsilon, 0.0)
                direct = min(direct, other, key=lambda one: one.work)
        if direct.nodes <= DIRECT_NODES and direct.work <= MOST_WORK:
            direct.integrate()
            yield direct
            return
        # the sandwich is about S (a + 1) wide
        smoothing = self._width * max(epsilon, 1e-3 / a) / (a + 1) * 0.7
        for _ in range(4):
            contour = self._smoothed(a, epsilon, smoothing)
            if affordable(direct) and direct.work <= contour.work:
                contour = direct
            elif not affordable(contour):
                return
            contour.integrate()
            yield contour
            if contour is direct or contour.smoothing > smoothing:
                return  # nothing finer is to be had
            smoothing /= 4

    def _smoothed(self, a: float, epsilon: float, smoothing: float) -> Contour:
        """A contour with this smoothing, or the least above it that is affordable."""
        contour = Contour(self._cumulants, a, epsilon, smoothing)
        while not affordable(contour) and contour.smoothing < 1:
            contour = Contour(self._cumulants, a, epsilon, 4 * contour.smoothing)
        return contour


def affordable(contour: Contour) -> bool:
    """Whether time and memory are for it."""
    return contour.nodes <= MOST_NODES and contour.work <= MOST_WORK
