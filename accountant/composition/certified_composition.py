"""One direction of a plan whose losses have certified cumulants, and the engine that sums it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from accountant.composition.certificate import Certificate, bracket_epsilon
from accountant.composition.cgf import PlanCGF, exact_cgf, log_chernoff
from accountant.composition.closed_form import Engine, closed_form
from accountant.composition.contour import Contour
from accountant.composition.engines import MAX_CONTOUR_NODES, engines_near, has_exact_engine
from accountant.composition.saddlepoint import saddlepoint
from accountant.composition.truncated_contour import TruncatedContour
from accountant.losses.gaussian import GaussianLoss, sum_of_squared_mu
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, ULP, round_up

MAX_TRUNCATIONS = 4
QUICK_NODES = 2**17  # of a truncated contour: a tenth of a second
SHORT_CONTOUR = 1024  # nodes that cost less than a second contour
QUICK_ACCURACY = 1e-6  # of delta, where two directions are compared
FEW_NODES = 100  # less than what else would be tried
QUICK_SHARE = 0.75  # of the nodes of a contour, for about this accuracy
LARGE_TERMS = 4.0  # ln of the integral's terms over delta: more is round-off, or a heavy tail
LEAST_LOG_DELTA = -650.0  # deltas below are not far from what a float can be
TILT_FACTORS = np.geomspace(0.5, 2.0, 21)  # real orders around the best one


# where an order is too large the cumulant overflows, and such orders are left out by hand
ignore_overflow = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


def total_rounding(items: list[tuple[Loss, int]]) -> float:
    """Return how far the logarithms of the masses of all losses are from the mechanisms'."""
    return math.fsum(count * loss.rounding for loss, count in items)


class CertifiedComposition:
    """Losses with counts in one direction, each with an exact cumulant.

    ``width`` is how far apart the two ends of an answer may be, relative to epsilon; ``rounding``
    how far the logarithms of the masses of all together are from the mechanisms'.
    """

    def __init__(
        self, items: list[tuple[Loss, int]], width: float, rounding: float | None = None
    ) -> None:
        self.items, self.width = items, width
        self.rounding = total_rounding(items) if rounding is None else rounding
        if items and all(isinstance(loss, GaussianLoss) for loss, _ in items):
            # one Gaussian; its mu is inexact by a few ulps, which its accuracy covers
            counts = np.array([n for _, n in items], dtype=float)
            square = sum_of_squared_mu([loss for loss, _ in items], counts)
            self.items = [(GaussianLoss(math.sqrt(square)), 1)] if 0 < square < 1e300 else items
        atoms = [(loss.infinity, n) for loss, n in items if loss.infinity]
        certain = any(d >= 1 for d, _ in atoms)
        nats = math.inf if certain else math.fsum(-n * math.log1p(-d) for d, n in atoms)
        self.infinity = -math.expm1(-nats)
        self.max_loss = math.inf
        largest_sum = math.fsum(n * loss.max_loss for loss, n in items)
        if math.isfinite(largest_sum):
            self.max_loss = round_up(largest_sum, 8)
        self._cgf = PlanCGF(self.items)
        self._saddlepoints: dict[float, float] = {}
        self._rough_epsilons: dict[float, float | None] = {}
        self.last_contour: Contour | None = None  # the short one that answered
        self._forecast: tuple[tuple[float, ...], Contour | TruncatedContour] | None = None

    @ignore_overflow
    def certify(self, delta: float, *, quick_only: bool = False) -> Certificate:
        """Return the interval that holds epsilon at ``delta > 0``.

        With ``quick_only`` it is wide where no quick contour is narrow.
        """
        if len(self.items) == 1 and self.items[0][1] == 1:
            return closed_form(self.items[0][0], delta)
        certificate = self._certify_rounded(delta, quick_only)
        # with masses within e^{+-r} of the mechanisms', delta(eps) <= e^r true delta(eps - 2r):
        # the lower end was asked for at e^r delta
        if not 0 < certificate.lower < math.inf:
            return certificate
        lower = max(0.0, certificate.lower * (1 - 4 * ULP) - 2 * self.rounding)
        return Certificate(lower, certificate.upper, certificate.engine, certificate.nodes)

    def _certify_rounded(self, delta: float, quick_only: bool) -> Certificate:
        """Return the interval of the losses as they are rounded, its lower end at e^r delta."""
        # the two ends of what remains for the finite part
        spread = (8 * ULP + 2 * min(self.rounding, 1.0)) * self.infinity
        low, high = delta - self.infinity - spread, delta - self.infinity + spread
        if high <= 0:
            return Certificate(math.inf, math.inf, "mass at infinity")
        if low <= 0:
            return Certificate(0.0, self.max_loss, "mass at infinity")
        if self.max_loss == 0 or not self.items:
            return Certificate(0.0, 0.0, "closed form")
        # total variation adds up: delta(0) of the whole is at most the sum
        if self._is_within_variations(low):
            return Certificate(0.0, 0.0, "sum of the bounds")
        log_delta = (math.log(low), math.log(high) + self.rounding)
        lower_end = self._lower_bound_of_largest_loss(log_delta[1])
        if math.isfinite(self.max_loss) and self.max_loss - lower_end <= self.width * self.max_loss:
            return Certificate(lower_end, self.max_loss, "greatest outcome")
        best: Certificate | None = None
        for certificate in self._certify_sampled(log_delta):
            if certificate.width <= self.width * min(certificate.upper, 1e300):
                return certificate
            best = certificate if best is None or certificate.width < best.width else best
        a, epsilon = self.tilt_and_epsilon(log_delta[0])
        if self._rough_epsilon(log_delta[0]) is not None:
            a, epsilon = self._tilt_and_epsilon_at(
                self._far_saddlepoint(log_delta[0]), log_delta[0]
            )
        for engine in self.engines(a, epsilon, quick_only=quick_only):
            lower, upper = bracket_epsilon(engine.bounds, log_delta, epsilon, a, self.max_loss)
            upper = min(upper, self.max_loss)
            lower = min(max(lower, lower_end), upper)
            certificate = Certificate(lower, upper, engine.name, math.ceil(engine.nodes))
            if best is None or certificate.width < best.width:
                best = certificate
            if certificate.width <= self.width * certificate.upper:
                break
            if isinstance(engine, Contour) and certificate.upper > 0:
                engine.found_width = certificate.width / certificate.upper
        return best or Certificate(lower_end, self.max_loss, "sum of the bounds")

    def _is_within_variations(self, delta: float) -> bool:
        """Return whether the total variations of all losses add up to at most ``delta``."""
        variations: list[float] = []
        total = 0.0
        for loss, n in self.items:
            variations.append(n * max(0.0, float(loss.profile(0.0)) - loss.infinity))
            total += variations[-1]
            if total > 2 * delta:
                return False  # after a few of many losses
        return math.fsum(variations) * (1 + ACCURACY) <= delta

    def _certify_sampled(self, log_delta: tuple[float, float]) -> Iterator[Certificate]:
        """Yield the intervals of a short contour, of losses that are sampled."""
        guess, floor, gap = self._rough_epsilon(log_delta[0]), 0.0, math.inf
        if guess is None:
            return
        a, epsilon = self.tilt_and_epsilon(log_delta[0])
        for _ in range(MAX_TRUNCATIONS):
            engine = self._sampled_engine(a, epsilon, log_delta[0], guess)
            if engine is None:
                return
            engine.integrate()
            self.last_contour = engine if isinstance(engine, Contour) else engine.contour
            if isinstance(engine, Contour):
                yield self._bracket(engine, log_delta, max(epsilon, 0.0), self.max_loss)
                epsilon = -math.inf  # no other is to be had
                continue
            if engine.largest == guess and engine.bounds(guess)[1] > log_delta[0]:
                guess, floor = 2 * guess, guess  # the true epsilon may be above it
                continue
            certificate = self._bracket(
                engine, log_delta, 0.8 * guess, min(engine.largest, self.max_loss)
            )
            yield certificate
            if certificate.width > gap / 2:
                return  # it is as narrow as it becomes
            guess, gap = max(1.02 * certificate.upper, floor), certificate.width
            epsilon = -math.inf

    def _sampled_engine(
        self, a: float, epsilon: float, log_delta: float, rough_epsilon: float
    ) -> Contour | TruncatedContour | None:
        """Return the first short contour, kept until it was asked for again; None if all are long.

        That of all outcomes, or of those that alone do not cost more than epsilon.
        """
        forecast, self._forecast = self._forecast, None
        if forecast is not None and forecast[0] == (log_delta, rough_epsilon, epsilon):
            return forecast[1]
        # about the logarithm of the integrand's greatest absolute value, times a
        height = float(self._cgf.rough_at(np.array([a]))[0]) - a * epsilon
        if epsilon > -math.inf and height - math.log1p(a) - log_delta < LARGE_TERMS:
            direct = Contour(self._cgf, a, epsilon, 0.0)
            if direct.nodes <= SHORT_CONTOUR:
                return direct
        losses, counts = self._losses_and_counts
        part = exact_cgf(losses[0]).without_certain_violations(losses, counts, rough_epsilon)
        truncated = None if part is None else TruncatedContour(part, log_delta, rough_epsilon)
        return truncated if truncated is not None and truncated.is_affordable else None

    @property
    def _losses_and_counts(self) -> tuple[list[Loss], Array]:
        return [loss for loss, _ in self.items], np.array([n for _, n in self.items], dtype=float)

    def _bracket(
        self,
        engine: Contour | TruncatedContour,
        log_delta: tuple[float, float],
        start: float,
        max_epsilon: float,
    ) -> Certificate:
        lower, upper = bracket_epsilon(engine.bounds, log_delta, start, engine.tilt, max_epsilon)
        return Certificate(min(lower, upper), upper, engine.name, math.ceil(engine.nodes))

    @property
    def may_have_certain_violations(self) -> bool:
        """Whether all losses are sampled: outcomes of one release may be enough."""
        return self._rough_epsilon(-1.0) is not None

    def _rough_epsilon(self, log_delta: float) -> float | None:
        """Return about what sampled losses of one family cost; None for other plans."""
        if not self.items or log_delta < LEAST_LOG_DELTA:
            return None
        if log_delta not in self._rough_epsilons:
            losses, counts = self._losses_and_counts
            alike = len({type(loss) for loss in losses}) == 1
            estimate = exact_cgf(losses[0]).rough_epsilon if alike else None
            delta = math.exp(log_delta)
            self._rough_epsilons = {log_delta: estimate and estimate(losses, counts, delta)}
        return self._rough_epsilons[log_delta]

    @ignore_overflow
    def has_quick_engine(self, delta: float) -> bool:
        """Return whether the interval at ``delta`` takes no smoothed contour."""
        finite_delta = delta - self.infinity
        if finite_delta <= 0 or not self.items or self.items[0][1] == len(self.items) == 1:
            return True
        if self._is_within_variations(finite_delta):
            return True
        lower_end = self._lower_bound_of_largest_loss(finite_delta)
        if math.isfinite(self.max_loss) and self.max_loss - lower_end <= self.width * self.max_loss:
            return True
        log_delta = math.log(finite_delta)
        a, epsilon = self.tilt_and_epsilon(log_delta)
        rough_epsilon = self._rough_epsilon(log_delta)
        if rough_epsilon is not None:
            engine = self._sampled_engine(a, epsilon, log_delta, rough_epsilon)
            if engine is not None and engine.nodes <= QUICK_NODES:
                self._forecast = (log_delta, rough_epsilon, epsilon), engine
                return True
            a, epsilon = self._tilt_and_epsilon_at(self._far_saddlepoint(log_delta), log_delta)
        return has_exact_engine(self.items, self._cgf, a, epsilon, MAX_CONTOUR_NODES)

    @ignore_overflow
    def chernoff(self, delta: float) -> float:
        """Return an upper bound on epsilon from Chernoff's inequality at real orders alone."""
        finite_delta = delta - self.infinity * (1 + 8 * ULP)
        if finite_delta <= 0 or not self.items:
            return math.inf if self.items else 0.0
        a = self._saddlepoint(math.log(finite_delta))
        orders = a * TILT_FACTORS
        size = self._cgf.log_chernoff(orders) - math.log(finite_delta)
        return round_up(float(np.nanmin(size / orders)), 64)

    @ignore_overflow
    def is_surely_within(
        self, epsilon: float, delta: float, like: CertifiedComposition | None = None
    ) -> bool:
        """Return whether a bound that is quick says that this costs at most ``epsilon > 0``.

        ``like``: what costs about as much.
        """
        finite_delta = delta - self.infinity * (1 + 8 * ULP)
        if finite_delta > 0 and self.max_loss <= epsilon:
            return True
        short_contour = None if like is None else like.last_contour
        if (
            finite_delta > 0
            and short_contour is not None
            and short_contour.nodes <= FEW_NODES
            and len(self.items) == 1
        ):
            grid = short_contour.step, QUICK_SHARE * short_contour.nodes
            contour = Contour(
                self._cgf, short_contour.tilt, epsilon, 0.0, QUICK_ACCURACY, grid=grid
            )
            contour.integrate()
            if contour.bounds(epsilon)[1] <= math.log(finite_delta):
                return True
        if finite_delta <= 0 or self._rough_epsilon(math.log(finite_delta)) is None:
            return self.chernoff(delta) <= epsilon
        a = self._saddlepoint(math.log(finite_delta))
        # where an estimate says so Chernoff's bound is asked for, at one order
        orders = a * TILT_FACTORS
        rough_exponents = log_chernoff(self._cgf.rough_at(orders), orders) - orders * epsilon
        best = orders[[int(np.nanargmin(rough_exponents))]]
        if float(np.nanmin(rough_exponents)) <= math.log(finite_delta):
            size = self._cgf.log_chernoff(best) - best * epsilon
            if float(size[0]) + 64 * ULP * (1 + a * epsilon) <= math.log(finite_delta):
                return True
        contour = Contour(self._cgf, a, epsilon, 0.0, QUICK_ACCURACY, only_above=True)
        if not contour.nodes <= SHORT_CONTOUR:
            return False
        contour.integrate()
        return contour.bounds(epsilon)[1] <= math.log(finite_delta)

    @ignore_overflow
    def delta(self, epsilon: float, *, smoothed: bool = True) -> tuple[float, float]:
        """Return a lower and an upper bound on delta at ``epsilon``.

        Without ``smoothed`` they are as wide as Chernoff's bound where a contour without smoothing
        is long.
        """
        low = 0.0
        if epsilon >= self.max_loss or not self.items or self.infinity >= 1:
            return self.infinity * (1 - 8 * ULP), round_up(self.infinity, 16)
        a = saddlepoint(self._cgf, epsilon=epsilon)
        # real orders alone give a bound already
        size = self._cgf.log_chernoff(a * TILT_FACTORS) - a * TILT_FACTORS * epsilon
        least_exponent = float(np.min(size[np.isfinite(size)], initial=0.0))
        high = math.exp(min(least_exponent + 1e-12 * (1 + abs(least_exponent)), 0.0))
        for engine in self.engines(a, epsilon, smoothed=smoothed):
            logs = engine.bounds(epsilon)
            low, high = max(low, math.exp(logs[0])), min(high, math.exp(min(logs[1], 0.0)))
            # a width of epsilon is about `a` times as much of delta
            if high - low <= 4 * max(1.0, a * epsilon) * self.width * high:
                break
        return self.infinity * (1 - 8 * ULP) + low, round_up(self.infinity + high, 16)

    def tilt_and_epsilon(self, log_delta: float) -> tuple[float, float]:
        """Return the contour's real part and a rough epsilon, where delta has this logarithm."""
        return self._tilt_and_epsilon_at(self._saddlepoint(log_delta), log_delta)

    def _far_saddlepoint(self, log_delta: float) -> float:
        """Return the flattest tilt, which is less than Chernoff's where epsilon is small."""
        return saddlepoint(self._cgf, log_delta=log_delta)

    def _tilt_and_epsilon_at(self, a: float, log_delta: float) -> tuple[float, float]:
        # the integrand is about Gaussian: delta = its height / sqrt(2 pi K'')
        around = a * np.array([0.97, 1.0, 1.03])
        height = self._cgf.rough_at(around)
        curvature = float(np.diff(height, 2)[0]) / (0.03 * a) ** 2
        bend = math.log(2 * math.pi * curvature + 1) / 2 if 0 < curvature < math.inf else 0.0
        return a, (float(height[1]) - log_delta - bend - math.log(a) - math.log1p(a)) / a

    def _saddlepoint(self, log_delta: float) -> float:
        """Return the saddle point where delta has this logarithm, kept for the next question."""
        if log_delta not in self._saddlepoints:
            rough_epsilon = self._rough_epsilon(log_delta)
            tilt = saddlepoint(self._cgf, log_delta=log_delta, near=rough_epsilon)
            self._saddlepoints = {log_delta: tilt}
        return self._saddlepoints[log_delta]

    def _lower_bound_of_largest_loss(self, log_delta: float) -> float:
        """Return a lower bound on epsilon from the largest loss alone."""
        # delta(e) >= p_top (1 - e^{e - top})
        if math.isinf(self.max_loss):
            return 0.0
        masses: list[tuple[float, int]] = []
        for loss, count in self.items:
            masses.append((exact_cgf(loss).max_loss_mass(loss), count))
            if masses[-1][0] <= 0:
                return 0.0
        share = log_delta - math.fsum(count * math.log(mass) for mass, count in masses)
        if share >= 0:
            return 0.0
        return max(0.0, self.max_loss * (1 - 32 * ULP) + math.log1p(-math.exp(share)))

    def engines(
        self, a: float, epsilon: float, *, quick_only: bool = False, smoothed: bool = True
    ) -> Iterator[Engine]:
        """Yield engines near ``epsilon``, cheapest first, until the interval is narrow."""
        return engines_near(
            self.items,
            self._cgf,
            a,
            epsilon,
            self.width,
            quick_only=quick_only,
            smoothed=smoothed,
        )
