# fmt: off
"""From the file to the verdict: which directions are bounded, by which road, and what follows."""

import hashlib
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from . import integrals, parts
from .plan import ONE, STILL, Fields, NoProof, ProofError, Verdict, alternatives, need, parse

BUDGET = 6e7  # about a minute
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
        if lower > 0:
            check(below, ways, delta, lower, above=False)
        word = "PROVED"
    except NoProof as error:
        reason = str(error)
    return Verdict(word, reason, lower, upper, delta, plan, hashlib.sha256(document).hexdigest())

def directions(ways: Any) -> set[tuple[int, bool]]:
    """Return the alternatives, and their reverse where that may have other losses."""
    def alike(one: Any) -> bool:
        mirrored = one[0] == "mixture" and set(one[2]) == {(w, -s) for w, s in one[3]}
        return mirrored or one[0] in SYMMETRIC
    return {(i, back) for i, way in enumerate(ways) for back in (False, not all(map(alike, way)))}

def check(value: Any, ways: Any, delta: float, end: float, *, above: bool) -> tuple[int, bool]:
    """Prove one entry or raise `NoProof`; return the alternative and the direction it is about."""
    entry = Fields(value, "an entry")
    way, road = entry.whole("way", 0, len(ways) - 1), entry.take("road", fits=ROADS.__contains__)
    back = entry.take("direction", fits=("forward", "reversed").__contains__) == "reversed"
    ctx.prec = entry.whole("bits", 64, 4096)
    try:
        low, high = bounds(road, list(ways[way].items()), back, entry, end)
    except (OverflowError, ZeroDivisionError) as error:
        raise NoProof(f"{road}: {error}") from None
    entry.done()
    if road == "largest losses":  # delta is 0 from there on, and not before
        found = low <= Fraction(end) if above else low >= Fraction(end)
        need(delta == 0 and found, f"the largest losses add up to {float(low)!r}")
        return way, back
    sides = ("upper", "most", high.str(12)) if above else ("lower", "least", low.str(12))
    text = "{}, {}: delta at the {} end is at {} {}"
    words = text.format("reversed" if back else "forward", road, *sides)
    need(high <= arb(delta) if above else low >= arb(delta), words)
    return way, back

ROADS = ("closed form", "residues", "enumeration", "allocation", "largest losses", "contour")

def bounds(road: str, items: list[Any], back: bool, entry: Fields, end: float) -> Any:
    """Return a lower and an upper bound of delta at the end, or of the largest loss."""
    if back:  # (Q, P) of a mixture, mirrored at 0
        turned = [[tuple((w, -s) for w, s in side) for side in one[:1:-1]]
                  if one[0] == "mixture" else [] for one, _ in items]
        items = [((*one[:2], *sides) if sides else one, n)
                 for (one, n), sides in zip(items, turned, strict=True)]
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
        return integrals.allocation(only, back, entry, end)
    if road == "largest losses":
        need(len(items) < 999, "too many different losses")
        return [sum((n * largest(*one) for one, n in items), 0 * ONE)] * 2
    need(road == "contour", f"this plan has no {road}")
    rules, made = entry.take("rules", fits=lambda x: isinstance(x, list)), []
    simple = {"gaussian": parts.gaussian, "laplace": parts.laplace}
    for one, n in items:
        if one[0] in simple:
            part = simple[one[0]](parts.exact(one[1]))
        elif one[0] == "mixture":
            part = parts.mixture(parts.balls(*one[1:]), Fields(rules and rules.pop(0), "a rule"))
        else:
            part = parts.finite(*parts.outcomes(one, back))
        made.append((part, n))
    need(not rules, "more rules than mixtures", ProofError)
    low, high = integrals.contour(made, entry, end)
    listed, whole = arb(1), arb(1)
    for part, n in made:
        listed, whole = listed * part.mass**n, whole * part.total**n
    sure = whole - listed  # outcomes that Q never has, and at most those not listed
    return low + sure.lower().max(arb(0)), high + sure.upper()

def largest(kind: str, first: Fraction, second: Any = 0) -> Fraction:
    """Return the largest loss of a release, where it is a fraction."""
    known = kind in ("laplace", "discrete laplace") or (kind == "response" and not second)
    need(known, f"the largest loss of a {kind} has no proof here")
    return second / first if kind == "discrete laplace" else first
