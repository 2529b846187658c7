"""Laws of finitely many values around a log-normal variable, and the excess of a sum of such.

V = e^{mu x - mu^2/2}, x standard normal, so that E V = 1, and S = V_1 + ... + V_t is the sum of t
independent V, one for each step.  If two laws W and U on a lattice have the mean of V and

    E(W - k)_+ <= E(V - k)_+ <= E(U - k)_+    for all k (W below, U above V in convex order),

their sums bound E(S - K)_+ and E(K - S)_+, the excesses of S over K and of K over S.
`excess_bounds` computes both: masses of cells between lattice points (`_cells`), products of power
series, whose coefficients are the masses, by Fourier transforms, and the error of each, added up.
A series is tilted: its term j is multiplied by e^{tilt j}, and divided by it in the end.  Any tilt
gives valid bounds.
`law_above` is a law above V on cells of x instead, for sums of exponentials.

Proof: `docs/proofs/random_allocation.md`, laws on a lattice.
"""

from __future__ import annotations

import functools
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.quadrature import gauss_legendre_panels
from accountant.numerics.rounding import ULP

POINTS = 2**15  # of the lattice: with more the bounds are narrower and the transforms larger
# A product takes three transforms.  Each errs by at most 8 ulps of the 2-norm of its input for each
# of the log2(length) + 1 levels (Higham 2002, Theorem 24.2).
FFT_ULPS = 3 * 8.0
INEXACT = 1e-10  # relative error of a cell's mass and mean, proved for the Gauss rules
SUMMED = 1e-11  # relative error of a sum of positive terms, or of such sums: 2 * POINTS additions
FIRST_CELLS = 16  # cells next to 0, whose masses are differences of distribution functions
# Indices of cells: those between two of them, where the density varies about as much, have a Gauss
# rule with the same number of points.
PANELS = (FIRST_CELLS, 64, 256, 1024, 4096, POINTS + 1)
STEEPEST = 190.0  # d ln(density of V) / d ln V up to which the rule's error is proved
# Tilts to choose from, times POINTS: without one, terms near K may be lost in the round-off of
# larger terms.
TILTS = np.array([0.0, 3.0, 6.0, 9.0, 12.0, 16.0, 20.0, 25.0, 30.0, 40.0, 60.0, 100.0, 200.0])
# Of `law_above`, in x: the length of a cell, and the end below which all mass moves to V = 0.
CELL, LOWEST = 0.03125, -12.0


class Lattice(NamedTuple):
    """A law W (below V) or U (above V) at the `POINTS` values ``first + step * j``."""

    first: float
    step: float
    mass: Array  # its mass at each value, without what lies beyond the last one
    excess: Array  # E(V - k)_+ at each value k, with the law in place of V
    beyond: Array  # its mass above each value


class Terms(NamedTuple):
    """The first `POINTS` terms of a power series, non-negative but for errors, and tilted."""

    value: Array
    error: float  # bound on the error of every term


def excess_bounds(
    mu: float, steps: int, k: Array, *, below: bool, octaves: int = 1
) -> tuple[Array, Array]:
    """Return bounds on ``E(K - S)_+`` if ``below``, else ``E(S - K)_+``, at each K.

    One lattice serves all K between two powers of ``2^octaves``.  Bounds are 0 and infinity where
    there is none.
    """
    low, high = np.zeros(k.shape), np.full(k.shape, np.inf)
    length = np.clip(k, 1e-300, 1e300) * (1 + 2 / POINTS)  # at least two points beyond K
    length = 2.0 ** (octaves * np.ceil(np.log2(length) / octaves))
    # ``served`` are the K for which the density is not too steep at either end of the quadrature:
    # its logarithm has the slope -(ln V + mu^2 / 2) / mu^2 - 1 in ln V.
    log_ends = np.abs(np.log(np.array([length, length * FIRST_CELLS / POINTS / 2])))
    served = (log_ends.max(axis=0) + mu * mu / 2) / mu**2 + 1 <= STEEPEST
    for shared_length in np.unique(length[served]):
        of_length = served & (length == shared_length)
        lower, upper = (
            _SumOnLattice.of(mu, steps, float(shared_length), below, above)
            for above in (False, True)
        )
        low[of_length] = [lower.bounds(float(x))[0] for x in k[of_length]]
        high[of_length] = [upper.bounds(float(x))[1] for x in k[of_length]]
    return low, high


class _SumOnLattice:
    """The sum of ``steps`` draws of the law ``above`` V, or of that below, on a lattice up to K.

    ``size`` is the length of the lattice, and ``above`` chooses the law.  ``below`` says whether
    E(K - S)_+ is wanted, the excess of K over the sum, in place of E(S - K)_+.
    """

    def __init__(self, mu: float, steps: int, size: float, below: bool, above: bool) -> None:
        self._steps, self._below = steps, below
        self._law = law = (_lattice_above if above else _lattice_below)(mu, size / POINTS)
        self._usable = bool(np.all(law.mass >= 0))  # else its excess is not convex
        if not self._usable:
            return
        j = np.arange(POINTS)
        # The tilt with the smallest bound on the terms of the last sum (`_at`): round-off is
        # relative to them.  The kernel is what the term j counts for a K at the end of the lattice.
        least_log_size, self._tilt = math.inf, 0.0
        kernel = (POINTS - j) if below else law.excess[::-1]
        for tilt in (-TILTS if below else TILTS) / POINTS:
            log_mass = steps * math.log(float(np.sum(law.mass * np.exp(tilt * j))))
            log_size = log_mass + math.log(float(np.sum(np.exp(-tilt * j) * kernel)))
            if log_size < least_log_size:
                least_log_size, self._tilt = log_size, float(tilt)
        self._untilting = np.exp(-self._tilt * j)
        self._convolve()

    @staticmethod
    @functools.lru_cache(maxsize=32)
    def of(mu: float, steps: int, size: float, below: bool, above: bool) -> _SumOnLattice:
        """Return the sum, made once."""
        return _SumOnLattice(mu, steps, size, below, above)

    def _convolve(self) -> None:
        """Find phi^t, and A_t = sum phi^n and B_t = sum (t - n - 1) phi^n over n < t.

        phi is the power series of the masses.  The powers are found by doubling along the binary
        digits of t: ``n`` is what the digits read so far say.  A and B serve E(S - K)_+ alone.
        """
        unit = np.zeros(POINTS)
        unit[0] = 1.0
        base = Terms(self._law.mass * np.exp(self._tilt * np.arange(POINTS)), 0.0)
        power, a, b, n = base, Terms(unit, 0.0), Terms(0 * unit, 0.0), 1
        for bit in bin(self._steps)[3:]:
            if not self._below:
                # A_2n = A_n + phi^n A_n; B_2n = B_n + n A_n + phi^n B_n
                b = _sum(b, _sum(Terms(n * a.value, n * a.error), _product(power, b)))
                a = _sum(a, _product(power, a))
            power, n = _product(power, power), 2 * n
            if bit == "1":
                if not self._below:
                    b, a = _sum(b, a), _sum(a, power)
                power, n = _product(power, base), n + 1
        self._power, self._a, self._b = power, a, b

    def bounds(self, k: float) -> tuple[float, float]:
        """Return bounds on the excess of this law's sum; it is linear between lattice points."""
        position = (k - self._steps * self._law.first) / self._law.step
        if not (self._usable and 0 <= position < POINTS - 1):
            return 0.0, math.inf
        index, share = int(position), position - int(position)
        (low_here, high_here), (low_next, high_next) = self._at(index), self._at(index + 1)
        low = (1 - share) * low_here + share * low_next
        high = (1 - share) * high_here + share * high_next
        # A term is a product of up to t masses and an excess or tail, each inexact by INEXACT.
        inexact = (self._steps + 1) * INEXACT + SUMMED
        return max(low, 0.0) * (1 - inexact), high * (1 + inexact)

    def _at(self, index: int) -> tuple[float, float]:
        """Return bounds on the excess at the lattice point ``index``."""
        if self._below:
            value, error = (float(column[index]) for column in self._below_each_place)
            return value - 1.01 * error, value + 1.01 * error
        law, count = self._law, index + 1
        untilting = self._untilting[:count]
        # Values are counted from the law's first one, in lattice steps.  The sum first exceeds K at
        # some draw.  If the sum before was j, it exceeds K by the excess of V over K - j; each
        # later draw adds its mean, 1 - first.  A and B add this up over the draws.
        first_excess = untilting * law.excess[index::-1]
        later_excess = untilting * law.beyond[index::-1]
        value = float(ordered_dot(self._a.value[:count], first_excess))
        value += float(ordered_dot(self._b.value[:count], later_excess)) * (1 - law.first)
        error = self._a.error * float(first_excess.sum())
        error += self._b.error * float(later_excess.sum()) * (1 - law.first)
        return value - 1.01 * error, value + 1.01 * error

    @functools.cached_property
    def _below_each_place(self) -> tuple[Array, Array]:
        """``step sum_{i < k} p_i (k - i)`` at each index k, and a bound on its error.

        p are the masses of the sum.  The value is a sum of their cumulative sums; in the error,
        each mass has the same error before the tilt is taken off.
        """
        step, untilting = self._law.step, self._untilting
        double_sums = [
            step * np.append(0.0, np.cumsum(np.cumsum(masses))[:-1])
            for masses in (self._power.value * untilting, untilting)
        ]
        return double_sums[0], self._power.error * double_sums[1]


def _sum(left: Terms, right: Terms) -> Terms:
    """Return the sum of two power series."""
    return Terms(left.value + right.value, left.error + right.error)


def _product(left: Terms, right: Terms) -> Terms:
    """Return the first terms of the product of two power series."""
    n = 2 * POINTS
    value = np.fft.irfft(np.fft.rfft(left.value, n) * np.fft.rfft(right.value, n), n)[:POINTS]
    # Each term of the product is a scalar product, which is at most the product of both 2-norms
    # (``sizes``).  The factor 1.01 is for the round-off of the error itself.
    sizes = [math.sqrt(float(np.sum(terms.value**2))) for terms in (left, right)]
    totals = [float(np.sum(np.abs(terms.value))) for terms in (left, right)]
    error = FFT_ULPS * ULP * (math.log2(n) + 1) * sizes[0] * sizes[1]
    error += left.error * totals[1] + right.error * totals[0]
    return Terms(value, 1.01 * (error + POINTS * left.error * right.error))


def _lattice_above(mu: float, step: float) -> Lattice:
    """Return U, which moves what is in a cell to both of its ends, with the same mean.

    At lattice points its excess is that of V.
    """
    ends = step * np.arange(POINTS + 1.0)
    mass, moment = _cells(mu, ends, ends[:-1])
    up = moment / step
    weight = mass - up
    weight[1:] += up[:-1]
    beyond = _tail(mu, ends[1:], 0.0) + up
    excess = _tail(mu, ends, mu) - ends * _tail(mu, ends, 0.0)
    return Lattice(0.0, step, weight, excess[:-1], beyond)


def _lattice_below(mu: float, step: float) -> Lattice:
    """Return W, whose excess at a lattice point is the lesser of two tangents to that of V.

    They touch E(V - k)_+, as a function of k, half a step left and right of the point; this
    function is convex, so that tangents are below it.
    """
    # Where V varies much within a step, the first cell is made longer until masses are positive.
    for merged in (0, 1, 3, 7):
        law = _law_of_tangents(mu, step, merged)
        if np.all(law.mass >= 0):
            break
    return law


def _law_of_tangents(mu: float, step: float, merged: int) -> Lattice:
    """Return W if its first cell takes in ``merged`` others; some masses may be negative.

    The first point is the mean of the first cell, and the others are the middles of theirs.  With p
    the mass of a cell, ``up`` and ``down`` the positive and the negative part of
    E[V - point; V in cell] / step, a point has the mass p + up + down, less the ``up`` of the next
    point and the ``down`` of the one before.
    """
    first_point = _mean_of_first_cell(mu, (2 * merged + 1) * step)
    points = first_point + step * np.arange(POINTS + 1.0)
    ends = np.append(0.0, points + step / 2)
    ends[1 : merged + 1] = ends[merged + 1]
    mass, moment = _cells(mu, ends, points)
    moment[0] = 0.0
    up, down = np.maximum(moment, 0.0) / step, np.maximum(-moment, 0.0) / step
    weight = (mass + up + down)[:-1] - up[1:]
    weight[1:] -= down[:-2]
    upper_ends = ends[1:]
    excess = _tail(mu, upper_ends, mu) - points * _tail(mu, upper_ends, 0.0) - step * down
    beyond = _tail(mu, upper_ends, 0.0)[:-1] - down[:-1] + up[1:]
    return Lattice(first_point, step, weight, excess[:-1], beyond)


def _mean_of_first_cell(mu: float, step: float) -> float:
    """Return b with ``E[V - b; V <= b + step / 2] = 0``."""
    from scipy.special import ndtr

    mean = 0.0
    for _ in range(300):
        # iterated: E[V; V <= end] / P(V <= end), with the end half a step above the last mean
        x = (math.log(mean + step / 2) + mu * mu / 2) / mu
        previous, mean = mean, float(ndtr(x - mu) / ndtr(x))
        if abs(mean - previous) <= 4 * ULP * mean:
            break
    return mean


def _cells(mu: float, ends: Array, points: Array) -> tuple[Array, Array]:
    """Return ``P(V in cell)`` and ``E[V - point; V in cell]`` of each cell between ends."""
    closed_form_ends = ends[: FIRST_CELLS + 1]
    with np.errstate(divide="ignore"):
        x = (np.log(closed_form_ends) + mu * mu / 2) / mu
    mass, mean = _normal_masses(x), _normal_masses(x - mu)  # E[V; V in cell] is a normal mass, too
    moment = mean - points[:FIRST_CELLS] * mass
    for first_cell, last_cell in pairwise(PANELS):
        edges = ends[first_cell : last_cell + 1]
        count = _points_of_rule(mu, float(edges[0]), float(edges[-1]), first_cell)
        value, weight, _ = gauss_legendre_panels(edges, count)
        x = (np.log(value) + mu * mu / 2) / mu
        density = weight * np.exp(-x * x / 2) / (math.sqrt(2 * math.pi) * mu * value)
        density, value = density.reshape(-1, count), value.reshape(-1, count)
        mass = np.append(mass, density.sum(axis=1))
        distance = value - points[first_cell : first_cell + len(value), None]
        moment = np.append(moment, (density * distance).sum(axis=1))
    return mass, moment


def _points_of_rule(mu: float, low: float, high: float, cell: int) -> int:
    """Return how many points a cell needs, from the ``cell``-th on, between two values of V."""
    if math.isnan(low):
        return 2  # The first cell's mean is below all floats: there is no law.
    steep = (max(abs(math.log(low)), abs(math.log(high))) + mu * mu / 2) / mu**2 + 1
    # ``steep`` is the greatest slope of ln(density) in ln V between the two values.  On a disc
    # around the cell the density is at most e^{.29 steep + 1.2} times that at the cell's middle.
    # Relative to the latter, the error of a Gauss rule with n points is at most
    #     64/15 / 2 e^{.29 steep + 1.2} (rho / 2) rho^{2 - 2n},
    # by an ellipse around the cell whose semi-axes add up to rho half cells (Trefethen 2008,
    # Theorem 4.5); rho / 2 is for the factor V - point.  The ellipse stays on the right of 0, as
    # the cell is ``cell`` steps from there; rho is at least .99 ``cell``.  The least n for which
    # this is at most INEXACT / 2 is returned: the mean over the cell is at least .88 of the density
    # at the middle.  .77 is above ln(64/15 / 2).
    log_rho = math.log(0.99 * cell)
    nats = 0.77 + 0.29 * steep + 1.2 + log_rho - math.log(2) - math.log(INEXACT / 2)
    return max(2, math.ceil(1 + nats / (2 * log_rho)))


def _tail(mu: float, value: Array, shift: float) -> Array:
    """Return ``P(V > value)``, or ``E[V; V > value]`` where the shift is mu."""
    from scipy.special import ndtr

    with np.errstate(divide="ignore"):
        x = (np.log(value) + mu * mu / 2) / mu
    return np.asarray(ndtr(shift - x))


def law_above(mu: float, highest: float, cell: float = CELL) -> tuple[Array, Array]:
    """Return values and weights of a law above V: each cell of x moves to its ends, mean kept.

    What is above the highest x goes to the last value, what is below the lowest to 0, the first
    value.  E f of the law is above E f(V) for falling convex f, and above E[f(V); x <= highest] for
    rising ones.
    """
    from scipy.special import ndtr

    end = cell * np.arange(math.floor(LOWEST / cell), math.ceil(highest / cell) + 1.0)
    value = np.exp(mu * end - mu * mu / 2)
    mass, mean = _normal_masses(end), _normal_masses(end - mu)
    up = np.clip((mean - value[:-1] * mass) / np.diff(value), 0.0, mass)
    weight = np.append(mass - up, ndtr(-end[-1])) + np.append(ndtr(end[0]), up)
    return np.append(0.0, value), np.append(ndtr(end[0]), weight)


def _normal_masses(x: Array) -> Array:
    """Return the normal mass between neighbours, a difference of tails on the nearer side."""
    from scipy.special import ndtr

    side = np.where(x[1:] + x[:-1] > 0, -1.0, 1.0)
    return np.asarray(side * (ndtr(side * x[1:]) - ndtr(side * x[:-1])))
