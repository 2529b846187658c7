# fmt: off
"""delta of finitely many outcomes, by listing them, and of one release by its closed form."""

from typing import Any

from flint import acb, arb, arb_poly

from .document import need
from .parts import balls, exact, logs

LATTICE = {"response", "discrete laplace", "discrete gaussian"}  # losses an equal step apart
MOST = 300_000

def outcomes(release: Any, back: bool) -> tuple[list[Any], arb]:
    """Return (p, q) of each outcome, and a ball of the mass of P, listed or not."""
    kind, *given = release
    missed = arb(0)
    if kind == "sampled":
        law, r = [(arb(1), arb(1))], exact(given[0])
        for one in given[1]:
            law = [(a * p, b * q) for a, b in law for p, q in outcomes(one, back=False)[0]]
            need(len(law) <= MOST // 10, "too many outcomes")
        law = [((1 - r) * q + r * p, q) for p, q in law]
    elif kind == "response":
        d, e = exact(given[1]), exact(given[0]).exp()
        low, high = (1 - d) / (1 + e), (1 - d) * e / (1 + e)
        law = [(low, high), (high, low), *([(arb(0), d), (d, arb(0))] if given[1] else [])]
    elif kind == "discrete laplace":  # all k <= 0 have one ratio, all k >= shift the other
        r, n = (-1 / exact(given[0])).exp(), given[1]
        q = [1 / (1 + r), *((1 - r) / (1 + r) * r**k for k in range(1, n)), r**n / (1 + r)]
        law = list(zip(reversed(q), q, strict=True))
    elif kind == "discrete gaussian":  # 40 deviations; what is beyond, a geometric series bounds
        s, n, far = exact(given[0]), given[1], int(40 * given[0]) + 2 + given[1]
        sizes = [(-((arb(k) / s) ** 2) / 2).exp() for k in range(far + 1)]
        missed = 2 * sizes[-1] / (1 - (-far / s**2).exp()) * arb(0.5, 0.5)
        whole = sizes[0] + 2 * sum(sizes[1:], arb(0)) + missed
        law = [(sizes[abs(k - n)] / whole, sizes[abs(k)] / whole) for k in range(n - far, far + 1)]
    else:
        need(kind == "pair", f"a {kind} has more than finitely many outcomes")
        law = [(exact(p), exact(q)) for p, q in given[0]]
    law = [(q, p) for p, q in law] if back else law
    return law, sum((p for p, _ in law), arb(0)) + missed

def listed(items: Any, back: bool, epsilon: float) -> tuple[arb, arb]:
    """Return bounds of sum (p - e^eps q)_+ over all outcomes; those not listed add at most P.

    The law of n releases is the n-th power of a polynomial: outcome k is x^k where losses are an
    equal step apart, else x^((n + 1)^(k - 1)), whose exponents count each outcome.
    """
    found, whole, some = [(arb(1), arb(1))], arb(1), arb(1)
    for one, n in items:
        law, total = outcomes(one, back)
        law, step = [(p, q) for p, q in law if p > 0 and q > 0], one[0] in LATTICE or n == 1
        need(law and (step or len(law) < 20), "too many sums of losses")
        whole, some = whole * total**n, some * sum((p for p, _ in law), arb(0)) ** n
        powers = [k if step or not k else (n + 1) ** (k - 1) for k in range(len(law))]
        need(len(found) * (powers[-1] * n + 1) <= MOST, "too many sums of losses")
        at = dict(zip(powers, law, strict=True))
        none, ks = (arb(0), arb(0)), range(powers[-1] + 1)
        p, q = (arb_poly([at.get(k, none)[i] for k in ks]) ** n for i in (0, 1))
        terms = [(p[k], q[k]) for k in range(powers[-1] * n + 1) if p[k] != 0 or q[k] != 0]
        found = [(a * b, c * d) for a, c in found for b, d in terms]
    e, sure = arb(epsilon).exp(), whole - some
    sticks = sum(((p - e * q).max(arb(0)) for p, q in found), arb(0))
    return sticks + sure.lower().max(arb(0)), sticks + sure.upper()

def tail(x: arb) -> arb:
    """Return P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2

def single(release: Any, epsilon: float) -> arb:
    """Return delta of one Laplace release, or of one mixture of Gaussians against another."""
    kind, *given = release
    if kind == "laplace":  # P(x > t) - e^eps Q(x > t) at t in [0, m] where the loss is eps
        return (1 - ((epsilon - exact(given[0])) / 2).exp()).max(arb(0))
    # L grows with x: the best event is x > t for some t; |1 - e^{eps-L}| <= e^|gap| - 1 up to there
    sides, low, high, gap = balls(*given), arb(-64), arb(2048), arb(1)
    need(all(abs(s) < 500 for side in sides for _, s in side), "shifts are too large")
    for _ in range(400):
        t = ((low + high) / 2).mid()
        f, g = (one.real for one in logs(sides, acb(t)))
        gap = f - g - epsilon
        if not (gap > 0 or gap < 0):
            break
        low, high = (low, t) if gap > 0 else (t, high)
    p, q = (sum((w * tail(t - s) for w, s in side), arb(0)) for side in sides)
    missed = abs(gap).exp() - 1 if -60 < t < 2000 else tail(arb(60))
    return p - arb(epsilon).exp() * q + missed.upper() * arb(0.5, 0.5)
