"""The moments of releases in floats, to choose the parameters of a proof; nothing here is trusted.

A release is a pair (P, Q), written as a tuple as in `accountant.verifier.releases`.  Its moments
are M(z) = E_P e^{zL}, L = ln dP/dQ.  Each class has ln M(a) at real a > 0, and about a bound on
|M(a + iv)| for all v >= u.  The checker bounds the same by intervals, in its file `moments`.

The moment of a mixture of normals is an integral over the output x, which the checker computes by a
trapezoid rule: a sum at nodes a step h apart, on a line Im x = y.  The proof file names y, h and
the first and the last node; `FloatMixture.rule` chooses them.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from flint import ctx

from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.proofs.no_method import NoMethod
from accountant.verifier import NoProof
from accountant.verifier.balls import Budget
from accountant.verifier.outcomes import Masses, outcomes
from accountant.verifier.releases import LISTED

# The integrand of a mixture's moment is summed at POINTS points, where it is less than DEPTH nats
# below its greatest value.
POINTS, DEPTH = 1500, 400.0
MAX_NODES = 10**5  # nodes of a rule on each side of 0; more are refused
FINER_STEP = 0.98  # of the step that the error allows, so that rounding does not lengthen it
# Heights y of lines that are tried: the highest is TOP_HEIGHT over the spread of all means, which
# is below the limit of `_nodes_per_unit`, and not above HIGHEST, as errors grow with e^{2 y^2}.
TOP_HEIGHT, HIGHEST = 1.4, 4.0
# nats: by how much less than the error the integrand is at the first and the last node, and the
# checker's bound left of the first node
NODE_MARGIN, LEFT_MARGIN = 5, 3
BITS = 96  # precision of listed masses


class LongRule(NoMethod):
    """The rule of a mixture has too many nodes at an abscissa."""


class FloatPair(Protocol):
    """What the search for parameters asks of a release."""

    def log_moment(self, a: float) -> float:
        """Return ``ln M(a)``."""
        ...

    def log_decay(self, a: float, u: float) -> float:
        """Return about a bound on ``ln |M(a + iv)|`` for all v >= u."""
        ...


class FloatGaussian:
    """N(mu, 1) against N(0, 1)."""

    def __init__(self, mu_squared: float) -> None:
        self.mu_squared = mu_squared

    def log_moment(self, a: float) -> float:
        """Return ``a (a + 1) mu^2 / 2``."""
        return a * (a + 1) * self.mu_squared / 2

    def log_decay(self, a: float, u: float) -> float:
        """Return ``ln M(a)`` less ``u^2 mu^2 / 2``."""
        return self.log_moment(a) - u * u * self.mu_squared / 2


class FloatRenyi:
    """Any pair whose Renyi divergence of order ``a + 1`` is at most ``xi + rho (a + 1)``."""

    def __init__(self, rho: float, xi: float) -> None:
        self.rho, self.xi = rho, xi

    def log_moment(self, a: float) -> float:
        """Return ``a xi + a (a + 1) rho``."""
        return a * self.xi + a * (a + 1) * self.rho

    def log_decay(self, a: float, _: float) -> float:
        """Return ``ln M(a)``, as nothing else is known off the real line."""
        return self.log_moment(a)


class FloatLaplace:
    """Laplace(m, 1) against Laplace(0, 1)."""

    def __init__(self, m: float) -> None:
        self.m = m

    def log_moment(self, a: float) -> float:
        """Return the logarithm of its closed form."""
        inside = (1 + a) + a * math.exp(-(1 + 2 * a) * self.m)
        return a * self.m + math.log(inside / (1 + 2 * a))

    def log_decay(self, a: float, u: float) -> float:
        """Return the bound of the checker."""
        w = (a + 0.5) * self.m
        log_cosh = w + math.log1p(math.exp(-2 * w)) - math.log(2)
        return min(self.log_moment(a), log_cosh - self.m / 2 + math.log1p(1 / (2 * u)))


class FloatFinite:
    """Finitely many outcomes of masses p under P and q under Q."""

    def __init__(self, p: Array, q: Array) -> None:
        common = (p > 0) & (q > 0)
        self._log_p, self._losses = np.log(p[common]), np.log(p[common]) - np.log(q[common])

    def log_moment(self, a: float) -> float:
        """Return ``ln sum p (p/q)^a``."""
        return float(logsumexp(self._log_p + a * self._losses))

    def log_decay(self, a: float, u: float) -> float:
        """Return the moment: the characteristic function of atoms does not decay."""
        del u
        return self.log_moment(a)


class FloatMixture:
    """A mixture P = sum w N(f, 1) against Q = sum w N(g, 1), and quadrature rules for M.

    With n the normal density, and R_f and R_g the ratios of P and Q to it, M(z) is the integral of
    F = n R_f^(1 + z) R_g^(-z) over a line Im x = y (docs/proofs/sampled_gaussian.md).
    """

    def __init__(self, unit_squared: float, first: Any, second: Any) -> None:
        unit = math.sqrt(unit_squared)
        self._sides = [
            (np.array([float(w) for w, _ in side]), unit * np.array([float(s) for _, s in side]))
            for side in (first, second)
        ]
        f, g = self._sides[0][1], self._sides[1][1]
        # The means are at least 0 in P and at most 0 in Q.
        self.max_f, self.min_g, self.max_g = float(f.max()), float(g.min()), float(g.max())
        self.all_spread, self.g_spread = self.max_f - self.min_g, self.max_g - self.min_g

    def _logs(self, x: Any) -> list[Any]:
        """Return ``ln R_f`` and ``ln R_g`` at points x, which may be complex.

        A side sum w N(s, 1) has the ratio R(x) = sum w e^{sx - s^2/2}.
        """
        logs = []
        for weights, shifts in self._sides:
            # a row for each normal law: numpy reduces long rows faster than many short ones
            exponents = np.outer(shifts, x) + (np.log(weights) - shifts**2 / 2)[:, None]
            top = exponents.real.max(axis=0)
            logs.append(top + np.log(np.exp(exponents - top).sum(axis=0)))
        return logs

    def _log_height(self, a: float, x: Array) -> Array:
        """Return ``ln F`` at real points x, for z = a."""
        f, g = self._logs(x)
        exponent: Array = (1 + a) * f - a * g - x * x / 2
        return exponent - math.log(2 * math.pi) / 2

    @lru_cache(maxsize=64)  # noqa: B019  # many u are asked for at each of a few heights
    def _line(self, a: float, y: float) -> tuple[Array, Array]:
        """Return, at the points x + iy of the grid, ``ln |F|`` for z = a, and ``Im L``.

        For z = a + iu the first is less by u times the second.
        """
        x = self._grid(a)
        f, g = self._logs(x + 1j * y)
        exponent: Array = (1 + a) * f.real - a * g.real + (y * y - x * x) / 2
        return exponent - math.log(2 * math.pi) / 2, f.imag - g.imag

    @lru_cache(maxsize=64)  # noqa: B019  # a few abscissas are asked for many times
    def _grid(self, a: float) -> Array:
        """Return evenly spaced points that cover where F is within e^-DEPTH of its greatest."""
        # On the right F is at most a multiple of a normal density around ``end``.  Far on the left
        # R_f is at most 1, and R_g at least w, its smallest weight, so that F is at most n w^-a.
        # That is less than e^-72 beyond -12 - sqrt(2 a ln(1/w)).
        end = (1 + a) * self.max_f - a * self.min_g
        low = -12.0 - math.sqrt(2 * a * max(0.0, -math.log(max(self._sides[1][0].min(), 1e-300))))
        x = np.linspace(low, end + 12, POINTS // 2 + int(4 * min(end, 1e4)))
        sizes = self._log_height(a, x)
        central = x[sizes > sizes.max() - DEPTH]
        return np.linspace(central[0] - x[1] + x[0], central[-1] + x[1] - x[0], POINTS)

    def _log_integral(self, a: float, log_heights: Array) -> float:
        """Return the logarithm of the integral over the grid, from logarithms of the integrand."""
        x = self._grid(a)
        return float(logsumexp(log_heights)) + math.log(x[1] - x[0])

    @lru_cache(maxsize=64)  # noqa: B019  # the ends of a rule ask for the same one many times
    def log_moment(self, a: float) -> float:
        """Return ``ln M(a)``."""
        return self._log_integral(a, self._log_height(a, self._grid(a)))

    def _log_decays(self, a: float, u: float) -> list[float]:
        """Return, for the line at each height, the log of the integral of |F| for z = a + iu."""
        lines = (self._line(a, float(y)) for y in self._heights)
        return [self._log_integral(a, sizes - u * fall) for sizes, fall in lines]

    @cached_property
    def _heights(self) -> Array:
        """The heights y of the lines that are tried, from near the largest allowed downwards."""
        highest = min(TOP_HEIGHT / self.all_spread, HIGHEST)
        heights: Array = highest / 2.0 ** np.arange(0, 10, 0.5)
        return heights

    def log_decay(self, a: float, u: float) -> float:
        """Return the least bound over the lines that are tried."""
        return min(self._log_decays(a, u))

    def decay_height(self, a: float, u: float, n: int, slack: float) -> float:
        """Return the greatest height whose bound for n releases is within ``slack`` of the least.

        The rule of a higher line is the shorter one.
        """
        sizes = self._log_decays(a, u)
        return max(
            float(y)
            for y, size in zip(self._heights, sizes, strict=True)
            if n * (size - min(sizes)) <= slack
        )

    def rule(self, a: float, log_error: float, y: float | None = None) -> dict[str, Any]:
        """Return a trapezoid rule whose error is about the share ``e^log_error`` of M(a).

        Its nodes are h k + iy for k from ``first`` to ``last``; the checker bounds what is left of
        them by a normal tail, and sums what is right of them up to ``far``.  Without a ``y`` the
        height with the fewest nodes is chosen.
        """
        heights = [y] if y is not None else list(map(float, self._heights))
        _, y = min((self._nodes_per_unit(a, height, log_error), height) for height in heights)
        # 40 bits after the point, and a step of 24 bits, make the file short.
        y = math.ldexp(math.floor(math.ldexp(y, 40)), -40)
        h = float(np.float32(FINER_STEP / self._nodes_per_unit(a, y, log_error)))
        x = self._grid(a)
        # |F| on the line is at most e^log_growth times F on the real line.
        log_growth = y * y / 2 - a * math.log(math.cos(y * self.g_spread / 2))
        log_shares = self._log_height(a, x) - self.log_moment(a) + log_growth
        central = x[log_shares > log_error - NODE_MARGIN]
        first_node = min(0, math.floor(central[0] / h))
        last_node = max(0, math.ceil(central[-1] / h))
        # Beyond X the checker's bound on the tail is F(X) / (X - centre): X is taken 1 further
        # right.
        centre = (1 + a) * self.max_f - a * self.min_g
        far = max(last_node, math.ceil((centre + 1) / h))
        first_node = self._left_end(a, h, first_node, log_error - log_growth)
        if max(far, -first_node) > MAX_NODES:
            raise LongRule("a rule of so many nodes is too long to check")
        return {"y": y.hex(), "h": h.hex(), "first": first_node, "last": last_node, "far": far}

    def _nodes_per_unit(self, a: float, y: float, log_error: float) -> float:
        """Return the number of nodes per unit of x, 1 / h, that a line at this height needs.

        The rule errs by at most the share (1 + top) / (e^{2 pi y / h} - 1) of M(a), where top =
        e^{2 y^2} cos(y g_spread)^(-a).  The result is infinite where the rule need not converge.
        The checker wants 2 y all_spread < pi, so that R_f has no zero within 2y of the real line,
        and cos(y g_spread) must be positive.  3 and 1.5 are a little below pi and pi / 2.
        """
        if 2 * y * self.all_spread >= 3 or y * self.g_spread >= 1.5:
            return math.inf
        log_top = 2 * y * y - a * math.log(math.cos(y * self.g_spread))
        # One nat to spare.
        return float((np.logaddexp(0.0, log_top) + 1 - log_error) / (2 * math.pi * y))

    def _left_end(self, a: float, h: float, first: int, log_error: float) -> int:
        """Return a first node such that the checker's bound on all left of it is small enough.

        At x = kh that bound is F(x) e^{x^2/2} times a normal tail.  The nodes tried are about 0.2
        apart in x.  If none is found the answer is ``first``, and the proof may fail.
        """
        for k in range(first, first - 20_000, -max(1, int(0.2 / h))):
            x = k * h
            log_tail = -x * x / 2 - math.log(max(1.0, -x))
            log_ratio = float(self._log_height(a, np.array([x]))[0]) + x * x / 2
            if log_ratio + log_tail - self.log_moment(a) < log_error - LEFT_MARGIN:
                return k
        return first


def largest_loss(release: Any, back: bool) -> float:
    """Return an upper bound on the losses of a release; infinity where none is known here."""
    match release:
        case ("mixture", _, first, second):
            first, second = (second, first) if back else (first, second)
            # If P is N(0, 1) and Q contains it with the weight w, then P / Q <= 1 / w.
            still = [float(w) for w, s in second if s == 0]
            if still and all(s == 0 for _, s in first):
                return -math.log(still[0])
        case ("response", e, d) if d == 0:
            return float(e)
        case ("laplace", m, *_):
            return float(m)
    return math.inf


def float_pair(release: Any, back: bool) -> FloatPair:
    """Return a release in floats; `NoMethod` where it has no moments."""
    match release:
        case ("gaussian", mu_squared):
            return FloatGaussian(float(mu_squared))
        case ("laplace", m, _, _):
            return FloatLaplace(float(m))
        case ("zcdp", rho, xi):
            return FloatRenyi(float(rho), float(xi))
        case ("range", e):
            return FloatRenyi(float(e) ** 2 / 8, 0.0)
        case ("mixture", unit_squared, first, second):
            sides = [[(float(w), float(s)) for w, s in side] for side in (first, second)]
            if back:
                sides = [[(w, -s) for w, s in side] for side in reversed(sides)]
            return FloatMixture(float(unit_squared), *sides)
        case (kind, *_) if kind in LISTED:
            masses = [(float(p), float(q)) for p, q in listed_masses(release, back)]
            return FloatFinite(*np.array(masses).T)
    raise NoMethod(f"releases of the kind {release[0]} have no contour")


def listed_masses(release: Any, back: bool) -> Masses:
    """Return the masses of a release that has listed outcomes, with `BITS` bits."""
    Budget.remaining = math.inf
    try:
        with ctx.workprec(BITS):
            return outcomes(release, back)[0]
    except NoProof as error:
        raise NoMethod(str(error)) from None
