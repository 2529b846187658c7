"""From the file to the verdict: which directions are bounded, by which method, and what follows."""

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
METHODS = ("enumeration", "allocation", "largest losses", "contour", "lattice")
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
        options, parts.Part.left = alternatives(plan, decimal=delta == 0), BUDGET
        shown = {check(entry, options, delta, upper, above=True) for entry in above}
        need(directions(options) <= shown, "a direction of the plan has no bound from above")
        word = "PROVED UPPER"
        need(lower == 0 or below is not None, "the file does not claim to prove the lower end")
        word = "PROVED" if lower == 0 or check(below, options, delta, lower, above=False) else word
    except (NoProof, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        need(not isinstance(error, ProofError), str(error), ProofError)
        reason = str(error) if isinstance(error, NoProof) else f"out of range: {error!r:.99}"
    return Verdict(word, reason, lower, upper, delta, plan, hashlib.sha256(document).hexdigest())
def directions(options: Any) -> set[tuple[int, bool]]:
    """Return the alternatives, and their reverse where that may have other losses."""
    def alike(x: Any) -> bool:  # or mirrored
        if x[0] == ANY_OF:
            return all(map(alike, inner_releases(x)))
        x = x[1] if x[0] == "bound" else x
        return x[0] in MIRRORED or (x[0] == "mixture" and set(x[2]) == {(w, -s) for w, s in x[3]})
    return {(i, back) for i, option in enumerate(options)
            for back in (False, not all(map(alike, option)))}
def check(value: Any, options: Any, delta: float, end: float, *, above: bool) -> tuple[int, bool]:
    """Prove one entry or raise `NoProof`; return the alternative and the direction it is about."""
    entry = Fields(value, "an entry")
    number = entry.whole("way", 0, len(options) - 1)
    method = entry.take("road", fits=METHODS.__contains__)
    direction = entry.take("direction", fits=("forward", "reversed").__contains__)
    back = direction == "reversed"
    # above all paths, or on the one that the entry names
    releases = options[number]
    if not above:
        releases = on_path(releases, entry.take("path", [], fits=is_list))
    with ctx.workprec(entry.whole("bits", 64, 4096)):
        items = [(x, n) for release, n in releases.items() if (x := case(release, above=above))]
        if method == "largest losses":  # delta is 0 from there on, and not before
            need(delta == 0, "the largest losses are epsilon where delta is 0")
            low = high = arb(largest(items, back, Fraction(repr(end)), above=above) != above)
        else:
            low, high = bounds(method, items, back, entry, end, above=above)
    entry.done()
    side, size = ("upper", f"most {high.str(12)}") if above else ("lower", f"least {low.str(12)}")
    # more than delta below: delta may be constant, and epsilon is where it starts to be
    need(high <= arb(delta) if above else low > arb(delta),
         f"{direction}, {method}: delta at the {side} end is at {size}")
    return number, back
def bounds(method: str, items: Any, back: bool, entry: Fields, end: float, *, above: bool) -> Any:
    """Return a lower and an upper bound of delta at the end."""
    if method == "lattice":
        return composed(items, back, entry, above=above)(end)
    items = [((*release[:2], *(tuple((w, -s) for w, s in side) for side in release[:1:-1])), n)
             if back and release[0] == "mixture" else (release, n)
             for release, n in items]  # (Q, P), mirrored
    parts.spend(100 * len(items))
    sole: Any = items[0][0] if [n for _, n in items] == [1] else ("",)
    if method == "enumeration":
        return parts.listed(items, back, end)
    if method == sole[0] == "allocation":
        t, e = sole[2], arb(end).exp()
        g = allocated(parts.exact(sole[1]), t, entry, t / e if back else t * e)
        return [e / t * g if back else (g + t - t * e) / t] * 2
    need(method == "contour", f"this plan has no {method}")
    rules, factors, listed, total = entry.take("rules", fits=is_list), [], arb(1), arb(1)
    for release, n in items:
        forms: Any = {"gaussian": parts.gaussian, "laplace": parts.laplace, "zcdp": parts.zcdp,
                 "range": lambda e: parts.zcdp(e**2 / 8, arb(0))}  # Cesar & Rogers 2021, Lemma 3.4
        part = (parts.mixture(parts.balls(*release[1:]), Fields(rules and rules.pop(0), "a rule"))
                if release[0] == "mixture" else forms[release[0]](*map(parts.exact, release[1:]))
                if release[0] in forms else parts.finite(*parts.outcomes(release, back)))
        factors.append((part, n))
        listed, total = listed * part.mass**n, total * part.total**n
    need(not rules, "more rules than mixtures", ProofError)
    low, high = contour(factors, entry, end)
    infinite = total - listed  # outcomes that Q never has, and at most those not listed
    return low + infinite.lower().max(arb(0)), high + infinite.upper()
