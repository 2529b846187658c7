"""Releases in balls: their outcomes, closed forms, and M(z) = E_P e^{zL}, L = ln dP/dQ."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from flint import acb, acb_mat, arb, arb_poly, ctx

from .plan import Fields, need

MOST = 300_000
LATTICE = {"response", "discrete laplace", "discrete gaussian"}  # losses an equal step apart
@dataclass
class Part:
    """``line(a, h, n)``: balls of M(a + ijh), j < n; ``decay(a, u)`` >= |M(a + iv)| for v >= u."""
    line: Callable[..., list[acb]]
    decay: Callable[[float, arb], arb]
    mass: Any = 1  # of the finite losses
    total: Any = 1  # of P
    left: ClassVar[float] = 0.0  # what a check may still take, in products of numbers of 128 bits
def spend(products: float) -> None:  # refuse what takes too long, before it starts
    Part.left -= products * max(1, ctx.prec / 128) ** 1.5
    need(Part.left > 0, "the check would take too long")
def exact(value: Any) -> arb:  # Return the ball of a fraction.
    return value if isinstance(value, arb) else arb(value.numerator) / arb(value.denominator)
def abscissas(a: float, h: float, n: int) -> list[acb]:  # Return a + ijh for j < n.
    return [acb(arb(a), arb(h) * j) for j in range(n)]
def waves(weights: list[Any], losses: list[Any], h: float, n: int) -> list[acb]:
    """Return sum_k w_k e^{ijhL_k} for j < n, by one product of matrices: j = i + m j'."""
    m, turns, nodes = max(1, int(n**0.5)), [loss * acb(0, arb(h)) for loss in losses], len(losses)
    spend(nodes * n / 8 + 20 * n + 20 * m * nodes)
    rows, pairs = -(-n // m), list(zip(weights, turns, strict=True))
    small = acb_mat(m, nodes, [(t * i).exp() for i in range(m) for t in turns])
    large = acb_mat(nodes, rows, [w * (t * (m * j)).exp() for w, t in pairs for j in range(rows)])
    product = (small * large).tolist()
    return [product[j % m][j // m] for j in range(n)]
def gaussian(mu2: arb) -> Part:
    """M(z) = e^{z (z + 1) mu^2 / 2}: the integral of a normal density."""
    return Part(lambda a, h, n, _="": [(z * (z + 1) * mu2 / 2).exp() for z in abscissas(a, h, n)],
                lambda a, u: ((a * (arb(a) + 1) - u**2) * mu2 / 2).exp())
def laplace(m: arb, *_: arb) -> Part:
    """M(z) = e^{-m/2} [cosh(sm) + sinh(sm) / (2s)], s = z + 1/2: integrals of exponentials."""
    # |cosh sm|, |sinh sm| <= cosh(m Re s) and |s| >= u
    def line(a: float, h: float, n: int, _: str = "") -> list[acb]:
        up, down = waves([(a * m).exp()], [m], h, n), waves([(-a * m - m).exp()], [-m], h, n)
        nodes = zip(abscissas(a, h, n), up, down, strict=True)
        return [((1 + z) * x + z * y) / (1 + 2 * z) for z, x, y in nodes]
    def decay(a: float, u: arb) -> arb:
        bound = (-m / 2).exp() * ((a + arb(0.5)) * m).cosh() * (1 + 1 / (2 * u))
        return bound.min(line(a, 0, 1)[0].real)
    return Part(line, decay)
def zcdp(rho: arb, xi: arb) -> Part:
    """M(a) <= e^{a xi + a (a + 1) rho} at real a: Renyi's divergence of order a + 1, times a."""
    def line(a: float, h: float, n: int, _: str = "") -> list[acb]:
        need(n == 1, "a bound on moments is known at real orders")
        return [acb((a * xi + a * (arb(a) + 1) * rho).exp())]
    return Part(line, lambda a, u: line(a, 0, 1)[0].real)
def finite(law: list[Any], total: arb) -> Part:  # M(z) = sum p (p/q)^z, p > 0 < q
    pairs = [(p, (p / q).log()) for p, q in law if p > 0 and q > 0]
    def line(a: float, h: float, n: int, _: str = "") -> list[acb]:
        return waves([p * (a * x).exp() for p, x in pairs], [x for _, x in pairs], h, n)
    mass = sum((p for p, _ in pairs), arb(0))
    return Part(line, lambda a, _: line(a, 0, 1)[0].real, mass, total)
def logs(sides: Any, x: acb) -> list[acb]:
    """Return ln R, R the density of sum w N(s, 1) over that of N(0, 1), of each side."""
    return [sum(((s * x - s * s / 2).exp() * w for w, s in side), acb(0)).log() for side in sides]
def balls(unit2: Any, *sides: Any) -> list[Any]:  # the weights and shifts of a mixture
    return [[(exact(w), exact(s) * exact(unit2).sqrt()) for w, s in side] for side in sides]
def mixture(sides: Any, rules: Fields) -> Part:
    """P = sum w N(f, 1), Q = sum w N(g, 1), g <= 0 <= f: M(z) = int F, F = n R_f^(1+z) R_g^(-z)."""
    # arg R_f(x + iy) is in [0, y max f], arg R_g(x + iy) in [y min g, 0] for y >= 0 (numbers in a
    # sector): while y (max f - min g) < pi their logarithms are analytic and Im L >= 0, |e^{ivL}|
    # falls with v.  |R_f(x + iy)| <= R_f(x), |R_g(x + iy)| >= R_g(x) cos(yG/2), G = max g - min g:
    # N(y) = int |F(x + iy)| dx <= e^{y^2/2} cos(yG/2)^(-a) M(a), z = a + iv, v >= 0.
    # Trapezoid rule at kh + iy (Trefethen & Weideman 2014, Theorem 5.1): the error is at most (N(0)
    # + N(2y)) / (e^{2 pi y/h} - 1).  Of |F| too, at most twice the root of N(0) N(2y): it continues
    # to the root of F times its mirror image in the line.  Left out: k < first, where R_f grows and
    # R_g falls; k in (last, far], summed; beyond X = h far, (ln F)' <= c - x: F(X) / (X - c)
    f, g = ([s for _, s in side] for side in sides)
    max_f, min_g, max_g = reduce(arb.max, f), reduce(arb.min, g), reduce(arb.max, g)
    def nodes(a: float, name: str) -> tuple[list[acb], list[acb], arb]:
        """Return weights, losses, error: of M(a + iv) = sum w e^{ivL}, and of their sizes."""
        rule = Fields(rules.take(name), "a rule")
        y, h = arb(rule.real("y", 1e-9, 99.0)), arb(rule.real("h", 1e-9, 99.0))
        first_k, last_k, far_k = (rule.whole(k, -10**5, 10**5) for k in ("first", "last", "far"))
        rule.done()
        c, end = (1 + arb(a)) * max_f - a * min_g, h * far_k
        analytic = 2 * y * (max_f - min_g) < arb.pi()
        spend(50 * (far_k - first_k) * len(f + g))
        need(first_k <= 0 <= last_k <= far_k and analytic and c < end,
             "a rule where it does not converge")
        def at(k: int, y: Any) -> tuple[acb, acb]:
            f, g = logs(sides, acb(h * k, y))
            return f - g, f + a * (f - g) - acb(h * k, y) ** 2 / 2
        samples, scale = [at(k, y) for k in range(first_k, last_k + 1)], h / (2 * arb.pi()).sqrt()
        weights, losses = [scale * x.exp() for _, x in samples], [loss for loss, _ in samples]
        ends = [at(k, 0)[1].real.exp() for k in (first_k, far_k, *range(last_k + 1, far_k + 1))]
        x = -h * first_k
        left_tail = ends[0] * (x**2 / 2).exp() * (x / arb(2).sqrt()).erfc() / 2
        outside = left_tail + ends[1] / (end - c) + scale * sum(ends[2:], arb(0))
        outside *= (y**2 / 2).exp() * (y * (max_g - min_g) / 2).cos() ** (-a)
        top = (2 * y**2).exp() * (y * (max_g - min_g)).cos() ** (-a)  # N(2y) <= top M(a)
        share = (1 + top.max(arb(1))) / ((2 * arb.pi() * y / h).exp() - 1)
        need(share < 0.5, "a rule is too coarse")
        size = (abs(sum(weights, acb(0))) + outside) / (1 - share)  # M(a) is at most this
        return weights, losses, (share * size + outside).upper()
    def line(a: float, h: float, n: int, name: str = "line") -> list[acb]:
        weights, losses, error = nodes(a, name)
        return [x + acb(arb(0, error), arb(0, error)) for x in waves(weights, losses, h, n)]
    def decay(a: float, u: arb) -> arb:
        weights, losses, error = nodes(a, "decay")
        sizes = (abs(w * (x * acb(0, u)).exp()) for w, x in zip(weights, losses, strict=True))
        return sum(sizes, arb(0)) + error
    mass = sum((w for w, _ in sides[0]), arb(0))
    return Part(line, decay, mass, mass)
def outcomes(release: Any, back: bool) -> tuple[list[Any], arb]:
    """Return (p, q) of each outcome, and a ball of the mass of P, listed or not."""
    kind, *params = release
    if kind == "sampled":
        law, r = [(arb(1), arb(1))], exact(params[0])
        for member_law, _ in (outcomes(member, back=False) for member in params[1]):
            need(len(law) * len(member_law) <= MOST // 10, "too many outcomes")
            law = [(a * p, b * q) for a, b in law for p, q in member_law]
        law = [((1 - r) * q + r * p, q) for p, q in law]
    elif kind == "response":
        d, e = exact(params[1]), exact(params[0]).exp()
        low, high = (1 - d) / (1 + e), (1 - d) * e / (1 + e)
        law = [(low, high), (high, low), *([(arb(0), d), (d, arb(0))] if params[1] else [])]
    elif kind == "discrete laplace":  # all k <= 0 have one ratio, all k >= shift the other
        r, n = (-1 / exact(params[0])).exp(), params[1]
        q = [1 / (1 + r), *((1 - r) / (1 + r) * r**k for k in range(1, n)), r**n / (1 + r)]
        law = list(zip(reversed(q), q, strict=True))
    elif kind == "discrete gaussian":  # 16 deviations; what is beyond, a geometric series bounds
        s, n, far = exact(params[0]), params[1], int(16 * params[0]) + 2 + params[1]
        sizes = [(-((arb(k) / s) ** 2) / 2).exp() for k in range(far + 1)]
        total = 2 * sizes[-1] / (1 - (-far / s**2).exp()) * arb(0.5, 0.5)
        total += sizes[0] + 2 * sum(sizes[1:], arb(0))
        law = [(sizes[abs(k - n)] / total, sizes[abs(k)] / total) for k in range(n - far, far + 1)]
    else:
        need(kind == "pair", f"a {kind} has more than finitely many outcomes")
        law = [(exact(p), exact(q)) for p, q in params[0]]
    spend(20 * len(law))
    law = [(q, p) for p, q in law] if back else law
    need(all(x > 0 or x == 0 for masses in law for x in masses), "a mass that may be 0")
    mass = sum((p for p, _ in law), arb(0))
    return law, mass.union(arb(1)) if kind == "discrete gaussian" else mass
def listed(items: Any, back: bool, epsilon: float) -> tuple[arb, arb]:
    """Return bounds of sum (p - e^eps q)_+ over all outcomes; those not listed add at most P."""
    # The law of n releases is the n-th power of a polynomial: outcome k is x^k where losses are an
    # equal step apart, else x^((n + 1)^(k - 1)), whose exponents count each outcome.
    sums, mass, listed_mass = [(arb(1), arb(1))], arb(1), arb(1)
    for release, n in items:
        law, total = outcomes(release, back)
        law, step = [(p, q) for p, q in law if p > 0 and q > 0], release[0] in LATTICE or n == 1
        need(law and (step or len(law) < 20), "too many sums of losses")
        mass, listed_mass = mass * total**n, listed_mass * sum((p for p, _ in law), arb(0)) ** n
        powers = [k if step or not k else (n + 1) ** (k - 1) for k in range(len(law))]
        need(len(sums) * (powers[-1] * n + 1) <= MOST, "too many sums of losses")
        spend(2 * len(sums) * (powers[-1] * n + 1) + (powers[-1] * n) ** 2 / 300)
        at, zero = dict(zip(powers, law, strict=True)), (arb(0), arb(0))
        dense = [at.get(k, zero) for k in range(powers[-1] + 1)]
        p, q = (arb_poly(list(side)) ** n for side in zip(*dense, strict=True))
        terms = [(p[k], q[k]) for k in range(powers[-1] * n + 1) if not p[k] == q[k] == 0]
        sums = [(a * b, c * d) for a, c in sums for b, d in terms]
    e, infinite = arb(epsilon).exp(), mass - listed_mass
    hockey_stick = sum(((p - e * q).max(arb(0)) for p, q in sums), arb(0))
    return hockey_stick + infinite.lower().max(arb(0)), hockey_stick + infinite.upper()
def tail(x: arb) -> arb:  # Return P(N(0, 1) > x).
    return (x / arb(2).sqrt()).erfc() / 2
