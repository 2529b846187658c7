"""Wrong samplers of cells; each is caught by a law of `tests/laws/test_cells.py`."""

import math
from fractions import Fraction

import numpy as np

from mechanisms import piecewise_uniform
from mechanisms.exact_noise.integer_directions import Tilt, tilt_coins
from mechanisms.exact_noise.integer_noise import IntegerNoise
from mechanisms.exact_noise.integer_staircase import IntegerStaircase


def zero_has_one_cell(size, rng):
    """Noise about 0, of which -1 - k is taken for -k."""
    return IntegerNoise(3.7, 1, reach=20).draw(size, rng)


def cell_beyond_the_reach(size, rng):
    """One cell more on each side."""
    return IntegerNoise(3.7, 1, reach=21, cells=True).draw(size, rng)


def clipped_to_the_reach(size, rng):
    """Moves what is beyond the reach to the last cell."""
    return np.clip(IntegerNoise(3.7, 1, cells=True).draw(size, rng), -8, 7)


def lower_part_first(size, rng):
    """The lower part of a stair for the upper one."""
    return IntegerStaircase(5, 3, 1.0).draw(size, rng)


def first_level_as_wide_as_a_stair(size, rng):
    """Levels by a geometric draw alone, each a whole stair."""
    return IntegerStaircase(5, 5, 1.0).draw(size, rng)


def negative_cells_moved(size, rng):
    """-k for -1 - k: the cell at 0 is of both signs."""
    k = IntegerStaircase(5, 2, 1.0).draw(size, rng)
    return np.where(k < 0, k + 1, k)


def piece_rounded_down(keep):
    """A piece of one cell less, whose cells are too probable."""
    rest = 2 * piecewise_uniform.CENTRES * (1 - Fraction(keep)) / Fraction(keep)
    return max(1, math.floor(rest))


def floats_decide(vectors, axes, height):
    """No integers where floats cannot say."""
    product = np.einsum("ij,ij->i", vectors, axes)
    squares = np.einsum("ij,ij->i", vectors, vectors) * np.einsum("ij,ij->i", axes, axes)
    return product > height * np.sqrt(squares)


def coin_forgotten(vectors, *_):
    """Accepts every proposal in the cap."""
    return np.ones(len(vectors), dtype=bool)


def bound_beyond_the_least(vectors, tilt, law, rng):
    """A bound of ``<u, shift>`` that some vectors do not reach: their coins are certain."""
    return tilt_coins(vectors, Tilt(tilt.shifts, 6 * tilt.least), law, rng)


def coin_without_the_shift(vectors, tilt, law, rng):
    """Half of the energy."""
    return tilt_coins(vectors, Tilt(np.rint(tilt.shifts / 2), tilt.least // 2), law, rng)


def short_vectors_too(vectors, law):
    """No least length."""
    return np.ones(len(vectors), dtype=bool)


def another_side(vectors, axes):
    """The side of the first axis, not of the value's."""
    return np.where(vectors[:, 0] < 0, -1.0, 1.0)
