"""Private tuning: the best of a random number of runs is released, the others are not.

The divergence of the best run is bounded at every Rényi order (`_bound_at`), and each order gives a
bound on delta.  `Repeated.profile` takes the least of them: a list of orders is tried once
(`_tried_bounds`), and then orders near the best one of each epsilon.

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

# Ends and number of the values of ln(order - 1) that are tried.  Every order gives a valid bound:
# more of them would only bring the first choice nearer to the best one.
LOG_ORDERS = (-9.0, 16.0, 1001)
# Number of points of each finer grid, which covers one step of the grid before on either side of
# the best order.
ZOOMS = (9, 9, 9, 9)
# For at most 64 epsilons the best order of each is searched on the finer grids, with 36 divergences
# each.  For more, as discretisations ask for, it is the vertex of a parabola in ln(order - 1), with
# 6 divergences: quicker, and the bound may be a little larger.
MAX_ZOOMED_EPSILONS = 64
# Distances, in ln(order - 1), of two more orders from the vertex of each parabola in turn.
PARABOLA_STEPS = (1e-3, 1e-4)


@final
@dataclass(frozen=True, slots=True)
class Repeated(Loss):
    """An upper bound on the loss of the best of a random number of runs of a plan.

    Each run is scored by its own output; the output of the best run is released, and neither the
    other outputs nor the number of runs.  The bound holds for every score; there may be no score
    that attains it.  For a fixed number of runs use `Repeat`: the best of them may cost as much as
    all.

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
        """Yield this loss once.

        If there is surely a single run (``stop`` is 1), yield the losses of the part instead.  If
        the part releases nothing, yield nothing.
        """
        if getattr(self.tries, "stop", 0.0) == 1:
            yield from self.part.losses()
        elif next(self.part.losses(), None) is not None:
            yield self, 1

    @property
    def reversed(self) -> Repeated:
        """The same random number of runs of the reversed part."""
        return Repeated(self.part.reversed, self.tries)

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def max_loss(self) -> float:
        """``(2 + shape) max_loss`` of one run; for Poisson ``max_loss + mean delta(0)`` of it.

        The proof derives both, from the largest ratio of the two laws of one run.
        """
        run_loss = max(self.loss.max_loss, self.loss.reversed.max_loss)
        if isinstance(self.tries, PoissonTries):
            delta_at_zero = max(float(x.profile(0.0)) for x in (self.loss, self.loss.reversed))
            return round_up(run_loss + self.tries.mean * delta_at_zero * (1 + ACCURACY), 8)
        # The negative binomial laws start at one run, so with a mean of 1 there is exactly one.
        return run_loss if self.tries.mean == 1 else round_up((2 + self.tries.shape) * run_loss, 8)

    @property
    def numerics(self) -> LossNumerics:
        """An upper bound on many pairs, as the worst score is not known, from its Rényi curve."""
        return MANY_PAIRS_BY_RENYI

    @property
    def attained_pair(self) -> Loss:
        """The pair of one run: a score that is always the same releases just that.

        A Poisson number may be 0, and no pair below a numerical profile is known; in both cases it
        is a pair of equal distributions, which loses nothing.
        """
        if isinstance(self.tries, PoissonTries) or self.loss.numerics.is_numerical:
            return PairLoss((1.0,), (1.0,))
        return self.loss.attained_pair

    def renyi(self, order: ArrayLike) -> Array:
        """Return the least bound of the order and of all greater orders that are tried.

        Rényi divergences grow with the order, so the bound of a greater order holds too, and so
        does `max_loss`.
        """
        alpha, tried_bounds = orders(order), _tried_bounds(self)
        tried_orders = tried_bounds.orders
        next_index = np.minimum(np.searchsorted(tried_orders, alpha), tried_orders.size - 1)
        bound_from_above = np.where(
            alpha <= tried_orders[-1], tried_bounds.bounds[next_index], np.inf
        )
        bound_from_above = np.where(
            alpha <= tried_bounds.valley,
            np.minimum(bound_from_above, tried_bounds.least),
            bound_from_above,
        )
        bound: Array = np.minimum(
            np.minimum(_bound_at(self, alpha), bound_from_above), self.max_loss
        )
        return bound

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the least delta over the Rényi orders that are tried, and over the pure bound."""
        e = epsilons(epsilon)
        # delta falls with epsilon, so its value at 1e100 is a bound beyond; products stay finite
        flat = np.minimum(np.ravel(e), 1e100)
        tried_bounds = _tried_bounds(self)
        best = tried_bounds.best(flat)
        log_delta = _log_delta(tried_bounds.orders[best] - 1, tried_bounds.bounds[best], flat)
        log_delta_at_valley = _log_delta(
            np.array(tried_bounds.valley - 1), np.array(tried_bounds.least), flat
        )
        search = self._on_finer_grids if flat.size <= MAX_ZOOMED_EPSILONS else self._at_vertices
        log_delta = np.minimum.reduce(
            [np.minimum(log_delta, 0.0), log_delta_at_valley, search(flat, best)]
        )
        delta = np.exp(log_delta).reshape(e.shape)
        if self._pure_loss is not None:
            delta = np.minimum(delta, self._pure_loss.profile(e))
        return delta + 0.0 if self.max_loss else np.zeros(e.shape)

    def _on_finer_grids(self, epsilon: Array, best: NDArray[np.intp]) -> Array:
        """Return ln delta over orders on ever finer grids around the best one that was tried."""
        tried_orders, log_delta = _tried_bounds(self).orders, np.full(epsilon.shape, np.inf)
        middle = np.log(tried_orders[best] - 1)
        step = math.log(tried_orders[1] - 1) - math.log(tried_orders[0] - 1)
        for points in ZOOMS:
            a = np.exp(middle[:, None] + np.linspace(-step, step, points))
            log_deltas = _log_delta(a, self.renyi(a + 1), epsilon[:, None])
            best, step = np.argmin(log_deltas, axis=1), step / (points - 1) * 2
            middle = np.log(a[np.arange(best.size), best])
            log_delta = np.minimum(log_delta, np.min(log_deltas, axis=1))
        return log_delta

    def _at_vertices(self, epsilon: Array, best: NDArray[np.intp]) -> Array:
        """Return ln delta over orders next to the vertices of parabolas through three orders.

        The parabolas are in ``ln a``, a being the order less 1; three orders have equal distances
        in it.  The first parabola of an epsilon goes through the best order that was tried and its
        neighbours, the next one through orders around the vertex of the first.
        """
        tried_bounds, log_delta = _tried_bounds(self), np.full(epsilon.shape, np.inf)
        middle = np.clip(best, 1, tried_bounds.orders.size - 2)
        neighbours = middle[:, None] + np.arange(-1, 2)
        a = (tried_bounds.orders - 1)[neighbours]
        values = _log_delta(a, tried_bounds.bounds[neighbours], epsilon[:, None])
        for step in PARABOLA_STEPS:
            left, middle_value, right = values.T
            with np.errstate(invalid="ignore", divide="ignore"):
                shift = (left - right) / (left - 2 * middle_value + right) / 2
            # The middle order is taken where the vertex is farther away than its neighbours.  Every
            # order gives a valid bound, so that a wrong vertex only makes the bound larger.
            shift = np.where(np.abs(shift) <= 1, shift, 0.0)
            vertex = a[:, 1] * (a[:, 2] / a[:, 1]) ** shift
            a = vertex[:, None] * np.exp(step * np.arange(-1, 2))
            values = _log_delta(a, self.renyi(a + 1), epsilon[:, None])
            log_delta = np.minimum(log_delta, np.min(values, axis=1))
        return log_delta

    @property
    def _pure_loss(self) -> PureLoss | None:
        """The pure loss of epsilon `max_loss`; None where that is infinite."""
        size = max(self.max_loss, POSITIVE.low)
        return PureLoss(size) if size in POSITIVE else None

    def inverse_profile(self, delta: float) -> float:
        """Return the least epsilon over Rényi orders on finer and finer grids, or the pure one."""
        if self.max_loss == 0:
            return 0.0

        # D + [ln(1/delta) + a ln(a / (1 + a)) - ln(1 + a)] / a with the order a + 1, whose
        # divergence is D (Canonne, Kamath & Steinke 2020, Proposition 12)
        def epsilon(a: Array) -> Array:
            log_term = -math.log(delta) - a * np.log1p(1 / a) - np.log1p(a)
            return self.renyi(a + 1) + log_term / a

        epsilon_upper = max(0.0, round_up(minimum_of_one_valley(epsilon)[1], 16))
        if self._pure_loss is not None:
            epsilon_upper = min(epsilon_upper, self._pure_loss.inverse_profile(delta))
        return epsilon_upper


def _bound_at(repeated: Repeated, order: Array) -> Array:
    """Return the bound on the divergence of the best run at each order, rounded up.

    D is the divergence of one run, and hats are of the other direction, Q against P:

        negative binomial:  D + ln E[K] / (order - 1) + `_cost_of_stopping`              (Theorem 2)
        Poisson:            D + max(0, ln E[K] / (order - 1) + E[K] delta^(eps^)),
                            eps^ = ln(1 + 1 / (order - 1))                               (Theorem 6)
    """
    loss, tries = repeated.loss, repeated.tries
    run_divergence, mean = loss.renyi(order), tries.mean
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        mean_term = math.log(mean) / (order - 1)
        if isinstance(tries, PoissonTries):
            delta = loss.reversed.profile(np.log1p(1 / (order - 1))) * (1 + ACCURACY)
            total = run_divergence + np.maximum(mean_term + mean * delta, 0.0)
        elif isinstance(tries, NegativeBinomial):
            total = run_divergence + mean_term + _cost_of_stopping(loss, tries)
        else:
            raise TypeError(f"no bound is known for {type(tries).__name__}")
        # 1e-14 is 45 ulps, more than these few operations err by.
        total = total + 1e-14 * (np.abs(total) + np.abs(mean_term))
        bound: Array = np.where(np.isnan(total), np.inf, total)
    return bound


def _log_delta(a: Array, divergence: Array, epsilon: Array) -> Array:
    """Return ln delta at ``epsilon`` from the divergence D of order ``a + 1``, rounded up.

    It is ``a (D - epsilon) + a ln(a / (1 + a)) - ln(1 + a)``, each term raised by 1e-14 of itself
    (Canonne, Kamath & Steinke 2020, Proposition 12).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        height = a * divergence * (1 + 1e-14) - (a * np.log1p(1 / a) + np.log1p(a)) * (1 - 1e-14)
        log_delta: Array = height - a * (1 - 1e-14) * epsilon
    return np.where(np.isnan(log_delta), 0.0, log_delta)


@dataclass(frozen=True, slots=True, eq=False)
class _TriedBounds:
    """Bounds at the ascending ``orders`` that are tried, and which order is best at which epsilon.

    ``bounds`` are for each order the least bound of it and of all greater ones.  ``least`` is the
    least bound of all, found at the order ``valley`` between two of the others.  ``at`` are the
    indices of the orders that give the least delta at some epsilon, and ``turns`` the epsilons at
    which the best order changes from one of them to the next.
    """

    orders: Array
    bounds: Array
    valley: float
    least: float
    at: NDArray[np.intp]
    turns: Array

    def best(self, epsilon: Array) -> NDArray[np.intp]:
        """Return the index of the order that gives the least delta at each epsilon."""
        order_index: NDArray[np.intp] = self.at[np.searchsorted(self.turns, epsilon)]
        return order_index


@functools.lru_cache(maxsize=256)
def _tried_bounds(repeated: Repeated) -> _TriedBounds:
    """Return the bounds at all orders of `LOG_ORDERS`, and the least bound on the finer grids."""

    def bound(order: Array) -> Array:
        return np.minimum(_bound_at(repeated, order), repeated.max_loss)

    log_orders = np.linspace(*LOG_ORDERS)
    tried_orders = 1 + np.exp(log_orders)
    values = bound(tried_orders)
    # As the order grows the bounds first fall and then rise, but the divergences only grow.  So
    # the least bound, which lies between two of the orders tried, holds for all smaller orders.
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
    bounds = np.where(tried_orders <= valley, np.minimum(bounds, least_bound), bounds)
    # Each order gives a line ``height - (order - 1) epsilon`` for ln delta.  The orders whose lines
    # are the least somewhere are the corners of the lower convex hull of (order, height).
    height = _log_delta(tried_orders - 1, bounds, np.zeros(()))
    finite = np.flatnonzero(np.isfinite(height) & np.isfinite(bounds))
    best_indices = np.zeros(1, dtype=np.intp)
    if finite.size > 1:
        best_indices = finite[lower_hull(tried_orders[finite], height[finite])]
    turns = np.diff(height[best_indices]) / np.diff(tried_orders[best_indices])
    return _TriedBounds(tried_orders, bounds, valley, least_bound, best_indices, turns)


@functools.lru_cache(maxsize=256)
def _cost_of_stopping(loss: Loss, tries: NegativeBinomial) -> float:
    """Return ``(1 + shape) min over kappa of (1 - 1/kappa) D + ln(1/stop) / kappa``, rounded up.

    D is the divergence of one run in the other direction, of the order kappa >= 1 (Theorem 2).
    """
    backwards, nats = loss.reversed, -math.log(tries.stop)

    def cost(a: Array) -> Array:
        with np.errstate(invalid="ignore"):
            stopping_cost: Array = a / (1 + a) * backwards.renyi(a + 1) + nats / (1 + a)
        return stopping_cost

    ends = (nats, backwards.max_loss)  # at kappa = 1, and in the limit of large kappa
    return round_up((1 + tries.shape) * min(minimum_of_one_valley(cost)[1], *ends), 32)
