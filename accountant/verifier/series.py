"""Integrals of M on a line of the complex plane, by trapezoid sums."""

from math import prod
from typing import Any

from flint import acb, arb

from . import parts
from .plan import Fields, need


def contour(factors: list[Any], entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return a lower and an upper bound of what the finite losses add to delta."""
    # g(t) = E_P (1 - e^{t-L})_+; int g(t) e^{zt} dt = M(z) / (z (z + 1)), Re z = a > 0 (Fubini).
    # Poisson's summation, F(z) = M(z) e^{-z eps} / (z (z + 1)), T = 2 pi/h,
    #     (h / 2 pi) sum_j F(a + ijh) = sum_k e^{akT} g(eps + kT)  >=  g(eps) = delta(eps).
    # Below: aliases k < 0 add at most (mass of P) / (e^{aT} - 1); those k > 0, for any b > a, at
    # most sum_k e^{akT} C e^{-b (eps + kT)}, C = M(b) b^b / (b + 1)^(b + 1), the greatest M(b)
    # (1 - e^{-y}) e^{-by} (so delta <= C e^{-b eps}).  Truncation: |z (z + 1)| >= u^2, so nodes
    # |j| > J add at most B / (pi U), U = Jh, B >= |M(a + iv) e^{-z eps}|, v >= U.  Smoothing by a
    # further N(mu, 1), mu^2 = S: D_S >= delta, and M decays.  d D_s / ds = p_s / 2, p_s the density
    # of the loss at eps, p_s <= e^{(S-s)/8} sqrt(S/s) p_S for s <= S: D_S - delta <= e^{S/8} S p_S,
    # the sum without 1 / (z (z + 1)).  D_S and S p_S together are truncated by B / (pi U): Mills.
    a, b, h = (entry.real(key, low, 1e12) for key, low in (("a", 1e-9), ("b", 0), ("h", 1e-12)))
    count, smoothing = entry.whole("nodes", 1, 2**20), entry.real("smooth", 0, 1)
    parts.spend(20 * count * len(factors))
    step, eps, factors = arb(h), arb(epsilon), [*factors, (parts.gaussian(arb(smoothing)), 1)]
    def chernoff(b: float) -> arb:
        leading = (-b * eps).exp() * (arb(b) / (arb(b) + 1)) ** b / (arb(b) + 1)
        return prod((factor.line(b, 0, 1, "alias")[0].real ** times for factor, times in factors),
                    start=leading)
    if count == 1:
        return arb(0), chernoff(a)
    z, cutoff, line = parts.abscissas(a, h, count), step * (count - 1), [acb(1)] * count
    truncation, mass = (-a * eps).exp() / (arb.pi() * cutoff), arb(1)
    for factor, times in factors:
        line = [x * y**times for x, y in zip(line, factor.line(a, h, count), strict=True)]
        truncation, mass = truncation * factor.decay(a, cutoff) ** times, mass * factor.mass**times
    def total(power: int) -> arb:
        nodes = zip(line, z, strict=True)
        terms = [(x * (-s * eps).exp() / (s * (s + 1)) ** power).real for x, s in nodes]
        return (2 * sum(terms, arb(0)) - terms[0]) * step / (2 * arb.pi())
    trapezoid = total(1)
    if not b > a:
        return arb(0), trapezoid + truncation
    period, alias_bound = 2 * arb.pi() / step, chernoff(b)
    alias_ratio = ((a - arb(b)) * period).exp()
    aliases = mass / ((a * period).exp() - 1) + alias_bound * alias_ratio / (1 - alias_ratio)
    smoothed = (smoothing * total(0) if smoothing else 0) + truncation
    lower = trapezoid - aliases - (arb(smoothing) / 8).exp() * smoothed
    return lower, trapezoid + truncation
def allocated(mu2: arb, t: int, entry: Fields, at: Any = None) -> Any:
    """Return g(K) of an epoch of t steps, a sum of log-normals; or its `tails` for K of a rule."""
    # Under Q an epoch's ratio is S / t, S = sum_i V_i, V = e^{mu x - mu^2/2}, x of N(0, 1).  With
    # g(K) = E (K - S)_+ and phi(s) = E e^{-sV}, delta is, with the record and without it,
    #     (g(K) + t - K) / t, K = t e^eps;    (e^eps / t) g(K), K = t e^-eps;
    # and int_0^oo g(K) e^{-sK} dK = phi(s)^t / s^2.  By Poisson's summation, if T = 2 pi / h > K,
    #    (h / 2 pi) sum_j e^{sK} phi(s)^t / s^2 = g(K) + sum_{k>=1} e^{-akT} g(K + kT), s = a + ijh,
    # 0 <= g(K + kT) <= K + kT; so for G(K) = P(S < K) <= 1, with s for s^2.  phi is also int n(x)
    # e^{-sV(x)} dx over Im x = -y: |e^{-sV}| <= 1 for Im s >= 0 < Re s while 0 <= mu y <= pi/2.
    # Trapezoid rule as of mixtures, N(2y) <= e^{2y^2}.  At Im x = -D, |phi(a + iv)| <= e^{D^2/2}
    # phi(a cos mu D + v sin mu D) =: size, falls in v; and phi(r) <= E 1/(rV) = e^{mu^2} / r.
    mu, a, h = mu2.sqrt(), entry.real("a", 0, 1e30), entry.real("h", 0, 1e30)
    y, step, d = (arb(entry.real(key, 1e-3, 99.0)) for key in ("y", "step", "turn"))
    count, period = entry.whole("nodes", 2, 2**17), 2 * arb.pi() / h
    reach = int(18 / float(step) + 2)
    k, length = [at], count
    if at is None:  # K_i = first + i T / length, all at once by a Fourier transform
        length, least_k = entry.whole("length", count, 2**18), entry.real("first", 1e-9, 1e12)
        k = [least_k + period * i / length for i in range(entry.whole("count", 1, 2**17))]
    entry.done()
    parts.spend(60 * reach)
    top_k = k[-1]
    converges = top_k < period and 2 * y * mu <= arb.pi() / 2 and mu * d <= arb.pi() / 2 and a > 0
    need(converges and t > 1, "a line of the allocation where nothing converges")
    need(at is not None or length & (length - 1) == 0, "a transform that is slow")
    points = [acb(step * i, -y) for i in range(-reach, reach + 1)]
    weights = [step / (2 * arb.pi()).sqrt() * (-x * x / 2).exp() for x in points]
    losses = [-(mu * x - mu**2 / 2).exp() for x in points]
    error = (1 + (2 * y * y).exp()) / ((2 * arb.pi() * y / step).exp() - 1)
    ball = arb(0, (error + 2 * (y * y / 2).exp() * parts.tail(arb(18))).upper())
    tilted = [w * (a * v).exp() for w, v in zip(weights, losses, strict=True)]
    phi = parts.waves(tilted, losses, h, count)
    s, u = parts.abscissas(a, h, count), arb(h) * (count - 1)
    integrands = [(z * k[0]).exp() * (x + acb(ball, ball)) ** t / z
                  for z, x in zip(s, phi, strict=True)]
    integrands[0] /= 2
    real = a * (mu * d).cos() + u * (mu * d).sin()
    size = sum((w * (real * v).exp() for w, v in zip(weights, losses, strict=True)), acb(0)).real
    size = ((d * d / 2).exp() * (size + ball)).min(arb(1))
    top, x = (a * top_k).exp() * size ** (t - 1) / (arb.pi() * u), (-a * period).exp()
    def inverted(values: list[Any], beyond: arb, alias: arb) -> list[arb]:  # g, or G
        sums = [sum(values, acb(0))]
        if len(k) > 1:
            parts.spend(4 * length)
            values = acb.dft([*values, *[acb(0)] * (length - count)], inverse=True)
            sums = [x * length * (a * (c - k[0])).exp() for c, x in zip(k, values, strict=False)]
        return [x.real * h / arb.pi() + (-beyond - alias).union(beyond) for x in sums]
    g = inverted([x / z for x, z in zip(integrands, s, strict=True)], top * size,
                 top_k * x / (1 - x) + period * x / (1 - x) ** 2)
    if at is not None:
        return g[0]
    cdf = inverted(integrands, top * (d * d / 2 + mu2).exp() / (mu * d).sin(), x / (1 - x))
    return [((v + t - c * w) / t, 1 - w, (c / t).log()) for c, v, w in zip(k, g, cdf, strict=True)]
