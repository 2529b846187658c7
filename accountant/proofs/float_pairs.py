"""Releases in floats, to choose the parameters of a proof by a contour; nothing here is trusted.

A release is a pair of laws (P, Q), written as a tuple of `accountant.verifier.releases`.  Its
moment is M(z) = E_P e^{zL} with the loss L = ln dP/dQ.  A proof needs ln M(a) at real a, and how
fast |M(a + iu)| falls with the frequency u (`contour_parameters`); for mixtures of normal laws also
a rule with which the checker computes M (`accountant.verifier.moments.MixtureMoments`).
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

# Points of the grid on which a mixture's integrand is summed, and how many nats below its greatest
# value the integrand is left out.
POINTS, DEPTH = 1500, 400.0
MAX_NODES = 10**5  # the most nodes of a rule on each side of 0 that the checker takes


class LongRule(NoMethod):
    """The rule of a mixture has too many nodes at an abscissa."""


class FloatPair(Protocol):
    """A release, as the search for parameters sees it."""

    work: float

    def log_moment(self, a: float) -> float:
        """Return ``ln M(a)``."""
        ...

    def log_decay(self, a: float, u: float) -> float:
        """Return about a bound on ``ln |M(a + iv)|`` for all v >= u."""
        ...


class FloatGaussian:
    """N(mu, 1) against N(0, 1)."""

    work = 4.0

    def __init__(self, mu2: float) -> None:
        self.mu2 = mu2

    def log_moment(self, a: float) -> float:
        """Return ``a (a + 1) mu^2 / 2``."""
        return a * (a + 1) * self.mu2 / 2

    def log_decay(self, a: float, u: float) -> float:
        """Return the log-moment less ``u^2 mu^2 / 2``."""
        return self.log_moment(a) - u * u * self.mu2 / 2


class FloatRenyi:
    """Any pair whose Renyi divergence of order ``a + 1`` is at most ``xi + rho (a + 1)``."""

    work = 4.0

    def __init__(self, rho: float, xi: float) -> None:
        self.rho, self.xi = rho, xi

    def log_moment(self, a: float) -> float:
        """Return ``a xi + a (a + 1) rho``."""
        return a * self.xi + a * (a + 1) * self.rho

    def log_decay(self, a: float, _: float) -> float:
        """Return the log-moment: no decay is known off the real line."""
        return self.log_moment(a)


class FloatLaplace:
    """Laplace(m, 1) against Laplace(0, 1)."""

    work = 4.0

    def __init__(self, m: float) -> None:
        self.m = m

    def log_moment(self, a: float) -> float:
        """Return the logarithm of ``e^{am} ((1 + a) + a e^{-(1 + 2a) m}) / (1 + 2a)``."""
        inside = (1 + a) + a * math.exp(-(1 + 2 * a) * self.m)
        return a * self.m + math.log(inside / (1 + 2 * a))

    def log_decay(self, a: float, u: float) -> float:
        """Return the bound that the checker uses, as `docs/proofs/contour.md` has it under 3."""
        w = (a + 0.5) * self.m
        log_cosh = w + math.log1p(math.exp(-2 * w)) - math.log(2)
        return min(self.log_moment(a), log_cosh - self.m / 2 + math.log1p(1 / (2 * u)))


class FloatFinite:
    """A release of finitely many outcomes, of the probabilities p and q."""

    def __init__(self, p: Array, q: Array) -> None:
        common = (p > 0) & (q > 0)
        self._log_p, self._losses = np.log(p[common]), np.log(p[common]) - np.log(q[common])
        self.work = float(common.sum())

    def log_moment(self, a: float) -> float:
        """Return ``ln sum p (p/q)^a``."""
        return float(logsumexp(self._log_p + a * self._losses))

    def log_decay(self, a: float, u: float) -> float:
        """Return the moment: the characteristic function of atoms does not decay."""
        del u
        return self.log_moment(a)


class FloatMixture:
    """Mixtures of normal laws: P = sum w N(f, 1) against Q = sum w N(g, 1), with rules for M(z).

    M(z) is the integral over x of F = n R_f^{1 + z} R_g^{-z}, where n is the normal density and
    R_f, R_g are the ratios of P and Q to it.  It is the same along any line Im x = y that is low
    enough.  ``most`` is the largest f, ``least`` and ``nearest`` are the least and the largest g;
    ``spread`` and ``wide`` are the distances of the two others from ``least``.
    """

    def __init__(self, unit2: float, first: Any, second: Any) -> None:
        unit = math.sqrt(unit2)
        self._sides = [
            (np.array([float(w) for w, _ in side]), unit * np.array([float(s) for _, s in side]))
            for side in (first, second)
        ]
        f, g = self._sides[0][1], self._sides[1][1]
        self.most, self.least, self.nearest = float(f.max()), float(g.min()), float(g.max())
        self.spread, self.wide = self.most - self.least, self.nearest - self.least
        self.work = 100.0

    def _logs(self, x: Any) -> list[Any]:
        """Return ``ln R_f(x)`` and ``ln R_g(x)``, at real or complex x."""
        logs = []
        for weights, shifts in self._sides:
            # There is a row for each normal law: numpy reduces few long rows quickly.
            exponents = np.outer(shifts, x) + (np.log(weights) - shifts**2 / 2)[:, None]
            top = exponents.real.max(axis=0)
            logs.append(top + np.log(np.exp(exponents - top).sum(axis=0)))
        return logs

    def _log_height(self, a: float, x: Array) -> Array:
        """Return ``ln F(x)`` at z = a."""
        f, g = self._logs(x)
        exponent: Array = (1 + a) * f - a * g - x * x / 2
        return exponent - math.log(2 * math.pi) / 2

    @lru_cache(maxsize=64)  # noqa: B019  # many u are asked for at each of a few heights
    def _line(self, a: float, y: float) -> tuple[Array, Array]:
        """Return ``ln |F(x + iy)|`` at z = a on the grid, and what it falls by for a unit of u."""
        x = self._grid(a)
        f, g = self._logs(x + 1j * y)
        exponent: Array = (1 + a) * f.real - a * g.real + (y * y - x * x) / 2
        return exponent - math.log(2 * math.pi) / 2, f.imag - g.imag

    @lru_cache(maxsize=64)  # noqa: B019  # of a few abscissas, while a proof is written
    def _grid(self, a: float) -> Array:
        """Return equally distant x that cover where F is not far below its greatest value."""
        end = (1 + a) * self.most - a * self.least
        low = -12.0 - math.sqrt(2 * a * max(0.0, -math.log(max(self._sides[1][0].min(), 1e-300))))
        x = np.linspace(low, end + 12, POINTS // 2 + int(4 * min(end, 1e4)))
        sizes = self._log_height(a, x)
        central = x[sizes > sizes.max() - DEPTH]
        return np.linspace(central[0] - x[1] + x[0], central[-1] + x[1] - x[0], POINTS)

    def _log_integral(self, a: float, log_heights: Array) -> float:
        """Return the logarithm of the sum over the grid, times the distance of its points."""
        x = self._grid(a)
        return float(logsumexp(log_heights)) + math.log(x[1] - x[0])

    @lru_cache(maxsize=64)  # noqa: B019  # the ends of a rule ask for the same one many times
    def log_moment(self, a: float) -> float:
        """Return ``ln M(a)``."""
        return self._log_integral(a, self._log_height(a, self._grid(a)))

    def _log_decays(self, a: float, u: float) -> list[float]:
        """Return ``ln int |F(x + iy)| dx`` at z = a + iu, for each of the heights y."""
        lines = (self._line(a, float(y)) for y in self._heights)
        return [self._log_integral(a, sizes - u * fall) for sizes, fall in lines]

    @cached_property
    def _heights(self) -> Array:
        """The heights y of lines that are tried, from the highest down."""
        heights: Array = min(1.4 / self.spread, 4.0) / 2.0 ** np.arange(0, 10, 0.5)
        return heights

    def log_decay(self, a: float, u: float) -> float:
        """Return the least bound over the lines at all heights."""
        return min(self._log_decays(a, u))

    def decay_height(self, a: float, u: float, n: int, slack: float) -> float:
        """Return the highest line on which the bound for n releases is at most ``slack`` too large.

        The higher the line, the shorter is its rule.
        """
        sizes = self._log_decays(a, u)
        return max(
            float(y)
            for y, size in zip(self._heights, sizes, strict=True)
            if n * (size - min(sizes)) <= slack
        )

    def rule(self, a: float, log_error: float, y: float | None = None) -> dict[str, Any]:
        """Return the fields of a rule whose error is about ``e^log_error`` times M(a).

        Its nodes are x = kh + iy, k from ``first`` to ``last``; from the node ``far`` on F falls.
        Without a height y, the one with the fewest nodes is taken.
        """
        heights = [y] if y is not None else list(map(float, self._heights))
        _, y = min((self._steps(a, height, log_error), height) for height in heights)
        y = math.ldexp(math.floor(math.ldexp(y, 40)), -40)
        h = float(np.float32(0.98 / self._steps(a, y, log_error)))
        x = self._grid(a)
        log_grown = y * y / 2 - a * math.log(math.cos(y * self.wide / 2))
        heights_at = self._log_height(a, x) - self.log_moment(a) + log_grown
        central = x[heights_at > log_error - 5]
        first_node = min(0, math.floor(central[0] / h))
        last_node = max(0, math.ceil(central[-1] / h))
        c = (1 + a) * self.most - a * self.least
        far = max(last_node, math.ceil((c + 1) / h))
        first_node = self._left_end(a, h, first_node, log_error - log_grown)
        if max(far, -first_node) > MAX_NODES:
            raise LongRule("a rule of so many nodes is too long to check")
        return {"y": y.hex(), "h": h.hex(), "first": first_node, "last": last_node, "far": far}

    def _steps(self, a: float, y: float, log_error: float) -> float:
        """Return how many nodes a unit of x needs at this height; infinite if it is too high."""
        if 2 * y * self.spread >= 3 or y * self.wide >= 1.5:
            return math.inf
        top = 2 * y * y - a * math.log(math.cos(y * self.wide))
        return float((np.logaddexp(0.0, top) + 1 - log_error) / (2 * math.pi * y))

    def _left_end(self, a: float, h: float, first: int, log_error: float) -> int:
        """Return a first node k such that the checker's bound on all nodes before it is small."""
        for k in range(first, first - 20_000, -max(1, int(0.2 / h))):
            x = k * h
            log_tail = -x * x / 2 - math.log(max(1.0, -x))
            flat = float(self._log_height(a, np.array([x]))[0]) + x * x / 2
            if flat + log_tail - self.log_moment(a) < log_error - 3:
                return k
        return first


def largest_loss(release: Any, back: bool) -> float:
    """Return an upper bound on the losses of a release; infinite where there is none."""
    match release:
        case ("mixture", _, first, second):
            first, second = (second, first) if back else (first, second)
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
        case ("gaussian", mu2):
            return FloatGaussian(float(mu2))
        case ("laplace", m, _, _):
            return FloatLaplace(float(m))
        case ("zcdp", rho, xi):
            return FloatRenyi(float(rho), float(xi))
        case ("range", e):
            return FloatRenyi(float(e) ** 2 / 8, 0.0)
        case ("mixture", unit2, first, second):
            sides = [[(float(w), float(s)) for w, s in side] for side in (first, second)]
            if back:
                sides = [[(w, -s) for w, s in side] for side in reversed(sides)]
            return FloatMixture(float(unit2), *sides)
        case (kind, *_) if kind in LISTED:
            masses = [(float(p), float(q)) for p, q in listed_masses(release, back)]
            return FloatFinite(*np.array(masses).T)
    raise NoMethod(f"releases of the kind {release[0]} have no contour")


def listed_masses(release: Any, back: bool) -> Masses:
    """Return the probabilities (p, q) of a finite release's outcomes, precise enough for floats."""
    Budget.remaining = math.inf
    try:
        with ctx.workprec(96):
            return outcomes(release, back)[0]
    except NoProof as error:
        raise NoMethod(str(error)) from None
