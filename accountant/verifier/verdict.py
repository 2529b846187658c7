"""From the bytes of a proof file to the verdict on it.

An upper end is proved if delta(upper) <= delta is shown for every alternative of the plan
(`choices`), and for P against Q as well as Q against P ("directions").  A lower end is proved if
delta(lower) > delta is shown for one alternative in one direction.  Each entry of the file shows
one such inequality, by the method that it names (its field "road").
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from .balls import Budget
from .best_of_runs import items_above, one_run
from .bounding_pairs import bounding_pair
from .choices import alternatives, on_path
from .document import Fields, NoProof, ProofError, Verdict, is_list, need, parse
from .largest_losses import largest_holds
from .methods import METHODS, delta_bounds
from .releases import ANY_OF, EQUAL_STEPS, Release, Releases, inner_releases

BUDGET = 6e7  # products of 128-bit numbers that one check may take, which is about a minute
# Kinds of releases for which Q against P has the same losses as P against Q.  One direction is
# enough for a plan of such releases alone.
MIRRORED = {"gaussian", "laplace", "range", "zcdp", "subset"} | EQUAL_STEPS
# What a check that fails may raise: `NoProof` has a sentence for the reader; the others are errors
# of Python where numbers of the file are out of range.
FAILURES = (NoProof, ArithmeticError, AssertionError, LookupError, TypeError, ValueError)


def verify(document: bytes) -> Verdict:
    """Return the verdict on the bytes of a proof; raise `ProofError` where they are no proof."""
    file, word, reason = parse(document), "NOT PROVED", ""
    file.whole("proof", 1, 1)
    delta, upper = file.real("delta", 0, 1 - 2**-53), file.real("upper", 0, 1e300)
    lower, plan, below = file.real("lower", 0, upper), file.take("plan"), file.take("below")
    above = file.take("above", fits=lambda x: isinstance(x, list) and len(x) <= 128)
    file.done()
    try:
        options = alternatives(plan, decimal=delta == 0)
        Budget.remaining = BUDGET
        shown = {check(entry, options, delta, upper, above=True) for entry in above}
        need(directions(options) <= shown, "a direction of the plan has no bound from above")
        word = "PROVED UPPER"
        need(lower == 0 or below is not None, "the file does not claim to prove the lower end")
        if lower > 0:
            check(below, options, delta, lower, above=False)
        word = "PROVED"
    except FAILURES as error:
        need(not isinstance(error, ProofError), str(error), ProofError)
        reason = str(error) if isinstance(error, NoProof) else f"out of range: {error!r:.99}"
    return Verdict(word, reason, lower, upper, delta, plan, hashlib.sha256(document).hexdigest())


def directions(options: list[Releases]) -> set[tuple[int, bool]]:
    """Return the pairs (number of an alternative, is reversed) that need a bound from above.

    The reversed direction, Q against P, is left out where every release is mirrored.
    """
    return {
        (number, back)
        for number, option in enumerate(options)
        for back in (False, not all(map(is_mirrored, option)))
    }


def is_mirrored(release: Release) -> bool:
    """Return whether Q against P has the same losses as P against Q.

    This is so for a mixture if Q has the weights of P, and its shifts with the other sign.
    """
    if release[0] == ANY_OF:
        return all(map(is_mirrored, inner_releases(release)))
    if release[0] == "best":
        return all(is_mirrored(run) for run, _ in release[2])
    pair = release[1] if release[0] == "bound" else release
    if pair[0] == "mixture":
        return set(pair[2]) == {(w, -shift) for w, shift in pair[3]}
    return pair[0] in MIRRORED


def check(
    value: Any, options: list[Releases], delta: float, end: float, *, above: bool
) -> tuple[int, bool]:
    """Prove one entry or raise `NoProof`; return which alternative and direction it bounds.

    With ``above`` the entry must show delta(end) <= delta for all choices of parts of sets in its
    alternative; otherwise delta(end) > delta for the choices that its field "path" names.
    """
    entry = Fields(value, "an entry")
    number = entry.whole("way", 0, len(options) - 1)
    method = entry.take("road", fits=METHODS.__contains__)
    direction = entry.take("direction", fits=("forward", "reversed").__contains__)
    back = direction == "reversed"
    releases = options[number]
    if not above:
        releases = one_run(on_path(releases, entry.take("path", [], fits=is_list)))
    with ctx.workprec(entry.whole("bits", 64, 4096)):
        if above and method != "largest losses":
            items = items_above(releases, back, entry)
        else:
            bounding = [(bounding_pair(release, above=above), n) for release, n in releases.items()]
            items = [(pair, n) for pair, n in bounding if pair]
        if method == "largest losses":
            need(delta == 0, "the largest losses are epsilon where delta is 0")
            holds = largest_holds(items, back, Fraction(repr(end)), above=above)
            low = high = arb(holds != above)  # at most 0 above, or more than 0 below
        else:
            low, high = delta_bounds(method, items, back, entry, end, above=above)
    entry.done()
    side, size = ("upper", f"most {high.str(12)}") if above else ("lower", f"least {low.str(12)}")
    # Below, delta must be exceeded strictly: where the curve of delta is constant, epsilon is the
    # first point that attains the value.
    need(
        high <= arb(delta) if above else low > arb(delta),
        f"{direction}, {method}: delta at the {side} end is at {size}",
    )
    return number, back
