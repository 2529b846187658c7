# fmt: off
"""From the file to the verdict: which directions are bounded, by which road, and what follows."""

import hashlib
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx

from . import parts
from .plan import ONE, STILL, Fields, NoProof, ProofError, Verdict, alternatives, need, parse

BUDGET = 6e7  # about a minute
ROADS = ("closed form", "residues", "enumeration", "allocation", "largest losses", "contour")
SYMMETRIC = {"gaussian", "laplace", "response", "discrete laplace", "discrete gaussian"}
def verify(document: bytes) -> Verdict:
    """Return the verdict on the bytes of a proof; `ProofError` where they are none."""
    file, word, reason = parse(document), "NOT PROVED", ""
    file.whole("proof", 1, 1)
    delta, upper = file.real("delta", 0, 1 - 2**-53), file.real("upper", 0, 1e300)
    lower, plan, below = file.real("lower", 0, upper), file.take("plan"), file.take("below")
    above = file.take("above", fits=lambda x: isinstance(x, list) and len(x) <= 128)
    file.done()
    try:
        ways, parts.Part.left = alternatives(plan, decimal=delta == 0), BUDGET
        shown = {check(entry, ways, delta, upper, above=True) for entry in above}
        need(directions(ways) <= shown, "a direction of the plan has no bound from above")
        word = "PROVED UPPER"
        need(lower == 0 or below is not None, "the file does not claim to prove the lower end")
        word = "PROVED" if lower == 0 or check(below, ways, delta, lower, above=False) else word
    except NoProof as error:
        reason = str(error)
    return Verdict(word, reason, lower, upper, delta, plan, hashlib.sha256(document).hexdigest())
def directions(ways: Any) -> set[tuple[int, bool]]:
    """Return the alternatives, and their reverse where that may have other losses."""
    def alike(x: Any) -> bool:  # or mirrored
        return x[0] in SYMMETRIC or (x[0] == "mixture" and set(x[2]) == {(w, -s) for w, s in x[3]})
    return {(i, back) for i, way in enumerate(ways) for back in (False, not all(map(alike, way)))}
def check(value: Any, ways: Any, delta: float, end: float, *, above: bool) -> tuple[int, bool]:
    """Prove one entry or raise `NoProof`; return the alternative and the direction it is about."""
    entry = Fields(value, "an entry")
    way, road = entry.whole("way", 0, len(ways) - 1), entry.take("road", fits=ROADS.__contains__)
    direction = entry.take("direction", fits=("forward", "reversed").__contains__)
    back = direction == "reversed"
    try:
        with ctx.workprec(entry.whole("bits", 64, 4096)):
            low, high = bounds(road, list(ways[way].items()), back, entry, end)
    except (OverflowError, ZeroDivisionError) as error:
        raise NoProof(f"{road}: {error}") from None
    entry.done()
    if road == "largest losses":  # delta is 0 from there on, and not before
        gap, text = low - Fraction(repr(end)), parts.exact(low).str(17)  # of printed numbers
        need(delta == 0 and (gap <= 0 if above else gap >= 0), f"the largest losses are {text}")
        return way, back
    sides = ("upper", "most", high.str(12)) if above else ("lower", "least", low.str(12))
    words = "{}, {}: delta at the {} end is at {} {}".format(direction, road, *sides)
    # more than delta below: delta may be constant, and epsilon is where it starts to be
    need(high <= arb(delta) if above else low > arb(delta), words)
    return way, back
def bounds(road: str, items: list[Any], back: bool, entry: Fields, end: float) -> Any:
    """Return a lower and an upper bound of delta at the end, or of the largest loss."""
    if back:  # (Q, P) of a mixture, mirrored at 0
        items = [((*one[:2], *(tuple((w, -s) for w, s in side) for side in one[:1:-1])), n)
                 if one[0] == "mixture" else (one, n) for one, n in items]
    parts.spend(100 * len(items))
    kinds = {one[0] for one, _ in items}
    only, n = items[0] if len(items) == 1 else ((None, None), 0)
    if road == "closed form" and kinds <= {"gaussian"}:  # squares of mu add up
        mu2 = sum((parts.exact(one[1]) * n for one, n in items), arb(0))
        return [parts.single(("mixture", mu2, ((ONE, ONE),), STILL), end) if items else arb(0)] * 2
    if road == "closed form" and n == 1 and kinds <= {"laplace", "mixture"}:
        return [parts.single(only, end)] * 2
    if road == "residues" and n and kinds == {"laplace"}:
        return [parts.residues(only[1], n, end)] * 2
    if road == "enumeration":
        return parts.listed(items, back, end)
    if road == "allocation" and n == 1 and kinds == {"allocation"}:
        return allocation(only, back, entry, end)
    if road == "largest losses":
        need(len(items) < 999, "too many different losses")
        return [sum((n * largest(*one) for one, n in items), 0 * ONE)] * 2
    need(road == "contour", f"this plan has no {road}")
    rules, made = entry.take("rules", fits=lambda x: isinstance(x, list)), []
    listed, whole = arb(1), arb(1)
    simple = {"gaussian": parts.gaussian, "laplace": parts.laplace}
    for one, n in items:
        part = (simple[one[0]](parts.exact(one[1])) if one[0] in simple else
                parts.mixture(parts.balls(*one[1:]), Fields(rules and rules.pop(0), "a rule"))
                if one[0] == "mixture" else parts.finite(*parts.outcomes(one, back)))
        made.append((part, n))
        listed, whole = listed * part.mass**n, whole * part.total**n
    need(not rules, "more rules than mixtures", ProofError)
    low, high = contour(made, entry, end)
    sure = whole - listed  # outcomes that Q never has, and at most those not listed
    return low + sure.lower().max(arb(0)), high + sure.upper()
def contour(made: list[Any], entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return a lower and an upper bound of what the finite losses add to delta."""
    # g(t) = E_P (1 - e^{t-L})_+ for real t.  For a > 0, int g(t) e^{zt} dt = M(z) / (z (z + 1)) on
    # Re z = a (Fubini).  By Poisson's summation, F(z) = M(z) e^{-z eps} / (z (z + 1)), T = 2 pi/h,
    #     (h / 2 pi) sum_j F(a + ijh) = sum_k e^{akT} g(eps + kT)  >=  g(eps) = delta(eps).
    # Below: aliases k < 0 add at most (mass of P) / (e^{aT} - 1), as g <= mass; those k > 0, for
    # any b > a, at most sum_k e^{akT} C e^{-b (eps + kT)}, C = M(b) b^b / (b + 1)^(b + 1), the
    # greatest M(b) (1 - e^{-y}) e^{-by} (so delta <= C e^{-b eps}).  Truncation: |z (z + 1)| >=
    # u^2, so nodes |j| > J add at most B / (pi U), U = Jh, B >= |M(a + iv) e^{-z eps}| for v >= U.
    # Smoothing by a further N(mu, 1), mu^2 = S: delta does not fall, D_S >= delta, and M decays.
    # d D_s / ds = p_s / 2, p_s the density of the loss at eps, and p_s <= e^{(S-s)/8} sqrt(S/s) p_S
    # for s <= S (two normal densities): D_S - delta <= e^{S/8} S p_S.  p_S is at most the same sum
    # without 1 / (z (z + 1)), truncated by B / (pi SU): int_U^oo e^{-Su^2/2} du <= e^{-SU^2/2}/(SU)
    a, b, h = (entry.real(key, low, 1e12) for key, low in (("a", 1e-9), ("b", 0), ("h", 1e-12)))
    count, more = entry.whole("nodes", 1, 2**20), entry.real("smooth", 0, 1)
    parts.spend(20 * count * len(made))
    step, eps, made = arb(h), arb(epsilon), [*made, (parts.gaussian(arb(more)), 1)]
    def chernoff(b: float) -> arb:
        found = (-b * eps).exp() * (arb(b) / (arb(b) + 1)) ** b / (arb(b) + 1)
        for part, times in made:
            found *= part.moment(b) ** times
        return found
    if count == 1:
        return arb(0), chernoff(a)
    z, u, line = parts.abscissas(a, h, count), step * (count - 1), [acb(1)] * count
    missed, mass = (-a * eps).exp() / (arb.pi() * u), arb(1)
    for part, times in made:
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
    lower -= (arb(more) / 8).exp() * (more * total(0) + missed) if more else 0
    return lower, found + missed
def allocation(release: Any, back: bool, entry: Fields, epsilon: float) -> tuple[arb, arb]:
    """Return bounds of delta of an epoch of t steps with Gaussian noise, a sum of log-normals."""
    # Under Q an epoch's ratio is S / t, S = sum_i V_i, V = e^{mu x - mu^2/2}, x of N(0, 1).  With
    # g(K) = E (K - S)_+ and phi(s) = E e^{-sV}, delta is, with the record and without it,
    #     (g(K) + t - K) / t, K = t e^eps;    (e^eps / t) g(K), K = t e^-eps;
    # and int_0^oo g(K) e^{-sK} dK = phi(s)^t / s^2.  By Poisson's summation, if T = 2 pi / h > K,
    #    (h / 2 pi) sum_j e^{sK} phi(s)^t / s^2 = g(K) + sum_{k>=1} e^{-akT} g(K + kT), s = a + ijh,
    # 0 <= g(K + kT) <= K + kT.  phi is also int n(x) e^{-sV(x)} dx over Im x = -y: |e^{-sV}| <= 1
    # for Im s >= 0 < Re s while 0 <= mu y <= pi/2.  Trapezoid rule as of mixtures, N(2y) <=
    # e^{2y^2}.  At Im x = -D, |phi(a + iv)| <= e^{D^2/2} phi(a cos mu D + v sin mu D), falls in v
    mu, t, grown = parts.exact(release[1]).sqrt(), release[2], arb(epsilon).exp()
    k, a, h = t / grown if back else t * grown, entry.real("a", 0, 1e30), entry.real("h", 0, 1e30)
    y, step, d = (arb(entry.real(key, 1e-3, 99.0)) for key in ("y", "step", "turn"))
    count, period, far = entry.whole("nodes", 2, 2**17), 2 * arb.pi() / h, int(18 / float(step) + 2)
    right = k < period and 2 * y * mu <= arb.pi() / 2 and mu * d <= arb.pi() / 2 and a > 0
    need(right, "a line of the allocation where nothing converges")
    points = [acb(step * i, -y) for i in range(-far, far + 1)]
    weights = [step / (2 * arb.pi()).sqrt() * (-x * x / 2).exp() for x in points]
    losses = [-(mu * x - mu**2 / 2).exp() for x in points]
    error = (1 + (2 * y * y).exp()) / ((2 * arb.pi() * y / step).exp() - 1)
    ball = arb(0, (error + 2 * (y * y / 2).exp() * parts.tail(arb(18))).upper())
    still = [w * (a * v).exp() for w, v in zip(weights, losses, strict=True)]
    found, u = arb(0), arb(h) * (count - 1)
    values = parts.waves(still, losses, h, count)
    for s, value in zip(parts.abscissas(a, h, count), values, strict=True):
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
def largest(kind: str, first: Fraction, second: Any = 0, *_: Any) -> Fraction:
    """Return the largest loss of a release, where it is a fraction."""
    known = kind in ("laplace", "discrete laplace") or (kind == "response" and not second)
    need(known, f"the largest loss of a {kind} has no proof here")
    return second / first if kind == "discrete laplace" else first
