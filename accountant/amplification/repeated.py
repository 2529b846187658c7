"""Private tuning: the best of a random number of runs is released, the others are not.

References: Liu & Talwar (2019); Papernot & Steinke (2022), Theorems 2 and 6. The proof of both
bounds, with the chance of no run at all, is in `docs/proofs/repeated.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.amplification.tries import NegativeBinomial, PoissonTries, Tries
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.losses.connect_the_dots import lower_hull
from accountant.losses.finite_pair import PairLoss
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import MANY_PAIRS_BY_RENYI, LossNumerics
from accountant.losses.pure_and_approximate import PureLoss
from accountant.numerics import Array
from accountant.numerics.rounding import ACCURACY, round_up
from accountant.numerics.search import minimum_of_one_valley
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Item, Plan, as_plan

LOG_ORDERS = (-9.0, 16.0, 1001)  # ln(order - 1) of the orders that are tried: ends and number
ZOOMS = (9, 9, 9, 9)  # points of each finer grid around the best order
# Epsilons that are each refined on finer grids; of more, as discretisations ask for, the best order
# comes from a parabola in ln(order - 1), with a tenth of the divergences.
MAX_ZOOMED_EPSILONS = 64
PARABOLA_STEPS = (1e-3, 1e-4)  # of ln(order - 1), around each vertex


@final
@dataclass(frozen=True, slots=True)
class Repeated(Loss):
    """The best of a random number of runs of a plan; an upper bound on what that costs.

    Each run is scored by its own output; the output of the best one is released, and neither the
    others nor their number.  The bound holds for every score, and no score need attain it.  A fixed
    number of runs is `Repeat`: the best of them may cost as much as all.

    Parameters
    ----------
    part : Plan
        What one run releases, its score included; no outcome of it may be impossible on the
        neighbour.
    tries : Tries
        The law of the number of runs, such as `GeometricTries`.

    References
    ----------
    Liu & Talwar (2019); Papernot & Steinke (2022), Theorems 2 and 6.

    Examples
    --------
    >>> from accountant import GaussianLoss, LogarithmicTries, Repeated, Tight
    >>> tuned = Repeated(GaussianLoss(0.2), LogarithmicTries(stop=0.01))
    >>> round(tuned.tries.mean, 2), round(Tight().epsilon(tuned, delta=1e-6), 3)
    (21.5, 1.612)
    """

    part: Plan
    tries: Tries

    def __post_init__(self) -> None:
        as_plan(self.part)
        tries: Any = self.tries
        if not isinstance(tries, Tries):
            allowed = "PoissonTries, NegativeBinomialTries, GeometricTries or LogarithmicTries"
            raise ParameterError("tries", self.tries, f"{allowed}; a fixed number is Repeat")
        if self.loss.infinity or self.loss.reversed.infinity:
            allowed = (
                "without outcomes that are impossible on the neighbour (a delta of its own): "
                "state them by a PureLoss, or add noise of full support"
            )
            raise ParameterError("part", self.part, allowed)

    @property
    def loss(self) -> Loss:
        """The loss of one run."""
        return loss_of_plan(self.part)

    @property
    def relation(self) -> Adjacency | None:
        """The relation of the part."""
        return self.part.relation

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield this loss, once; nothing where a run releases nothing, a sure single run's own."""
        if getattr(self.tries, "stop", 0.0) == 1:
            yield from self.part.losses()
        elif next(self.part.losses(), None) is not None:
            yield self, 1

    @property
    def reversed(self) -> Repeated:
        """The best of runs of the part reversed."""
        return Repeated(self.part.reversed, self.tries)

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def max_loss(self) -> float:
        """``(2 + shape)`` times that of one run; for Poisson, ``mean delta(0)`` more than it."""
        run_loss = max(self.loss.max_loss, self.loss.reversed.max_loss)
        if isinstance(self.tries, PoissonTries):
            delta_at_zero = max(float(x.profile(0.0)) for x in (self.loss, self.loss.reversed))
            return round_up(run_loss + self.tries.mean * delta_at_zero * (1 + ACCURACY), 8)
        # With a mean of 1 there is one run.
        return run_loss if self.tries.mean == 1 else round_up((2 + self.tries.shape) * run_loss, 8)

    @property
    def numerics(self) -> LossNumerics:
        """An upper envelope: the worst score is not known, and the Rényi curve determines it."""
        return MANY_PAIRS_BY_RENYI

    @property
    def attained_pair(self) -> Loss:
        """The pair of one run, which is what a score that is always the same releases."""
        if isinstance(self.tries, PoissonTries) or self.loss.numerics.is_numerical:
            return PairLoss((1.0,), (1.0,))
        return self.loss.attained_pair

    def renyi(self, order: ArrayLike) -> Array:
        """Return the least bound of this order and of all greater ones; at most `max_loss`."""
        alpha, tried_bounds = orders(order), _tried_bounds(self)
        tried = tried_bounds.orders
        at = np.minimum(np.searchsorted(tried, alpha), tried.size - 1)
        above = np.where(alpha <= tried[-1], tried_bounds.bounds[at], np.inf)
        above = np.where(alpha <= tried_bounds.valley, np.minimum(above, tried_bounds.least), above)
        bound: Array = np.minimum(np.minimum(_bound_at(self, alpha), above), self.max_loss)
        return bound

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the least conversion over Rényi orders, and that of the pure bound."""
        e = epsilons(epsilon)
        flat = np.minimum(np.ravel(e), 1e100)[:, None]
        tried_bounds = _tried_bounds(self)
        tried, best = tried_bounds.orders, tried_bounds.best(flat[:, 0])
        log_delta = np.minimum(
            _log_delta(tried[best] - 1, tried_bounds.bounds[best], flat[:, 0]), 0.0
        )
        valley = _log_delta(
            np.array(tried_bounds.valley - 1), np.array(tried_bounds.least), flat[:, 0]
        )
        log_delta = np.minimum(log_delta, valley)
        if flat.size <= MAX_ZOOMED_EPSILONS:
            middle = np.log(tried[best] - 1)
            step = math.log(tried[1] - 1) - math.log(tried[0] - 1)
            for points in ZOOMS:
                a = np.exp(middle[:, None] + np.linspace(-step, step, points))
                log_deltas = _log_delta(a, self.renyi(a + 1), flat)
                best, step = np.argmin(log_deltas, axis=1), step / (points - 1) * 2
                middle = np.log(a[np.arange(best.size), best])
                log_delta = np.minimum(log_delta, np.min(log_deltas, axis=1))
        else:
            middle = np.clip(best, 1, tried.size - 2)
            neighbours = middle[:, None] + np.arange(-1, 2)
            a = (tried - 1)[neighbours]
            values = _log_delta(a, tried_bounds.bounds[neighbours], flat)
            for step in PARABOLA_STEPS:
                a = _vertex(a, values)[:, None] * np.exp(step * np.arange(-1, 2))
                values = _log_delta(a, self.renyi(a + 1), flat)
                log_delta = np.minimum(log_delta, np.min(values, axis=1))
        delta = np.exp(log_delta).reshape(e.shape)
        if self._pure_loss is not None:
            delta = np.minimum(delta, self._pure_loss.profile(e))
        return delta + 0.0 if self.max_loss else np.zeros(e.shape)

    @property
    def _pure_loss(self) -> PureLoss | None:
        """The loss of responses as large as `max_loss`, where that is finite."""
        size = max(self.max_loss, POSITIVE.low)
        return PureLoss(size) if size in POSITIVE else None

    def inverse_profile(self, delta: float) -> float:
        """Return the least epsilon over all Rényi orders, and that of the pure bound."""
        if self.max_loss == 0:
            return 0.0

        # Canonne, Kamath & Steinke (2020), Proposition 12
        def epsilon(a: Array) -> Array:
            log_term = -math.log(delta) - a * np.log1p(1 / a) - np.log1p(a)
            return self.renyi(a + 1) + log_term / a

        epsilon_upper = max(0.0, round_up(minimum_of_one_valley(epsilon)[1], 16))
        if self._pure_loss is not None:
            epsilon_upper = min(epsilon_upper, self._pure_loss.inverse_profile(delta))
        return epsilon_upper


def _bound_at(repeated: Repeated, order: Array) -> Array:
    """Return the bound of Papernot & Steinke at each order: Theorem 6 for Poisson, else 2."""
    loss, tries = repeated.loss, repeated.tries
    run_divergence, mean = loss.renyi(order), tries.mean
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        mean_term = math.log(mean) / (order - 1)
        if isinstance(tries, PoissonTries):
            # mean delta(ln(1 + 1 / (order - 1))) of the other direction
            delta = loss.reversed.profile(np.log1p(1 / (order - 1))) * (1 + ACCURACY)
            total = run_divergence + np.maximum(mean_term + mean * delta, 0.0)
        elif isinstance(tries, NegativeBinomial):
            total = run_divergence + mean_term + _cost_of_stopping(loss, tries)
        else:
            raise TypeError(f"no bound is known for {type(tries).__name__}")
        total = total + 1e-14 * (np.abs(total) + np.abs(mean_term))
        bound: Array = np.where(np.isnan(total), np.inf, total)
    return bound


def _log_delta(a: Array, divergence: Array, epsilon: Array) -> Array:
    """Return the logarithm of delta at ``epsilon`` by the divergence of order ``a + 1``, up."""
    with np.errstate(over="ignore", invalid="ignore"):
        # a (D - eps) + a ln(a / (1+a)) - ln(1+a), each term raised by 1e-14 of itself.
        height = a * divergence * (1 + 1e-14) - (a * np.log1p(1 / a) + np.log1p(a)) * (1 - 1e-14)
        log_delta: Array = height - a * (1 - 1e-14) * epsilon
    return np.where(np.isnan(log_delta), 0.0, log_delta)


def _vertex(a: Array, values: Array) -> Array:
    """Return the place of each row's least value, by a parabola in ``ln a`` through three."""
    left, middle, right = values.T
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (left - right) / (left - 2 * middle + right) / 2
    # Every order gives a valid bound, so that no vertex need be right.
    shift = np.where(np.abs(shift) <= 1, shift, 0.0)
    vertex: Array = a[:, 1] * (a[:, 2] / a[:, 1]) ** shift
    return vertex


@dataclass(frozen=True, slots=True, eq=False)
class _TriedBounds:
    """Orders, ascending, the least bound of each and of all greater ones, and the least of all.

    ``at`` are the places of orders that are best at some epsilon, ``turns`` the epsilons where the
    best order changes.
    """

    orders: Array
    bounds: Array
    valley: float
    least: float
    at: NDArray[np.intp]
    turns: Array

    def best(self, epsilon: Array) -> NDArray[np.intp]:
        """Return the place of the order that says most at each epsilon."""
        order_index: NDArray[np.intp] = self.at[np.searchsorted(self.turns, epsilon)]
        return order_index


@functools.lru_cache(maxsize=256)
def _tried_bounds(repeated: Repeated) -> _TriedBounds:
    """Return what the bounds are at orders that are tried."""

    def bound(order: Array) -> Array:
        return np.minimum(_bound_at(repeated, order), repeated.max_loss)

    log_orders = np.linspace(*LOG_ORDERS)
    tried = 1 + np.exp(log_orders)
    values = bound(tried)
    # Bounds fall, then rise, and divergences grow with the order: the least bound, which lies
    # between two of the orders tried, holds for all smaller ones.
    log_order, step = log_orders[int(np.argmin(values))], log_orders[1] - log_orders[0]
    valley, least_bound = 2.0, np.inf
    for points in ZOOMS:
        zoomed_orders = 1 + np.exp(log_order + np.linspace(-step, step, points))
        zoomed_bounds = bound(zoomed_orders)
        best = int(np.argmin(zoomed_bounds))
        log_order, step = math.log(zoomed_orders[best] - 1), step / (points - 1) * 2
        if zoomed_bounds[best] < least_bound:
            valley, least_bound = float(zoomed_orders[best]), float(zoomed_bounds[best])
    bounds = np.minimum.accumulate(values[::-1])[::-1]
    bounds = np.where(tried <= valley, np.minimum(bounds, least_bound), bounds)
    # ln delta is the least of lines in epsilon, one an order: the corners of a convex hull.
    height = _log_delta(tried - 1, bounds, np.zeros(()))
    finite = np.flatnonzero(np.isfinite(height) & np.isfinite(bounds))
    at = np.zeros(1, dtype=np.intp)
    if finite.size > 1:
        at = finite[lower_hull(tried[finite], height[finite])]
    turns = np.diff(height[at]) / np.diff(tried[at])
    return _TriedBounds(tried, bounds, valley, least_bound, at, turns)


@functools.lru_cache(maxsize=256)
def _cost_of_stopping(loss: Loss, tries: NegativeBinomial) -> float:
    """Return ``(1 + shape) min over orders of (1 - 1/order) D + ln(1/stop) / order``, up.

    D is the divergence of one run in the other direction, of any order from 1 on (Theorem 2).
    """
    backwards, nats = loss.reversed, -math.log(tries.stop)

    def cost(a: Array) -> Array:
        with np.errstate(invalid="ignore"):
            stopping_cost: Array = a / (1 + a) * backwards.renyi(a + 1) + nats / (1 + a)
        return stopping_cost

    ends = (nats, backwards.max_loss)  # order 1, and the limit of large orders
    return round_up((1 + tries.shape) * min(minimum_of_one_valley(cost)[1], *ends), 32)
