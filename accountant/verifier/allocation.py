# fmt: off
"""One epoch of random allocation of Gaussian noise to t steps: a sum of log-normals.

Under Q the ratio of an epoch is S / t, S = sum_i V_i, V = e^{mu x - mu^2/2}, x of N(0, 1).  With
g(K) = E (K - S)_+ and phi(s) = E e^{-sV}, delta is, with the record and without it,

    (g(K) + t - K) / t, K = t e^eps;    (e^eps / t) g(K), K = t e^-eps;

and int_0^oo g(K) e^{-sK} dK = phi(s)^t / s^2.  By Poisson's summation, T = 2 pi / h > K,

    (h / 2 pi) sum_j e^{sK} phi(s)^t / s^2, s = a + ijh,  =  g(K) + sum_{k>=1} e^{-akT} g(K + kT),

0 <= g(K + kT) <= K + kT.  phi is also the integral of n(x) e^{-sV(x)} over Im x = -y: |e^{-sV}| <= 1
for Im s >= 0 < Re s while 0 <= mu y <= pi/2.  Trapezoid rule as in `parts`: N(2y) <= e^{2y^2}.  On
Im x = -D, |phi(a + iv)| <= e^{D^2/2} phi(a cos(mu D) + v sin(mu D)), which falls with v.
"""

from typing import Any

from flint import acb, arb

from .document import Fields, need
from .parts import abscissas, exact, waves
from .sums import tail

FAR = 18  # P(N(0, 1) > 18) < 1e-71

def bounds(release: Any, back: bool, entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return a lower and an upper bound of delta."""
    mu, t, grown = exact(release[1]).sqrt(), release[2], arb(epsilon).exp()
    K, a, h = t / grown if back else t * grown, entry.real("a", 0, 1e30), entry.real("h", 0, 1e30)
    y, step, D = (arb(entry.real(key, 1e-3, 99.0)) for key in ("y", "step", "turn"))
    count, far, T = entry.whole("nodes", 2, 2**17), int(FAR / float(step)) + 1, 2 * arb.pi() / h
    right = K < T and 2 * y * mu <= arb.pi() / 2 and mu * D <= arb.pi() / 2 and a > 0
    need(right and far <= 20_000, "a line of the allocation where nothing converges")
    points = [acb(step * k, -y) for k in range(-far, far + 1)]
    weights = [step / (2 * arb.pi()).sqrt() * (-x * x / 2).exp() for x in points]
    losses = [-(mu * x - mu**2 / 2).exp() for x in points]
    error = (1 + (2 * y * y).exp()) / ((2 * arb.pi() * y / step).exp() - 1)
    ball = arb(0, (error + 2 * (y * y / 2).exp() * tail(arb(FAR))).upper())
    still = [w * (a * v).exp() for w, v in zip(weights, losses, strict=True)]
    found, u = arb(0), arb(h) * (count - 1)
    for s, value in zip(abscissas(a, h, count), waves(still, losses, h, count), strict=True):
        term = ((s * K).exp() * (value + acb(ball, ball)) ** t / s**2).real
        found += term if s.imag == 0 else 2 * term
    real = a * (mu * D).cos() + u * (mu * D).sin()
    terms = (w * (real * v).exp() for w, v in zip(weights, losses, strict=True))
    size = ((D * D / 2).exp() * (sum(terms, acb(0)).real + ball)).min(arb(1))
    beyond, x = (a * K).exp() * size**t / (arb.pi() * u), (-a * T).exp()
    alias = K * x / (1 - x) + T * x / (1 - x) ** 2
    ends = [found * h / (2 * arb.pi()) + one for one in (-beyond - alias, beyond)]
    lower, upper = (grown / t * g if back else (g + t - K) / t for g in ends)
    return lower, upper
