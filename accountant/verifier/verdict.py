# fmt: off
"""From the file to the verdict: which directions are bounded, by which road, and what follows."""

import hashlib
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from . import allocation, contour, parts, sums
from .document import Fields, NoProof, ProofError, Verdict, need, parse
from .plan import ONE, STILL, SYMMETRIC, Ways, alternatives


def verified(document: bytes) -> Verdict:
    """Return the verdict on the bytes of a proof; `ProofError` where they are none."""
    file = parse(document)
    file.whole("proof", 1, 1)
    delta, upper = file.real("delta", 0, 1 - 2**-53), file.real("upper", 0, 1e300)
    lower, plan = file.real("lower", 0, upper), file.take("plan")
    above, below, word, reason = file.take("above"), file.take("below"), "NOT PROVED", ""
    file.done()
    need(isinstance(above, list) and len(above) <= 128, "above must be a list", ProofError)
    try:
        ways = alternatives(plan, decimal=delta == 0)
        shown = {check(entry, ways, delta, upper, above=True) for entry in above}
        need(directions(ways) <= shown, "a direction of the plan has no bound from above")
        word = "PROVED UPPER"
        need(lower == 0 or below is not None, "the file does not claim to prove the lower end")
        if lower > 0:
            check(below, ways, delta, lower, above=False)
        word = "PROVED"
    except NoProof as error:
        reason = str(error)
    digest = hashlib.sha256(document).hexdigest()
    return Verdict(word, reason, lower, upper, delta, plan, digest)

def directions(ways: Ways) -> set[tuple[int, bool]]:
    """Return the alternatives, and their reverse where that may have other losses."""
    def is_symmetric(one: Any) -> bool:
        mirrored = one[0] == "mixture" and set(one[2]) == {(w, -s) for w, s in one[3]}
        return mirrored or one[0] in SYMMETRIC
    alike = [all(map(is_symmetric, way)) for way in ways]
    return {(i, back) for i, same in enumerate(alike) for back in (False, not same)}

def check(value: Any, ways: Ways, delta: float, end: float, *, above: bool) -> tuple[int, bool]:
    """Prove one entry or raise `NoProof`; return the alternative and the direction it is about."""
    entry = Fields(value, "an entry")
    way, direction = entry.whole("way", 0, len(ways) - 1), entry.take("direction")
    back, road, ctx.prec = direction == "reversed", entry.take("road"), entry.whole("bits", 64, 4096)
    need(direction in ("forward", "reversed") and isinstance(road, str), "no direction", ProofError)
    try:
        low, high = _bounds(road[:40], list(ways[way].items()), back, entry, end)
    except (OverflowError, ZeroDivisionError) as error:
        raise NoProof(f"{road}: {error}") from None
    entry.done()
    if road == "largest losses":  # delta is 0 from there on, and not before
        found = low <= Fraction(end) if above else low >= Fraction(end)
        need(delta == 0 and found, f"the largest losses add up to {float(low)!r}")
        return way, back
    sides = ("upper", "most", high.str(12)) if above else ("lower", "least", low.str(12))
    text = "{}, {}: delta at the {} end is at {} {}".format(direction, road, *sides)
    need(high <= arb(delta) if above else low >= arb(delta), text)
    return way, back

def _bounds(road: str, items: list[Any], back: bool, entry: Fields, end: float) -> Any:
    """Return a lower and an upper bound of delta at the end, or of the largest loss."""
    if back:  # (Q, P) of a mixture, mirrored at 0
        def turn(side: Any) -> Any:
            return tuple((w, -s) for w, s in side)
        items = [((*one[:2], turn(one[3]), turn(one[2])) if one[0] == "mixture" else one, n)
                 for one, n in items]
    kinds, (only, n) = {one[0] for one, _ in items}, items[0] if len(items) == 1 else ((), 0)
    if road == "closed form" and kinds <= {"gaussian"}:  # squares of mu add up
        mu2 = sum((one[1] * n for one, n in items), 0 * ONE)
        return [sums.single(("mixture", mu2, ((ONE, ONE),), STILL), end) if items else arb(0)] * 2
    if road == "closed form" and n == 1 and kinds <= {"laplace", "mixture"}:
        return [sums.single(only, end)] * 2
    if road == "enumeration":
        return sums.listed(items, back, end)
    if road == "allocation" and n == 1 and kinds == {"allocation"}:
        return allocation.bounds(only, back, entry, end)
    if road == "largest losses":
        return [sum((n * _largest(*one) for one, n in items), 0 * ONE)] * 2
    need(road == "contour", f"no road {road!r} for this plan")
    rules, each, listed, whole = entry.take("rules"), [], arb(1), arb(1)
    need(isinstance(rules, list), "rules must be a list", ProofError)
    for one, n in items:
        match one[0]:
            case "gaussian" | "laplace":
                make = parts.gaussian if one[0] == "gaussian" else parts.laplace
                part = make(parts.exact(one[1]))
            case "mixture":
                part = parts.mixture(parts.balls(*one[1:]), Fields(rules and rules.pop(0), "a rule"))
            case _:
                part = parts.finite(*sums.outcomes(one, back))
        listed, whole = listed * part.mass**n, whole * part.total**n
        each.append((part, n))
    low, high = contour.bounds(each, entry, end)
    sure = whole - listed  # outcomes that Q never has, and at most those not listed
    return low + sure.lower().max(arb(0)), high + sure.upper()

def _largest(kind: str, first: Fraction, second: Any = 0) -> Fraction:
    """Return the largest loss of a release, where it is a fraction."""
    is_known = kind == "laplace" or kind == "discrete laplace" or (kind == "response" and not second)
    need(is_known, f"the largest loss of a {kind} has no proof here")
    return second / first if kind == "discrete laplace" else first
