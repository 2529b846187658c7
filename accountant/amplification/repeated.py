"""Private tuning: the best of a random number of runs is released, the others are not.

`Repeated.profile` is a sum of shifted profiles of one run (`profile_terms`), and `Repeated.renyi`
bounds the divergence of the best run at every order (`_bound_at`).

References: Liu & Talwar (2019); Papernot & Steinke (2022), Theorems 2 and 6; Koskela, Redberg &
Wang (2024), arXiv 2402.06701, whose bound by two profiles is taken here at every threshold of the
score. The proofs, with the chance of no run at all, are in `docs/proofs/repeated.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.best_run_pair import best_run_pair
from accountant.amplification.tries import NegativeBinomial, PoissonTries, Tries
from accountant.composition.composed_loss import loss_of_plan, losses_of_items
from accountant.composition.composition import attained_losses
from accountant.errors import ParameterError
from accountant.losses.connect_the_dots import lower_hull
from accountant.losses.loss import Loss, epsilons, orders
from accountant.losses.loss_numerics import MANY_PAIRS, LossNumerics
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, ULP, round_up
from accountant.numerics.search import least_float_that, minimum_of_one_valley
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Item, Plan, Sequential, as_plan

# Ends and number of the values of ln(order - 1) that are tried.  Every order gives a valid bound:
# more of them would only bring the first choice nearer to the best one.
LOG_ORDERS = (-9.0, 16.0, 1001)
# Numbers of cells, and of lines and corners, of `profile_terms`.  Any numbers give a valid bound.
CELLS, CORNERS = 2048, 256
# A sum takes hundreds of profiles of one run.  So a profile at many epsilons is summed at about so
# many of them.
SUMMED_EPSILONS = 4_096
# Lines and corners are searched until this share of the logarithm of the greatest ratio.
SMALL_SHARE = 1e-3


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
    Liu & Talwar (2019); Papernot & Steinke (2022), Theorems 2 and 6; Koskela, Redberg & Wang
    (2024).

    Examples
    --------
    >>> from accountant import GaussianLoss, LogarithmicTries, Repeated, Tight
    >>> tuned = Repeated(GaussianLoss(0.2), LogarithmicTries(stop=0.01))
    >>> round(tuned.tries.mean, 2), round(Tight().epsilon(tuned, delta=1e-6), 3)
    (21.5, 1.257)
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
        """The largest loss of one run, and the greatest shift of its profile."""
        shift = float(profile_terms(self).shifts[-1])
        return round_up(self.loss.max_loss + shift, 8) if shift else self.loss.max_loss

    @property
    def numerics(self) -> LossNumerics:
        """An upper bound on many pairs, as the worst score is not known."""
        return MANY_PAIRS

    @property
    def attained_pair(self) -> Loss:
        """The pair of the best run by an explicit score, or that of one run, or no loss."""
        return loss_of_plan(Sequential(n * pair for pair, n in self.attained_items(1)))

    def attained_items(self, count: int) -> list[tuple[Loss, int]]:
        """Return the pair of an explicit score that costs much where it is released so often.

        Where none is known, it is that of one run: a score that is always the same releases just
        that.  A Poisson number may be 0, and then nothing is released.
        """
        items = attained_losses(losses_of_items(list(self.part.losses())))
        pair = best_run_pair(tuple(items), self.tries, count)
        if pair is not None:
            return [(pair, count)]
        return [] if isinstance(self.tries, PoissonTries) else [(x, n * count) for x, n in items]

    def renyi(self, order: ArrayLike) -> Array:
        """Return the least bound of the order and of all greater orders that are tried.

        Rényi divergences grow with the order, so the bound of a greater order holds too, and so
        does `max_loss`.
        """
        alpha, (tried_orders, bounds) = orders(order), _tried_bounds(self)
        next_index = np.searchsorted(tried_orders, alpha)
        bound: Array = np.minimum(_bound_at(self, alpha), np.append(bounds, np.inf)[next_index])
        return np.minimum(bound, self.max_loss)

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the sum of weighted and shifted profiles of one run, and at most 1.

        Of many epsilons some are summed, and the others lie on chords between these.
        """
        e, largest = epsilons(epsilon), self.max_loss
        # The profile falls, so that its value at 1e300 is a bound beyond; differences stay finite.
        finite = np.minimum(e, 1e300)
        rising = np.unique(finite)
        spacing = rising.size // SUMMED_EPSILONS
        if spacing < 2:
            return np.where(e < largest, self._summed_profile(finite), 0.0)
        ends = np.unique(np.append(rising[::spacing], rising[-1]))
        delta_at_ends = self._summed_profile(ends)
        # delta is convex in e^epsilon, and so below its chords.
        cell = np.clip(np.searchsorted(ends, finite, side="right") - 1, 0, ends.size - 2)
        with np.errstate(over="ignore", invalid="ignore"):  # cells wider than floats' exponents
            share = np.expm1(finite - ends[cell]) / np.expm1(np.diff(ends))[cell]
        share = np.where(np.isnan(share), 0.0, share)
        chord = delta_at_ends[cell] * (1 - share) + delta_at_ends[cell + 1] * share
        return np.where(e < largest, chord * (1 + 8 * ULP), 0.0)

    def _summed_profile(self, epsilon: Array) -> Array:
        """Return the sum of the shifted profiles at each epsilon, rounded up, and at most 1."""
        weights, shifts, *_ = profile_terms(self)
        delta = ordered_dot(self.loss.profile_any_epsilon(epsilon[..., None] - shifts), weights)
        capped: Array = np.minimum(delta * (1 + 2 * ACCURACY), 1.0)
        return capped


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


@functools.lru_cache(maxsize=256)
def _tried_bounds(repeated: Repeated) -> tuple[Array, Array]:
    """Return the ascending orders that are tried, and the least bound of each and of all above."""
    tried_orders = 1 + np.exp(np.linspace(*LOG_ORDERS))
    bounds = _bound_at(repeated, tried_orders)
    return tried_orders, np.minimum.accumulate(bounds[::-1])[::-1]


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


class _TestsOfOneRun(NamedTuple):
    """How much likelier an event of one run may be on the neighbour: lines above the gap.

    An event of chance u under P has under Q a chance of at most ``u + gap(u)``.  The gap is at most
    the least of the lines ``intercept + rise u``, as long as u is at most ``last_tail``.
    ``log_ratio`` is at least ``ln f'(1 - u) - ln f'(1 - u - gap(u))`` for every u.  The rises are
    ``e^s - 1`` for each s of ``log_slopes``.
    """

    log_slopes: Array
    intercepts: Array
    rises: Array
    last_tail: float
    log_ratio: float

    def gap(self, tail: Array) -> Array:
        """Return the least of the lines, rounded up; it rises with the tail."""
        least: Array = np.min(self.intercepts + tail[:, None] * self.rises, axis=1)
        return least * (1 + ACCURACY)


def _tests_of_one_run(loss: Loss, tries: Tries, lines: int) -> _TestsOfOneRun:
    """Return so many lines, ``loss`` being that of (Q, P).

    Its profile gives a line for every s: ``Q(S) <= e^s P(S) + delta(s)``.
    """

    def intercepts(log_slope: ArrayLike) -> Array:
        return np.minimum(loss.profile(log_slope) * (1 + ACCURACY), 1.0)

    def ratios_at_ends(log_slope: float) -> tuple[Array, Array]:
        """Return the logarithms of the ratio at u = 0, and where Q of the line is 1."""
        delta, slope = intercepts(log_slope), math.exp(log_slope)
        last_gap = (math.expm1(log_slope) + delta) / slope
        return (
            tries.log_slope_ratio(np.zeros(()), delta),
            tries.log_slope_ratio((1 - delta) / slope, last_gap),
        )

    def rises(log_slope: float) -> bool:
        at_zero, at_one = ratios_at_ends(log_slope)
        return bool(at_zero <= at_one)

    # Where Q is bounded by a line, the ratio is greatest at one of its ends, and for greater u it
    # falls.  So each line gives a bound, and that with equal ratios at both ends gives the least.
    steepest = min(loss.max_loss, MAX_EXPONENT)
    flattest = least_float_that(rises, 0.0, steepest, steps=60)
    log_ratio = float(np.max(ratios_at_ends(flattest))) * (1 + ACCURACY)
    last_slope = least_float_that(
        lambda log_slope: bool(ratios_at_ends(log_slope)[0] <= SMALL_SHARE * log_ratio),
        flattest,
        steepest,
        relative=SMALL_SHARE,
    )
    log_slopes = np.linspace(flattest, last_slope, lines)
    deltas = intercepts(log_slopes)
    last_tail = float(1 - deltas[0]) * math.exp(-flattest)
    return _TestsOfOneRun(log_slopes, deltas, np.expm1(log_slopes), last_tail, log_ratio)


class ProfileTerms(NamedTuple):
    """Weights w and shifts s: delta of the best run is at most ``sum w delta(epsilon - s)``.

    delta is the profile of one run, and the last shift is the greatest.  They come from the profile
    of the other direction at ``log_slopes``, and from the cells of u that ``tails`` bound.
    """

    weights: Array
    shifts: Array
    log_slopes: Array
    tails: Array


@functools.lru_cache(maxsize=256)
def profile_terms(repeated: Repeated, cells: int = CELLS, corners: int = CORNERS) -> ProfileTerms:
    """Return the terms of about so many cells, and so many lines and corners.

    Let an outcome be bettered
    by one run with chance u under P, and with at most u + gap(u) under Q.  The best run has it with
    p f'(1 - u) and at least q f'(1 - u - gap(u)) instead of the densities p and q, so that

        delta'(epsilon) <= E_P Phi(e^epsilon q / p),
        Phi(y) = sup_u max(0, f'(1 - u) - y f'(1 - u - gap(u))).

    Phi is convex, and 0 from the greatest ratio of both f' on.  A convex polygon above Phi is a sum
    of terms ``w max(0, 1 - y e^-s)``, and the mean of such a term is ``w delta(epsilon - s)``.
    """
    tries = repeated.tries
    tests = _tests_of_one_run(repeated.loss.reversed, tries, corners)
    greatest = tests.log_ratio
    if greatest == 0:
        return ProfileTerms(np.array([tries.mean]), np.zeros(1), tests.log_slopes, np.zeros(0))

    def bounds_in_cells(tails: Array) -> tuple[Array, Array]:
        """Return upper bounds on ``ln f'(1 - u) - ln f'(1)`` and on the ratio, for u in each cell.

        The ratio is at most that of the first u and the greatest gap.  The last cell ends at u = 1.
        """
        log_ratio = tries.log_slope_ratio(tails[:-1], tests.gap(tails[1:]))
        log_ratio = np.append(np.minimum(log_ratio, greatest), greatest)
        return -tries.log_slope_ratio(np.zeros(()), tails), log_ratio

    # Tails and corners are chosen twice: the second ones have about equal changes between them.
    tails = tests.last_tail * np.append(0.0, np.geomspace(1e-9, 1.0, cells))
    tails = _with_equal_changes(tails, *bounds_in_cells(tails))
    log_density, log_ratio = bounds_in_cells(tails)

    def log_phi(shift: Array) -> Array:
        """Return an upper bound on ``ln Phi(e^shift) - ln f'(1)``, below the greatest shift."""
        share = -np.expm1(np.minimum(shift[:, None] - log_ratio, 0.0))
        with np.errstate(divide="ignore"):
            height: Array = np.log(np.max(np.exp(log_density) * share, axis=1))
        return height

    # The nearest corner to the greatest ratio is as far from it that their floats differ.
    nearest = max(SMALL_SHARE * greatest, ACCURACY / SMALL_SHARE)
    below = np.geomspace(nearest, 2 * max(greatest, nearest), corners)
    shifts = (greatest - below)[::-1]
    shifts = _with_equal_changes(shifts, shifts, log_phi(shifts))
    # Shifts so far below the greatest that their y is no float are left out.
    shifts = shifts[np.diff(np.exp(shifts - greatest), prepend=0.0) > 0]
    y = np.append(np.append(0.0, np.exp(shifts - greatest)), 1.0)
    phi = np.append(np.append(1.0, np.exp(log_phi(shifts)) * (1 + ACCURACY)), 0.0)
    hull = lower_hull(y, phi)
    # Slopes from either side times y; the slopes themselves may overflow.
    falls, steps = -np.diff(phi[hull]), np.diff(y[hull])
    after = np.append(falls[1:] * (y[hull[1:-1]] / steps[1:]), 0.0)
    weights = np.maximum(falls * (y[hull[1:]] / steps) - after, 0.0)
    mean = tries.mean * (1 + ACCURACY)
    shifts = np.append(shifts, greatest)[hull[1:] - 1]
    return ProfileTerms(mean * weights, shifts, tests.log_slopes, tails)


def _with_equal_changes(points: Array, *functions: Array) -> Array:
    """Return as many points, between which the functions have about the same total change.

    Each function counts relative to its own total change; infinite values count as no change.
    """
    with np.errstate(invalid="ignore"):  # of two infinite values
        changes = [np.nan_to_num(np.abs(np.diff(values)), posinf=0.0) for values in functions]
    change = sum(x / max(x.sum(), 1e-300) for x in changes)
    total = np.append(0.0, np.cumsum(change))
    return np.interp(np.linspace(0.0, total[-1], points.size), total, points)
