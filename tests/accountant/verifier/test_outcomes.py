"""Sums over the outcomes of repeated releases, against those over all their sequences."""

import itertools
import math
from fractions import Fraction

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.verifier.balls import Budget
from accountant.verifier.outcomes import delta_by_enumeration

CERTAIN = ("pair", ((Fraction(1), Fraction(1)),))
SKEW = ("pair", tuple((Fraction(p, 8), Fraction(q, 8)) for p, q in ((1, 3), (2, 4), (5, 1))))
ONE_SIDED = ("pair", tuple((Fraction(p, 8), Fraction(q, 8)) for p, q in ((1, 0), (6, 5), (1, 3))))
RESPONSE = ("response", Fraction(1, 2), Fraction(1, 100))
LAPLACE = ("discrete laplace", Fraction(2), 3)
GAUSSIAN = ("discrete gaussian", Fraction(3, 2), 2)
SAMPLED = ("sampled", Fraction(1, 4), (SKEW, ("discrete laplace", Fraction(1), 1)))
CASES = {
    "one": [(SKEW, 1)],
    "repeated": [(SKEW, 3)],
    "certain, before another": [(CERTAIN, 2), (SKEW, 2)],
    "certain, after another": [(SKEW, 2), (CERTAIN, 1)],
    "infinite losses": [(ONE_SIDED, 2), (SKEW, 1)],
    "response": [(RESPONSE, 4)],
    "discrete Laplace": [(LAPLACE, 3), (RESPONSE, 1)],
    "discrete Gaussian": [(GAUSSIAN, 1)],
    "discrete Gaussian, repeated": [(GAUSSIAN, 2)],
    "discrete Gaussian, after another": [(SKEW, 2), (GAUSSIAN, 1)],
    "sampled": [(SAMPLED, 2), (ONE_SIDED, 1)],
}


def masses(release):
    """The masses (p, q) of the outcomes of a release, in floats."""
    kind, *numbers = release
    if kind == "pair":
        return [(float(p), float(q)) for p, q in numbers[0]]
    if kind == "response":
        odds, shown = math.exp(numbers[0]), float(numbers[1])
        keep = (1 - shown) * odds / (1 + odds)
        return [(keep, 1 - shown - keep), (1 - shown - keep, keep), (shown, 0.0), (0.0, shown)]
    if kind in ("discrete laplace", "discrete gaussian"):
        scale, shift = numbers
        power, last = (1, 70) if kind == "discrete laplace" else (2, 32)
        weights = {
            k: math.exp(-((abs(k) / scale) ** power) / power) for k in range(-last, last + 1)
        }
        total = sum(weights.values())
        ks = range(shift - last, last + 1)
        return [(weights[k - shift] / total, weights[k] / total) for k in ks]
    rate, parts = numbers
    sequences = itertools.product(*map(masses, parts))
    products = [[math.prod(side) for side in zip(*outcome, strict=True)] for outcome in sequences]
    return [(float(1 - rate) * q + float(rate) * p, q) for p, q in products]


def distinct_losses(pairs):
    """The same masses with outcomes of one ratio added up."""
    sums = {}
    for p, q in pairs:
        key = round(math.log(p / q), 9) if p > 0 < q else (p > 0, q > 0)
        old = sums.get(key, (0.0, 0.0))
        sums[key] = old[0] + p, old[1] + q
    return list(sums.values())


def delta(items, epsilon, back):
    sums = [(1.0, 1.0)]
    for release, count in items:
        factor = [(q, p) if back else (p, q) for p, q in masses(release)]
        for _ in range(count):
            sums = distinct_losses([(a * p, b * q) for a, b in sums for p, q in factor])
    return sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in sums)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_delta_is_that_of_all_sequences(name, back, monkeypatch):
    monkeypatch.setattr(Budget, "remaining", 1e9)
    for epsilon in (0.0, 0.3, 1.5, 20.0):
        truth = delta(CASES[name], epsilon, back)
        for end in delta_by_enumeration(CASES[name], back, epsilon):
            assert float(end) == pytest.approx(truth, rel=1e-9, abs=1e-12)
