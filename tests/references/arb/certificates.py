"""Random plans against their certificates: is the true delta where Tight says it is?"""

import math

import numpy as np
from flint import arb, ctx

from accountant import Tight
from tests.references.arb.contour import OutOfReach
from tests.references.arb.families import FAMILIES, log_uniform

BITS = 128
SEED = 20


def random_plan(number, seed=SEED, names=None):
    """Family, plan and delta of a number; the same whatever else exists."""
    rng = np.random.default_rng([seed, number])
    names = names or list(FAMILIES)
    weights = np.array([FAMILIES[name].share for name in names])
    name = str(rng.choice(names, p=weights / weights.sum()))
    plan = FAMILIES[name].draw(rng)
    delta = log_uniform(rng, 1e-12, 1e-3)
    if FAMILIES[name].most and rng.random() < 0.15:
        delta = 0.0
    return name, plan, delta


def judge(name, plan, delta, found=None):
    """What is wrong with the certificate ("" if nothing), and how sure the reference is.

    Returns
    -------
    str, str
        The violation, and "proved", or "open" where the ball holds delta, or why it was not tried.
    """
    family = FAMILIES[name]
    if found is None:
        found = Tight().certify(family.build(plan), delta)
    lower, upper = found.lower, found.upper
    if math.isinf(upper):
        return "", "infinite"
    ctx.prec = BITS
    if delta == 0:
        # there all numbers are read as the decimals that they are printed as: docs/certificates.md
        most = family.most(plan)
        if most > arb(repr(upper)) or most < arb(repr(lower)):
            return f"[{lower!r}, {upper!r}]: the largest loss is {most.str(20)}", "proved"
        return "", "proved"
    try:
        at_lower, at_upper = family.truth(plan, [lower, upper])
    except OutOfReach as reason:
        return "", f"out of reach: {reason}"
    target = arb(delta)
    if at_upper > target:
        return f"upper end {upper!r}: delta is {at_upper.str(20)} there", "proved"
    if lower > 0 and at_lower < target:
        return f"lower end {lower!r}: delta is {at_lower.str(20)} there", "proved"
    sure = at_upper <= target and (lower == 0 or at_lower >= target)
    return "", "proved" if sure else "open"
