"""Pairs whose losses lie on a lattice of step h, above and below a release.

A release is a pair (P, Q) of laws on two neighbours.  A part of its outcomes (`Cell`) has the
masses p under P and q under Q, and losses ln dP/dQ between two ends.  The parts are moved to points
kh of the lattice, the losses of the new pair.  A pair *above* the release has a delta at least as
large at every epsilon, and a pair *below* it one at most as large.  Proofs are in
docs/proofs/grid_pairs.md.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from flint import arb

from .balls import floor_below, share_within_one
from .cells import Cell
from .document import need

MOST_POINTS = 10 * 2**18  # points of one pair at most, which bounds the memory of a check
Masses = defaultdict[int, arb]  # P of the loss kh, by k


class LatticePair(NamedTuple):
    """A pair (P, Q) whose losses are ``(first + i) h - moved``, each with P's mass ``masses[i]``.

    ``infinite`` is P's mass of infinite losses.  Q has the mass ``masses[i]`` e^-loss at each loss;
    the rest of Q lies where P has no mass, and adds nothing to delta.
    """

    first: int
    masses: list[arb]
    infinite: arb
    moved: arb


def on_points(outcome_cells: list[Cell], moved: arb, h: arb, *, above: bool) -> LatticePair:
    """Return the pair on the lattice of outcomes whose losses are moved up by ``moved``.

    Theorem (`lowered_losses`): the pair (P, Q e^-s) has the losses L + s, and at eps + s the delta
    of (P, Q) at eps.
    """
    shifted = [
        Cell(
            p,
            q * (-moved).exp(),
            None if low is None else low + moved,
            None if high is None else high + moved,
        )
        for p, q, low, high in outcome_cells
    ]
    mass_at, infinite = split_above(shifted, h) if above else joined_below(shifted, h)
    lowest, highest = min(mass_at, default=0), max(mass_at, default=0)
    need(highest - lowest < MOST_POINTS, "a lattice too fine")
    zero = arb(0)
    masses = [mass_at.get(k, zero) for k in range(lowest, highest + 1)]
    return LatticePair(lowest, masses, infinite, moved)


def split_above(outcome_cells: list[Cell], h: arb) -> tuple[Masses, arb]:
    """Return P of each loss kh of a pair above, and that of infinite losses.

    Theorem (`split_above`: grid_pairs.md, 1): a part may be split between two points with a <= its
    losses <= b, so that its masses p and q stay the same in all: P gets p_b = (p - e^a q) / (1 -
    e^(a-b)) at b, and the rest at a.  A part without a lowest loss moves up to b, and one without a
    greatest loss to infinity.

    In the code ``a`` and ``b`` are the points' numbers, so that the losses are ha and hb.
    """
    masses, infinite = Masses(lambda: arb(0)), arb(0)
    for p, q, low, high in outcome_cells:
        if high is None:
            infinite += p
            continue
        a, b = floor_below((high if low is None else low) / h), -floor_below(-high / h)
        is_split = low is not None and a < b
        p_b = (p - (h * a).exp() * q) / (1 - (h * (a - b)).exp()) if is_split else p
        masses[b] += p_b
        masses[a] += p - p_b
    return masses, infinite


def joined_below(outcome_cells: list[Cell], h: arb) -> tuple[Masses, arb]:
    """Return P of each loss kh of a pair below, and that of infinite losses.

    Theorem (`joined_below`: grid_pairs.md, 2): delta is the mean under Q of a convex function of
    the ratio of masses.  So it falls where parts are joined to one of their mean ratio, sum p over
    sum q.  Parts with losses just before a point kh are joined with parts just after it, of the
    last one with a share, so that the mean ratio is e^{kh}.  Where the parts after it do not
    suffice, the rest of those before it moves down to the point before.
    """
    joined, infinite = JoinedParts(h), arb(0)
    for p, q, _, high in outcome_cells:
        if high is None and q == 0:
            infinite += p
        elif p > 0 and q > 0:
            joined.add(p, q)
    joined.close_point()
    return joined.masses, infinite


class JoinedParts:
    """The parts around one point k that are to be joined, and the masses that are settled.

    Of the parts in the step before the point, ``waiting`` is the sum of their p, and ``lost`` that
    of e^{kh} q - p.  Of the parts in the step after it, ``after`` is the sum of p, and ``gained``
    that of p - e^{kh} q.  All four are at least 0.  The mean ratio of all these parts is e^{kh}
    where lost = gained.  ``masses`` has P of each point that is settled.
    """

    def __init__(self, h: arb) -> None:
        self.h, self.k, self.masses = h, 0, Masses(lambda: arb(0))
        self.clear()

    def clear(self) -> None:
        """Forget the parts around the point."""
        self.waiting = self.lost = self.after = self.gained = arb(0)

    def add(self, p: arb, q: arb) -> None:
        """Take the next part, of masses p and q; parts come by growing loss."""
        h = self.h
        loss = (p / q).log()
        index = floor_below(loss / h)  # of the point at or before the part
        gain = p - (h * self.k).exp() * q
        is_whole = True
        if index == self.k and gain > self.lost - self.gained:
            # A share of this part balances what waits.  Every share in [0, 1] gives a pair below,
            # so the round-off of the quotient does no harm.
            share = share_within_one(((self.lost - self.gained) / gain).upper())
            self.masses[self.k] += self.waiting + self.after + share * p
            p, q, self.waiting, is_whole = (1 - share) * p, (1 - share) * q, arb(0), False
        elif index not in (self.k - 1, self.k):
            self.close_point()  # the part is beyond the step after the point k
            self.clear()
        if self.waiting == 0:  # nothing before the point is left to be joined with this part
            if is_whole and floor_below(2 * loss / h) == 2 * index:
                # The loss is in the lower half of its step: the part moves down to the point alone.
                self.masses[index] += p
                return
            # The part waits before the point after it.
            self.clear()
            self.k = index + 1
        if index == self.k:
            self.after, self.gained = self.after + p, self.gained + gain
        else:
            self.waiting += p
            self.lost += (h * self.k).exp() * q - p

    def close_point(self) -> None:
        """Settle the parts around the point k.

        Of the waiting parts the share gained / lost joins the point; the rest moves down to k - 1.
        """
        is_waiting = self.lost > 0
        share = share_within_one((self.gained / self.lost).lower()) if is_waiting else arb(0)
        self.masses[self.k] += self.after + share * self.waiting
        self.masses[self.k - 1] += (1 - share) * self.waiting
