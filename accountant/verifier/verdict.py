"""From the file to the verdict: which directions are bounded, by which road, and what follows."""

import hashlib
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from . import parts
from .choices import ANY_OF, alternatives, inner_releases, on_path
from .lattice import case
from .plan import Fields, NoProof, ProofError, Verdict, is_list, need, parse
from .series import allocated, contour
from .sums import composed, largest

BUDGET = 6e7  # about a minute
ROADS = ("enumeration", "allocation", "largest losses", "contour", "lattice")
MIRRORED = {"gaussian", "laplace", "range", "zcdp", "subset"} | parts.LATTICE
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
    except (NoProof, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        need(not isinstance(error, ProofError), str(error), ProofError)
        reason = str(error) if isinstance(error, NoProof) else f"out of range: {error!r:.99}"
    return Verdict(word, reason, lower, upper, delta, plan, hashlib.sha256(document).hexdigest())
def directions(ways: Any) -> set[tuple[int, bool]]:
    """Return the alternatives, and their reverse where that may have other losses."""
    def alike(x: Any) -> bool:  # or mirrored
        if x[0] == ANY_OF:
            return all(map(alike, inner_releases(x)))
        x = x[1] if x[0] == "bound" else x
        return x[0] in MIRRORED or (x[0] == "mixture" and set(x[2]) == {(w, -s) for w, s in x[3]})
    return {(i, back) for i, way in enumerate(ways) for back in (False, not all(map(alike, way)))}
def check(value: Any, ways: Any, delta: float, end: float, *, above: bool) -> tuple[int, bool]:
    """Prove one entry or raise `NoProof`; return the alternative and the direction it is about."""
    entry = Fields(value, "an entry")
    way, road = entry.whole("way", 0, len(ways) - 1), entry.take("road", fits=ROADS.__contains__)
    direction = entry.take("direction", fits=("forward", "reversed").__contains__)
    back = direction == "reversed"
    # above all paths, or on the one that the entry names
    paid = ways[way] if above else on_path(ways[way], entry.take("path", [], fits=is_list))
    with ctx.workprec(entry.whole("bits", 64, 4096)):
        items = [(x, n) for one, n in paid.items() if (x := case(one, above=above))]
        if road == "largest losses":  # delta is 0 from there on, and not before
            need(delta == 0, "the largest losses are epsilon where delta is 0")
            low = high = arb(largest(items, back, Fraction(repr(end)), above=above) != above)
        else:
            low, high = bounds(road, items, back, entry, end, above=above)
    entry.done()
    side, size = ("upper", f"most {high.str(12)}") if above else ("lower", f"least {low.str(12)}")
    # more than delta below: delta may be constant, and epsilon is where it starts to be
    need(high <= arb(delta) if above else low > arb(delta),
         f"{direction}, {road}: delta at the {side} end is at {size}")
    return way, back
def bounds(road: str, items: Any, back: bool, entry: Fields, end: float, *, above: bool) -> Any:
    """Return a lower and an upper bound of delta at the end."""
    if road == "lattice":
        return composed(items, back, entry, above=above)(end)
    items = [((*one[:2], *(tuple((w, -s) for w, s in side) for side in one[:1:-1])), n)
             if back and one[0] == "mixture" else (one, n) for one, n in items]  # (Q, P), mirrored
    parts.spend(100 * len(items))
    only: Any = items[0][0] if [n for _, n in items] == [1] else ("",)
    if road == "enumeration":
        return parts.listed(items, back, end)
    if road == only[0] == "allocation":
        t, e = only[2], arb(end).exp()
        g = allocated(parts.exact(only[1]), t, entry, t / e if back else t * e)
        return [e / t * g if back else (g + t - t * e) / t] * 2
    need(road == "contour", f"this plan has no {road}")
    rules, made, listed, whole = entry.take("rules", fits=is_list), [], arb(1), arb(1)
    for one, n in items:
        known: Any = {"gaussian": parts.gaussian, "laplace": parts.laplace, "zcdp": parts.zcdp,
                 "range": lambda e: parts.zcdp(e**2 / 8, arb(0))}  # Cesar & Rogers 2021, Lemma 3.4
        part = (parts.mixture(parts.balls(*one[1:]), Fields(rules and rules.pop(0), "a rule"))
                if one[0] == "mixture" else known[one[0]](*map(parts.exact, one[1:]))
                if one[0] in known else parts.finite(*parts.outcomes(one, back)))
        made.append((part, n))
        listed, whole = listed * part.mass**n, whole * part.total**n
    need(not rules, "more rules than mixtures", ProofError)
    low, high = contour(made, entry, end)
    sure = whole - listed  # outcomes that Q never has, and at most those not listed
    return low + sure.lower().max(arb(0)), high + sure.upper()
