"""Pairs on a lattice above and below each item of a plan, sets of releases among them.

A release is a pair (P, Q) of laws on two neighbours.  A pair above it has a delta at least as large
at every epsilon, a pair below it one at most as large; on a lattice its losses are multiples of h,
but for a common shift (``moved``).

A set stands for several pairs, of which one is chosen at each occurrence.  One pair above all of
them is made on the lattice: the pair whose delta is the greatest of theirs at its points.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from flint import arb, arb_poly, ctx

from .balls import spend
from .cells import Cell, cells
from .document import need
from .lattice_pairs import LatticePair, on_points
from .releases import ANY_OF, Release

MOST_SIZE = 2**18  # points of the law of a sum at most, which bounds the time of a check


def pair_of(
    release: Release, back: bool, rules: list[Any], h: arb, slack: float, *, above: bool
) -> LatticePair:
    """Return the pair above or below a release, its largest loss a ``slack`` below a point.

    Theorem (`chosen_by_answers`: Zhu, Dong & Wang 2022, Theorem 10): a release that stands for a
    set, of which earlier answers choose, costs at most what a pair above all of the set does.
    """
    if release[0] == ANY_OF:
        need(above, "a set has one pair above it, and none below")
        pairs = [sum_above(part, back, rules, h, slack) for part in release[1]]
        return greatest_pair(pairs, h)
    outcome_cells = cells(release, back, rules)
    largest_loss = [arb(0), *(high for *_, high in outcome_cells if high is not None)][-1].mid()
    moved = (-slack if above else slack) - largest_loss
    return on_points(outcome_cells, moved, h, above=above)


def sum_above(part: Any, back: bool, rules: list[Any], h: arb, slack: float) -> LatticePair:
    """Return a pair above all releases of a part of a set, one after the other.

    Theorem (`composition`: Zhu, Dong & Wang 2022, Theorem 10): laws of independent releases
    multiply, and a pair above each is above all.
    """
    total = LatticePair(0, [arb(1)], arb(0), arb(0))
    for release, count in part:
        pair = pair_of(release, back, rules, h, slack, above=True)
        total = both_above(total, power_above(pair, count))
    return total


def power_above(pair: LatticePair, count: int) -> LatticePair:
    """Return a pair above ``count`` releases of a pair, by repeated squares."""
    power = pair
    for bit in bin(count)[3:]:  # the binary digits after the first, which is 1
        power = both_above(power, power)
        power = both_above(power, pair) if bit == "1" else power
    return power


def both_above(former: LatticePair, latter: LatticePair) -> LatticePair:
    """Return a pair above two pairs, one after the other, without its thin tails.

    What is cut off above is counted as infinite; what is cut off below moves up to the lowest point
    that stays.  Both move mass of P to larger losses, which only raises delta.
    """
    spend(40 * (len(former.masses) + len(latter.masses)))
    masses = (arb_poly(former.masses) * arb_poly(latter.masses)).coeffs() or [arb(0)]
    # The mass of P that may be cut off at either end: a smaller one would keep more points.
    thin = arb(2) ** (32 - ctx.prec)
    stop, beyond = len(masses), arb(0)
    while stop > 1 and beyond + masses[stop - 1] < thin:
        stop, beyond = stop - 1, beyond + masses[stop - 1]
    start, before = 0, arb(0)
    while start < stop - 1 and before + masses[start] < thin:
        start, before = start + 1, before + masses[start]
    need(stop - start <= MOST_SIZE, "a lattice too fine")
    infinite = 1 - (1 - former.infinite) * (1 - latter.infinite)
    return LatticePair(
        former.first + latter.first + start,
        [masses[start] + before, *masses[start + 1 : stop]],
        infinite + beyond,
        former.moved + latter.moved,
    )


def greatest_pair(pairs: list[LatticePair], h: arb) -> LatticePair:
    """Return a pair above each of some pairs: its delta at the points is their greatest there.

    Theorem (`chords_of_a_set`): in x = e^eps each delta is convex, is 1 at x = 0, and straight
    between the points.  So their maximum is convex, and at most its own chords between the points.
    The chords are the delta of a pair: Q has the mass beyond a point by which their slope falls
    there ("connect the dots", Doroshenko et al. 2022).  With G_k at the point k, P has there
    (G_{k-1} - G_k) / (1 - e^-h) - (G_k - G_{k+1}) / (e^h - 1).
    """
    tops = [float((pair.first + len(pair.masses)) * h - pair.moved) for pair in pairs]
    moved = pairs[tops.index(max(tops))].moved
    pairs = [pair_moved(pair, moved, h) for pair in pairs]
    lowest = min(pair.first for pair in pairs)
    highest = max(pair.first + len(pair.masses) for pair in pairs) - 1
    need(highest - lowest < MOST_SIZE, "a lattice too fine")
    spend(20 * len(pairs) * (highest - lowest + 1))
    curves = [deltas_at_points(pair, lowest, highest, h) for pair in pairs]
    greatest = [reduce(arb.max, deltas) for deltas in zip(*curves, strict=True)]
    infinite = greatest[-1]
    before = 1 - (-h).exp() * (1 - greatest[0])  # on the chord from delta 1 at x = 0
    values = [before, *greatest, infinite]
    falling, rising = 1 - (-h).exp(), h.exp() - 1
    masses = [
        (values[k - 1] - values[k]) / falling - (values[k] - values[k + 1]) / rising
        for k in range(1, len(values) - 1)
    ]
    return LatticePair(lowest, masses, infinite, moved)


def pair_moved(pair: LatticePair, moved: arb, h: arb) -> LatticePair:
    """Return a pair above one whose losses are moved by another number than its own."""
    shift = moved - pair.moved
    if shift.is_zero() or pair.moved is moved:
        return pair
    losses = [(p, (pair.first + i) * h) for i, p in enumerate(pair.masses)]
    atoms = [Cell(p, p * (-loss).exp(), loss, loss) for p, loss in losses]
    spend(20 * len(atoms))
    lowest, masses, infinite, _ = on_points(atoms, shift, h, above=True)
    return LatticePair(lowest, masses, infinite + pair.infinite, moved)


def deltas_at_points(pair: LatticePair, lowest: int, highest: int, h: arb) -> list[arb]:
    """Return delta of a pair at the points ``lowest`` to ``highest``, which include all of its own.

    From the last point down, delta_k = (mass beyond k) - e^{kh} sum_{i > k} p_i e^{-ih}.
    """
    step, beyond, discounted = (-h).exp(), pair.infinite, arb(0)
    deltas = []
    for k in range(highest, lowest - 1, -1):
        deltas.append(beyond - discounted)
        mass = pair.masses[k - pair.first] if 0 <= k - pair.first < len(pair.masses) else arb(0)
        beyond, discounted = beyond + mass, (discounted + mass) * step
    return deltas[::-1]
