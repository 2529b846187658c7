"""The tilted law of a sum on a lattice, against sums over all sequences and the stated widths."""

import math

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb

from accountant.verifier.document import Fields, NoProof, ProofError
from accountant.verifier.lattice_pairs import LatticePair
from accountant.verifier.lattice_sums import TiltedSum, composed

H, ROUND_OFF = 0.25, 1e-12
EPSILONS = (-1.0, -0.25, 0.0, 0.3, 0.5, 1.25, 3.0)


pytestmark = pytest.mark.usefixtures("at_128_bits")


def lattice_pair(first, masses, infinite=0.0, moved=0.0):
    return LatticePair(first, [arb(p) for p in masses], arb(infinite), arb(moved))


A = lattice_pair(-1, [0.125, 0.25, 0.5], 0.125, 0.0625)
B = lattice_pair(0, [0.25, 0.0, 0.0, 0.75], 0.0, -0.5)
C = lattice_pair(-2, [0.0, 0.5, 0.5])
SUMS = {
    "one": [(A, 1)], "repeated": [(A, 6)], "two": [(A, 3), (B, 2)],
    "three": [(C, 5), (B, 1), (A, 2)],
}  # fmt: skip


def tilted_sum(items, a, size):
    found = TiltedSum(a, arb(H), size)
    for pair, count in items:
        found.add(pair, count)
    return found


def law_of(items):
    """The law of the sum: its losses and masses, and the mass of infinite losses."""
    law, loss, finite = np.ones(1), 0.0, 1.0
    for pair, count in items:
        for _ in range(count):
            law = np.convolve(law, list(map(float, pair.masses)))
        loss += count * (pair.first * H - float(pair.moved))
        finite *= (1 - float(pair.infinite)) ** count
    return loss + H * np.arange(len(law)), law, 1 - finite


def delta(items, epsilon):
    losses, law, infinite = law_of(items)
    return infinite + law @ np.maximum(-np.expm1(epsilon - losses), 0)


@pytest.mark.parametrize("a", [0.25, 1.0, 6.0])
@pytest.mark.parametrize("name", SUMS)
def test_the_law_of_a_sum_is_tilted(name, a):
    items = SUMS[name]
    found = tilted_sum(items, a, 4096)
    losses, law, infinite = law_of(items)
    moved = sum(count * float(pair.moved) for pair, count in items)
    tilted = law * np.exp(a * (losses + moved))
    assert float(found.moment) == pytest.approx(tilted.sum())
    assert (float(found.finite), float(found.moved)) == pytest.approx((1 - infinite, moved))
    first, weights = found.weights
    assert first * H == pytest.approx((losses + moved)[0])
    # whole numbers, which are rounded down
    shares = np.array([int(weight) / 2**128 for weight in weights])
    assert np.pad(shares, (0, len(law) - len(shares))) == pytest.approx(tilted / tilted.sum())
    assert 0 <= 2**128 - int(sum(weights)) < 2**20
    for epsilon in EPSILONS:
        low, high = map(float, found.delta_bounds(epsilon))
        assert low == pytest.approx(delta(items, epsilon), abs=ROUND_OFF)
        assert high == pytest.approx(delta(items, epsilon), abs=ROUND_OFF)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("a", [0.25, 1.0, 6.0])
@pytest.mark.parametrize("name", SUMS)
def test_what_is_lost_of_a_law_is_added_above(name, a, size):
    items = SUMS[name]
    found = tilted_sum(items, a, size)
    first, weights = found.weights
    assert len(weights) <= size
    lost = 1 - int(sum(weights)) / 2**128
    moved = float(found.moved)
    constant = a**a / (1 + a) ** (1 + a)
    for epsilon in EPSILONS:
        low, high = map(float, found.delta_bounds(epsilon))
        truth = delta(items, epsilon)
        assert low <= truth + ROUND_OFF
        assert high >= truth - ROUND_OFF
        width = lost * float(found.moment) * math.exp(-a * (epsilon + moved)) * constant
        assert high - low == pytest.approx(width, rel=1e-6, abs=1e-15)
        kept = sum(
            int(weight) / 2**128 * float(found.moment) * math.exp(-a * loss)
            * max(-math.expm1(epsilon + moved - loss), 0.0)
            for loss, weight in zip(H * (first + np.arange(size)), weights, strict=False)
        )  # fmt: skip
        assert low == pytest.approx(kept + 1 - float(found.finite), abs=ROUND_OFF)


def test_a_window_is_about_the_mean_of_the_law():
    found = tilted_sum([(lattice_pair(0, [0.5, 0.25, 0.25]), 20)], 1.0, 9)
    losses, law, _ = law_of([(lattice_pair(0, [0.5, 0.25, 0.25]), 20)])
    tilted = law * np.exp(losses)
    mean = tilted @ np.arange(len(law)) / tilted.sum()
    first, weights = found.weights
    assert len(weights) == 9
    assert first <= mean <= first + 8
    assert abs(first + 4 - mean) < 1.5


@pytest.mark.parametrize("radius", [1e-12, 1e-6])
def test_a_point_that_may_be_beyond_epsilon_is_counted_in_the_error(radius):
    pair = LatticePair(0, [arb(0.5), arb(0.5)], arb(0), arb(0.1, radius))
    found = TiltedSum(2.0, arb(H), 16)
    found.add(pair, 1)
    for shift in (-radius, 0.0, radius):
        exact = lattice_pair(0, [0.5, 0.5], moved=0.1 + shift)
        for epsilon in (-0.1, 0.15, 0.15 + radius / 2, 0.0):
            low, high = found.delta_bounds(epsilon)
            truth = delta([(exact, 1)], epsilon)
            assert float(low.lower()) <= truth + 1e-16
            assert float(high.upper()) >= truth - 1e-16
    low, high = found.delta_bounds(0.15)
    point = (arb(0.15) + found.moved) / H
    error = 3 * 3 * H * float(point.upper() - point.lower())
    least = error * float(found.moment) * math.exp(-2 * 0.25) * 4 / 27
    assert float((high - low).mid()) == pytest.approx(least, rel=1e-3)


def test_an_epsilon_that_is_not_known_is_refused():
    found = TiltedSum(1.0, arb(H), 16)
    found.add(LatticePair(0, [arb(1)], arb(0), arb(0, 0.05)), 1)
    with pytest.raises(NoProof, match="not known well"):
        found.delta_bounds(0.1)
    with pytest.raises(NoProof, match="without finite losses"):
        found.add(lattice_pair(0, [0.0], 1.0), 1)


ENTRY = {"a": 2.0, "h": 0.25, "slack": 0.0, "size": 64, "rules": []}


@pytest.mark.parametrize("change", [
    {"a": 0.0}, {"a": 2e9}, {"h": 0.0}, {"h": 2e3}, {"slack": -0.5}, {"slack": 1.5}, {"size": 1},
    {"size": 2**18 + 1}, {"size": 64.0}, {"rules": {}}, {"rules": None},
], ids=repr)  # fmt: skip
def test_an_entry_out_of_its_range_is_refused(change):
    def entry(given):
        numbers = {k: x.hex() if isinstance(x, float) else x for k, x in given.items()}
        return Fields(numbers, "an entry")

    masses = ("response", arb(1), 0)
    assert composed([(masses, 2)], False, entry(ENTRY), above=True)(0.5)
    with pytest.raises(ProofError):
        composed([(masses, 2)], False, entry(ENTRY | change), above=True)
    with pytest.raises(NoProof, match="more rules"):
        composed([(masses, 2)], False, entry(ENTRY | {"rules": [{}]}), above=True)
    with pytest.raises(NoProof, match="too fine"):
        composed([(masses, 2)], False, entry(ENTRY | {"h": 2.0**-6, "size": 6}), above=True)
