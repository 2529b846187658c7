"""Mechanisms: what each claims to cost, proved on balls from the definition of its density.

A claim is plain numbers: kind, parameters, integers that exact noise is drawn from, densities and a
profile.  Proved is, at each epsilon, that delta of the worst pair is at most what is claimed, and
the claim at most (1 + 2^-30) times delta at epsilon - 2^-30.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from flint import arb, ctx, fmpq

from .claimed_laws import SLACK, Law, Parameters, exact_parameters, exp, fraction
from .claimed_noise import NOISE, grid_of
from .claimed_reports import REPORTS, WORDS


def check(claim: dict[str, Any]) -> tuple[str, str]:
    """Return PROVED, PROVED UPPER or NOT PROVED, and what is not proved."""
    with ctx.workprec(192):
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


def is_table_right(name: str, table: Parameters) -> bool:
    """Return whether the integers that exact noise is drawn from cover what they must."""
    if name == "IntegerStaircase":
        return is_staircase_share_right(table)
    if name == "WeightTable":
        best = fraction(max(table.scores))
        sizes = [
            table.height * exp((fraction(score) - best) / table.scale) for score in table.scores
        ]
    else:
        sizes = block_sizes(table)
    ranges = zip(pairwise([0, *table.ends]), sizes, strict=True)
    return table.ends[-1] <= WORDS and all(end - start >= size for (start, end), size in ranges)


def is_staircase_share_right(table: Parameters) -> bool:
    """Return whether the share of the first level of a staircase is where the table says."""
    share = 1 / (1 + fmpq(table.stair, table.top) / arb(1 / table.width).expm1())
    return bool(fmpq(*table.low) <= share <= fmpq(*table.high))


def block_sizes(table: Parameters) -> list[arb]:
    """Return how many words each block of integers needs, in proportion to its first probability.

    Theorem (`word_ranges`: docs/proofs/exact_selection.md, 2): words that are drawn again unless
    one lands in a range of at least c w_k, at its first c w_k, give k in proportion to w_k.  The
    last block is the tail's: 128 times its first probability, or none where it is out of reach.
    """
    starts = [fmpq(block << table.shift) for block in range(len(table.ends))]
    sizes = [
        table.height * exp(-((start / table.width) ** table.power) / table.power)
        for start in starts
    ]
    sizes[-1] *= 0 if table.reach is not None and starts[-1] > table.reach else 128
    return sizes
