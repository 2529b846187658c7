"""From the file to the verdict: which directions are bounded, by which road, and what follows."""

import hashlib
import math
from fractions import Fraction

from flint import arb, ctx

from . import allocation, contour, sums
from .document import Fields, NoProof, ProofError, Verdict, parse
from .parts import Finite, Gaussian, Laplace, Mixture, exact, read_rule
from .plan import SYMMETRIC, alternatives, numbers


def verified(document):
    """Return the verdict on the bytes of a proof; `ProofError` where they are none."""
    file = parse(document)
    if file.take("proof") != 1:
        raise ProofError("a proof of another version")
    delta, upper = file.real("delta", -1.0, 1.0), file.real("upper", -1.0, math.inf)
    lower, plan = file.real("lower", -1.0, math.inf), file.take("plan")
    above, below = file.take("above"), file.take("below")
    if not (0 <= delta and 0 <= lower <= upper):
        raise ProofError("delta and the interval must be 0 <= delta < 1 and 0 <= lower <= upper")
    if not isinstance(above, list) or len(above) > 128 or not isinstance(below, dict | None):
        raise ProofError("above must be a list of entries, below an entry or null")
    file.done()
    word, reason = "NOT PROVED", ""
    try:
        ways = alternatives(numbers(plan, decimal=delta == 0))
        needed = {(i, back) for i, way in enumerate(ways) for back in (False, True)
                  if not (back and all(is_symmetric(one) for one in way))}  # fmt: skip
        for entry in above:
            needed -= {check(entry, ways, delta, upper, is_above=True)}
        if needed:
            raise NoProof("a direction of the plan is not bounded from above")
        word = "PROVED UPPER"
        if below is None and lower > 0:
            raise NoProof("the file has no proof of the lower end")
        if lower > 0:
            check(below, ways, delta, lower, is_above=False)
        word = "PROVED"
    except NoProof as error:
        reason = str(error)
    digest = hashlib.sha256(document).hexdigest()
    return Verdict(word, reason, lower, upper, delta, plan, digest)


def is_symmetric(release):
    """Whether both directions of a release have the same losses."""
    mirrored = release[0] == "mixture" and sorted(release[2]) == sorted(
        (w, -s) for w, s in release[3]
    )
    return mirrored or release[0] in SYMMETRIC


def check(value, ways, delta, epsilon, *, is_above):
    """Prove one entry or raise `NoProof`; return the alternative and direction it is about."""
    entry = Fields(value, "an entry")
    way, direction = entry.whole("way", 0, len(ways) - 1), entry.take("direction")
    if direction not in ("forward", "reversed"):
        raise ProofError("direction must be forward or reversed")
    ctx.prec = entry.whole("bits", 64, 8192)
    items, back, road = list(ways[way].items()), direction == "reversed", entry.take("road")
    try:
        lower, upper = delta_bounds(road, items, back, entry, epsilon)
    except (OverflowError, ZeroDivisionError, MemoryError) as error:
        raise NoProof(f"{road} fails: {error}") from None
    entry.done()
    if road == "largest losses":
        end = Fraction(epsilon) if isinstance(lower, Fraction) else arb(epsilon)
        if delta or not (lower <= end if is_above else upper >= end):
            raise NoProof(f"the largest loss is {float(upper)!r}, the end is {epsilon!r}")
    elif not (upper <= arb(delta) if is_above else lower >= arb(delta)):
        found = upper if is_above else lower
        raise NoProof(f"{direction}, {road}: delta at the {'upper' if is_above else 'lower'} end "
                      f"is shown to be at {'most' if is_above else 'least'} {found.str(12)}")  # fmt: skip
    return way, back


def delta_bounds(road, items, back, entry, epsilon):
    """Return a lower and an upper bound of delta(epsilon) of one direction."""
    only, n = items[0] if len(items) == 1 else (("",), 0)
    if not items or road == "closed form":
        kinds = {one[0] for one, _ in items}
        if not items:
            found = arb(0)
        elif kinds == {"gaussian"}:
            together = sum(one[1] * n for one, n in items)
            found = sums.single(("gaussian", together), None, epsilon)
        elif n == 1:
            part = Mixture(*_sides(only, back), {}) if only[0] == "mixture" else None
            found = sums.single(only, part, epsilon)
        else:
            raise NoProof("several releases have no closed form")
        return found, found
    if road == "enumeration":
        return sums.listed(items, back, epsilon)
    if road == "residues" and only[0] == "laplace":
        found = sums.residues(only[1], n, epsilon)
        return found, found
    if road == "allocation" and only[0] == "allocation" and n == 1:
        return allocation.bounds(only[1], only[2], back, entry, epsilon)
    if road == "largest losses":
        each = [n * largest(one, back) for one, n in items]
        found = sum(each, Fraction(0)) if all(isinstance(x, Fraction) for x in each) else sum(
            (exact(x) if isinstance(x, Fraction) else x for x in each), arb(0))  # fmt: skip
        return found, found
    if road != "contour":
        raise NoProof(f"no road {str(road)[:40]!r} for this plan")
    rules = entry.take("rules")
    if not isinstance(rules, list):
        raise ProofError("rules must be a list")
    rules, parts, listed, all_of = iter(rules), [], arb(1), arb(1)
    for one, n in items:
        match one[0]:
            case "gaussian":
                part = Gaussian(exact(one[1]))
            case "laplace":
                part = Laplace(exact(one[1]))
            case "mixture":
                found = next(rules, None)
                if not isinstance(found, dict):
                    raise ProofError("rules must be a table for each mixture")
                part = Mixture(*_sides(one, back), {k: read_rule(v) for k, v in found.items()})
            case _:
                part = Finite(*sums.outcomes(one, back))
        listed, all_of = listed * part.mass**n, all_of * part.total**n
        parts.append((part, n))
    lower, upper = contour.bounds(parts, entry, epsilon)
    sure = all_of - listed  # of outcomes that Q never has, or that are not listed
    return lower + (sure if sure > 0 else 0), upper + sure.upper()


def _sides(one, back):
    sides = one[2:]
    if back:
        sides = tuple(tuple((w, -s) for w, s in side) for side in reversed(sides))
    return one[1], *sides


def largest(release, back):
    """Return the largest loss of a release: delta(epsilon) = 0 from there on."""
    kind, *given = release
    if kind == "laplace":
        return given[0]
    if kind == "discrete laplace":
        return given[1] / given[0]
    if kind == "response" and not given[1]:
        return given[0]
    law, _ = sums.outcomes(release, back)
    if kind == "discrete gaussian" or any(p > 0 and not q > 0 for p, q in law):
        raise NoProof("the losses have no largest one")
    found = [(p / q).log() for p, q in law if p > 0]
    return max(found, key=float)
