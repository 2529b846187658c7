"""Pairs on a lattice above products and sets, and pairs that bound sets, against sums in floats."""

import itertools
import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb, ctx

from accountant.verifier import pairs_of_sets
from accountant.verifier.bounding_pairs import bounding_pair
from accountant.verifier.document import NoProof
from accountant.verifier.lattice_pairs import LatticePair
from accountant.verifier.pairs_of_sets import (
    both_above,
    deltas_at_points,
    greatest_pair,
    pair_moved,
    pair_of,
    power_above,
    sum_above,
)

H, ROUND_OFF = 0.25, 1e-13
POINTS = np.linspace(-4, 4, 81)


pytestmark = pytest.mark.usefixtures("at_128_bits")


def lattice_pair(first, masses, infinite=0.0, moved=0.0):
    return LatticePair(first, [arb(p) for p in masses], arb(infinite), arb(moved))


def atoms(pair):
    """The finite losses of a pair and P of each, in floats."""
    losses = [(pair.first + i) * H - float(pair.moved) for i in range(len(pair.masses))]
    return np.array(losses), np.array(list(map(float, pair.masses)))


def deltas(pair, epsilons=POINTS):
    """Delta of a pair on the lattice at some numbers."""
    losses, p = atoms(pair)
    gain = np.maximum(-np.expm1(np.asarray(epsilons)[:, None] - losses), 0)
    return float(pair.infinite) + gain @ p


def deltas_of_product(pairs, epsilons=POINTS):
    """Delta of several pairs together, by all sequences of their losses."""
    total, finite = np.zeros(len(epsilons)), 1.0
    for combined in itertools.product(*(list(zip(*atoms(pair), strict=True)) for pair in pairs)):
        loss, p = sum(one for one, _ in combined), math.prod(mass for _, mass in combined)
        total += p * np.maximum(-np.expm1(epsilons - loss), 0)
    finite = math.prod(1 - float(pair.infinite) for pair in pairs)
    return total + 1 - finite


A = lattice_pair(-1, [0.125, 0.25, 0.5], 0.125, 0.0625)
B = lattice_pair(1, [0.25, 0.0, 0.0, 0.75], 0.0, -0.5)
C = lattice_pair(0, [0.5, 0.125, 0.25], 0.125, 0.0625)


@pytest.mark.parametrize("pairs", [(A, B), (B, A), (A, A), (A, C), (B, C)])
def test_two_pairs_are_one_with_the_sums_of_their_losses(pairs):
    found = both_above(*pairs)
    assert deltas(found) == pytest.approx(deltas_of_product(pairs), abs=ROUND_OFF)
    assert float(found.infinite) == 1 - math.prod(1 - float(pair.infinite) for pair in pairs)
    assert float(found.moved) == sum(float(pair.moved) for pair in pairs)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_a_pair_is_repeated_as_often_as_said(count):
    for pair in (A, B):
        found = power_above(pair, count)
        assert deltas(found) == pytest.approx(deltas_of_product([pair] * count), abs=ROUND_OFF)


def test_thin_ends_are_cut_off_to_larger_losses():
    thin, half = 2.0**-98, 0.5 - 2.0**-98
    ends = lattice_pair(-9, [thin, thin, half, half, thin, thin])
    one = lattice_pair(4, [1.0])
    found = both_above(ends, one)
    assert (found.first, len(found.masses)) == (-3, 2)
    with ctx.workprec(500):
        assert found.infinite == arb(2) * arb(thin)
        assert found.masses[0] == arb(half) + 2 * arb(thin)
        assert found.masses[1] == arb(half)
    # a quarter of what is thin four times over is not thin: one point stays at each end
    five = lattice_pair(-9, [*[thin] * 5, 0.5, 0.5, *[thin] * 5])
    found = both_above(five, one)
    assert (found.first, len(found.masses)) == (-2, 6)
    with ctx.workprec(500):
        assert found.infinite == 3 * arb(thin)
        assert found.masses[0] == 4 * arb(thin)
    nothing = both_above(lattice_pair(3, [thin]), one)
    assert (nothing.first, len(nothing.masses)) == (7, 1)
    assert float(nothing.masses[0]) == thin
    assert nothing.infinite == 0
    nothing = both_above(lattice_pair(3, [0.0], 1.0), one)
    assert (nothing.infinite, nothing.masses) == (1, [0])


@pytest.mark.parametrize("pair", [A, B, C])
def test_deltas_at_points_are_those_of_the_losses(pair):
    last = pair.first + len(pair.masses) - 1
    for low, high in ((pair.first, last), (pair.first - 3, last), (pair.first - 2, last + 4)):
        found = deltas_at_points(pair, low, high, arb(H))
        at = [k * H - float(pair.moved) for k in range(low, high + 1)]
        assert list(map(float, found)) == pytest.approx(deltas(pair, at), abs=ROUND_OFF)


@pytest.mark.parametrize("pair", [A, B, C])
@pytest.mark.parametrize("moved", [-0.5, -0.125, 0.0, 0.0625, 0.1875, 0.3, 2.0])
def test_a_pair_on_other_points_is_above(pair, moved):
    found = pair_moved(pair, arb(moved), arb(H))
    assert float(found.moved) == moved
    more = deltas(found) - deltas(pair)
    assert more.min() >= -ROUND_OFF
    # no loss moves farther than to the next point, and on the same points none moves
    assert (deltas(found) <= deltas(pair, POINTS - H) + ROUND_OFF).all()
    if (moved - float(pair.moved)) % H == 0:
        assert more.max() <= ROUND_OFF
    assert float(found.infinite) == float(pair.infinite)
    assert sum(map(float, found.masses)) == pytest.approx(sum(map(float, pair.masses)))


@pytest.mark.parametrize("pairs", [[A], [A, C], [A, B], [B, A], [C, B, A], [A, A]])
def test_one_pair_above_several_is_the_greatest_of_them_at_points(pairs):
    found = greatest_pair(list(pairs), arb(H))
    most = np.max([deltas(pair) for pair in pairs], axis=0)
    assert (deltas(found) >= most - ROUND_OFF).all()
    tops = [atoms(pair)[0].max() for pair in pairs]
    moved = pairs[int(np.argmax(tops))].moved
    assert found.moved == moved
    at = np.arange(-20, 20) * H - float(moved)
    others = [pair_moved(pair, moved, arb(H)) for pair in pairs]
    exact = np.max([deltas(pair, at) for pair in others], axis=0)
    assert deltas(found, at) == pytest.approx(exact, abs=1e-12)
    middle = (at[1:] + at[:-1]) / 2  # chords in e^eps, which the pair above follows
    share = (np.exp(middle) - np.exp(at[:-1])) / (np.exp(at[1:]) - np.exp(at[:-1]))
    chords = exact[:-1] + share * (exact[1:] - exact[:-1])
    first = sum(middle < (min(pair.first for pair in others) - 1) * H - float(moved))
    assert deltas(found, middle)[first:] == pytest.approx(chords[first:], abs=1e-12)
    losses, p = atoms(found)
    assert min(p) >= -ROUND_OFF
    assert p @ np.exp(-losses) <= 1 + 1e-12  # the mass of Q
    assert p.sum() + float(found.infinite) == pytest.approx(1)


def exact_pair(*masses):
    return "pair", tuple((Fraction(p, 8), Fraction(q, 8)) for p, q in masses)


SKEW, ONE_SIDED = exact_pair((1, 3), (2, 4), (5, 1)), exact_pair((1, 0), (6, 5), (1, 3))
SHOWN = exact_pair((8, 0), (0, 8))


def true_delta(releases, epsilons, back=False):
    """Delta of releases one after the other, by all sequences of their outcomes."""
    total = np.zeros(len(epsilons))
    for sequence in itertools.product(*(release[1] for release in releases)):
        p, q = (math.prod(float(mass[side]) for mass in sequence) for side in (0, 1))
        p, q = (q, p) if back else (p, q)
        total += np.maximum(p - np.exp(epsilons) * q, 0)
    return total


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("slack", [0.0, 0.03125])
@pytest.mark.parametrize("release", [SKEW, ONE_SIDED, SHOWN])
def test_a_pair_is_above_or_below_with_its_largest_loss_near_a_point(release, slack, back):
    largest = max(
        [
            math.log(p / q)
            for p, q in ((b, a) if back else (a, b) for a, b in release[1])
            if p and q
        ],
        default=0.0,
    )
    truth = true_delta([release], POINTS, back)
    for above, sign in ((True, 1), (False, -1)):
        found = pair_of(release, back, [], arb(H), slack, above=above)
        assert float(found.moved) == pytest.approx(-sign * slack - largest)
        assert (sign * (deltas(found) - truth) >= -ROUND_OFF).all()
        assert np.abs(deltas(found) - truth).max() < H


@pytest.mark.parametrize("back", [False, True])
def test_parts_of_a_set_are_bounded_by_one_pair(back):
    parts = (((SKEW, 2), (ONE_SIDED, 1)), ((ONE_SIDED, 3),))
    sequences = [[SKEW, SKEW, ONE_SIDED], [ONE_SIDED] * 3]
    truths = [true_delta(one, POINTS, back) for one in sequences]
    for part, truth in zip(parts, truths, strict=True):
        found = sum_above(part, back, [], arb(H), 0.01)
        assert (deltas(found) >= truth - ROUND_OFF).all()
        assert (deltas(found) - truth).max() < H
    alone = pair_of(SKEW, back, [], arb(H), 0.01, above=True)
    found = sum_above(((SKEW, 1),), back, [], arb(H), 0.01)
    assert deltas(found) == pytest.approx(deltas(alone), abs=ROUND_OFF)
    found = pair_of(("any of", parts), back, [], arb(H), 0.01, above=True)
    most = np.max(truths, axis=0)
    assert (deltas(found) >= most - ROUND_OFF).all()
    assert (deltas(found) - most).max() < 2 * H
    nested = ("any of", (((("any of", parts), 1),), ((SKEW, 1),)))
    assert (deltas(pair_of(nested, back, [], arb(H), 0.01, above=True)) >= most - ROUND_OFF).all()
    with pytest.raises(NoProof, match="none below"):
        pair_of(("any of", parts), back, [], arb(H), 0.01, above=False)


def test_a_lattice_has_no_more_points_than_the_limit(monkeypatch):
    spread = lattice_pair(0, [0.25] * 4)
    monkeypatch.setattr(pairs_of_sets, "MOST_SIZE", 7)
    assert len(both_above(spread, spread).masses) == 7
    far = lattice_pair(-3, [0.5, 0.5])
    assert len(greatest_pair([spread, far], arb(H)).masses) == 7
    monkeypatch.setattr(pairs_of_sets, "MOST_SIZE", 6)
    with pytest.raises(NoProof, match="too fine"):
        both_above(spread, spread)
    with pytest.raises(NoProof, match="too fine"):
        greatest_pair([spread, far], arb(H))


ONE, ZERO, RATE, SQUARE = Fraction(1), Fraction(0), Fraction(1, 4), Fraction(9, 16)


def mixture(unit_squared, rate, *, replaced):
    """The laws of a sampled Gaussian, as shifts and their chances in floats."""
    sides = {0: 1 - rate, 1: rate}, ({0: 1 - rate, -1: rate} if replaced else {0: 1.0})
    return unit_squared, *sides


def in_floats(release):
    kind, unit_squared, *sides = release
    assert kind == "mixture"
    places = [{int(s) for _, s in side} for side in sides]
    return float(unit_squared), *(
        {place: float(sum(w for w, s in side if s == place)) for place in sorted(at)}
        for at, side in zip(places, sides, strict=True)
    )


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(("records", "batch"), [(9, 4), (5, 1), (12, 11), (2, 1), (7, 6)])
def test_a_truncated_sample_is_bounded_by_whether_places_are_left(records, batch, replaced):
    release = ("truncated", SQUARE, RATE, records, batch, replaced)
    rate, others = float(RATE), records - 1
    chances = [comb(others, k) * rate**k * (1 - rate) ** (others - k) for k in range(records)]
    full, last = sum(chances[batch:]), chances[batch - 1]
    # of k others in a full batch the record takes one of k + 1 places' shares of the batch
    kept = sum(chances[k] * batch / (k + 1) for k in range(batch, records))
    kind, parts = bounding_pair(release, above=True)
    assert kind == "choice"
    assert [float(chance) for chance, _ in parts] == pytest.approx((1 - full - last, full + last))
    (_, added), (_, few_places) = parts
    assert in_floats(added) == mixture(9 / 16, rate, replaced=replaced)
    total = last + full
    away, unsampled, inside = (
        chance / total for chance in (full - rate * kept, (1 - rate) * last, rate * (last + kept))
    )
    opposed = {-1: away, 0: unsampled, 1: inside}
    if replaced:
        symmetric, *pairs = few_places
        assert symmetric == "subset"
        wanted = [(opposed, {-1: away + inside, 0: unsampled})]
    else:
        joined, loss, *pairs = few_places
        assert (joined, float(loss)) == ("joined", pytest.approx(math.log(away * total / full)))
        wanted = [
            ({0: unsampled, 1: away + inside}, {0: last / total, 1: full / total}),
            (opposed, {-1: full / total, 0: last / total}),
        ]
    for found, expected in zip(pairs, wanted, strict=True):
        square, *sides = in_floats(found)
        assert square == 9 / 16
        assert sides == [pytest.approx(side) for side in expected]
    below = in_floats(bounding_pair(release, above=False))
    inside = (1 - full + kept) * rate
    expected = mixture(9 / 16, inside, replaced=replaced)
    assert below[0] == expected[0]
    assert below[1] == pytest.approx(expected[1])
    assert below[2] == pytest.approx(expected[2])


def test_a_bound_is_exchanged_for_its_pair_on_the_side_that_is_proved():
    gaussian, response = ("gaussian", SQUARE), ("response", ONE, ZERO)
    bound = ("bound", gaussian, response)
    assert bounding_pair(bound, above=True) == gaussian
    assert bounding_pair(bound, above=False) == response
    nested = ("bound", bound, ("bound", gaussian, bound))
    assert bounding_pair(nested, above=True) == gaussian
    assert bounding_pair(nested, above=False) == response
    assert bounding_pair(("bound", gaussian, None), above=False) is None
    for above in (True, False):
        assert bounding_pair(SKEW, above=above) == SKEW
    sets = ("any of", (((bound, 2), (SKEW, 1)), ((gaussian, 1),)))
    assert bounding_pair(sets, above=True) == (
        "any of", (((gaussian, 2), (SKEW, 1)), ((gaussian, 1),))
    )  # fmt: skip
    truncated = ("truncated", SQUARE, RATE, 9, 4, False)
    for above in (True, False):
        alone, inside = (
            bounding_pair(one, above=above) for one in (truncated, ("bound", truncated, truncated))
        )
        assert alone[0] == inside[0] != "truncated"
