"""Epsilons that the slow references proved, kept beside the tests.

``.venv/bin/python -m tests.references.arb.stored`` computes every row of
``tests/references/arb_epsilons.json`` anew: of a random plan, by its family and number, an interval
in which the ball of delta proves the true epsilon to lie.  ``... stored FAMILY NUMBER ...`` adds
rows.  The certificate of `Tight` only says where the search starts.
"""

import json
import math
import sys
from pathlib import Path

from flint import arb, ctx

from accountant import Tight
from tests.references.arb.certificates import BITS, random_plan
from tests.references.arb.contour import OutOfReach
from tests.references.arb.families import FAMILIES

TABLE = Path(__file__).parents[1] / "arb_epsilons.json"
ALONE = ("sampled Gaussians", "few sampled Gaussians", "training", "differing sampled Gaussians",
         "noise of several kinds")  # fmt: skip
KINDS = (*ALONE, "random allocation")  # some of these are drawn and proved in the tests
NARROW = 1e-12  # relative half-width that is aimed at


def true_epsilon(family, plan, delta, start):
    """An interval that is proved to hold the true epsilon, or None where none was found."""
    ctx.prec = BITS
    target, (low, high) = arb(delta), start
    if not 0 < low < high < math.inf:
        low, high = 0.999 * high, 1.001 * high
    width = 0.0
    for _ in range(9):
        at_low, at_high = family.truth(plan, [low, high])
        if not (at_low > 0 and at_high > 0):
            return None
        if at_low >= target >= at_high and high - low <= 2.1 * NARROW * high:
            return low, high
        fall = float((at_low / at_high).log())
        if fall <= 0:
            return None
        middle = low + (high - low) * float((at_low / target).log()) / fall
        if not 0 < middle < math.inf:
            return None
        close = abs(middle - low) + abs(high - middle) < 1e-4 * middle
        width = NARROW if close else min(1e-6, 0.01 * (high - low) / middle)
        low, high = middle * (1 - width), middle * (1 + width)
    return None


def entry(number, name):
    """The row of one random plan of a family, or None where the road does not reach it."""
    _, plan, delta = random_plan(number, names=[name])
    family = FAMILIES[name]
    found = Tight().certify(family.build(plan), delta)
    if not 0 < found.upper < math.inf:
        return None
    try:
        held = true_epsilon(family, plan, delta, (found.lower, found.upper))
    except OutOfReach:
        return None
    row = {"family": name, "number": number, "plan": plan, "delta": delta, "epsilon": held}
    return row if held else None


def rows():
    """What is stored, a list of dictionaries."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def main():
    known = [(row["family"], row["number"]) for row in rows()]
    if sys.argv[1:]:
        name, *numbers = sys.argv[1:]
        wanted, kept = [(name, int(number)) for number in numbers], rows()
    else:
        wanted, kept = known, []
    for name, number in wanted:
        row = entry(number, name)
        print(name, number, row and row["epsilon"], file=sys.stderr, flush=True)
        kept += [row] if row else []
    TABLE.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
