"""Proves in ball arithmetic what a mechanism claims to cost, from the definition of its density.

A claim is a table of plain numbers: the kind, parameters, the integers that exact noise is drawn
from, densities at some outputs, and a profile (pairs of epsilon and the claimed delta).  At each
epsilon it is proved that delta of the worst pair is at most the claim, and that the claim is at
most (1 + 2^-30) times delta at epsilon - 2^-30, so that it is not needlessly large.  Here 2^-30 is
`SLACK`, room for the round-off of floats; the first of the two proofs has none.
"""

from __future__ import annotations

from typing import Any

from flint import arb, ctx

from .claimed_laws import SLACK, Law, Parameters, exact_parameters, fraction
from .claimed_noise import NOISE, grid_of, is_table_right
from .claimed_reports import REPORTS


def check(claim: dict[str, Any]) -> tuple[str, str]:
    """Return PROVED, PROVED UPPER or NOT PROVED, and what is not proved."""
    with ctx.workprec(192):
        try:
            return verdict_of(claim)
        except AttributeError as missing:
            # Another package can declare a mechanism under the name of a kind that is known here.
            return "NOT PROVED", f"the claim of a {claim['kind']} has no parameter {missing.name}"


def verdict_of(claim: dict[str, Any]) -> tuple[str, str]:
    """Return the verdict on a claim, at the precision of the caller."""
    kind, parameters, gap = claim["kind"], exact_parameters(claim["parameters"]), ""
    for table in claim["tables"]:
        if not is_table_right(table["table"], exact_parameters(table)):
            return "NOT PROVED", f"the integers of {table['table']} do not add up"
    law = law_of(kind, parameters)
    if law is None:
        return "NOT PROVED", f"the kind {kind} has no proof here"
    for output, *logs in claim["densities"]:
        if not law.has_density(output, *logs):
            return "NOT PROVED", f"the density of the output {output} is another"
    for epsilon, claimed in claim["profile"]:
        if not (epsilon >= 0 and law.delta(fraction(epsilon))[1] <= arb(claimed)):
            return "NOT PROVED", f"delta is above {claimed:.9g} at epsilon = {epsilon:.9g}"
        if not arb(claimed) <= law.delta(fraction(epsilon) - SLACK)[0] * (1 + SLACK):
            gap = f"delta is not shown to be {claimed:.9g} at epsilon = {epsilon:.9g}"
    return ("PROVED UPPER" if gap else "PROVED"), gap


def law_of(kind: str, parameters: Parameters) -> Law | None:
    """Return the law of a mechanism, or None where its kind has no proof."""
    if hasattr(parameters, "drawn_scale"):
        return NOISE[kind](parameters, grid_of(parameters)) if kind in NOISE else None
    return REPORTS[kind](parameters) if kind in REPORTS else None
