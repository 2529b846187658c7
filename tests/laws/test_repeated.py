"""Law: no score of the best of a random number of runs costs more than `Repeated` says.

The truth is enumerated: with outcomes in an order of score, the best of K runs is at most the i-th
with probability f(F_i), f the generating function of K and F_i that of one run.
"""

import itertools
import math
import random

import numpy as np
import pytest

from accountant import (
    GeometricTries,
    LogarithmicTries,
    NegativeBinomialTries,
    PairLoss,
    PoissonTries,
    Repeated,
    Tight,
)
from accountant.amplification import repeated
from accountant.numerics.logspace import logsumexp

ORDERS = np.array([1.1, 2.0, 4.0, 30.0])
EPSILONS = np.array([0.0, 0.1, 0.5, 1.5])
LAWS_OF_TRIES = [
    PoissonTries(0.2), PoissonTries(3.0), PoissonTries(40.0), GeometricTries(0.5),
    GeometricTries(0.02), LogarithmicTries(0.1), LogarithmicTries(0.001),
    NegativeBinomialTries(0.5, 0.05), NegativeBinomialTries(-0.5, 0.05),
    NegativeBinomialTries(3.0, 0.3), GeometricTries(1.0),
]  # fmt: skip


def best_of_runs(masses, tries):
    """Return the law of the best outcome, masses being in ascending order of score."""
    at_most = [tries.generating_function(x) for x in np.append(np.cumsum(masses[:-1]), 1.0)]
    return np.diff([0.0, *at_most])  # the least outcome also where there was no run


def best_or_none(masses, tries):
    """Return the same with the outcome of no run apart."""
    none, found = tries.generating_function(0.0), best_of_runs(masses, tries)
    return np.array([none, found[0] - none, *found[1:]])


def true_divergences(p, q):
    return [logsumexp(a * np.log(p) + (1 - a) * np.log(q)) / (a - 1) for a in ORDERS]


def pairs(seed, number):
    """Yield finite pairs of two to four outcomes, and sizes of epsilon from .05 to 3."""
    rng = random.Random(seed)
    for _ in range(number):
        size, reach = rng.randint(2, 4), 10 ** rng.uniform(-1.3, 0.5)
        p = np.array([rng.uniform(0.05, 1) for _ in range(size)])
        q = p * np.exp([reach * rng.uniform(-1, 1) for _ in range(size)])
        yield p / p.sum(), q / q.sum()


def violation(seed: int = 1, number: int = 4) -> str:
    """A score whose cost by enumeration is above the bound."""
    cached = [f for f in vars(repeated).values() if hasattr(f, "cache_clear")]
    for function in cached:
        function.cache_clear()
    try:
        for p, q in sorted(pairs(seed, number), key=lambda pair: pair[0].size):  # quick ones first
            for tries in LAWS_OF_TRIES:
                found = _violation_of(p, q, tries)
                if found:
                    return f"{found} for {tries} of {p} against {q}"
    finally:
        for function in cached:
            function.cache_clear()
    return ""


def _violation_of(p, q, tries):
    node = Repeated(PairLoss(p, q), tries)
    curve, profile, pure = node.renyi(ORDERS), node.profile(EPSILONS), node.max_loss
    tight = Tight().delta(node, float(EPSILONS[2]))
    for order in itertools.permutations(range(p.size)):
        some = list(order)
        one, other = (best_or_none(x[some], tries) for x in (p, q))
        kept = one > 1e-12
        one, other = one[kept], other[kept]
        if np.any(np.log(one / other) > pure * (1 + 1e-9) + 1e-9):
            return f"a loss above {pure}"
        if np.any(np.array(true_divergences(one, other)) > curve * (1 + 1e-9) + 1e-9):
            return f"divergences above {curve}"
        sticks = [np.maximum(one - math.exp(e) * other, 0.0).sum() for e in EPSILONS]
        if np.any(np.array(sticks) > profile * (1 + 1e-9) + 1e-11):
            return f"deltas above {profile}"
        if tight < sticks[2] * (1 - 1e-9) - 1e-11:
            return "a delta above that of Tight"
    return ""


def test_no_score_costs_more_than_the_bound():
    assert violation() == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_no_score_of_many_pairs_costs_more_than_the_bound(seed):
    assert violation(seed, 30) == ""
