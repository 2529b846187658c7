"""Law: epsilon and delta are two questions about one bound, and no accountant answers less.

``delta(plan, epsilon(plan, d)) <= d`` and ``epsilon(plan, delta(plan, e)) <= e``, up to rounding; both
fall; and `Tight` is at most every other accountant.
"""

import math

import numpy as np

from accountant import GDP, PLD, RDP, ZCDP, Advanced, Basic, UnsupportedPlan
from tests.laws.random_plans import DRAWS

SAME = 1e-9  # of delta, and of an epsilon that comes back from it
WIDTH = 1e-5  # the same of an epsilon that no engine was made for: what a coarse lattice aims at
OTHERS = (Basic(), Advanced(), ZCDP(), RDP(), PLD(), GDP())
DELTAS = (0.5, 1e-2, 1e-5, 1e-10, 1e-30)
# `PLD` rounds sums to nearest, and RDP looks for its order on a grid
ROUND_OFF = 1e-9
# numbers of plans that are quick; else 0 and 1
NUMBERS = {}


def agreement_violation(accountant, plan, delta) -> str:
    """An epsilon and a delta that say different things of one plan."""
    epsilon = accountant.epsilon(plan, delta)
    if math.isinf(epsilon):
        return ""
    found = accountant.delta(plan, epsilon)
    if not found <= delta * (1 + SAME):
        return f"delta {found} of {plan} at {epsilon}, which {delta} allows"
    back = accountant.epsilon(plan, found) if found < 1 else 0.0
    if not back <= epsilon * (1 + (SAME if found > delta * (1 - SAME) else WIDTH)):
        return f"epsilon {back} of {plan} at {found}, which is enough for {epsilon}"
    lower = accountant.delta(plan, 1.1 * epsilon)
    if not lower <= found * (1 + SAME):
        return f"delta grows from {found} to {lower} with epsilon {epsilon} of {plan}"
    less = accountant.epsilon(plan, min(1.1 * delta, 0.999))
    if not less <= epsilon * (1 + SAME):
        return f"epsilon grows from {epsilon} to {less} with delta {delta} of {plan}"
    return ""


def least_violation(accountant, plan) -> str:
    """An answer above that of another accountant."""
    for delta in DELTAS:
        found = accountant.epsilon(plan, delta)
        for other in OTHERS:
            try:
                theirs = other.epsilon(plan, delta)
            except UnsupportedPlan:
                continue
            if not found <= theirs * (1 + ROUND_OFF):
                return f"{other.name} says {theirs} of {plan} at {delta}, not {found}"
    return ""


def random_delta(kind, number):
    rng = np.random.default_rng([37, list(DRAWS).index(kind), number])
    return float(10 ** rng.uniform(-10, -1))
