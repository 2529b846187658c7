"""A rough outline of the law of one loss: where its mass is, how far it reaches, its end atoms.

The search for a lattice of losses (`grid_certificate.py`) starts from it.  A privacy loss is
L = ln(dP/dQ) of a pair of output laws (P, Q), in nats; its profile is delta as a function of
epsilon.  The outline comes from the masses of L between the edges of a fixed ladder, under P and
under Q, or from the profile if these masses are not known.  Nothing here is proved: it only decides
where lattices are placed, and so how narrow the proved bounds are.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.composition.grid_bounds import Component
from accountant.losses.cell_masses import finite_cell_masses
from accountant.losses.connect_the_dots import pair_above
from accountant.losses.loss import Loss
from accountant.numerics.rounding import MAX_EXPONENT, ULP

LEAST_LOSS = 1e-8  # nats: a loss that is always smaller in size is too small for a lattice
# The ladder is a fixed row of edges, 0 and sizes of both signs.  Each of the 120 sizes is about 1.3
# times the one before, which is fine enough for an outline.
_SIZES = np.geomspace(LEAST_LOSS / 10, MAX_EXPONENT, 120)
LADDER = np.concatenate([[-np.inf], -_SIZES[::-1], [0.0], _SIZES, [np.inf]])
# Every third finite edge: a value of a profile may take long to compute.
PROFILE_POINTS = LADDER[2:-1:3]
# An atom is one loss with a mass of its own.  One at an end of the range has more than ATOM_MASS in
# a cell of half width ATOM_WIDTH around the end, and is at least AWAY from the centre of the law;
# both distances are relative to the largest size of a loss.
ATOM_WIDTH, ATOM_MASS, AWAY = 1e-9, 1e-7, 1e-6
NEGLIGIBLE_NATS = 60.0  # a weight of e^-60 of that of the loss 0 counts as nothing


class Outline:
    """The rough law of one loss that is released ``count`` times, from masses on `LADDER`.

    - ``has_masses``: whether the loss knows its masses; otherwise they come from its profile.
    - ``known_to``: the largest delta at which the two bounds on the profile differ by more than
      1 %; 0 if none do.  Callers refuse a profile that is loose at the deltas they need.
    - ``centre``: the loss with the most mass, where a lattice should have a point.
    - ``least``: the smallest loss, in nats; minus infinity if unbounded.
    - ``p_above``, ``p_below``: P of finite losses above, and up to, each edge of the ladder.
    - ``delta``: the profile at the finite edges.
    - ``mean``, ``variance``: moments of the finite losses under P.
    - ``is_on_ladder``: whether the loss is large enough for a lattice.
    - ``atom_at_end``: see `_find_atom`.
    """

    def __init__(self, loss: Loss, count: int) -> None:
        self.loss, self.count = loss, count
        cells = loss.cell_masses(LADDER)
        self.has_masses = cells is not None
        self.known_to = 0.0
        if cells is None:
            low, high = loss.profile_bounds(PROFILE_POINTS)
            self.known_to = float(np.max(high[high > 1.01 * low], initial=0.0))
            pair = pair_above(lambda _: high, PROFILE_POINTS)  # the profile at these points only
            # Q has the masses mass e^-loss; what they lack of 1 is the mass of Q where P has none.
            lost = max(0.0, 1 - float(np.sum(pair.mass * np.exp(-pair.loss))))
            cells = finite_cell_masses(LADDER, pair.loss, pair.mass, lost)
        masses = cells
        # The mean loss of the heaviest cell is the centre.  Where only the profile is known the
        # centre is 0: a corner of a profile is an atom of the loss, and profiles often have one
        # there.
        mode = int(np.argmax(masses.p))
        ratio = masses.p[mode] / masses.q[mode] if masses.q[mode] > 0 else math.inf
        known_ratio = self.has_masses and 0 < ratio < math.inf
        self.centre = math.log(ratio) if known_ratio else 0.0
        # The smallest loss ln(P/Q) is minus the largest of the reversed pair (Q, P).
        reversed_loss = loss.reversed
        self.least = -reversed_loss.max_loss if reversed_loss.infinity == 0 else -math.inf
        self.p_above = np.append(np.cumsum(masses.p[::-1])[::-1], 0.0)
        self.p_below = np.append(0.0, np.cumsum(masses.p))
        q_above = np.append(np.cumsum(masses.q[::-1])[::-1], 0.0)
        # the profile at the edge e is P(loss > e) - e^e Q(loss > e), plus the mass at infinity
        self.delta = self.p_above[1:-1] - np.exp(LADDER[1:-1]) * q_above[1:-1] + loss.infinity
        # each cell counts at its middle, an infinite one at its finite edge
        middle = np.clip((LADDER[1:] + LADDER[:-1]) / 2, LADDER[1], LADDER[-2])
        self.mean = float(np.sum(masses.p * middle))
        self.variance = float(np.sum(masses.p * (middle - self.mean) ** 2))

        # A loss without mass at sizes of at least LEAST_LOSS is too small for a lattice.
        visible = np.abs(LADDER) >= LEAST_LOSS
        self.is_on_ladder = bool(np.sum(masses.p[visible[:-1] & visible[1:]]) > 0)
        self.atom_at_end = self._find_atom() if self.is_on_ladder else None

    def _find_atom(self) -> float | None:
        """Return an end of the loss's range that has an atom and is not the centre, or None.

        A lattice should have a point at such an atom, whose loss is rounded by up to a step else.
        """
        size = max(abs(self.loss.max_loss), abs(self.least))
        if not math.isfinite(size):
            return None
        half_width = ATOM_WIDTH * size
        for end in (self.loss.max_loss, self.least):
            masses = self.loss.cell_masses(np.array([end - half_width, end + half_width]))
            is_away = abs(end - self.centre) > AWAY * size
            if masses is not None and masses.p[0] > ATOM_MASS and is_away:
                return end
        return None

    def mean_at_end(self, step: float) -> float:
        """Return ``ln(p / q)`` of the masses in the cell of width ``step`` around the end atom.

        It is lowered by about the errors of both masses and the round-off of the two logarithms.
        """
        end = self.atom_at_end or 0.0
        masses = self.loss.cell_masses(np.array([end - step / 2, end + step / 2]))
        if masses is None:
            return end
        relative_error = float((masses.p_error[0] + masses.q_error[0]) / masses.p[0])
        return math.log(masses.p[0] / masses.q[0]) - 2 * relative_error - 16 * ULP

    def component(
        self, offset: float, epsilon: float, others: float, tail: float, tilt: float
    ) -> Component:
        """Return the loss as a component of a sum, with the range that its lattice must cover.

        The lattice goes through ``offset``.  ``epsilon`` is the largest one at which delta is
        wanted, ``tail`` the mass of P that may lie beyond each end, and ``others`` minus the
        smallest sum of all other losses.  In the Fourier transforms of the sum a mass at the loss l
        is weighted by ``e^(a l)``; ``tilt`` is this factor a.
        """
        # the least edge with at most the tail above it, and the last with at most the tail below
        high = float(LADDER[np.argmax(self.p_above <= tail)])
        low = float(LADDER[max(int(np.argmax(self.p_below > tail)) - 1, 0)])
        high = min(high, self.loss.max_loss)
        # A loss above epsilon + others makes the sum exceed epsilon, whatever the other losses are:
        # it needs no place on the lattice, only its mass.  The lattice ends 0.1 % of epsilon later.
        if self.has_masses:
            high = min(high, 1.001 * epsilon + others)
        # Below -NEGLIGIBLE_NATS / tilt the weight e^(a l) makes masses negligible.
        low = max(low, self.least, -NEGLIGIBLE_NATS / tilt, -MAX_EXPONENT)
        return Component(self.loss, self.count, offset, (min(low, high), high), self.least, tilt)
