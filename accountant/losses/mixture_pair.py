"""Two mixtures of normal laws on a line, one to the right of 0 and one to the left of it.

    P = sum_j w_j N(m_j, 1),   Q = sum_k v_k N(-t_k, 1),   m_j >= 0 and t_k >= 0.

With r_P(x) = sum_j w_j e^{m_j x - m_j^2 / 2} and r_Q(x) = sum_k v_k e^{-t_k x - t_k^2 / 2}, the
privacy loss of an output x is L = ln r_P - ln r_Q, which grows with x.  So the profile is a sum of
Gaussian profiles at the x of a loss, and the cumulant K(z) = ln E_P e^{zL} is an integral,

    e^{K(z)} = int n(x) r_P(x)^{1+z} r_Q(x)^{-z} dx,    n the standard normal density,

by a trapezoid rule on the real line.  Such a rule with the step h errs by at most
2 N / (e^{2 pi d / h} - 1), N a bound on the integral of the integrand's size on the lines
Im x = +-d (Trefethen & Weideman 2014, Theorem 5.1).  A `Side` is one mixture as seen from its own
side: ``log_ratio`` is ln r, ``slope`` its derivative, ``spread`` the distance of its outermost
means, and ``greatest`` the farthest shift.

Proof: `docs/proofs/mixtures.md`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.losses.cell_masses import CellMasses, normal_cell_masses
from accountant.losses.gaussian import GaussianLoss
from accountant.losses.normal_mixture import Side
from accountant.numerics import Array, Complex
from accountant.numerics.exponential_sums import (
    cf_ratio,
    complex_power,
    finite_cgf,
    power_round_off,
)
from accountant.numerics.logspace import logsumexp
from accountant.numerics.ordered_sums import ordered_dot, ordered_sum
from accountant.numerics.quadrature import MAX_POINTS
from accountant.numerics.rounding import ULP

# A trapezoid rule ends so many deviations beyond a bound on the mean of the tilted density
# (`_reach`); Phi(-9.7) is 1.5e-22.
TAIL_DEVIATIONS = 9.7
TAIL_ERROR = 1e-20  # a bound on the share of a moment that lies beyond the ends of a rule
# The step of a rule is such that it misses about e^-42 = 6e-19 of a moment, far below an ulp; a
# larger number takes more points.
DIGITS = 42.0
FARTHEST_OUTPUT = 1e100  # the search for the output of a loss ends here


@final
@dataclass(frozen=True, slots=True)
class MixturePair:
    """The pair (P, Q): P is the mixture to the right of 0, Q the one to the left."""

    right: Side
    left: Side

    @property
    def mirrored(self) -> MixturePair:
        """The pair (Q, P), seen from the other side of the line."""
        return MixturePair(self.left, self.right)

    @property
    def span(self) -> float:
        """The greatest distance of a mean of P from one of Q."""
        return self.right.greatest + self.left.greatest

    @property
    def max_loss(self) -> float:
        """The limit of the loss on the right, to nearest; finite where P is the law at 0.

        It needs a component of Q at 0, too: far to the right only that is left of Q.
        """
        if self.right.greatest > 0 or 0.0 not in self.left.shifts:
            return math.inf
        return -math.log(self.left.weights[self.left.shifts.index(0.0)])

    def loss(self, x: Array) -> Array:
        """Return the loss of an output."""
        return self.right.log_ratio(x) - self.left.log_ratio(-x)

    def log_profile(self, epsilon: Array) -> Array:
        """Return the logarithm of ``sup_S P(S) - e^epsilon Q(S)``, each term positive.

        The set S is all outputs beyond x, where L(x) = epsilon.  Let b_k be the chance of component
        k of Q given x, and e_jk = (m_j + t_k) (x - (m_j - t_k) / 2) the loss of x for N(m_j, 1)
        against N(-t_k, 1).  Then e^epsilon v_k = b_k sum_j w_j e^{e_jk}, and the profile is
        sum_jk w_j b_k delta_{m_j + t_k}(e_jk), with the profiles of these normal laws.
        """
        flat = np.ravel(epsilon)
        total = np.full(flat.shape, -np.inf)
        attainable = flat < self.max_loss
        x = self._output_of_loss(flat[attainable])
        chances = self.left.posterior(-x)
        terms = []
        for m, w in zip(self.right.shifts, self.right.weights, strict=True):
            for k, t in enumerate(self.left.shifts):
                if m + t > 0 and x.size:
                    pair_loss = (m + t) * (x - (m - t) / 2)  # e_jk
                    with np.errstate(divide="ignore"):
                        log_weight = math.log(w) + np.log(chances[k])
                    terms.append(GaussianLoss(m + t).log_profile(pair_loss) + log_weight)
        if terms:
            total[attainable] = logsumexp(np.array(terms), axis=0)
        # Where every term is 0, as far out as the search goes, the sum of logarithms is NaN.
        return np.where(np.isnan(total), -np.inf, np.minimum(total, 0.0)).reshape(epsilon.shape)

    def _output_of_loss(self, epsilon: Array) -> Array:
        """Return where the loss is epsilon, by Newton's method, or bisection where that leaves.

        The ends are doubled until the losses there lie around all epsilons; a table between them
        gives the first estimate and two bounds for each epsilon.
        """
        if epsilon.size == 0:
            return epsilon
        low_end, high_end = -1.0, 1.0
        lowest_loss, highest_loss = float(np.min(epsilon)), float(np.max(epsilon))
        while -low_end < FARTHEST_OUTPUT and float(self.loss(np.array(low_end))) > lowest_loss:
            low_end *= 2
        while high_end < FARTHEST_OUTPUT and float(self.loss(np.array(high_end))) < highest_loss:
            high_end *= 2
        table = np.linspace(low_end, high_end, 513)
        values = self.loss(table)
        cell = np.clip(np.searchsorted(values, epsilon), 1, table.size - 1)
        low, high = table[cell - 1], table[cell]
        x, unsolved = np.clip(np.interp(epsilon, values, table), low, high), np.arange(epsilon.size)
        for _ in range(400):  # more than bisection alone needs from any cell of the table
            estimate = x[unsolved]
            excess = self.loss(estimate) - epsilon[unsolved]
            low[unsolved] = np.where(excess <= 0, estimate, low[unsolved])
            high[unsolved] = np.where(excess > 0, estimate, high[unsolved])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = excess / (self.right.slope(estimate) + self.left.slope(-estimate))
            # The loss is inexact by an ulp of itself, the output by a few.
            done = np.abs(excess) <= 2 * ULP * np.abs(epsilon[unsolved])
            done |= np.abs(step) <= 4 * ULP * (1 + np.abs(estimate))
            done |= high[unsolved] - low[unsolved] <= 4 * ULP * (1 + np.abs(estimate))
            next_estimate = estimate - step
            inside = (next_estimate > low[unsolved]) & (next_estimate < high[unsolved])
            next_estimate = np.where(inside, next_estimate, (low[unsolved] + high[unsolved]) / 2)
            x[unsolved] = np.where(done, estimate, next_estimate)
            unsolved = unsolved[~done]
            if unsolved.size == 0:
                break
        return x

    def cell_masses(self, edges: Array) -> CellMasses:
        """Return the masses of the loss between edges, under P and under Q."""
        # The outputs whose losses are the edges; infinite for an edge that the loss never reaches.
        x = np.where(edges >= self.max_loss, np.inf, -np.inf)
        attainable = (
            (edges > -self.mirrored.max_loss) & (edges < self.max_loss) & np.isfinite(edges)
        )
        x[attainable] = self._output_of_loss(edges[attainable])
        masses = []  # under P and under Q: (mass, error) each
        for mixture, sign in ((self.right, 1), (self.left, -1)):
            component_masses = [normal_cell_masses(x, sign * m) for m in mixture.shifts]
            masses.append(
                [
                    ordered_sum(np.array(mixture.weights), np.array(part))
                    for part in zip(*component_masses, strict=True)
                ]
            )
        # An output is inexact by a few ulps, which the slope of the loss multiplies.
        farthest = float(np.max(np.abs(x[attainable]), initial=0.0)) + self.span
        largest_edge = float(np.max(np.abs(edges[attainable]), initial=0.0))
        error = 16 * ULP * (1 + largest_edge + self.span * (1 + farthest))
        (p, p_error), (q, q_error) = masses
        return CellMasses(p, q, p_error + 8 * ULP * p, q_error + 8 * ULP * q, error)

    def cgf(self, z: Any) -> tuple[Any, Array]:
        """Return ``ln E e^{zL}`` and a bound on its error; infinite where Re z is out of reach.

        Orders within a factor of 4 share a rule.  Its error is relative to E e^{aL}, a = Re z,
        hence larger, by ``growth``, relative to E e^{zL}.
        """
        shape, z = z.shape, np.atleast_1d(z)
        value, error = np.full(z.shape, np.inf, dtype=z.dtype), np.zeros(z.shape)
        frequency = float(np.max(np.abs(z.imag), initial=0.0))
        # The exponents of powers of 4; NaN where there is no cumulant.
        magnitudes = np.ceil(np.log2(np.maximum(np.abs(z.real), 1.0)) / 2)
        magnitudes[~np.isfinite(magnitudes)] = np.nan
        for magnitude in np.unique(magnitudes[~np.isnan(magnitudes)]):
            similar = magnitudes == magnitude
            lowest, highest = float(np.min(z.real[similar])), float(np.max(z.real[similar]))
            if self._points(lowest, highest, frequency) > MAX_POINTS * (1 + frequency):
                continue
            loss, log_mass, rule_error = _rule(self, lowest, highest, frequency)
            orders = z if similar.all() else z[similar]
            cumulant, round_off = finite_cgf(loss, log_mass, orders)
            tilted = finite_cgf(loss, log_mass, orders.real)[0] if frequency else cumulant
            growth = np.exp(np.minimum(tilted.real - cumulant.real, 700.0))
            value[similar] = cumulant.ravel()
            error[similar] = (round_off + rule_error * growth).ravel()
        return value.reshape(shape), error.reshape(shape)

    def cf_ratio(self, z: Complex, count: int) -> tuple[Complex, Array]:
        """Return ``(E e^{zL} / E e^{aL})^count`` on equidistant nodes, and a bound on its error."""
        a = float(z[0, 0].real)
        loss, log_mass, rule_error = _rule(self, a, a, float(z[-1, -1].imag))
        ratio, spread, ratio_error = cf_ratio(loss, log_mass, z)
        error = power_round_off(count, spread, z, ratio_error) + 2 * count * rule_error
        return complex_power(ratio, count), error

    def log_cf_bound(self, a: float, u: Array) -> Array:
        """Return the log of a bound on ``|E e^{(a+iv)L}| / E e^{aL}`` for every ``v >= u``.

        On the line Im x = d, with f the tilted density n r_P^{1+a} r_Q^{-a} / E e^{aL}, it is at
        most

            int |f(x + id)| e^{-u Im L(x + id)} dx,

        which falls with u, as Im L is positive; every d gives a bound, and the least of some is
        taken.  ``a`` is above 0.  ``u`` grows, so that the bound at each second frequency serves
        the next one, too.
        """
        if self._points(a, a, 0.0) > MAX_POINTS:
            return np.zeros(u.shape)
        # The proof asks for (d + half_width) spread <= pi / 2; here it is at most 0.95 of that.
        # Where the spreads are small, ``widest`` is 4.
        widest = math.pi / 2 / max(self.right.spread, self.left.spread, math.pi / 8)
        half_width, (low, high) = 0.35 * widest, self.quadrature_range(a, a)
        # The logarithms below are inexact by some ulps of the largest term of any of them.
        farthest = max(-low, high) + 1
        least_weight = min(*self.right.weights, *self.left.weights)
        largest_term = 1 + self.span * (farthest + self.span) - math.log(least_weight)
        round_off = 1e-12 + 16 * ULP * ((1 + 2 * a) * largest_term + farthest**2)
        lower = u[::2]
        log_bound = np.zeros(lower.shape)
        for d in widest * np.geomspace(1e-3, 0.6, 12):
            # A trapezoid rule for that integral, which is bounded on the lines Im x = d +-
            # half_width as in `quadrature_step`: there the integrand is at most e^log_growth f(x).
            log_growth = (d + half_width) ** 2 / 2 - a * math.log(
                math.cos(self.left.spread * (d + half_width) / 2)
            )
            step = 2 * math.pi * half_width / (DIGITS + log_growth)
            x = low + step * np.arange(math.ceil((high - low) / step) + 1.0)
            rule_error = 5 * math.exp(-DIGITS) + TAIL_ERROR * math.exp(min(log_growth, 600.0))
            log_p, turn_p = self.right.log_modulus_and_turn(x, float(d))
            log_q, turn_q = self.left.log_modulus_and_turn(-x, float(d))
            real = (1 + a) * self.right.log_ratio(x) - a * self.left.log_ratio(-x) - x * x / 2
            # ln |f| at the nodes; E e^{aL} is the same rule's sum on the real line
            log_modulus = (1 + a) * log_p - a * log_q + (d * d - x * x) / 2 - logsumexp(real)
            # For each node that is not relevant, 1e-24 of the largest modulus is added.
            relevant = log_modulus > np.max(log_modulus) - 60
            integral = ordered_dot(
                np.exp(-lower[:, None] * (turn_p + turn_q)[relevant]), np.exp(log_modulus[relevant])
            )
            irrelevant = 1e-24 * x.size * math.exp(min(float(np.max(log_modulus)), 600.0))
            log_bound_at_d = np.log(integral + rule_error + irrelevant) + round_off
            log_bound = np.minimum(log_bound, log_bound_at_d)
        return np.repeat(log_bound, 2)[: u.size]

    def quadrature_terms(self, frequency: float) -> float:
        """Return about how many points a contour up to ``frequency`` needs, at a moderate order."""
        return self._points(10.0, 10.0, min(frequency, 1e6))

    def _points(self, lowest_order: float, highest_order: float, frequency: float) -> float:
        """Return how many points the rule for these real orders and frequencies has."""
        low, high = self.quadrature_range(lowest_order, highest_order)
        return (high - low) / self.quadrature_step(lowest_order, highest_order, frequency)[0]

    def quadrature_range(self, lowest_order: float, highest_order: float) -> tuple[float, float]:
        """Return between which outputs all but `TAIL_ERROR` of the tilted density lies.

        Its logarithm has the derivative (1 + a) A(x) + a B(x) - x, where A and B are the mean
        shifts of P and Q given the output: A grows with x and B falls.
        """
        return -_reach(self.left, self.right, -1 - lowest_order), _reach(
            self.right, self.left, highest_order
        )

    def quadrature_step(
        self, lowest_order: float, highest_order: float, frequency: float
    ) -> tuple[float, float]:
        """Return the step of the rule for these orders, and its error relative to the moment.

        On the line Im x = d the integrand f at frequency u has

            |f(x + id)| <= f(x) e^{d^2/2} cos(s d / 2)^-a e^{u span d},

        as |r_P| is at most what it is on the real line, and |r_Q| at least that times the cosine, s
        the spread of its shifts; at orders below -1 the two change places.
        """
        # The rule errs by at most 2 e^log_growth / (e^{2 pi d / step} - 1) of the moment for any of
        # these d, with which the step makes that less than 5 e^-DIGITS; the longest step is taken.
        right_spread, left_spread = self.right.spread, self.left.spread
        d = math.pi / max(right_spread, left_spread, 0.5) * np.linspace(0.01, 0.98, 60)
        log_growth = d * d / 2 + frequency * self.span * d
        log_growth = log_growth - max(highest_order, 0.0) * np.log(np.cos(left_spread * d / 2))
        log_growth = log_growth - max(-1 - lowest_order, 0.0) * np.log(np.cos(right_spread * d / 2))
        step = 2 * math.pi * d / (DIGITS + log_growth)
        return float(np.max(step)), 5 * math.exp(-DIGITS)


@functools.lru_cache(maxsize=1024)
def _reach(ahead: Side, behind: Side, a: float) -> float:
    """Return an end to the right of which little of ``n r_ahead^{1+a} r_behind^{-a}`` lies.

    The logarithm of this density has the derivative (1 + a) A(y) + a B(y) - y, with the mean shifts
    A and B of the two sides given the output y.  With c(x) the supremum of (1 + a) A(y) + a B(y)
    over y >= x, the density falls beyond x at least as N(c(x), 1) does: if x <= c(x), at most
    2 Phi(-9.7) of it lies beyond c(x) + 9.7.
    """

    def drift(x: float) -> float:
        """Return c(x): A grows with y up to the greatest shift, and B falls to the least one."""
        y = np.array(x)
        drift_ahead = (1 + a) * (ahead.greatest if a >= -1 else float(ahead.slope(y)))
        return drift_ahead + a * (float(behind.slope(-y)) if a >= 0 else min(behind.shifts))

    # The largest x with x <= c(x), which falls, by bisection; any such x is valid.
    low = min(drift(0.0), 0.0) - 1.0
    high = max(drift(low), 1.0) + 1.0
    for _ in range(60):
        if high - low < 0.2 + 0.01 * abs(low):
            break
        middle = (low + high) / 2
        low, high = (middle, high) if middle <= drift(middle) else (low, middle)
    return drift(low) + TAIL_DEVIATIONS


@functools.lru_cache(maxsize=64)
def _rule(
    pair: MixturePair, lowest_order: float, highest_order: float, frequency: float
) -> tuple[Array, Array, float]:
    """Return losses and log-masses that replace the law, and the error they leave in a moment."""
    low, high = pair.quadrature_range(lowest_order, highest_order)
    step, step_error = pair.quadrature_step(lowest_order, highest_order, frequency)
    x: Array = low + step * np.arange(math.ceil((high - low) / step) + 1.0)
    log_mass = pair.right.log_ratio(x) - x * x / 2 + math.log(step / math.sqrt(2 * math.pi))
    return pair.loss(x), log_mass, step_error + TAIL_ERROR
