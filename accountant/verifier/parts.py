"""Releases as the contour needs them: M(z) = E_P e^{zL}, L = ln dP/dQ, on a line and beyond it.

``line(a, h, n)`` returns balls of M(a + ijh), j < n; ``moment(b)`` one of M(b); ``decay(a, u)`` an
upper bound of |M(a + iv)| for every v >= u.  |M(a + iv)| <= M(a) always.
"""

from flint import acb, acb_mat, arb

from .document import NoProof, real, whole


def exact(value):
    """Return the ball of a fraction."""
    return arb(value.numerator) / arb(value.denominator)


def waves(weights, losses, h, n):
    """Return sum_k w_k e^{ijh L_k} for j < n: one product of matrices, j = j1 + m j2."""
    m, turns = max(1, int(n**0.5)), [loss * acb(0, arb(h)) for loss in losses]
    rows = -(-n // m)
    small = acb_mat(m, len(turns), [(t * j).exp() for j in range(m) for t in turns])
    large = acb_mat(len(turns), rows, [w * (t * (m * j)).exp()
        for t, w in zip(turns, weights, strict=True) for j in range(rows)])  # fmt: skip
    found = (small * large).tolist()
    return [found[j % m][j // m] for j in range(n)]


class Gaussian:
    """M(z) = e^{z (z + 1) mu^2 / 2}: the integral of a normal density."""

    mass = total = arb(1)

    def __init__(self, mu2):
        self.mu2 = mu2

    def line(self, a, h, n):
        zs = (acb(arb(a), arb(h) * j) for j in range(n))
        return [(z * (z + 1) * self.mu2 / 2).exp() for z in zs]

    def moment(self, b):
        return (arb(b) * (arb(b) + 1) * self.mu2 / 2).exp()

    def decay(self, a, u):
        return self.moment(a) * (-(arb(u) ** 2) * self.mu2 / 2).exp()


class Laplace:
    """M(z) = e^{-m/2} [cosh(sm) + sinh(sm) / (2s)], s = z + 1/2: three integrals of exponentials.

    With w = a + 1/2, s = w + iu: |cosh sm|, |sinh sm| <= cosh wm and |s| >= u, so |M(a + iv)| is
    at most e^{-m/2} cosh(wm) (1 + 1/(2u)) for v >= u.
    """

    mass = total = arb(1)

    def __init__(self, m):
        self.m = m

    def line(self, a, h, n):
        rise = waves([(arb(a) * self.m).exp()], [self.m], h, n)
        fall = waves([(-(arb(a) + 1) * self.m).exp()], [-self.m], h, n)
        zs = (acb(arb(a), arb(h) * j) for j in range(n))
        return [((1 + z) * up + z * down) / (1 + 2 * z)
                for z, up, down in zip(zs, rise, fall, strict=True)]  # fmt: skip

    def moment(self, b):
        return self.line(b, 0, 1)[0].real

    def decay(self, a, u):
        w, u = arb(a) + arb(0.5), arb(u)
        far = (-self.m / 2).exp() * (w * self.m).cosh() * (1 + 1 / (2 * u))
        return far.min(self.moment(a))


class Finite:
    """M(z) = sum p (p/q)^z over the outcomes that both laws have; ``total`` is all of P."""

    def __init__(self, law, total):
        self.total, self.mass, self.work = (
            total,
            sum((p for p, q in law if q > 0), arb(0)),
            len(law),
        )
        both = [(p, q) for p, q in law if p > 0 and q > 0]
        self.masses, self.losses = [p for p, _ in both], [(p / q).log() for p, q in both]

    def line(self, a, h, n):
        weights = [p * (arb(a) * x).exp() for p, x in zip(self.masses, self.losses, strict=True)]
        return waves(weights, self.losses, h, n)

    def moment(self, b):
        return sum((p * (arb(b) * x).exp() for p, x in zip(self.masses, self.losses, strict=True)),
                   arb(0))  # fmt: skip

    def decay(self, a, _):
        return self.moment(a)


class Mixture:
    """P = sum w_j N(f_j, 1), Q = sum w_j N(g_j, 1), g_j <= 0 <= f_j, R_f and R_g their densities
    over that of N(0, 1): M(z) = int phi F dx, F = R_f^(1+z) R_g^(-z).

    arg R_f(x + iy) is in [0, y max f] and arg R_g(x + iy) in [y min g, 0] for y >= 0 (sums of
    numbers in a sector): while y (max f - min g) < pi, ln R_f and ln R_g are analytic and Im L >= 0,
    so |e^{ivL}| falls with v.  |R_f(x + iy)| <= R_f(x), |R_g(x + iy)| >= R_g(x) cos(yG/2), G =
    max g - min g.  So N(y) = int |phi F(x + iy)| dx <= e^{y^2/2} cos(yG/2)^(-a) M(a), each v >= 0.

    A rule is [y, h, first, last, far]: nodes x_k = kh + iy, first <= k <= last.
    """

    def __init__(self, unit2, first, second, rules):
        unit = exact(unit2).sqrt()
        self.sides = [[(exact(w), exact(s) * unit) for w, s in one] for one in (first, second)]
        f, g = ([s for _, s in side] for side in self.sides)
        self.most, self.least, self.nearest = (max(f, key=float), min(g, key=float),
                                               max(g, key=float))  # fmt: skip
        self.rules, self.mass = rules, sum((w for w, _ in self.sides[0]), arb(0))
        self.total = self.mass
        self.work = rules["line"][3] - rules["line"][2] + 1 if "line" in rules else 0

    def logs(self, x):
        return [sum((w * (s * x - s * s / 2).exp() for w, s in side), acb(0)).log()
                for side in self.sides]  # fmt: skip

    def nodes(self, a, name):
        """Return weights and losses with |M(a + iv) - sum_k w_k e^{ivL_k}| <= error, v >= 0, and
        the same for the sum of |w_k e^{ivL_k}| and int |phi F|.

        Trapezoid rule on Im x = y (Trefethen & Weideman 2014, Theorem 5.1): the error is at most
        (N(0) + N(2y)) / (e^{2 pi y/h} - 1).  |phi F| on the line continues to the root of
        phi F(x + iy) times its mirror image, at most sqrt(N(0) N(2y)) on the edges.  Left out:
        k < first, where R_f grows and R_g falls; k in (last, far], summed; beyond, (ln phi F)' <=
        c - x, c = (1 + a) max f - a min g, so at most phi F(X) / (X - c) at X = h far.
        """
        y, h, first, last, far = rule = self.rules.get(name) or [0, 1, 1, 0, 0]
        a, ball, step = arb(a), arb(y), arb(h)
        if not (2 * ball * (self.most - self.least) < arb.pi() and first <= 0 <= last <= far):
            raise NoProof(f"a rule leaves the strip where it converges: {rule}")
        wide = self.nearest - self.least
        scale, weights, losses = step / (2 * arb.pi()).sqrt(), [], []
        for k in range(first, last + 1):
            x = acb(step * k, ball)
            f, g = self.logs(x)
            losses.append(f - g)
            weights.append(scale * (f + a * (f - g) - x * x / 2).exp())

        def height(k):
            f, g = self.logs(acb(step * k))
            return (f + a * (f - g)).real

        c, end = (1 + a) * self.most - a * self.least, step * far
        if not end > c:
            raise NoProof("a rule ends before its integrand falls")
        left = height(first).exp() * (-step * first / arb(2).sqrt()).erfc() / 2
        right = sum(((height(k) - (step * k) ** 2 / 2).exp() for k in range(last + 1, far + 1)),
                    arb(0)) * scale  # fmt: skip
        right += (height(far) - end**2 / 2).exp() / (end - c)
        grown = (ball**2 / 2).exp() * (ball * wide / 2).cos() ** (-a)
        outside = grown * (left + right)
        top = (2 * ball**2).exp() * (ball * wide).cos() ** (-a)
        ratio = (1 + top).max(2 * top.sqrt()) / ((2 * arb.pi() * ball / step).exp() - 1)
        if not ratio < 0.5:
            raise NoProof("a rule is too coarse")
        size = (abs(sum(weights, acb(0))) + outside) / (1 - ratio)  # M(a) is at most this
        return weights, losses, (ratio * size + outside).upper()

    def line(self, a, h, n):
        weights, losses, error = self.nodes(a, "line")
        ball = arb(0, error)
        return [one + acb(ball, ball) for one in waves(weights, losses, h, n)]

    def moment(self, b):
        weights, _, error = self.nodes(b, "alias")
        return sum(weights, acb(0)).real + arb(0, error)

    def decay(self, a, u):
        weights, losses, error = self.nodes(a, "decay")
        sizes = (abs(w * (x * acb(0, arb(u))).exp()) for w, x in zip(weights, losses, strict=True))
        return sum(sizes, arb(0)) + error


def read_rule(values):
    """Return a rule of `Mixture` from the file."""
    if not isinstance(values, list) or len(values) != 5:
        raise NoProof("a rule is [y, h, first, last, far]")
    y, h = (real(one, 0.0, 1e6, "a rule's number") for one in values[:2])
    return [y, h, *(whole(one, -20_000, 60_000, "a rule's node") for one in values[2:])]
