"""One epoch of random allocation of Gaussian noise to t steps: a sum of log-normals.

Under Q the ratio of an epoch is S / t, S = sum_i V_i, V = e^{mu x - mu^2/2}, x of N(0, 1).  With
g(K) = E (K - S)_+ and phi(s) = E e^{-sV}

    with the record: delta = (g(K) + t - K) / t, K = t e^eps;  without: (e^eps / t) g(t e^-eps),

and int_0^oo g(K) e^{-sK} dK = phi(s)^t / s^2.  By Poisson's summation, T = 2 pi / h > 0,

    (h / 2 pi) sum_j e^{sK} phi^t / s^2, s = a + ijh,  =  g(K) + sum_{k>=1} e^{-akT} g(K + kT)

if T > K, where 0 <= g(K + kT) <= K + kT.  phi is the integral of n(x) e^{-sV(x)} over Im x = -y too:
there |e^{-sV}| <= 1 for Im s >= 0, Re s > 0 while mu y <= pi/2.  Trapezoid rule: n is at most
e^{y^2/2} times its real size, on the strip of height 2y.  Moved to Im x = -D, |phi(a + iv)| <=
e^{D^2/2} phi(a cos(mu D) + v sin(mu D)), which falls with v.  Nodes beyond u add at most B / (pi u).
"""

from flint import acb, arb

from .document import NoProof
from .parts import exact, waves
from .sums import tail

FAR = 18  # P(N(0, 1) > 18) < 1e-71


def bounds(mu2, steps, backwards, entry, epsilon):
    """Return a lower and an upper bound of delta."""
    mu, t, eps = exact(mu2).sqrt(), arb(steps), arb(epsilon)
    K = t * (-eps if backwards else eps).exp()
    a, h, count = (
        entry.real("a", 0.0, 1e30),
        entry.real("h", 0.0, 1e30),
        entry.whole("nodes", 2, 2**17),
    )
    y, step, turn = (entry.real(key, 0.0, 100.0) for key in ("y", "step", "turn"))
    period, y, step, turn = 2 * arb.pi() / arb(h), arb(y), arb(step), arb(turn)
    if not (period > K and 2 * y * mu <= arb.pi() / 2 and mu * turn <= arb.pi() / 2):
        raise NoProof("a line of the allocation leaves the strip where it converges")
    far = int(FAR / float(step)) + 1
    if far * count > 4e7 or far > 20_000:
        raise NoProof("a contour of the allocation is too long")
    nodes = [acb(step * k, -y) for k in range(-far, far + 1)]
    weights = [step / (2 * arb.pi()).sqrt() * (-x * x / 2).exp() for x in nodes]
    values = [(mu * x - mu * mu / 2).exp() for x in nodes]
    error = (1 + (2 * y * y).exp()) / ((2 * arb.pi() * y / step).exp() - 1)
    error = (error + 2 * (y * y / 2).exp() * tail(arb(FAR))).upper()
    first = [w * (-arb(a) * v).exp() for w, v in zip(weights, values, strict=True)]
    line = waves(first, [-v for v in values], h, count)
    ball, total = arb(0, error), arb(0)
    for j, value in enumerate(line):
        s = acb(arb(a), arb(h) * j)
        term = ((s * K).exp() * (value + acb(ball, ball)) ** steps / s**2).real
        total += term * (2 if j else 1)
    u, angle = arb(h) * (count - 1), turn * mu
    real = arb(a) * angle.cos() + u * angle.sin()
    size = sum((w * (-real * v).exp() for w, v in zip(weights, values, strict=True)), acb(0)).real
    size = ((turn * turn / 2).exp() * (size + ball)).min(arb(1))
    beyond = (arb(a) * K).exp() * size**steps / (arb.pi() * u)
    x = (-arb(a) * period).exp()
    alias = K * x / (1 - x) + period * x / (1 - x) ** 2
    found = total * arb(h) / (2 * arb.pi())
    lower, upper = found - beyond - alias, found + beyond
    if backwards:
        return eps.exp() / t * lower, eps.exp() / t * upper
    return (lower + t - K) / t, (upper + t - K) / t
