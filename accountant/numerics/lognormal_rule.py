"""The Laplace transform of a log-normal variable, by Gauss-Legendre panels with a proved error.

V = e^{mu x - mu^2/2}, x standard normal, so that E V = 1.  A rule has nodes x_j and masses m_j with

    E[e^{-s (V - c)}; x in a range] = sum_j m_j e^{-s (V(x_j) - c)}

for all complex s with real part ``tilt``, |s| at most ``turn`` and Im s >= 0.  c is the ``centre``,
about the V that counts most, so that exponents are small.  Near s = 0, with c = 1, the sum of
e^{-w} - 1 + w is taken, w = s (V - 1), as E w = 0: it is accurate relative to itself, however small
it is.  Such a sum is called centred.  Values of x above a ``cut`` are called jumps;
E[e^{-s(V-c)}; x > cut] has nodes of its own, since callers treat sums with and without jumps
separately.

The real axis of x serves up to the ``split``, where e^{-sV} begins to turn fast: its phase, Im s
times V, grows with V.  Beyond, the path goes down into the complex plane and then to the right,
where e^{-sV} falls instead.  A path is cut into panels with `POINTS` nodes each; ``depth`` is how
far it is below the real line.  On [-1, 1] a Gauss-Legendre rule with n nodes errs by at most

    (64/15) M rho^{2-2n} / (1 - rho^-2),

M the greatest size of the integrand on an ellipse with the foci -1 and 1 whose semi-axes add up to
rho (Trefethen 2008, Theorem 4.5).

Proof: `docs/proofs/random_allocation.md`, errors 3 to 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p, normal_tail
from accountant.numerics.ordered_sums import ordered_product
from accountant.numerics.quadrature import gauss_legendre_panels
from accountant.numerics.rounding import ULP

POINTS = 20  # nodes of a panel; its error falls as ELLIPSE^{-2 POINTS}
# rho, the sum of the semi-axes of the ellipse around a panel, in half-widths.  On a larger one the
# error falls faster with the nodes, but the integrand grows more, so that panels must be shorter.
ELLIPSE = 4.0
REACH = (ELLIPSE + 1 / ELLIPSE) / 2  # its greater semi-axis, in half-widths
# nats by which e^{-sV} may grow on an ellipse: more growth has fewer panels of larger error
GROWTH = 12.0
# The proof for other real s (`LogNormalRule.log_upper`) needs all ellipses within ELLIPSES_ASIDE of
# the real line, and right of the first node less ELLIPSES_LEFT, in x.  The path is at most DEEPEST
# below the line, and an ellipse reaches at most REACH * WIDEST_HALF = 1.5 from a level path.
WIDEST_HALF, DEEPEST = 0.7, 1.2
ELLIPSES_ASIDE, ELLIPSES_LEFT = 2.7, 2
DEVIATIONS = 10.0  # from the mode, where the nodes begin: 1e-23 of the whole lies below
NEGLIGIBLE = 45.0  # nats: a path ends where the integrand is e^-45 of what it is at the start
FIRST_TURN = 4.0  # radians by which e^{-sV} has turned at the split
MAX_PANELS = 300  # of a path: 6,000 nodes; where e^{-sV} turns faster there is no rule
# Relative to the sum of sizes: the round-off of a pairwise sum of products.  In a product of
# matrices a sum of n terms is not pairwise, and MATRIX_TERMS says how n adds to it.
ROUND_OFF, MATRIX_TERMS = 32 * ULP, 512


class TooManyNodes(ArithmeticError):
    """e^{-sV} turns so fast that a path would need more than `MAX_PANELS` panels."""


@dataclass(frozen=True, slots=True)
class VerticalLine:
    """The points ``tilt + i step k``, k from 0 to ``count - 1``."""

    tilt: float
    step: float
    count: int

    def points(self) -> Complex:
        """Return the points."""
        return np.asarray(self.tilt + 1j * self.step * np.arange(self.count), dtype=complex)

    def parts(self) -> tuple[Complex, Complex]:
        """Return rows and columns whose sums are the points, and some beyond the last."""
        width = math.isqrt(self.count - 1) + 1
        rows = self.tilt + 1j * self.step * width * np.arange(-(-self.count // width))
        return np.asarray(rows), np.asarray(1j * self.step * np.arange(width), dtype=complex)


class Path(NamedTuple):
    """Nodes of a part of the law, on the real line or off it, where both arrays are complex."""

    distance: Any  # V - c at each node
    mass: Any  # weight times normal density at each node
    error: float  # bound on what the sum over the nodes misses


NO_PATH = Path(np.zeros(0), np.zeros(0), 0.0)


@final
class LogNormalRule:
    """Nodes for s with real part ``tilt``, ``|s| <= turn`` and Im s >= 0; real s up to turn too.

    With a negative tilt E e^{-sV} is infinite, and only the law without jumps is known: the split
    is then the cut.  ``_distance`` and ``_mass`` are the nodes up to the split, ``_low`` the first
    x and ``_error`` what they miss; ``_far`` are those beyond it, and ``_jumps`` those of the
    jumps.
    """

    def __init__(self, mu: float, tilt: float, turn: float, cut: float = math.inf) -> None:
        from scipy.special import lambertw

        self.mu, self.tilt, self.turn, self.cut = mu, tilt, turn, cut
        # The mode of e^{-x^2/2 - tilt V}, where x = -tilt mu V(x).  With y = -mu x this is
        # y e^y = tilt mu^2 e^{-mu^2/2}, which Lambert's function solves.
        mode = -float(lambertw(max(tilt, 0.0) * mu * mu * math.exp(-mu * mu / 2)).real) / mu
        # Close to s = 0, or where V hardly varies, what counts is the distance from E V = 1.
        self.centred = tilt <= 1 + 1 / mu**2
        self.centre = 1.0 if self.centred else self.value(mode)
        # Real nodes go up to where turn V, or turn (V - 1), is FIRST_TURN, but beyond the mode.
        log_value = math.log1p(FIRST_TURN / turn) if self.centred else math.log(FIRST_TURN / turn)
        before_turns = max(log_value / mu + mu / 2, mode + 1.0)
        self._split, self._low = (cut if tilt < 0 else before_turns), mode - DEVIATIONS
        edges, self._error = self._panels(self._low, self._split, 0.0, beyond=False)
        x, weight, _ = gauss_legendre_panels(edges, POINTS)
        self._error += self._left_out(self._low, 0.0)
        self._distance, self._mass = self._distance_at(x), weight * _density(x)
        self._far: Path = NO_PATH if tilt < 0 else self._path(self._split, mode)
        self._jumps: Path = NO_PATH if tilt < 0 or math.isinf(cut) else self._path(cut, mode)

    def _up_to_split(self, s: Any) -> tuple[Any, Array]:
        """Return ``ln E[e^{-s(V-c)}; x <= split]``, and a bound on its relative error."""
        points = s.points() if isinstance(s, VerticalLine) else s
        if self.centred:
            # E e^{-w} = 1 + E[e^{-w} - 1 + w] - E w, w = s (V - 1).  For the whole law E w = 0; on
            # a part of it 1 is less by the mass outside, and -E w is s E[V - 1] outside.
            total, size = _sum(s, self._distance, self._mass, centred=True)
            mass, moment = self._outside()
            moment_term = points * moment
            total, size = total - mass + moment_term, size + mass + np.abs(moment_term)
            value = log1p(total)
        else:
            total, size = _sum(s, self._distance, self._mass, centred=False)
            value = np.log(total)
            total = total - 1
        missed = self._error + ROUND_OFF * size
        relative = missed / np.maximum(np.abs(total + 1), 1e-300)
        return value, relative + ROUND_OFF * np.abs(value)

    def jump(self, s: Any) -> tuple[Any, Array]:
        """Return ``E[e^{-s(V-c)}; x > cut]``, and a bound on its error."""
        return self._sum_along(self._jumps, s)

    def transform(self, s: Any) -> tuple[Any, Array]:
        """Return ``ln E e^{-s(V-c)}``, and a bound on the relative error of the expectation.

        If the tilt is negative the expectation is over the law without jumps.
        """
        value, error = self._up_to_split(s)
        far, far_error = self._sum_along(self._far, s)
        share = far * np.exp(-value)
        missed = error + far_error * np.exp(-np.real(value)) + 4 * ULP * np.abs(share)
        return value + log1p(share), missed / np.maximum(np.abs(1 + share), 1e-300)

    def log_upper(self, r: Array) -> Array:
        """Return an upper bound on what `transform` gives, at real ``r`` from the tilt to turn."""
        value, error = self.transform(r)
        # The rule's error was bounded for s at the tilt.  At a real r above it e^{-r (V - c)} is
        # larger by at most e^{(r - tilt) (c - Re V)}.  On all ellipses Re V is at least
        # ``least_value``, if 2.7 mu <= pi / 2; else that is 0, and where Re V is below 0 the growth
        # at the turn has counted e^{-r Re V} (docs/proofs/random_allocation.md, error 3).
        least_value = self.value(self._low - ELLIPSES_LEFT) * math.cos(
            min(ELLIPSES_ASIDE * self.mu, math.pi / 2)
        )
        missed = (self._error + self._far.error) * np.exp(
            np.minimum((r - self.tilt) * (self.centre - least_value), 700.0)
        )
        # Left of the nodes the integrand is log-concave where r >= 0: its integral is at most its
        # value over the slope of its logarithm.  Else the normal mass there counts, times the
        # largest e^{-r(V-c)}.
        at_low = self.value(self._low)
        slope = -self._low - np.maximum(r, 0.0) * self.mu * at_low
        falls = np.exp(np.minimum(-(self._low**2) / 2 - r * (at_low - self.centre), 700.0))
        power = r * self.centre + np.maximum(-r, 0.0) * at_low
        all_left = normal_tail(-self._low) * np.exp(np.minimum(power, 700.0))
        left_tail = np.where((slope > 0.1) & (r > 0), falls / np.maximum(slope, 0.1), all_left)
        # In logarithms, e^value (1 + 2 error) + missed + left_tail: twice the error leaves room for
        # the round-off of this sum.
        log_missed = np.log(missed + left_tail + 1e-300) - value
        bound: Array = value + np.logaddexp(np.log1p(2 * np.minimum(error, 1.0)), log_missed)
        return bound

    def _sum_along(self, path: Path, s: Any) -> tuple[Any, Array]:
        """Return the sum over the nodes of a path, and a bound on its error."""
        total, size = _sum(s, path.distance, path.mass, centred=False)
        real = not isinstance(s, VerticalLine)
        return total.real if real else total, path.error + ROUND_OFF * size

    def value(self, x: float) -> float:
        """Return V at one value of the normal variable."""
        return math.exp(min(self.mu * x - self.mu * self.mu / 2, 700.0))

    @property
    def size(self) -> int:
        """The number of nodes."""
        return sum(len(masses) for masses in (self._mass, self._far.mass, self._jumps.mass))

    def _outside(self) -> tuple[float, float]:
        """Return the mass left of the nodes and beyond the split, and ``E[V - 1]`` there."""
        left_mass, left_v = normal_tail(-self._low), normal_tail(self.mu - self._low)
        right_mass, right_v = normal_tail(self._split), normal_tail(self._split - self.mu)
        return left_mass + right_mass, (left_v - left_mass) + (right_v - right_mass)

    def _distance_at(self, x: Any) -> Any:
        """Return ``V - c``, without cancellation where c is 1."""
        power = self.mu * x - self.mu * self.mu / 2
        return np.expm1(power) if self.centred else np.exp(power) - self.centre

    def _path(self, first: float, mode: float) -> Path:
        """Return nodes beyond ``first``: down and to the right, then parallel to the real line."""
        # Below the real line V has the angle -mu depth, and |e^{-iuV}| = e^{-u |V| sin(mu depth)}
        # falls as V grows.  Up to an angle of pi / 4 the real part of V is no less than the other.
        # Where e^{-sV} hardly turns in the next 4 deviations the real line serves: the phase there
        # is at most GROWTH.
        depth = min(math.pi / 4 / self.mu, DEEPEST)
        if self.turn * self.value(max(first, mode) + 4) < GROWTH:
            depth = 0.0
        corner = first + depth
        high = max(self._upper_end(max(mode, first), depth), corner + 0.1)
        edges, error = self._panels(corner, high, depth)
        x, weight, _ = gauss_legendre_panels(edges, POINTS)
        z, mass = x - 1j * depth, weight.astype(complex)
        if depth:  # first down at 45 degrees: z = x - i (x - first), dz = (1 - i) dx
            edges, missed = self._panels(first, corner, depth, slanted=True)
            x, weight, _ = gauss_legendre_panels(edges, POINTS)
            z, mass = np.append(x - 1j * (x - first), z), np.append((1 - 1j) * weight, mass)
            error += missed
        error += self._left_out(high, depth)
        return Path(self._distance_at(z), mass * _density(z), error)

    def _upper_end(self, start: float, depth: float) -> float:
        """Return where e^{-x^2/2 - tilt V} has fallen by `NEGLIGIBLE` e-foldings from ``start``."""
        real_tilt = self.tilt * math.cos(self.mu * depth)

        def size(x: float) -> float:
            """Return minus the logarithm of the integrand's size."""
            return x * x / 2 + real_tilt * self.value(x)

        low, high = start, start + 1
        while size(high) - size(start) < NEGLIGIBLE:
            low, high = high, high + 1
        for _ in range(6):  # to 1/64; a path that is longer misses less
            middle = (low + high) / 2
            low, high = (
                (low, middle) if size(middle) - size(start) >= NEGLIGIBLE else (middle, high)
            )
        return high

    def _panels(
        self, low: float, high: float, depth: float, *, slanted: bool = False, beyond: bool = True
    ) -> tuple[Array, float]:
        """Return edges of panels, from ``low`` to ``high`` in Re x, and the error of their rules.

        Panels are as long as possible while e^{-sV} grows by at most `GROWTH` nats on the ellipse
        of each.  The path is ``depth`` below the real line, or, if ``slanted``, goes down to there
        at 45 degrees.  Only panels that are not ``beyond`` the split may have a centred sum.
        """
        # a path at 45 degrees is longer than its real part
        edges, missed, stretch = [low], 0.0, math.sqrt(2) if slanted else 1.0
        widest = WIDEST_HALF
        while edges[-1] < high:
            if len(edges) > MAX_PANELS:
                raise TooManyNodes
            remaining = high - edges[-1]
            half = min(widest, remaining / 2 + 1e-15)  # 1e-15: it reaches the end
            while True:
                centre = edges[-1] + half
                down = min(centre - low, depth) if slanted else depth
                value, reach = self.value(centre), REACH * half * stretch
                spread = math.expm1(self.mu * reach)
                cosine, sine = math.cos(self.mu * down), math.sin(self.mu * down)
                # -Re(sV) is linear in Im s, hence greatest at 0 or at turn.  On the ellipse V
                # differs from its value at the centre by at most ``spread`` times this value.
                growth_at_tilt = self.tilt * value * (spread * np.sign(self.tilt) - cosine)
                growth_at_turn = growth_at_tilt + self.turn * value * (spread - sine)
                if max(growth_at_turn, growth_at_tilt) + self.tilt * value * cosine <= GROWTH:
                    break
                half *= 0.8  # the panel that fits is at most a fifth shorter than it could be
            # |density| is at most e^{-square/2}: Re x is at least |centre| - reach in size, and
            # |Im x| is at most down + reach.
            square = max(abs(centre) - reach, 0.0) ** 2 - (down + reach) ** 2
            log_size = max(growth_at_tilt, growth_at_turn) + self.tilt * self.centre - square / 2
            # The terms -1 + w of a centred sum, which is on the real line alone, are at most this.
            linear_term = 0.0 if beyond else 1 + self.turn * (value * (1 + spread) + self.centre)
            size = math.exp(min(log_size, 700.0)) + linear_term * math.exp(-square / 2)
            missed += half * stretch * size
            if half > 1e-12:
                edges.append(min(edges[-1] + 2 * half, high))
            elif remaining < 1e-9:
                edges.append(high)  # the rest is too short to be cut by floats
            else:
                raise TooManyNodes
            widest = min(3 * half, WIDEST_HALF)  # The next one is rarely much wider.
        rate = 64 / 15 * ELLIPSE ** (2 - 2 * POINTS) / (1 - ELLIPSE**-2)
        return np.array(edges), missed * rate

    def _left_out(self, x: float, depth: float) -> float:
        """Return a bound on the integral of e^{-s(V-c)} beyond x, an end of the nodes.

        The integrand's size has a concave logarithm, so that its integral is at most its value over
        the slope of the logarithm.  Along the path |e^{-sV}| is at most e^{-real_tilt V}, with V at
        the real part of x.
        """
        real_tilt = self.tilt * math.cos(self.mu * depth)
        slope = abs(x + max(real_tilt, 0.0) * self.mu * self.value(x))
        size = (depth * depth - x * x) / 2 - real_tilt * self.value(x) + self.tilt * self.centre
        return math.exp(min(size, 700.0)) / slope


def _sum(s: Any, distance: Any, mass: Any, *, centred: bool) -> tuple[Any, Array]:
    """Return ``sum mass e^{-w}``, w = s distance, or that of ``e^{-w} - 1 + w`` if centred.

    The second array is the sum of sizes to which `ROUND_OFF` refers: a term counts with its
    absolute value times ``1 + |w|``, because its exponent is inexact by ulps of w.
    """
    if isinstance(s, VerticalLine):
        return _sum_on_line(s, distance, mass, centred=centred)
    w = np.multiply.outer(s, distance)
    length = np.abs(w)
    terms = np.expm1(-w) + w if centred else np.exp(-w)
    sizes = length * (1 + np.exp(-w.real)) if centred else np.abs(terms) * (1 + length)
    return np.sum(mass * terms, axis=-1), np.sum(np.abs(mass) * sizes, axis=-1)


def _sum_on_line(
    line: VerticalLine, distance: Any, mass: Any, *, centred: bool
) -> tuple[Any, Array]:
    """Return `_sum` on a line as a product of matrices: s is a row's part plus a column's."""
    rows, columns = (np.multiply.outer(part, distance) for part in line.parts())
    if centred:
        # e^{-v-w} - 1 + v + w = (e^{-v} - 1)(e^{-w} - 1) + (e^{-v} - 1 + v) + (e^{-w} - 1 + w)
        row_terms, column_terms = np.expm1(-rows), np.expm1(-columns)
        total = ordered_product(mass * row_terms, column_terms)
        total += np.sum(mass * (row_terms + rows), axis=-1)[:, None]
        total += np.sum(mass * (column_terms + columns), axis=-1)
    else:
        total = ordered_product(mass * np.exp(-rows), np.exp(-columns))
    # |e^{-s(V-c)}| is greatest at real s.  A product of matrices with n terms errs by n / 16 + 8
    # ulps, which is less than ROUND_OFF times 1 + n / MATRIX_TERMS.
    matrix_factor = 1 + mass.size / MATRIX_TERMS
    weight = np.abs(mass) * np.exp(-line.tilt * np.real(distance)) * matrix_factor
    size_per_s = float(np.sum(weight * np.abs(distance)))
    if centred:
        size_per_s = 2 * (size_per_s + float(np.sum(np.abs(mass * distance))) * matrix_factor)
    constant_size = 0.0 if centred else float(np.sum(weight))
    s = line.points()
    return total.ravel()[: line.count], np.abs(s) * size_per_s + constant_size


def _density(x: Any) -> Any:
    """Return the standard normal density, also at complex x."""
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
