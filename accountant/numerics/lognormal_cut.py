"""The excess of a sum of log-normal variables, by an integral along the cut of its transform.

V = e^{mu x - mu^2/2}, x standard normal, and S = V_1 + ... + V_t is the sum of t independent V, one
for each step.  phi(s) = E e^{-sV} is the Laplace transform of V.  The expectation is finite for
Re s >= 0 alone, but phi can be continued to all other s from above and from below.  On the negative
axis the two continuations differ: the axis is a cut, and its two sides are called lips.  With
F = phi^t continued to the lower lip,

    E(S - K)_+ = (1 / pi) int_0^oo e^{-rK} Im F(-r - 0i) r^{-2} dr.

The left side is called the excess of S over K; -r - 0i is the limit of -r - ia as a > 0 falls to 0.

Nothing cancels where a large S is mostly one large V, that is for few steps or a large mu; and one
trapezoid rule in y = ln r serves all K and all t.  `CutTransform` has phi(-r - 0i) on its nodes.
Both parts are trapezoid sums over paths of complex x that give the same integral as the real line:
for the real part the line x - ic, for the imaginary part the path through the saddle point of the
integrand, where most of it is.

A trapezoid sum with step h of a function that is analytic in the strip |Im| < d errs by at most
2 N / (e^{2 pi d / h} - 1), N a bound on the integral of its size along either edge of the strip
(Trefethen & Weideman 2014, Theorem 5.1).

Proof, with all bounds on errors: `docs/proofs/random_allocation.md`, the cut of the transform.
"""

from __future__ import annotations

import functools
import math
from typing import final

import numpy as np

from accountant.numerics import Array
from accountant.numerics.lognormal_lattice import CELL, law_above
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

# Where the rule is exact enough: below mu = .4 the path x - ic loses all digits to e^{c^2 / 2},
# c = pi / mu; for ln t > 10 mu, S is nearly normal, and nodes in ln r are too far apart.
MIN_MU = 0.4
MAX_LOG_STEPS_PER_MU = 10.0
# The turn is the angle mu c by which V turns on the line x - ic.  A half turn has the fewest nodes,
# but loses c^2 / 2 nats of accuracy, c = turn / mu; where mu is at most MU_OF_HALF_TURN the turn is
# reduced.  Any turn between pi / 2 and pi is valid.
MU_OF_HALF_TURN, REDUCED_TURN = 1.2, 2.1
DIGITS = 42.0  # nats: the rules for phi leave about e^-42
FARTHEST = 17.0  # deviations of x that are kept
# The last node is r = FARTHEST_NODE[0] / mu^2 + FARTHEST_NODE[1].  There e^{-rK} |F| is at most
# e^{-60 t}, as K >= t and |F| <= e^{t pi^2 / 2 mu^2}.
FARTHEST_NODE = (5, 60)
# Half-widths, of ln r, of strips on which the error of the rule is bounded; below pi / 2.  A wider
# strip has larger sizes, but the error is divided by e^{2 pi half-width / step}.
STRIPS = np.array([0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.35])
# The integrand of Im phi is analytic in strips of its parameter tau up to |Im tau| = 1, and the
# error of its rule is bounded on this half-width, in units of the saddle's width, which is <= 1.
HALF_STRIP = 0.7
WIDE_CELL = 4 * CELL  # length in x; bounds on sizes may be coarse
MOMENTS = np.arange(2, 11)  # of V, whose series bounds phi near 0
BLOCK_SIZE = 2**19  # entries of a matrix of K and nodes: 4 MB
# of ln r, as multiples of 1 + mu: the finer one where the first misses too much
SPACINGS = (0.03, 0.012)
NARROW = 1e-9  # what the rule in ln r may miss, over the lower bound, without a finer one


@np.errstate(all="ignore")  # What overflows is not known: its bounds are 0 and infinity.
def excess_above(mu: float, steps: int, k: Array) -> tuple[Array, Array]:
    """Return bounds on ``E(S - K)_+`` at each K above 0; 0 and infinity where they are unknown."""
    low, high = np.zeros(k.shape), np.full(k.shape, np.inf)
    if mu < MIN_MU or math.log(steps) > MAX_LOG_STEPS_PER_MU * mu:
        return low, high
    missed = np.full(k.shape, np.inf)
    for spacing in SPACINGS:
        wide = ~(missed <= NARROW * low)  # A finer rule does not reduce round-off.
        if wide.any():
            *bounds, missed[wide] = cut_transform(mu, spacing).excess_bounds(steps, k[wide])
            low[wide], high[wide] = np.fmax(low[wide], bounds[0]), np.fmin(high[wide], bounds[1])
    return low, high


@final
class CutTransform:
    """``phi(-r - 0i)`` at ``r = e^{jh}``, with bounds on the errors, for one mu.

    ``y`` are the ln r, a ``step`` h apart.  ``log_size`` and ``phase`` are ln |phi| and its angle,
    ``size_error`` and ``phase_error`` bounds on their errors; infinite where phi is not known to
    1 %.  ``x`` and ``v`` are a point of the real line for each r and ``r V(x)``, see
    `_set_saddles`.
    """

    def __init__(self, mu: float, spacing: float) -> None:
        self.mu = mu
        self.step = 2.0 ** round(math.log2(spacing * (1 + mu)))  # a power of 2: nodes are exact
        # The first r is such that r V(mu + FARTHEST) = 1.
        y_low, y_high = (
            mu * mu / 2 - mu * (mu + FARTHEST),
            math.log(FARTHEST_NODE[0] / mu**2 + FARTHEST_NODE[1]),
        )
        self.y: Array = self.step * np.arange(
            math.floor(y_low / self.step), math.ceil(y_high / self.step) + 1.0
        )
        self.r: Array = np.exp(self.y)
        self._set_saddles()
        real, real_error = self._real_part()
        imaginary, imaginary_error = self._imaginary_part()
        size = np.hypot(real, imaginary)
        self.log_size, self.phase = np.log(size), np.arctan2(imaginary, real)
        relative_error = (real_error + imaginary_error) / size
        # 1.02: |ln(1 + e)| <= 1.02 |e| for |e| <= 0.01.
        self.size_error = 1.02 * relative_error + 4 * ULP * (1 + np.abs(self.log_size))
        self.size_error[relative_error > 0.01] = np.inf
        # The phase, near -pi or 0, errs by the imaginary part, and little by the real one.
        across = np.abs(np.sin(self.phase)) * real_error + imaginary_error
        self.phase_error = 1.02 * across / size + 4 * ULP * np.abs(self.phase)

    def _set_saddles(self) -> None:
        """Choose for each r the x where the path leaves the real line, and v = r V(x).

        The best is the saddle of e^{rV - x^2/2}, x = mu v, by Newton's method; any v >= 1 is valid.
        """
        mu = self.mu
        v = np.full(self.y.size, (FARTHEST + mu) / mu * 2)
        for _ in range(30):
            slope = np.maximum(mu * mu - 1 / v, 1e-3 * mu * mu)
            v = v - (mu * mu * v - np.log(v) - mu * mu / 2 + self.y) / slope
            v = np.maximum(v, max(1.0, 1 / mu**2))
        self.v: Array = v
        self.x: Array = (np.log(v) - self.y + mu * mu / 2) / mu

    def _real_part(self) -> tuple[Array, float]:
        """Return ``Re phi(-r)`` at each r, and one bound on the errors at all of them.

        On the line x - ic, so far below the real line that e^{rV} falls,

            phi = e^{c^2/2} int density(x) e^{icx} e^{-w} dx,    w = r V(x) e^{i (pi - mu c)},

        by the trapezoid rule.  With 1 in place of e^{-w} the integral is 1: so e^{-w} - 1 is
        summed.  The integrand's size in the strip |Im x| < d is at most e^{(c + d)^2/2} times the
        normal density, where |pi - mu c| + mu d <= pi / 2, so that Re w >= 0.
        """
        mu = self.mu
        turn = math.pi if mu > MU_OF_HALF_TURN else REDUCED_TURN
        c = turn / mu
        # The step h leaves 2 e^{(c + d)^2/2 - 2 pi d / h} = 2 e^-DIGITS.  It is longest with
        # d^2 = 2 DIGITS + c^2, if the strip allows so much.
        d = min((turn - math.pi / 2) / mu, math.sqrt(2 * DIGITS + c * c))
        h = 2 * math.pi * d / ((c + d) ** 2 / 2 + DIGITS)
        end = math.sqrt(2 * DIGITS + c * c)  # there e^{c^2/2} times the density is about e^-DIGITS
        x = h * np.arange(-math.ceil(end / h), math.ceil(end / h) + 1)
        growth = math.exp(c * c / 2)
        mass = growth * h / math.sqrt(2 * math.pi) * np.exp(-x * x / 2)
        value = np.exp(mu * x - mu * mu / 2)
        rotation = np.exp(1j * (math.pi - turn)) if turn < math.pi else 1.0
        powers = np.exp(-np.multiply.outer(self.r, value * rotation))  # e^{-w}
        terms = (powers - 1).real * (mass * np.cos(c * x)) - powers.imag * (mass * np.sin(c * x))
        real = 1 + np.sum(terms, axis=1)
        missed = 2 * math.exp((c + d) ** 2 / 2) / math.expm1(2 * math.pi * d / h)
        missed += growth * math.exp(-((end - h) ** 2) / 2)
        # Terms are at most twice their mass, as |e^{-w} - 1| <= 2; their exponents and cx are
        # inexact by ulps of themselves, and 40 ulps are for the sum and the functions.
        term_error = 2 * ULP * (40 + x * x + (c + mu) * np.abs(x) + mu * mu)
        # ``missed`` is for e^{-w} alone, and e^{-w} - 1 is at most twice as large.
        return real, 2 * missed + float(np.sum(mass * term_error)) + 4 * ULP

    def _imaginary_part(self) -> tuple[Array, Array]:
        """Return ``Im phi(-r - 0i)`` at each r, and bounds on its errors.

        It is half of the integral along the parabola rV = v (1 + i tau)^2 through the saddle,

            int e^{v (1 + i tau)^2} density(x + (2 / mu) ln(1 + i tau)) (2 / mu) / (1 + i tau) dtau,

        symmetric in tau, by the trapezoid rule in tau over the saddle's width 1 / sqrt(v).  There
        the integrand is about e^log_top at tau = 0, and its size falls as e^{-(tau / width)^2}, but
        for the density, which grows by at most e^density_growth.
        """
        mu, v, x = self.mu, self.v, self.x
        density_growth = math.pi**2 / (2 * mu * mu) + np.minimum(x, 0.0) ** 2 / 2
        max_growth = float(np.max(density_growth))
        # The step and the end aim at e^-DIGITS; what they leave is bounded below.
        h = 2 * math.pi * HALF_STRIP / (DIGITS + max_growth + 4)
        end = math.sqrt(DIGITS + max_growth)
        scaled = h * np.arange(math.ceil(end / h) + 1)  # tau / width
        width = 1 / np.sqrt(v)
        tau = np.multiply.outer(width, scaled)
        factor = 1 + 1j * tau
        z = x[:, None] + (2 / mu) * np.log(factor)
        log_top = v - x * x / 2
        power = v[:, None] * (2j * tau - tau * tau) - (z * z - (x * x)[:, None]) / 2
        terms = np.exp(power) / factor
        weight = np.full(scaled.size, h)
        weight[0] /= 2
        scale = 2 / (mu * math.sqrt(2 * math.pi)) * width * np.exp(log_top)
        value = scale * ordered_dot(terms.real, weight)
        # The error of each term, in ulps of itself: of the functions, of the two parts of the
        # exponent, and of the additions.
        inexact = 16 + 4 * v[:, None] * (1 + tau * tau) + 4 * np.abs(z) ** 2 + scaled.size / 2
        # x is as inexact as the parts that it is made of; the exponent changes by at most |z| for
        # the density, and mu v for e^{rV}, times the error of x.
        ulps_of_x = (np.abs(self.y) + np.log(v) + mu * mu + 4) / mu
        inexact += (np.abs(z) + mu * v[:, None]) * ulps_of_x[:, None]
        error = scale * ULP * ordered_dot(np.abs(terms) * inexact, weight)
        # Beyond the last node |density| has grown by at most e^{Im z^2 / 2}, Im z <= pi / mu.
        error += scale * np.exp(density_growth - (end - h) ** 2) * 2
        # On the edges of the strip 1 + i tau is q + i Re tau: Re z is at least x + (2 / mu) ln q.
        missed = np.zeros(v.size)
        for q in (1 - HALF_STRIP * width, 1 + HALF_STRIP * width):
            shifted = np.maximum(x + (2 / mu) * np.log(q), 0.0)
            growth = v * (q * q - 1) + (x * x - shifted * shifted) / 2 + math.pi**2 / (2 * mu * mu)
            missed += np.exp(growth) / q * math.sqrt(math.pi) / 2
        return value, error + scale * missed / math.expm1(2 * math.pi * HALF_STRIP / h)

    def excess_bounds(self, steps: int, k: Array) -> tuple[Array, Array, Array]:
        """Return bounds on ``E(S - K)_+`` at each K >= ``steps``, and what the rule misses."""
        low, high = np.empty(k.shape), np.empty(k.shape)
        missed = self._missed(steps, k)
        rows = max(1, BLOCK_SIZE // self.y.size)
        for start in range(0, k.size, rows):
            block = slice(start, start + rows)
            value, error = self._sums(steps, k[block])
            error = np.where(missed[block] < np.inf, error + missed[block], np.inf)
            low[block], high[block] = value - error, value + error
        is_finite = np.isfinite(low) & np.isfinite(high)
        return (
            np.where(is_finite, np.maximum(low, 0.0), 0.0),
            np.where(is_finite, high, np.inf),
            missed,
        )

    def _sums(self, steps: int, k: Array) -> tuple[Array, Array]:
        """Return the rule's sums, and what round-off and the errors of phi change.

        The terms are e^{-rK - y} |phi|^t sin(t phase) step / pi, as dr / r^2 = e^{-y} dy.
        """
        t, scale = steps, self.step / math.pi
        log_term = -np.multiply.outer(k, self.r) + (t * self.log_size - self.y)
        sine = np.sin(t * self.phase)
        # the relative error of |phi|^t, and with it what the errors of phi change of
        # |phi|^t sin(t phase)
        growth = np.expm1(np.minimum(t * self.size_error, 1.0))
        growth = np.where(t * self.size_error < 1, growth, np.inf)
        sine_error = np.abs(sine) * growth + np.minimum(t * self.phase_error, 2.0) * (1 + growth)
        height = np.exp(log_term) * scale
        # in the functions, half an ulp for each addition, and in the exponent
        round_off = ULP * (
            32 + self.y.size / 2 + 4 * t * np.abs(self.log_size) + 4 * np.abs(self.y)
        )
        value = ordered_dot(height, sine)
        error = ordered_dot(height, 1.01 * sine_error + round_off * (np.abs(sine) + sine_error))
        # The exponent is as inexact as rK.
        error += 8 * ULP * k * ordered_dot(height, self.r * (np.abs(sine) + sine_error))
        return value, error

    def _missed(self, steps: int, k: Array) -> Array:
        """Return what the rule in ln r misses and leaves out at each K.

        It falls with K, and is computed at 33 of them: each K has the value of the next smaller.
        """
        increasing = np.sort(k)
        grid = increasing[np.unique(np.linspace(0, k.size - 1, 33).astype(int))]
        # ln of bounds on |Im F| / r, by strip and node: t / 2 lip^{t-1} jump / r, since F on one
        # lip less F on the other is at most t lip^{t-1} jump
        log_lip, log_jump = _sizes_of_one(self)
        log_sizes = (steps - 1) * log_lip + log_jump + math.log(steps / 2) - self.y[:-1]
        log_sizes += 64 * ULP * steps * np.abs(log_lip) + 1e-9  # more than their round-off
        bound = np.array([self._missed_at(steps, float(grid_k), log_sizes) for grid_k in grid])
        return bound[np.searchsorted(grid, k, side="right") - 1]

    def _missed_at(self, steps: int, k: float, log_sizes: Array) -> float:
        """Return what the rule misses at one K: the least error of all strips, and both tails.

        ``log_sizes`` are the logarithms of bounds on ``|Im F| / r`` by strip and node.  At the
        distance d from the real line of y the integrand is at most ``e^{-K r cos d}`` times that.
        """
        t, last_node, cosine = steps, float(self.r[-1]), np.cos(STRIPS)
        # Left of the nodes sizes fall as e^{-y - x^2 / 2} does, x = (ln v - y + mu^2 / 2) / mu: at
        # least as e^{slope y}.
        slope = float(self.x[1]) / self.mu - 1
        left_tail = float(np.exp(np.max(log_sizes[:, 0]))) / slope
        # Right of them |F| <= e^{t theta^2 / 2 mu^2} at an angle theta, which is pi + d on a
        # strip's edge and pi on the real line of y, and e^{-K r cos d} falls.
        angles = math.pi + np.append(STRIPS, 0.0)
        decay = k * last_node * np.append(cosine, 1.0)
        right_tail = np.exp(t * angles**2 / (2 * self.mu**2) - decay) / (decay * last_node)
        # Between two nodes sizes are those of the right one, and e^{-K r cos d} is that of the
        # left.
        heights = log_sizes - np.multiply.outer(cosine, k * self.r[:-1])
        edge_integral = self.step * np.exp(heights).sum(axis=1) + left_tail + right_tail[:-1]
        of_strips = 2 / math.pi * edge_integral / np.expm1(2 * math.pi * STRIPS / self.step)
        # 1 % more covers the round-off of this bound.
        return 1.01 * (float(np.min(of_strips)) + left_tail + float(right_tail[-1]))


@functools.lru_cache(maxsize=8)
def cut_transform(mu: float, spacing: float) -> CutTransform:
    """Return the transform on the cut, made once."""
    return CutTransform(mu, spacing)


@functools.lru_cache(maxsize=8)
def _sizes_of_one(cut: CutTransform) -> tuple[Array, Array]:
    """Return logarithms of bounds on |phi| next to either lip, and on its jump, by strip and node.

    The jump is phi on one lip less phi on the other, at a strip's half-width d from them.  The
    proof's bounds, from which the least is taken, are for the jump D and for phi on a lip

        D = e^{c^2/2} [2 P(x > x_0) + (pi / mu) e^{v} density(x_0)],    c = (pi / 2 + d) / mu,
        E[e^{rV}; x <= x_0] + (1/2 + d / pi) D,    e^{(pi + d)^2 / 2 mu^2},
        sum_{k < n} r^k E V^k / k! + e^{c^2/2} r^n E V^n / n!    for n in `MOMENTS`;

    x_0 is the cut's ``x`` at each r, and v = r V(x_0).
    """
    from scipy.special import log_ndtr

    mu, r, x, v = cut.mu, cut.r[1:], cut.x[1:], cut.v[1:]
    # E[e^{rV}; left of x] is at most that of a law above V, with the whole cell of x; 1e-10 in the
    # end is for the round-off.
    value, weight = law_above(mu, float(x.max()) + WIDE_CELL, WIDE_CELL)
    left_terms = np.zeros((r.size, value.size))
    is_left = value <= (v / r)[:, None] * math.exp(2 * mu * WIDE_CELL)
    np.exp(np.multiply.outer(r, value), where=is_left, out=left_terms)
    log_left = np.log(ordered_dot(left_terms, weight)) + 1e-10
    n = np.arange(MOMENTS[-1] + 1)
    log_factorial = np.array([math.lgamma(power + 1) for power in n])
    log_terms = np.multiply.outer(np.log(r), n) + mu * mu * n * (n - 1) / 2 - log_factorial
    log_sums = np.logaddexp.accumulate(log_terms, axis=1)
    lip_bounds, jump_bounds = [], []
    for d in STRIPS.tolist():
        # The path goes from x up or down to where e^{rV} falls, and to the right.
        half_c_squared = (math.pi / 2 + d) ** 2 / (2 * mu * mu)
        to_the_right = math.log(2) + log_ndtr(-x)
        upwards = math.log(math.pi / mu) + v - x * x / 2 - math.log(2 * math.pi) / 2
        log_jump = half_c_squared + np.logaddexp(to_the_right, upwards)
        by_jump = np.logaddexp(log_left, log_jump + math.log(0.5 + d / math.pi))
        log_lip = np.minimum(by_jump, (math.pi + d) ** 2 / (2 * mu * mu))
        for power in MOMENTS:
            series = np.logaddexp(log_sums[:, power - 1], log_terms[:, power] + half_c_squared)
            log_lip = np.minimum(log_lip, series)
        jump_bounds.append(log_jump)
        lip_bounds.append(log_lip)
    return np.array(lip_bounds), np.array(jump_bounds)
