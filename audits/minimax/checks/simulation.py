"""Beyond enumeration: the best known protocol on data of any size, decoded, against its bound."""

from __future__ import annotations

import math

import numpy as np

from accountant.domains import IntegerRange, Interval
from accountant.randomness import Rng, generator
from audits.minimax.checks.enumeration import Check
from audits.minimax.decoding.record_decoding import most_right
from audits.minimax.families.signed_basis import SignedBasis
from audits.statistics.binomial_bounds import clopper_pearson_lower

_EPSILON = Interval(0.0, 300.0, "(]")


def count_right_decodes(
    family: SignedBasis, n: int, epsilon: float, runs: int, rng: Rng = 0
) -> int:
    """How often in ``runs`` the point is decoded: user i answers for coordinate ``i mod p``.

    Each says the sign ``y x_j`` by randomised response, epsilon-LDP without interaction; the point
    whose coordinate has the largest sum is the likeliest, and is decoded.
    """
    n, runs = IntegerRange(1).check("n", n), IntegerRange(1).check("runs", runs)
    epsilon, source = _EPSILON.check("epsilon", epsilon), generator(rng)
    asked = np.arange(n) % family.p
    right = 0
    for _ in range(runs):
        which = int(source.integers(family.points))
        x, y = family.sample(which, n, source)
        signs = np.sign(y) * x[np.arange(n), asked]
        told = np.where(source.random(n) < 1 / (1 + math.exp(-epsilon)), signs, -signs)
        sums = np.bincount(asked, told, minlength=family.p)
        right += family.decode(sums.astype(float)) == which
    return right


def simulated_check(
    family: SignedBasis, n: int, epsilon: float, runs: int = 2000, rng: Rng = 0
) -> Check:
    """The rate of `count_right_decodes`, less its error at 1e-6, against what is possible."""
    right = count_right_decodes(family, n, epsilon, runs, rng)
    rate = float(clopper_pearson_lower(np.array(float(right)), np.array(float(runs)), 1e-6))
    case = f"p = {family.p}, n = {n}, epsilon = {epsilon:g}, d = {family.d:g}, "
    case += f"sign of a coordinate: {right} of {runs:,} runs"
    return Check("P(right decode), simulated", case, rate, most_right(family, n, epsilon))
