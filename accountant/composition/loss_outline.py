"""A rough outline of the law of one loss: where its mass is, how far it reaches, its end atoms.

The search for a lattice of losses (`grid_certificate.py`) starts from it.  The outline comes from
the masses of the loss between the edges of a fixed ladder, or from its profile if these masses are
not known.  Nothing here is proved: it only decides where lattices are placed.
"""

from __future__ import annotations

import math

import numpy as np

from accountant.composition.grid_bounds import Component
from accountant.losses.cell_masses import CellMasses, finite_cell_masses
from accountant.losses.connect_the_dots import pair_above
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.rounding import ULP

LEAST_LOSS = 1e-8  # nats: a loss that is always smaller in size is too small for a lattice
_SIZES = np.geomspace(LEAST_LOSS / 10, 700.0, 120)
LADDER = np.concatenate([[-np.inf], -_SIZES[::-1], [0.0], _SIZES, [np.inf]])


class Outline:
    """The rough law of one loss that is released ``count`` times, from masses on `LADDER`."""

    def __init__(self, loss: Loss, count: int) -> None:
        self.loss, self.count = loss, count
        cells = loss.cell_masses(LADDER)
        self.has_masses = cells is not None
        # The largest delta at which the two bounds on the profile differ by more than 1 %.
        self.known_to = 0.0
        if cells is None:
            points = LADDER[2:-1:3]
            low, high = loss.profile_bounds(points)
            self.known_to = float(np.max(high[high > 1.01 * low], initial=0.0))
            cells = _masses_of_profile(points, high)
        masses = cells
        mode = int(np.argmax(masses.p))
        ratio = masses.p[mode] / masses.q[mode] if masses.q[mode] > 0 else math.inf
        # Where only the profile is known the centre is 0: profiles often have a corner there.
        known_ratio = self.has_masses and 0 < ratio < math.inf
        self.centre = math.log(ratio) if known_ratio else 0.0
        reversed_loss = loss.reversed
        self.least = -reversed_loss.max_loss if reversed_loss.infinity == 0 else -math.inf
        self.p_above = np.append(np.cumsum(masses.p[::-1])[::-1], 0.0)
        self.p_below = np.append(0.0, np.cumsum(masses.p))
        q_above = np.append(np.cumsum(masses.q[::-1])[::-1], 0.0)
        self.delta = self.p_above[1:-1] - np.exp(LADDER[1:-1]) * q_above[1:-1] + loss.infinity
        middle = np.clip((LADDER[1:] + LADDER[:-1]) / 2, LADDER[1], LADDER[-2])
        self.mean = float(np.sum(masses.p * middle))
        self.variance = float(np.sum(masses.p * (middle - self.mean) ** 2))

        # A loss without mass at sizes of at least LEAST_LOSS is too small for a lattice.
        visible = np.abs(LADDER) >= LEAST_LOSS
        self.is_on_ladder = bool(np.sum(masses.p[visible[:-1] & visible[1:]]) > 0)
        self.atom_at_end = self._find_atom() if self.is_on_ladder else None

    def _find_atom(self) -> float | None:
        """Return an end of the range that has an atom and is not the centre; None without one."""
        size = max(abs(self.loss.max_loss), abs(self.least))
        if not math.isfinite(size):
            return None
        for end, inside in ((self.loss.max_loss, -1e-9 * size), (self.least, 1e-9 * size)):
            masses = self.loss.cell_masses(np.sort([end - inside, end + inside]))
            if masses is not None and masses.p[0] > 1e-7 and abs(end - self.centre) > 1e-6 * size:
                return end
        return None

    def mean_at_end(self, step: float) -> float:
        """Return the mean loss ``ln(p / q)`` of the cell around the end atom, rounded down."""
        end = self.atom_at_end or 0.0
        masses = self.loss.cell_masses(np.array([end - step / 2, end + step / 2]))
        if masses is None:
            return end
        missed = float((masses.p_error[0] + masses.q_error[0]) / masses.p[0])
        return math.log(masses.p[0] / masses.q[0]) - 2 * missed - 16 * ULP

    def component(
        self, offset: float, epsilon: float, others: float, tail: float, tilt: float
    ) -> Component:
        """Return the loss as a component of a sum, with the range that its lattice must cover.

        ``offset`` is the place of the lattice, ``tilt`` the factor a of the tilted laws, and
        ``epsilon`` about the answer.  ``tail`` is the mass that may lie beyond each end; ``others``
        is minus the least sum of all other losses.
        """
        high = float(LADDER[np.argmax(self.p_above <= tail)])
        low = float(LADDER[max(int(np.argmax(self.p_below > tail)) - 1, 0)])
        high = min(high, self.loss.max_loss)
        if self.has_masses:  # losses that alone make the sum exceed epsilon need no lattice
            high = min(high, 1.001 * epsilon + others)
        low = max(low, self.least, -60 / tilt, -700.0)
        return Component(self.loss, self.count, offset, (min(low, high), high), self.least, tilt)


def _masses_of_profile(points: Array, values: Array) -> CellMasses:
    """Return rough masses on the ladder, of a loss of which only the profile is known."""
    pair = pair_above(lambda _: values, points)
    lost = max(0.0, 1 - float(np.sum(pair.mass * np.exp(-pair.loss))))
    return finite_cell_masses(LADDER, pair.loss, pair.mass, lost)
