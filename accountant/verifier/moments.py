"""The moments M(z) = E_P e^{zL}, L = ln dP/dQ, of releases: on a line, and how they decay.

P and Q are the laws of a release on two neighbours; L is taken where it is finite.  The verifier
checks a proof file, which states delta of a plan and the numbers of the rules that bound it.  To
check it, `contour` multiplies the moments of all releases and integrates them along z = a + iv,
a > 0.  For that each class below gives M at the nodes of the line, and a bound on |M| beyond the
last node.

Numbers are balls (`arb`, and `acb` for complex ones), which contain the true numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from typing import Any

from flint import acb, arb

from .balls import exact, exponential_sums, nodes_on_line, normal_tail, spend
from .document import Fields, need
from .outcomes import Masses


class Moments(ABC):
    """M(z) of one release, the mass of P with finite losses, and the mass of P in all.

    The mass in all is a ball that contains the true mass; not all outcomes need be listed.
    """

    finite_mass: arb | int = 1
    total_mass: arb | int = 1

    @abstractmethod
    def line(self, a: float, h: float, count: int, rule: str = "line") -> list[acb]:
        """Return balls of M(a + ijh) for j < count.

        ``rule`` is the name of the quadrature rule, of those in the proof, by which M of a mixture
        is computed; other moments have formulas.
        """

    @abstractmethod
    def decay(self, a: float, height: arb) -> arb:
        """Return a bound on |M(a + iv)| for all v >= height."""

    def at(self, a: float, rule: str = "line") -> arb:
        """Return M(a), which is at least |M(a + iv)| for every v."""
        return self.line(a, 0, 1, rule)[0].real


class GaussianMoments(Moments):
    """M(z) = e^{z (z + 1) mu^2 / 2} of Gaussian noise: N(mu, 1) against N(0, 1)."""

    def __init__(self, mu_squared: arb) -> None:
        self.mu_squared = mu_squared

    def line(self, a: float, h: float, count: int, rule: str = "line") -> list[acb]:
        """Return M at the nodes by its formula."""
        return [(z * (z + 1) * self.mu_squared / 2).exp() for z in nodes_on_line(a, h, count)]

    def decay(self, a: float, height: arb) -> arb:
        """Return |M(a + iv)| = e^{(a (a + 1) - v^2) mu^2 / 2} at v = height, as it falls with v."""
        return ((a * (arb(a) + 1) - height**2) * self.mu_squared / 2).exp()


class LaplaceMoments(Moments):
    """M(z) = e^{-m/2} [cosh(sm) + sinh(sm) / (2s)], s = z + 1/2, of Laplace noise.

    Its scale is 1, and the neighbours' values are m apart.
    """

    def __init__(self, m: arb) -> None:
        self.m = m

    def line(self, a: float, h: float, count: int, rule: str = "line") -> list[acb]:
        """Return M(z) = [(1 + z) e^{zm} + z e^{-zm - m}] / (1 + 2z), the formula above."""
        m = self.m
        rising = exponential_sums([(a * m).exp()], [m], h, count)
        falling = exponential_sums([(-a * m - m).exp()], [-m], h, count)
        nodes = zip(nodes_on_line(a, h, count), rising, falling, strict=True)
        return [((1 + z) * up + z * down) / (1 + 2 * z) for z, up, down in nodes]

    def decay(self, a: float, height: arb) -> arb:
        """Return a bound on |M(a + iv)| for v >= u, u the height.

        Theorem (`laplace_decay`: docs/proofs/contour.md, 3): it is at most
        e^{-m/2} cosh(m (a + 1/2)) (1 + 1/(2u)), as |cosh sm| and |sinh sm| are at most
        cosh(m Re s), and |s| >= u.
        """
        m = self.m
        bound = (-m / 2).exp() * ((a + arb(0.5)) * m).cosh() * (1 + 1 / (2 * height))
        return bound.min(self.at(a))


class RenyiMoments(Moments):
    """The bound M(a) <= e^{a xi + a (a + 1) rho} at real a, in place of M, of (xi, rho)-zCDP.

    Theorem (`moments_of_zcdp`): that is the definition of zCDP, as ln M(a) is a times Renyi's
    divergence of order a + 1.
    """

    def __init__(self, rho: arb, xi: arb) -> None:
        self.rho, self.xi = rho, xi

    def line(self, a: float, h: float, count: int, rule: str = "line") -> list[acb]:
        """Return the bound at z = a, for a count of 1; at complex z nothing is known."""
        need(count == 1, "a bound on moments is known at real orders")
        return [acb((a * self.xi + a * (arb(a) + 1) * self.rho).exp())]

    def decay(self, a: float, height: arb) -> arb:
        """Return the bound on M(a), as |M(a + iv)| is at most M(a) for every v."""
        return self.at(a)


def range_moments(epsilon: arb) -> RenyiMoments:
    """Return a bound for losses in an interval of length epsilon: e^{a (a + 1) epsilon^2 / 8}.

    Theorem (`range_as_moments`: Hoeffding's lemma; Cesar & Rogers 2021, Lemma 3.4).
    """
    return RenyiMoments(epsilon**2 / 8, arb(0))


class FiniteMoments(Moments):
    """M(z) = sum p (p / q)^z over the outcomes of masses p > 0 under P and q > 0 under Q."""

    def __init__(self, masses: Masses, total_mass: arb) -> None:
        self.terms = [(p, (p / q).log()) for p, q in masses if p > 0 and q > 0]
        self.finite_mass = sum((p for p, _ in self.terms), arb(0))
        self.total_mass = total_mass

    def line(self, a: float, h: float, count: int, rule: str = "line") -> list[acb]:
        """Return the sum over the outcomes, p e^{aL} e^{ivL} at a + iv."""
        weights = [p * (a * loss).exp() for p, loss in self.terms]
        return exponential_sums(weights, [loss for _, loss in self.terms], h, count)

    def decay(self, a: float, height: arb) -> arb:
        """Return M(a), as |M(a + iv)| is at most M(a) for every v."""
        return self.at(a)


Side = list[tuple[arb, arb]]  # P or Q as a mixture of normals: a weight and a mean each


def mixture_sides(unit_squared: Any, *sides: Any) -> list[Side]:
    """Return each side as balls, the shifts multiplied by the root of ``unit_squared``."""
    return [
        [(exact(w), exact(shift) * exact(unit_squared).sqrt()) for w, shift in side]
        for side in sides
    ]


def log_density_ratios(sides: list[Side], x: acb) -> list[acb]:
    """Return ln R(x) of each side, R the density of sum w N(s, 1) over that of N(0, 1)."""
    return [sum(((s * x - s * s / 2).exp() * w for w, s in side), acb(0)).log() for side in sides]


class MixtureMoments(Moments):
    """M(z) of P = sum w N(f, 1) against Q = sum w N(g, 1), g <= 0 <= f, by trapezoid rules.

    With n the normal density, R_f and R_g the ratios of P and Q to it, M(z) is the integral of
    F = n R_f^(1 + z) R_g^(-z).

    Theorem (`moved_line`: docs/proofs/sampled_gaussian.md, Lines; mixtures.md, 3): the integral on
    Im x = y equals that on the real line where both logarithms are analytic.  For y >= 0 the
    numbers arg R_f(x + iy) are in [0, y max f], and arg R_g(x + iy) in [y min g, 0], as sums of
    numbers in a sector are; so that holds while y (max f - min g) < pi.  There Im L >= 0, and
    |e^{ivL}| falls with v.

    Theorem (`size_on_a_line`: sampled_gaussian.md, Trapezoid rule): with G = max g - min g,
    |R_f(x + iy)| <= R_f(x) and |R_g(x + iy)| >= R_g(x) cos(yG/2), so for z = a + iv, v >= 0,
    N(y) = int |F(x + iy)| dx <= e^{y^2/2} cos(yG/2)^(-a) M(a).

    Theorem (`trapezoid_on_a_strip`: Trefethen & Weideman 2014, Theorem 5.1): a rule of step h on
    Im x = y errs by at most (N(0) + N(2y)) / (e^{2 pi y/h} - 1).  The rule for |F| errs by at most
    twice the root of N(0) N(2y) in place of N(0) + N(2y), as |F| continues to the root of F times
    its mirror image in the line.
    """

    def __init__(self, sides: list[Side], rules: Fields) -> None:
        self.sides, self.rules = sides, rules
        self.finite_mass = self.total_mass = sum((w for w, _ in sides[0]), arb(0))
        f, g = ([shift for _, shift in side] for side in sides)
        self.max_f = reduce(arb.max, f)
        self.min_g, self.max_g = reduce(arb.min, g), reduce(arb.max, g)

    def line(self, a: float, h: float, count: int, rule: str = "line") -> list[acb]:
        """Return the sums of a rule as balls, which are widened by the rule's error."""
        weights, losses, error = self.quadrature(a, rule)
        error_ball = acb(arb(0, error), arb(0, error))
        return [value + error_ball for value in exponential_sums(weights, losses, h, count)]

    def decay(self, a: float, height: arb) -> arb:
        """Return the sum of the sizes of a rule's terms at v = height, plus the rule's error.

        It bounds |M(a + iv)| for v >= height, as |e^{ivL}| falls with v on the line of the rule.
        """
        weights, losses, error = self.quadrature(a, "decay")
        sizes = (
            abs(w * (loss * acb(0, height)).exp()) for w, loss in zip(weights, losses, strict=True)
        )
        return sum(sizes, arb(0)) + error

    def quadrature(self, a: float, name: str) -> tuple[list[acb], list[acb], arb]:
        """Return weights w and losses L with M(a + iv) = sum w e^{ivL}, and a bound on the error.

        The bound also holds for the sum of the sizes of the terms, as a rule for the integral of
        |F|.  The rule is read from the proof by its name: nodes h k + iy for k from ``first`` to
        ``last``, and ``far``, up to which `outside_bound` sums what is right of the last node.
        """
        rule = Fields(self.rules.take(name), "a rule")
        y, h = arb(rule.real("y", 1e-9, 99.0)), arb(rule.real("h", 1e-9, 99.0))
        first_k, last_k, far_k = (rule.whole(k, -(10**5), 10**5) for k in ("first", "last", "far"))
        rule.done()
        # to the right of this point n R_f^(1 + a) R_g^(-a) falls
        centre = (1 + arb(a)) * self.max_f - a * self.min_g
        is_analytic = 2 * y * (self.max_f - self.min_g) < arb.pi()
        spend(50 * (far_k - first_k) * len(self.sides[0] + self.sides[1]))
        need(
            first_k <= 0 <= last_k <= far_k and is_analytic and centre < h * far_k,
            "a rule where it does not converge",
        )
        samples = [self.at_node(a, acb(h * k, y)) for k in range(first_k, last_k + 1)]
        scale = h / (2 * arb.pi()).sqrt()
        weights = [scale * log_size.exp() for _, log_size in samples]
        losses = [loss for loss, _ in samples]
        outside = self.outside_bound(a, y, h, first_k, last_k, far_k)
        # By `size_on_a_line` N(0) <= M(a) and N(2y) <= top M(a), so by `trapezoid_on_a_strip` the
        # rule errs by at most share M(a).  Hence M(a) <= |sum| + outside + share M(a).
        top = (2 * y**2).exp() * (y * (self.max_g - self.min_g)).cos() ** (-a)
        share = (1 + top.max(arb(1))) / ((2 * arb.pi() * y / h).exp() - 1)
        need(share < 0.5, "a rule is too coarse")
        moment_upper = (abs(sum(weights, acb(0))) + outside) / (1 - share)
        return weights, losses, (share * moment_upper + outside).upper()

    def outside_bound(self, a: float, y: arb, h: arb, first_k: int, last_k: int, far_k: int) -> arb:
        """Return a bound on the terms of a rule that its sum leaves out.

        Left of the first node R_f grows and R_g falls, so that a normal tail bounds them.  From the
        last node to the far one they are summed at real x.  Beyond X = h far, (ln F)' <= c - x with
        c = (1 + a) max f - a min g, so that their integral is at most F(X) / (X - c).  All are
        sizes on the real line, and `size_on_a_line` says how much larger they are on Im x = y.
        """

        def size_at(k: int) -> arb:
            return self.at_node(a, acb(h * k, 0))[1].real.exp()

        left, scale = -h * first_k, h / (2 * arb.pi()).sqrt()
        left_tail = size_at(first_k) * (left**2 / 2).exp() * normal_tail(left)
        end = h * far_k
        centre = (1 + arb(a)) * self.max_f - a * self.min_g
        right_tail = size_at(far_k) / (end - centre)
        summed = scale * sum((size_at(k) for k in range(last_k + 1, far_k + 1)), arb(0))
        growth = (y**2 / 2).exp() * (y * (self.max_g - self.min_g) / 2).cos() ** (-a)
        return (left_tail + right_tail + summed) * growth

    def at_node(self, a: float, x: acb) -> tuple[acb, acb]:
        """Return the loss L(x), and ln F(x) without the constant of n, at the order a."""
        log_f, log_g = log_density_ratios(self.sides, x)
        return log_f - log_g, log_f + a * (log_f - log_g) - x**2 / 2
