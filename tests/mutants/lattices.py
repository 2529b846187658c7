"""Wrong pairs on a lattice: each takes a monkeypatch."""

import numpy as np

from accountant.composition import (
    fft_composition,
    grid_bounds,
    grid_pairs,
    lattice_above,
    profile_pairs,
)
from accountant.composition.fft_composition import SumOnGrid


def pair_not_above(patch):
    made = grid_pairs._above

    def to_the_left(found, points, step):
        mass = made(found, points, step)
        return 0.999 * mass + np.append(0.001 * mass[1:], 0.0)

    patch.setattr(grid_pairs, "_above", to_the_left)


def pair_not_below(patch):
    made = grid_pairs._below

    def to_the_right(cells, points):
        mass = made(cells, points)
        return 0.999 * mass + np.append(0.0, 0.001 * mass[:-1])

    patch.setattr(grid_pairs, "_below", to_the_right)


def mass_not_of_one_neighbour(patch):
    """Takes the mean that a cell lacks from no other cell."""
    patch.setattr(grid_pairs, "_move_down", lambda p, q, x: (p, np.minimum(q, p / x)))


def cut_forgotten(patch):
    patch.setattr(grid_bounds, "mass_beyond", lambda pairs: (0.0, 0.0))


def certain_beyond_the_cut(patch):
    """Takes a release above its cut for enough, for the lower end at its whole mass."""
    made = grid_bounds.mass_beyond

    def nine_tenths(pairs):
        p, q = made(pairs)
        return p, 0.9 * q

    patch.setattr(grid_bounds, "mass_beyond", nine_tenths)


def round_off_forgotten(patch):
    made = SumOnGrid.convolve

    def forgets(self):
        made(self)
        self.error_1 = self.error_2 = 0.0

    patch.setattr(SumOnGrid, "convolve", forgets)


def wrapped_sums_forgotten(patch):
    made = fft_composition._likely_range

    def narrower(*given):
        bottom, top = made(*given)
        return 0.9 * bottom + 0.1 * top, 0.4 * top + 0.6 * bottom

    patch.setattr(fft_composition, "_likely_range", narrower)


def chords_taken_for_tangents(patch):
    """Does not lower the values below by what lines leave open."""
    patch.setattr(profile_pairs, "_lowered", lambda x, low, high, infinity: low)


def profile_values_not_rounded(patch):
    made = profile_pairs._padded

    def swapped(*given):
        low, high = made(*given)
        return high, low

    patch.setattr(profile_pairs, "_padded", swapped)


def above_the_cuts_for_nothing(patch):
    """Does not charge what is above the cuts of a lattice that is above alone."""
    patch.setattr(lattice_above, "mass_beyond", lambda pairs: (0.0, 0.0))


def kernel_cut_short(patch):
    """Leaves a share of the kernel out of all sums at once."""
    made = SumOnGrid.upper_deltas
    patch.setattr(SumOnGrid, "upper_deltas", lambda self, epsilon: 0.99 * made(self, epsilon))


MUTANTS = [
    above_the_cuts_for_nothing, kernel_cut_short,
    chords_taken_for_tangents, profile_values_not_rounded,
    pair_not_above, pair_not_below, mass_not_of_one_neighbour, cut_forgotten,
    certain_beyond_the_cut, round_off_forgotten, wrapped_sums_forgotten,
]  # fmt: skip
