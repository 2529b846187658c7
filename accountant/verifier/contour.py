# fmt: off
"""delta of many releases by an integral, taken as a sum with every error bounded.

g(t) = E_P (1 - e^{t-L})_+ for real t.  For a > 0, int g(t) e^{zt} dt = M(z) / (z (z + 1)) on Re z =
a (Fubini).  With F(z) = M(z) e^{-z eps} / (z (z + 1)) and T = 2 pi/h, Poisson's summation says

    (h / 2 pi) sum_j F(a + ijh) = sum_k e^{akT} g(eps + kT)  >=  g(eps) = delta(eps).

Below: aliases k < 0 add at most (mass of P) / (e^{aT} - 1), as g <= mass; those k > 0, for any b > a,
at most sum_k e^{akT} C e^{-b (eps + kT)}, C = M(b) b^b / (b + 1)^(b + 1), for (1 - e^{-y}) e^{-by}
<= C / M(b).  Truncation: |z (z + 1)| >= u^2, so nodes |j| > J add at most B / (pi U), U = Jh, where
B >= |M(a + iv) e^{-z eps}| for v >= U.

Smoothing by a further N(mu, 1), mu^2 = S: delta does not fall, D_S >= delta, and M decays.  d D_s /
ds = p_s / 2, p_s the density of the loss at eps, and p_s <= e^{(S-s)/8} sqrt(S/s) p_S for s <= S
(two normal densities): D_S - delta <= e^{S/8} S p_S.  p_S is at most the same sum without 1/(z (z +
1)), truncated by at most B / (pi S U), as int_U^oo e^{-S u^2/2} du <= e^{-S U^2/2} / (S U).
"""

from typing import Any

from flint import acb, arb

from .document import Fields, need
from .parts import abscissas, gaussian


def bounds(parts: list[Any], entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return a lower and an upper bound of what the finite losses add to delta."""
    a, h, S = entry.real("a", 1e-9, 1e9), entry.real("h", 1e-12, 1e12), entry.real("smooth", 0, 1)
    count, b = entry.whole("nodes", 2, 2**19), entry.real("b", 0.0, 1e9)
    need(count * sum(part.work for part, _ in parts) < 6e7, f"{count} nodes are too many")
    step, eps, parts = arb(h), arb(epsilon), [*parts, (gaussian(arb(S)), 1)]
    z, u, line = abscissas(a, h, count), step * (count - 1), [acb(1)] * count
    tail, mass = (-a * eps).exp() / (arb.pi() * u), arb(1)
    for part, times in parts:
        line = [x * y**times for x, y in zip(line, part.line(a, h, count), strict=True)]
        tail, mass = tail * part.decay(a, u) ** times, mass * part.mass**times

    def total(power: int) -> arb:
        both = zip(line, z, strict=True)
        terms = [(x * (-s * eps).exp() / (s * (s + 1)) ** power).real for x, s in both]
        return (2 * sum(terms, arb(0)) - terms[0]) * step / (2 * arb.pi())

    found = total(1)
    if not b > a:
        return arb(0), found + tail
    period, beyond = 2 * arb.pi() / step, (-b * eps).exp() * (arb(b) / (b + 1)) ** b / (b + 1)
    for part, times in parts:
        beyond *= part.moment(b) ** times
    falls = ((a - arb(b)) * period).exp()
    lower = found - tail - mass / ((a * period).exp() - 1) - beyond * falls / (1 - falls)
    if S:
        lower -= (arb(S) / 8).exp() * S * (total(0) + tail / S)
    return lower, found + tail
