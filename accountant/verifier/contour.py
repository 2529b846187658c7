"""delta of many releases by one integral, as a sum with every error bounded.

g(t) = E_P (1 - e^{t-L})_+ for real t.  For a > 0, int g(t) e^{zt} dt = M(z) / (z (z + 1)), Re z =
a (Fubini), so with F(z) = M(z) e^{-z eps} / (z (z + 1)), T = 2 pi / h, by Poisson's summation

    (h / 2 pi) sum_j F(a + ijh) = sum_k e^{akT} g(eps + kT)  >=  g(eps) = delta(eps).

Above: every alias (k != 0) is at least 0.  Below: those with k < 0 add at most the geometric series
of P / (e^{aT} - 1), as g <= P; those with k > 0, for any b > a, sum_k e^{akT} C e^{-b (eps + kT)} with
C = M(b) b^b / (b + 1)^(b + 1), the greatest value of (1 - e^{-y}) e^{-by} being that factor.
Truncation: |z (z + 1)| >= u^2, so nodes |j| > J add at most B(U) / (pi U), U = Jh, where |M(a + iv)|
e^{-a eps} <= B(U) for v >= U.

Smoothing: a further N(mu, 1) of mu^2 = S makes delta no smaller, D_S >= delta, and makes M decay.
The derivative of D_s by s is p_s / 2, p_s the density of the loss at eps, and p_s <= e^{(S-s)/8}
sqrt(S/s) p_S for s <= S (compare the normal densities): D_S - delta <= e^{S/8} S p_S(eps), where
p_S <= (h / 2 pi) sum_j z (z + 1) F (its aliases are not negative), truncated beyond U by at most
e^{-a eps} B / (pi S U), as int_U^oo e^{-S u^2/2} du <= e^{-S U^2/2} / (S U).
"""

from flint import acb, arb

from .document import NoProof
from .parts import Gaussian


def bounds(parts, entry, epsilon):
    """Return a lower and an upper bound of delta over the finite losses."""
    a, h, smooth = entry.real("a", 0.0, 1e9), entry.real("h", 0.0, 1e9), entry.real("smooth", -1, 1)
    count = entry.whole("nodes", 2, 2**19)
    b = entry.real("b", a, 1e9) if entry.left.get("b") else entry.take("b", None)
    work = sum(getattr(one, "work", 4) for one, _ in parts) * count
    if work > MAX_WORK or (smooth and smooth < 0):
        raise NoProof(f"a contour of {count} nodes is too long")
    z, eps, step = [acb(arb(a), arb(h) * j) for j in range(count)], arb(epsilon), arb(h)
    product, beyond, u = None, (-arb(a) * eps).exp(), step * (count - 1)
    for part, times in parts:
        line = [one**times for one in part.line(a, h, count)]
        product = line if product is None else [x * y for x, y in zip(product, line, strict=True)]
        beyond *= part.decay(a, u) ** times
    if smooth:
        extra = Gaussian(arb(smooth))
        product = [x * y for x, y in zip(product, extra.line(a, h, count), strict=True)]
        beyond *= extra.decay(a, u)

    def total(power):
        terms = [(x * (-s * eps).exp() / (s * (s + 1)) ** power).real
                 for x, s in zip(product, z, strict=True)]  # fmt: skip
        return (terms[0] + 2 * sum(terms[1:], arb(0))) * step / (2 * arb.pi())

    tail = beyond / (arb.pi() * u)
    found = total(1)
    upper = found + tail
    if b is None:
        return arb(0), upper
    period = 2 * arb.pi() / step
    size, mass = arb(1), arb(1)
    for part, times in parts:
        size, mass = size * part.moment(b) ** times, mass * part.mass**times
    ball = arb(b)
    size *= Gaussian(arb(smooth)).moment(b) * (ball / (ball + 1)) ** ball / (ball + 1)
    falls = (-(ball - arb(a)) * period).exp()
    alias = mass / ((arb(a) * period).exp() - 1) + size * (-ball * eps).exp() * falls / (1 - falls)
    lower = found - tail - alias
    if smooth:
        s = arb(smooth)
        lower -= (s / 8).exp() * s * (total(0) + tail / s)
    return lower, upper


MAX_WORK = 6e7
