# fmt: off
"""Releases as the contour needs them: M(z) = E_P e^{zL}, L = ln dP/dQ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import acb, acb_mat, arb

from .document import Fields, need


@dataclass
class Part:
    """``line(a, h, n)``: balls of M(a + ijh), j < n; ``decay(a, u)`` >= |M(a + iv)| for v >= u.

    ``moment(b)``: a ball of M(b); ``mass`` of the finite losses, ``total`` of P; ``work`` a node.
    """

    line: Callable[..., list[acb]]
    decay: Callable[[float, arb], arb]
    mass: Any = 1
    total: Any = 1
    work: int = 4

    def moment(self, b: float) -> arb:
        """Return M(b); the name of its rule is "alias"."""
        return self.line(b, 0, 1, "alias")[0].real

def exact(value: Any) -> arb:
    """Return the ball of a fraction."""
    return arb(value.numerator) / arb(value.denominator)

def abscissas(a: float, h: float, n: int) -> list[acb]:
    """Return a + ijh for j < n."""
    return [acb(arb(a), arb(h) * j) for j in range(n)]

def waves(weights: list[Any], losses: list[Any], h: float, n: int) -> list[acb]:
    """Return sum_k w_k e^{ijhL_k} for j < n, by one product of matrices: j = i + m j'."""
    m, turns, nodes = max(1, int(n**0.5)), [loss * acb(0, arb(h)) for loss in losses], len(losses)
    need(nodes * n <= 6e7, f"{n} frequencies of {nodes} nodes are too many")
    rows, pairs = -(-n // m), list(zip(weights, turns, strict=True))
    small = acb_mat(m, nodes, [(t * i).exp() for i in range(m) for t in turns])
    large = acb_mat(nodes, rows, [w * (t * (m * j)).exp() for w, t in pairs for j in range(rows)])
    found = (small * large).tolist()
    return [found[j % m][j // m] for j in range(n)]

def gaussian(mu2: arb) -> Part:
    """M(z) = e^{z (z + 1) mu^2 / 2}: the integral of a normal density."""

    def line(a: float, h: float, n: int, _: str = "") -> list[acb]:
        return [(z * (z + 1) * mu2 / 2).exp() for z in abscissas(a, h, n)]

    return Part(line, lambda a, u: ((a * (arb(a) + 1) - u**2) * mu2 / 2).exp())

def laplace(m: arb) -> Part:
    """M(z) = e^{-m/2} [cosh(sm) + sinh(sm) / (2s)], s = z + 1/2: three integrals of exponentials.

    |cosh sm|, |sinh sm| <= cosh(m Re s) and |s| >= u: so much at most for v >= u.
    """

    def line(a: float, h: float, n: int, _: str = "") -> list[acb]:
        up, down = waves([(a * m).exp()], [m], h, n), waves([(-(a + 1) * m).exp()], [-m], h, n)
        each = zip(abscissas(a, h, n), up, down, strict=True)
        return [((1 + z) * x + z * y) / (1 + 2 * z) for z, x, y in each]

    def decay(a: float, u: arb) -> arb:
        far = (-m / 2).exp() * ((a + arb(0.5)) * m).cosh() * (1 + 1 / (2 * u))
        return far.min(line(a, 0, 1)[0].real)

    return Part(line, decay)

def finite(law: list[Any], total: arb) -> Part:
    """M(z) = sum p (p/q)^z over the outcomes that both laws have."""
    both = [(p, (p / q).log()) for p, q in law if p > 0 and q > 0]

    def line(a: float, h: float, n: int, _: str = "") -> list[acb]:
        return waves([p * (a * x).exp() for p, x in both], [x for _, x in both], h, n)

    mass = sum((p for p, _ in both), arb(0))
    return Part(line, lambda a, _: line(a, 0, 1)[0].real, mass, total, len(both))

def logs(sides: Any, x: acb) -> list[acb]:
    """Return ln R, R the density of sum w N(s, 1) over that of N(0, 1), of each side."""
    return [sum(((s * x - s * s / 2).exp() * w for w, s in one), acb(0)).log() for one in sides]

def balls(unit2: Any, *sides: Any) -> list[Any]:
    """Return the weights and shifts of a mixture's sides."""
    return [[(exact(w), exact(s) * exact(unit2).sqrt()) for w, s in one] for one in sides]

def mixture(sides: Any, rules: Fields) -> Part:
    """P = sum w N(f, 1), Q = sum w N(g, 1), g <= 0 <= f: M(z) = int F, F = n R_f^(1+z) R_g^(-z).

    arg R_f(x + iy) is in [0, y max f] and arg R_g(x + iy) in [y min g, 0] for y >= 0 (sums of
    numbers in a sector): while y (max f - min g) < pi their logarithms are analytic and Im L >= 0,
    so |e^{ivL}| falls with v.  |R_f(x + iy)| <= R_f(x), |R_g(x + iy)| >= R_g(x) cos(yG/2), G = max
    g - min g.  So N(y) = int |F(x + iy)| dx <= e^{y^2/2} cos(yG/2)^(-a) M(a), at z = a + iv, v >= 0.

    Trapezoid rule at the nodes kh + iy (Trefethen & Weideman 2014, Theorem 5.1): the error is at
    most (N(0) + N(2y)) / (e^{2 pi y/h} - 1).  Of |F| too, at most twice the root of N(0) N(2y): it
    continues to the root of F times its mirror image in the line.  Left out: k < first, where R_f
    grows and R_g falls with x; k in (last, far], summed; beyond X = h far, (ln F)' <= c - x, c = (1
    + a) max f - a min g, hence at most F(X) / (X - c).
    """
    f, g = ([s for _, s in side] for side in sides)
    most, least, nearest = max(f, key=float), min(g, key=float), max(g, key=float)

    def nodes(a: float, name: str) -> tuple[list[acb], list[acb], arb]:
        """Return weights, losses, error: of M(a + iv) = sum w e^{ivL}, and of their sizes."""
        rule = Fields(rules.take(name), "a rule")
        y, h = arb(rule.real("y", 1e-9, 99.0)), arb(rule.real("h", 1e-9, 99.0))
        first, last, far = (rule.whole(key, -9999, 99999) for key in ("first", "last", "far"))
        rule.done()
        c, end = (1 + a) * most - a * least, h * far
        need(first <= 0 <= last <= min(far, 9999), "a rule has too many nodes")
        need(2 * y * (most - least) < arb.pi() and c < end, "a rule where it does not converge")

        def at(k: int, y: Any) -> tuple[acb, acb]:
            f, g = logs(sides, acb(h * k, y))
            return f - g, f + a * (f - g) - acb(h * k, y) ** 2 / 2

        both, scale = [at(k, y) for k in range(first, last + 1)], h / (2 * arb.pi()).sqrt()
        weights, losses = [scale * x.exp() for _, x in both], [loss for loss, _ in both]
        ends = [at(k, 0)[1].real.exp() for k in (first, far, *range(last + 1, far + 1))]
        left = ends[0] * ((h * first) ** 2 / 2).exp() * (-h * first / arb(2).sqrt()).erfc() / 2
        outside = left + ends[1] / (end - c) + scale * sum(ends[2:], arb(0))
        outside *= (y**2 / 2).exp() * (y * (nearest - least) / 2).cos() ** (-a)
        top = (2 * y**2).exp() * (y * (nearest - least)).cos() ** (-a)  # N(2y) <= top M(a)
        share = (1 + top.max(arb(1))) / ((2 * arb.pi() * y / h).exp() - 1)
        need(share < 0.5, "a rule is too coarse")
        size = (abs(sum(weights, acb(0))) + outside) / (1 - share)  # M(a) is at most this
        return weights, losses, (share * size + outside).upper()

    def line(a: float, h: float, n: int, name: str = "line") -> list[acb]:
        weights, losses, error = nodes(a, name)
        return [x + acb(arb(0, error), arb(0, error)) for x in waves(weights, losses, h, n)]

    def decay(a: float, u: arb) -> arb:
        weights, losses, error = nodes(a, "decay")
        each = zip(weights, losses, strict=True)
        return sum((abs(w * (x * acb(0, u)).exp()) for w, x in each), arb(0)) + error

    mass = sum((w for w, _ in sides[0]), arb(0))
    return Part(line, decay, mass, mass)
