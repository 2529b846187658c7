"""Two mixtures of shifted normals with common weights: moments of their ratio, as balls.

P = sum_j w_j N(f_j, 1) and Q = sum_j w_j N(g_j, 1) with g_j <= 0 <= f_j.  With R_f(x) and R_g(x)
their densities over that of N(0, 1),

    M(z) = E_P (P/Q)^z = int phi(x) R_f(x)^(1+z) R_g(x)^(-z) dx.

For y > 0, arg R_f(x + iy) lies in [0, y max f] and arg R_g(x + iy) in [y min g, 0] (each is a sum
of numbers in that sector), so L = ln(R_f/R_g) is analytic while y (max f - min g) < pi, and
Im L >= 0: on a line above the real axis e^{iuL} falls with u.  Everything below rests on that.
"""

from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import acb, acb_mat, arb

LEAST = arb("1e-33")  # error of a moment that is aimed at, relative to M(a)


def normal_tail(x):
    """P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def upper_sum(terms):
    return sum((one.upper() for one in terms), arb(0))


class GaussianMixtures:
    """The pair (P, Q); weights and shifts are balls, and g_j <= 0 <= f_j."""

    def __init__(self, weights, first, second):
        self.weights, self.first, self.second = [
            [arb(one) for one in values] for values in (weights, first, second)
        ]
        assert all(f >= 0 and g <= 0 for f, g in zip(self.first, self.second, strict=True))
        self.spread = max(map(float, self.first)) - min(map(float, self.second))

    @property
    def reversed(self):
        """(Q, P), mirrored at 0."""
        return GaussianMixtures(self.weights, [-g for g in self.second], [-f for f in self.first])

    def max_loss(self):
        """The supremum of L: finite where no component of P is ahead of Q's nearest."""
        if max(map(float, self.first)) > float(max(self.second, key=float)):
            return arb("inf")
        return -self.nearest[0].log()

    def log_density(self, shifts, x):
        """ln of a mixture's density over that of N(0, 1), at a complex ball above the axis."""
        return sum(
            (w * (s * x - s * s / 2).exp() for w, s in zip(self.weights, shifts, strict=True)),
            acb(0),
        ).log()

    def logarithms(self, x):
        return self.log_density(self.first, x), self.log_density(self.second, x)

    # ------------------------------------------------------------------ bounds by covering
    def reach(self, a, y=0.0):
        """Where the bound by convexity alone is below e^-120 of the moment."""
        w0 = min(float(one) for one in self.weights if one > 0)
        lost = a * -np.log(w0) + float(y) ** 2 / 2 + a * 2.0 + 120
        spread = np.sqrt(2 * lost)
        _, nearest = self.nearest
        return -spread, (1 + a) * max(map(float, self.first)) - a * float(nearest) + spread

    @cached_property
    def nearest(self):
        """The greatest shift of Q, and its whole weight."""
        nearest = max(self.second, key=float)
        return sum((w for w, g in zip(self.weights, self.second, strict=True) if g == nearest),
                   arb(0)), nearest  # fmt: skip

    def beyond(self, a, y, low, high):
        """Upper bound of the integral of |integrand| outside [low, high] on the line Im x = y.

        R_f^(1+a) <= sum_j w_j of the same of each component (the power is convex), and
        R_g >= w e^{gx - g^2/2} for the greatest g and its weight w.
        |R_g(x + iy)| >= R_g(x) cos(y |min g| / 2): its terms lie in a sector of that angle.
        """
        a, (weight, g) = arb(a), self.nearest
        least = min(self.second, key=float)
        grown = (y * y / 2).exp() * (weight * (y * least / 2).cos()) ** (-a)
        terms = []
        for w, f in zip(self.weights, self.first, strict=True):
            c = (1 + a) * f - a * g
            size = ((c * c - (1 + a) * f * f + a * g * g) / 2).exp()
            terms.append(w * size * (normal_tail(arb(high) - c) + normal_tail(c - arb(low))))
        return upper_sum(terms) * grown.upper()

    def cover(self, a, y, u, low, high, width=0.1):
        """Upper bound of int_low^high |integrand(x + iy)| dx at any z = a + iv with v >= u.

        The sum over cells of their width times the greatest value on them.
        """
        ends = self._cells(float(a), float(y), float(u), low, high, width)
        a, y, u, total = arb(a), arb(y), arb(u), arb(0)
        for left, right in pairwise(ends):
            x = arb(left).union(arb(right))
            f, g = self.logarithms(acb(x, y))
            height = (1 + a) * f.real - a * g.real - u * (f.imag - g.imag) + (y * y - x * x) / 2
            total += (height.exp() * (arb(right) - arb(left))).upper()
        return total / (2 * arb.pi()).sqrt()

    def line_bound(self, a, y, u, width=0.1):
        """Upper bound of |M(a + iv)| for every v >= u >= 0: moved to the line Im x = y."""
        low, high = self.reach(a, y)
        found = self.cover(a, y, u, low, high, width)
        return (found + self.beyond(a, arb(y), low, high)).upper()

    def moment(self, b):
        """A ball of M(b): its n-th power must stay sharp."""
        weights, _, error = self.nodes(b)
        return sum((w.real for w in weights), arb(0)) + arb(0, error)

    # ------------------------------------------------------------------ values by trapezoid
    def plan_line(self, a):
        """Height d of the line of nodes, their distance, and the bound of the rule's error.

        With f analytic between Im x = 0 and 2d, the trapezoid on Im x = d errs by at most
        (N(0) + N(2d)) / (e^{2 pi d / h} - 1), N(y) the integral of |f(x + iy)|; both only fall
        with Im z.
        """
        d = min(1.45 / self.spread, 3.0)
        bottom = self.line_bound(a, 0, 0)
        while True:
            top = self.line_bound(a, 2 * d, 0)
            if float((top / bottom).log()) < 60 or d < 1e-3:
                break
            d /= 2
        wanted = ((bottom + top) / (bottom * LEAST)).log()
        h = float(2 * np.pi * d / float(wanted))
        error = (bottom + top) / ((2 * arb.pi() * arb(d) / arb(h)).exp() - 1)
        return d, h, error.upper()

    def nodes(self, a):
        """Complex nodes and weights such that M(a + iv) = sum_k w_k e^{iv L_k} +- error."""
        d, h, error = self.plan_line(a)
        low, high = self._float_range(a, d)
        first, last = int(np.floor(low / h)), int(np.ceil(high / h))
        low, high = first * h, last * h
        far_low, far_high = self.reach(a, arb(d))
        # what the sum leaves out: a cell of width w holds at most w/h + 1 nodes
        left_out = self.beyond(a, arb(d), min(low, far_low) + h, max(high, far_high) - h)
        for one, other in ((far_low, low), (high, far_high)):
            if one < other:
                left_out += self.cover(a, d, 0, one, other)
        error += left_out * (1 + arb(h) / (min(0.1, 0.4 / self.spread) / 2))
        points, weights, losses = range(first, last + 1), [], []
        scale = arb(h) / (2 * arb.pi()).sqrt()
        for k in points:
            x = acb(arb(h) * k, arb(d))
            f, g = self.logarithms(x)
            losses.append(f - g)
            weights.append(scale * (f + arb(a) * (f - g) - x * x / 2).exp())
        return weights, losses, error.upper()

    def line(self, a, h, count):
        """Balls of M(a + ijh) for j < count, by one matrix product (j = j1 + m j2)."""
        weights, losses, error = self.nodes(a)
        m = int(np.ceil(np.sqrt(count)))
        turns = [loss * acb(0, h) for loss in losses]
        small = acb_mat(m, len(turns), [(t * j).exp() for j in range(m) for t in turns])
        both = list(zip(turns, weights, strict=True))
        large = acb_mat(len(both), m, [w * (t * (m * j)).exp() for t, w in both for j in range(m)])
        found, ball = (small * large).tolist(), arb(0, error)
        return [found[j % m][j // m] + acb(ball, ball) for j in range(count)]

    def size(self, a, count):
        """Multiplications that `line` would take, about."""
        d = min(1.45 / self.spread, 3.0)
        low, high = self._float_range(a, d)
        return (high - low) * 90 / (2 * np.pi * d) * count

    def tail_bound(self, a, u):
        """Upper bound of |M(a + iv)| for every v >= u, on the line that a float search chose."""
        heights = self._heights
        best = heights[int(np.argmin([self.float_line(a, y, u) for y in heights]))]
        return self.line_bound(a, best, u, 0.02)

    # ------------------------------------------------------------------ floats that only choose
    @cached_property
    def _floats(self):
        return [np.array([float(one) for one in v])
                for v in (self.weights, self.first, self.second)]  # fmt: skip

    @cached_property
    def _heights(self):
        return np.minimum(2.9 / self.spread, 6.0) / 2.0 ** np.arange(0, 12, 0.5)

    def _float_logs(self, x):
        w, first, second = self._floats
        found = []
        for shifts in (first, second):
            each = np.log(w) + shifts * x[..., None] - shifts**2 / 2
            top = each.real.max(axis=-1)
            found.append(top + np.log(np.exp(each - top[..., None]).sum(axis=-1)))
        return found

    def float_line(self, a, y, u):
        """ln of int |integrand(x + iy)| at a + iu, about."""
        x = np.linspace(*self.reach(a), 1500)
        f, g = self._float_logs(x + 1j * y)
        height = (1 + a) * f.real - a * g.real - u * (f.imag - g.imag) + (y * y - x * x) / 2
        top = height.max()
        return top + np.log(np.exp(height - top).sum() * (x[1] - x[0]) / np.sqrt(2 * np.pi))

    def float_tail(self, a, u):
        return min(self.float_line(a, y, u) for y in self._heights)

    def _cells(self, a, y, u, low, high, width):
        """Ends of cells, wide where the integrand is far below its greatest value."""
        widest = 0.4 / self.spread
        x = np.linspace(low, high, 2000)
        f, g = self._float_logs(x + 1j * y)
        height = (1 + a) * f.real - a * g.real - u * (f.imag - g.imag) - x * x / 2
        # the exponent changes by at most this a unit of x
        slope = np.abs(x) + (1 + a + u) * self.spread + 1
        wide = np.maximum(min(width, widest), 0.2 * (height.max() - height - 80) / slope)
        wide = np.minimum(wide, widest)
        wide = np.minimum(np.minimum(wide, np.roll(wide, 1)), np.roll(wide, -1))
        ends = [float(low)]
        while ends[-1] < high:
            k = int((ends[-1] - low) / max(high - low, 1e-300) * 1999)
            ends.append(ends[-1] + float(wide[k]))  # beyond the end too: no cell is narrower
        return ends

    def _float_range(self, a, y):
        x = np.linspace(*self.reach(a), 4000)
        f, g = self._float_logs(x + 0j)
        height = (1 + a) * f.real - a * g.real - x * x / 2
        kept = x[height > height.max() - 82 - y * y / 2]
        return float(kept[0]), float(kept[-1])


def sampled_gaussian(mu, rate):
    """A record in the sample with probability rate moves the mean by mu; else nothing."""
    q = arb(rate)
    if rate == 1:
        return GaussianMixtures([1], [arb(mu)], [0])
    return GaussianMixtures([1 - q, q], [0, arb(mu)], [0, 0])


def replaced_sampled_gaussian(mu, rate):
    """The same where one record replaces another on the opposite side."""
    q = arb(rate)
    return GaussianMixtures([1 - q, q], [0, arb(mu)], [0, -arb(mu)])


def sampled_group(mu, rate, size):
    """A group of records of which Bin(size, rate) are in the sample, each moving the mean by mu."""
    q = arb(rate)
    hits = [arb.bin_uiui(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]
    return GaussianMixtures(hits, [arb(mu) * j for j in range(size + 1)], [0] * (size + 1))


def truncated_poisson(mu, rate, records, batch):
    """A Poisson sample cut to a batch: weights and pairs if it is seen that others fill the batch,
    and the rate at which the record is kept.

    J ~ Bin(records - 1, rate) others are sampled.  If J < batch the record is in with probability
    rate; else it is kept with rate batch / (J + 1), in the place of another.
    """
    q, others = arb(rate), records - 1
    law = [arb.bin_uiui(others, j) * q**j * (1 - q) ** (others - j) for j in range(records)]
    fits, full = (sum(part, arb(0)) for part in (law[:batch], law[batch:]))
    kept = sum((law[j] * q * batch / (j + 1) for j in range(batch, records)), arb(0))
    pairs = [sampled_gaussian(mu, q), replaced_sampled_gaussian(mu, kept / full)]
    return [fits, full], pairs, q * fits + kept


def mixture_of_gaussians(scale, shifts, weights):
    """The mean moves by a random shift, one of some with given weights."""
    return GaussianMixtures(weights, [arb(s) / arb(scale) for s in shifts], [0] * len(shifts))
