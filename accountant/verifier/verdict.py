"""From the file to the verdict: which directions are bounded, by which road, and what follows."""

import hashlib
from fractions import Fraction
from functools import reduce
from typing import Any

from flint import arb, ctx

from . import parts
from .lattice import case, composed
from .plan import Fields, NoProof, ProofError, Verdict, alternatives, need, parse
from .series import allocated, contour

BUDGET = 6e7  # about a minute
ROADS = ("enumeration", "allocation", "largest losses", "contour", "lattice")
SYMMETRIC = {"gaussian", "laplace", "response", "discrete laplace", "discrete gaussian", "range",
             "zcdp", "subset"}
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
        x = x[1] if x[0] == "bound" else x
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
            pairs = [(case(one, above=above), n) for one, n in ways[way].items()]
            items = [one for one in pairs if one[0]]
            if road == "largest losses":  # delta is 0 from there on, and not before
                need(delta == 0, "the largest losses are epsilon where delta is 0")
                low = high = arb(largest(items, back, Fraction(repr(end)), above=above) != above)
            else:
                low, high = bounds(road, items, back, entry, end, above=above)
    except (OverflowError, ZeroDivisionError) as error:
        raise NoProof(f"{road}: {error}") from None
    entry.done()
    sides = ("upper", "most", high.str(12)) if above else ("lower", "least", low.str(12))
    words = "{}, {}: delta at the {} end is at {} {}".format(direction, road, *sides)
    # more than delta below: delta may be constant, and epsilon is where it starts to be
    need(high <= arb(delta) if above else low > arb(delta), words)
    return way, back
def bounds(road: str, items: list[Any], back: bool, entry: Fields, end: float, *, above: bool) -> Any:
    """Return a lower and an upper bound of delta at the end."""
    if road == "lattice":
        return composed(items, back, entry, above=above)(end)
    if back:  # (Q, P) of a mixture, mirrored at 0
        items = [((*one[:2], *(tuple((w, -s) for w, s in side) for side in one[:1:-1])), n)
                 if one[0] == "mixture" else (one, n) for one, n in items]
    parts.spend(100 * len(items))
    only, n = items[0] if len(items) == 1 else ((None,) * 3, 0)
    if road == "enumeration":
        return parts.listed(items, back, end)
    if road == "allocation" and n == 1 and only[0] == "allocation":
        mu2, t, e = parts.exact(only[1]), only[2], arb(end).exp()
        g = allocated(mu2, t, entry, t / e if back else t * e)
        return [e / t * g if back else (g + t - t * e) / t] * 2
    need(road == "contour", f"this plan has no {road}")
    rules, made = entry.take("rules", fits=lambda x: isinstance(x, list)), []
    listed, whole = arb(1), arb(1)
    for one, n in items:
        part = (parts.gaussian(parts.exact(one[1])) if one[0] == "gaussian" else
                parts.laplace(parts.exact(one[1])) if one[0] == "laplace" else
                parts.zcdp(*map(parts.exact, one[1:])) if one[0] == "zcdp" else
                parts.zcdp(parts.exact(one[1]) ** 2 / 8, arb(0)) if one[0] == "range" else
                parts.mixture(parts.balls(*one[1:]), Fields(rules and rules.pop(0), "a rule"))
                if one[0] == "mixture" else parts.finite(*parts.outcomes(one, back)))
        made.append((part, n))
        listed, whole = listed * part.mass**n, whole * part.total**n
    need(not rules, "more rules than mixtures", ProofError)
    low, high = contour(made, entry, end)
    sure = whole - listed  # outcomes that Q never has, and at most those not listed
    return low + sure.lower().max(arb(0)), high + sure.upper()
def largest(items: list[Any], back: bool, end: Fraction, *, above: bool) -> Any:
    """Return whether the largest losses add up to at most, or at least, an end as it is printed."""
    need(len(items) < 999, "too many different losses")
    balls, words = arb(0), "the largest loss of a {} has no proof here"
    for (kind, first, *rest), n in items:
        if kind == "laplace":  # drawn wider by 2^-46: docs/proofs/discrete.md, 4
            end -= n * first * (1 - Fraction(above * rest[1], 2**46))
        elif kind == "discrete laplace" or (kind == "response" and not rest[0]):
            end -= n * (rest[0] / first if kind == "discrete laplace" else first)
        else:
            need(kind in {"response", "pair", "sampled", "sampled laplace"}, words.format(kind))
            law = (parts.outcomes((kind, first, *rest), back)[0] if kind != "sampled laplace" else
                   [(arb(1), r) if back else (r, arb(1)) for r in
                    (1 - parts.exact(rest[0]) * (1 - (x * parts.exact(first)).exp()) for x in (-1, 1))])
            need(all(q > 0 or p == 0 for p, q in law), words.format(kind))
            balls += n * reduce(arb.max, ((p / q).log() for p, q in law if p > 0))
    return balls <= parts.exact(end) if above else balls >= parts.exact(end)
