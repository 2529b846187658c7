"""Coarse lattices of the checker of proofs: few points are kept, and losses are moved far."""

import math
from fractions import Fraction

import numpy as np
from flint import ctx

from accountant.verifier import NoProof, lattice_sums, outcomes
from accountant.verifier.balls import Budget, exact
from tests.laws.error_bounds.proof_series import fields

ROUND_OFF = 1e-12  # of the truths, which are floats


def _random_pair(rng):
    """A release of two or three outcomes, and at times one that Q never has."""
    p, q = rng.dirichlet(np.full(int(rng.integers(2, 4)), 1.5), 2)
    if rng.random() < 0.5:
        p, q = np.append(0.9 * p, 0.1), np.append(q, 0.0)
    exact = [[Fraction(x) for x in one.tolist()] for one in (p, q)]
    return "pair", tuple(zip(*([x / sum(one) for x in one] for one in exact), strict=True))


def _delta(outcomes, n, epsilon):
    """Sum (p - e^eps q)_+ over the outcomes of n releases."""
    p, q = law = np.array([(float(a), float(b)) for a, b in outcomes]).T
    for _ in range(n - 1):
        p, q = (np.outer(one, each).ravel() for one, each in zip((p, q), law, strict=True))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def lattice_violation(seeds=range(80)):
    """Few releases on a lattice as wide as their losses, of which few points are kept."""
    with ctx.workprec(128):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            pair, n = _random_pair(rng), int(rng.integers(1, 6))
            given = {
                "a": float(rng.uniform(0.3, 9.0)), "h": float(10 ** rng.uniform(-1.5, 0)),
                "slack": float(rng.choice([0.0, 0.01, 0.2])),
                "size": int(rng.choice([4, 12, 4096])),
            }  # fmt: skip
            top = max(math.log(p / q) for p, q in pair[1] if q)
            epsilon = float(rng.uniform(-0.5, 0.9)) * n * top
            truth = _delta(pair[1], n, epsilon)
            Budget.remaining = math.inf
            try:
                low, high = (
                    lattice_sums.composed(
                        [(pair, n)], False, fields(**given, rules=[]), above=above
                    )(epsilon)[above]
                    for above in (False, True)
                )
            except NoProof:  # of so few points that losses are further apart
                continue
            if not float(low) - ROUND_OFF <= truth <= float(high) + ROUND_OFF:
                return f"seed {seed}: {truth} not in [{low}, {high}]"
    return ""


def set_violation(seeds=range(30)):
    """Pairs above one of two releases, each made twice, with outcomes that are rare or certain."""
    with ctx.workprec(64):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            pairs = [_random_pair(rng), _random_pair(rng)]
            rare = [(Fraction(1, 10**10), Fraction(1, 10**k)) for k in (14, 13)]
            pairs = [
                ("pair", (*((p * (1 - r), q * (1 - s)) for p, q in pair[1]), (r, s)))
                for pair, (r, s) in zip(pairs, rare, strict=True)
            ]
            top = max(math.log(p / q) for pair in pairs for p, q in pair[1] if q)
            epsilon = float(rng.uniform(0.3, 2.0)) * top
            truth = max(_delta(pair[1], 2, epsilon) for pair in pairs)
            given = {"a": 2.0, "h": 0.05, "slack": 0.0, "size": 4096}
            Budget.remaining = math.inf
            release = "any of", tuple(((pair, 2),) for pair in pairs)
            bounds = lattice_sums.composed(
                [(release, 1)], False, fields(**given, rules=[]), above=True
            )
            if not truth * (1 - 1e-6) <= float(bounds(epsilon)[1]):
                return f"seed {seed}: {truth} above {bounds(epsilon)[1]}"
    return ""


def discrete_gaussian_violation():
    """Discrete Gaussian noise of which few outcomes are listed."""
    # in so many digits that what is beyond 16 deviations is seen
    Budget.remaining = math.inf
    with ctx.workprec(2000):
        law, total = outcomes.outcomes(("discrete gaussian", Fraction(3), 1), back=False)
        weights = [(-(exact(Fraction(k * k, 18)))).exp() for k in range(-400, 401)]
        whole = sum(weights[1:], weights[0])
        for k, (p, q) in enumerate(law):
            place = 1 - len(law) // 2 + k
            if not q.overlaps(weights[400 + place] / whole):
                return f"the mass of {place} is not in {q}"
            if not p.overlaps(weights[400 + place - 1] / whole):
                return f"the mass of {place} is not in {p}"
        return "" if total.overlaps(exact(Fraction(1))) else f"the mass is {total}"
