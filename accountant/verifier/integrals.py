# fmt: off
"""delta by integrals, each taken as a sum with every error bounded."""

from typing import Any

from flint import acb, arb

from .parts import abscissas, exact, gaussian, spend, tail, waves
from .plan import Fields, need


def contour(parts: list[Any], entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return a lower and an upper bound of what the finite losses add to delta.

    g(t) = E_P (1 - e^{t-L})_+ for real t.  For a > 0, int g(t) e^{zt} dt = M(z) / (z (z + 1)) on
    Re z = a (Fubini).  By Poisson's summation, F(z) = M(z) e^{-z eps} / (z (z + 1)), T = 2 pi/h,

        (h / 2 pi) sum_j F(a + ijh) = sum_k e^{akT} g(eps + kT)  >=  g(eps) = delta(eps).

    Below: aliases k < 0 add at most (mass of P) / (e^{aT} - 1), as g <= mass; those k > 0, for any
    b > a, at most sum_k e^{akT} C e^{-b (eps + kT)}, C = M(b) b^b / (b + 1)^(b + 1), the greatest
    M(b) (1 - e^{-y}) e^{-by} (so delta <= C e^{-b eps}).  Truncation: |z (z + 1)| >= u^2, so nodes
    |j| > J add at most B / (pi U), U = Jh, where B >= |M(a + iv) e^{-z eps}| for v >= U.

    Smoothing by a further N(mu, 1), mu^2 = S: delta does not fall, D_S >= delta, and M decays.
    d D_s / ds = p_s / 2, p_s the density of the loss at eps, and p_s <= e^{(S-s)/8} sqrt(S/s) p_S
    for s <= S (two normal densities): D_S - delta <= e^{S/8} S p_S.  p_S is at most the same sum
    without 1 / (z (z + 1)), truncated by B / (pi S U): int_U^oo e^{-Su^2/2} du <= e^{-SU^2/2}/(SU).
    """
    a, b, h = (entry.real(key, low, 1e12) for key, low in (("a", 1e-9), ("b", 0), ("h", 1e-12)))
    count, more = entry.whole("nodes", 1, 2**20), entry.real("smooth", 0, 1)
    spend(20 * count * len(parts))
    step, eps, parts = arb(h), arb(epsilon), [*parts, (gaussian(arb(more)), 1)]
    def chernoff(b: float) -> arb:
        found = (-b * eps).exp() * (arb(b) / (b + 1)) ** b / (b + 1)
        for part, times in parts:
            found *= part.moment(b) ** times
        return found
    if count == 1:
        return arb(0), chernoff(a)
    z, u, line = abscissas(a, h, count), step * (count - 1), [acb(1)] * count
    missed, mass = (-a * eps).exp() / (arb.pi() * u), arb(1)
    for part, times in parts:
        line = [x * y**times for x, y in zip(line, part.line(a, h, count), strict=True)]
        missed, mass = missed * part.decay(a, u) ** times, mass * part.mass**times
    def total(power: int) -> arb:
        each = zip(line, z, strict=True)
        terms = [(x * (-s * eps).exp() / (s * (s + 1)) ** power).real for x, s in each]
        return (2 * sum(terms, arb(0)) - terms[0]) * step / (2 * arb.pi())
    found = total(1)
    if not b > a:
        return arb(0), found + missed
    period, beyond = 2 * arb.pi() / step, chernoff(b)
    falls = ((a - arb(b)) * period).exp()
    lower = found - missed - mass / ((a * period).exp() - 1) - beyond * falls / (1 - falls)
    if more:
        lower -= (arb(more) / 8).exp() * more * (total(0) + missed / more)
    return lower, found + missed

def allocation(release: Any, back: bool, entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return bounds of delta of an epoch of t steps with Gaussian noise, a sum of log-normals.

    Under Q an epoch's ratio is S / t, S = sum_i V_i, V = e^{mu x - mu^2/2}, x of N(0, 1).  With
    g(K) = E (K - S)_+ and phi(s) = E e^{-sV}, delta is, with the record and without it,

        (g(K) + t - K) / t, K = t e^eps;    (e^eps / t) g(K), K = t e^-eps;

    and int_0^oo g(K) e^{-sK} dK = phi(s)^t / s^2.  By Poisson's summation, if T = 2 pi / h > K,

        (h / 2 pi) sum_j e^{sK} phi(s)^t / s^2, s = a + ijh, = g(K) + sum_{k>=1} e^{-akT} g(K + kT),

    0 <= g(K + kT) <= K + kT.  phi is also int n(x) e^{-sV(x)} dx over Im x = -y: |e^{-sV}| <= 1 for
    Im s >= 0 < Re s while 0 <= mu y <= pi/2.  Trapezoid rule as of mixtures, N(2y) <= e^{2y^2}.  On
    Im x = -D, |phi(a + iv)| <= e^{D^2/2} phi(a cos(mu D) + v sin(mu D)), which falls with v.
    """
    mu, t, grown = exact(release[1]).sqrt(), release[2], arb(epsilon).exp()
    k, a, h = t / grown if back else t * grown, entry.real("a", 0, 1e30), entry.real("h", 0, 1e30)
    y, step, d = (arb(entry.real(key, 1e-3, 99.0)) for key in ("y", "step", "turn"))
    count, period, far = entry.whole("nodes", 2, 2**17), 2 * arb.pi() / h, int(18 / float(step) + 1)
    right = k < period and 2 * y * mu <= arb.pi() / 2 and mu * d <= arb.pi() / 2 and a > 0
    need(right, "a line of the allocation where nothing converges")
    points = [acb(step * i, -y) for i in range(-far, far + 1)]
    weights = [step / (2 * arb.pi()).sqrt() * (-x * x / 2).exp() for x in points]
    losses = [-(mu * x - mu**2 / 2).exp() for x in points]
    error = (1 + (2 * y * y).exp()) / ((2 * arb.pi() * y / step).exp() - 1)
    ball = arb(0, (error + 2 * (y * y / 2).exp() * tail(arb(18))).upper())
    still = [w * (a * v).exp() for w, v in zip(weights, losses, strict=True)]
    found, u = arb(0), arb(h) * (count - 1)
    for s, value in zip(abscissas(a, h, count), waves(still, losses, h, count), strict=True):
        term = ((s * k).exp() * (value + acb(ball, ball)) ** t / s**2).real
        found += term if s.imag == 0 else 2 * term
    real = a * (mu * d).cos() + u * (mu * d).sin()
    terms = (w * (real * v).exp() for w, v in zip(weights, losses, strict=True))
    size = ((d * d / 2).exp() * (sum(terms, acb(0)).real + ball)).min(arb(1))
    beyond, x = (a * k).exp() * size**t / (arb.pi() * u), (-a * period).exp()
    alias, found = k * x / (1 - x) + period * x / (1 - x) ** 2, found * h / (2 * arb.pi())
    ends = (found - beyond - alias, found + beyond)
    lower, upper = (grown / t * g if back else (g + t - k) / t for g in ends)
    return lower, upper
