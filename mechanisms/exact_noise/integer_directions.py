"""Random directions, in all space or in a cap, as integer vectors of exact law, given ideal words.

A direction is a vector u of independent discrete Gaussian coordinates, about uniform on the sphere.
The cap of a height h about an axis t is all u with <u, t> >= h |u| |t|.  For a high cap, proposals
are shifted along the axis, and accepted with the chance that corrects for the shift; a `Tilt` holds
both.  Floats decide a comparison where their error bound allows it, otherwise whole numbers do.

References: Canonne, Kamath & Steinke (2020) for the integers; Devroye (1986) for rejection from a
shifted law; proofs in docs/proofs/vectors.md, section 5.

In several functions (4 p + 64) 2^-53 bounds the relative error of floats in a sum of p products, as
a share of the product of the two vectors' lengths, with the few operations that follow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from mechanisms.exact_noise.exponential_coins import (
    Bits,
    below_exponential,
    compare_to_height,
    random_words,
)
from mechanisms.exact_noise.integer_noise import IntegerNoise

WIDTH_BITS = 44  # coordinates have the width 2^44; floats represent such whole numbers exactly
LAW = IntegerNoise(2.0**WIDTH_BITS, 2)
MOST_SHIFT = 64  # in widths; sums of coordinates and shifts are then exact in floats
TRIALS_AT_ONCE = 1 << 16  # coordinates that are drawn at once; it changes time and memory only


def cap_mass_error(dimension: int) -> float:
    """Return a bound on how far the probability of a cap is from its share of the sphere.

    It holds for every axis; docs/proofs/vectors.md, section 5, has the constant.
    """
    return 320 * math.sqrt(dimension) / 2.0**WIDTH_BITS


def log_acceptance(dimension: int, height: float, mass: float) -> float:
    """Return about the log of the share of proposals that are accepted for a cap.

    ``mass`` is the share of the sphere that the cap of this ``height`` has.
    """
    edge = height * math.sqrt(least_square(dimension))
    shift = min(edge, MOST_SHIFT)
    log_mass = math.log(mass) if mass > 0 else -math.inf
    # 1.5 = 2 * 3/4: of two opposite proposals only the one on the side of the axis is tried, and
    # about 3/4 of all vectors are long enough.  The last term is what the shift gains.
    # docs/proofs/vectors.md, section 5, has the exact share.
    return math.log(1.5) + log_mass + shift * (edge - shift / 2)


def least_square(dimension: int) -> int:
    """Return the square of the least length of a vector that is accepted, in squared widths.

    |u|^2 has the expectation p and the deviation sqrt(2 p) for p coordinates: the least is half a
    deviation below the expectation.
    """
    return dimension - math.isqrt(dimension // 2)


def integer_axes(vectors: Array) -> Array:
    """Return vectors as directions of whole numbers, the greatest of which is about 2^44."""
    greatest = np.abs(vectors).max(axis=-1, keepdims=True)
    axes: Array = np.rint(vectors / greatest * 2.0**WIDTH_BITS)
    return axes


def directions(
    axes: Array,
    capped: Bits,
    height: float,
    rng: np.random.Generator,
    trials: float = 1.0,
    law: IntegerNoise = LAW,
) -> NDArray[np.float64]:
    """Return an integer vector for every axis: within the cap of ``height`` where ``capped``.

    Its law is that of independent discrete Gaussian coordinates, given that the vector is not
    shorter than `least_square` says and, where that is asked, in the cap.  ``trials`` is the
    expected number of proposals for a vector of the cap; it changes the time only.
    """
    vectors = np.empty(axes.shape)
    batch_rows = max(1, TRIALS_AT_ONCE // axes.shape[1])
    # A quarter of the expected trials of a vector are drawn at once: those after the first accepted
    # one are drawn in vain.
    for rows, cap, at_once in ((~capped, None, 1), (capped, height, int(trials / 4))):
        pending = np.flatnonzero(rows)
        while pending.size:
            current = pending[:batch_rows]
            tried = np.repeat(current, max(1, min(at_once, batch_rows // current.size)))
            drawn, accepted = proposals(axes, tried, cap, law, rng)
            # The first accepted proposal of each vector is taken.
            accepted_rows, first_accepted = np.unique(tried[accepted], return_index=True)
            vectors[accepted_rows] = drawn[accepted][first_accepted]
            pending = np.concatenate(
                [current[~np.isin(current, accepted_rows)], pending[batch_rows:]]
            )
    return vectors


def proposals(
    axes: Array, tried: NDArray[np.intp], height: float | None, law: IntegerNoise, rng: Any
) -> tuple[Array, Bits]:
    """Return a proposal for each of the tried axes, and whether it is accepted."""
    size = (len(tried), axes.shape[1])
    drawn = law.draw(size[0] * size[1], rng).reshape(size).astype(float)
    if height is None:
        return drawn, long_enough(drawn, law)
    # Of g and -g, the vector on the side of the axis is taken and shifted along the axis.
    tried_axes = axes[tried]
    tilt, towards = Tilt.towards(tried_axes, height, law), sides(drawn, tried_axes)
    drawn = towards[:, None] * drawn + tilt.shifts
    # Each test is made of the proposals that pass the tests before it.
    accepted = (towards != 0) & long_enough(drawn, law)
    accepted[accepted] = in_cap(drawn[accepted], tried_axes[accepted], height)
    accepted[accepted] = tilt_coins(drawn[accepted], tilt.at(accepted), law, rng)
    return drawn, accepted


@dataclass(frozen=True, slots=True)
class Tilt:
    """Shifts of proposals, whole numbers, and a lower bound of ``<u, shift>`` for each.

    The bound holds for all vectors u of the cap that are long enough; ``u - shift`` has a positive
    product with the axis for all of them.  A proposal u of the cap is accepted with probability
    ``exp(-(<u, shift> - least) / width^2)``.  This undoes the shift: the probabilities of u - shift
    and of u under the discrete Gaussian have a ratio of ``exp(<u, shift> / width^2)``, times a
    factor that is the same for all u.
    """

    shifts: Array  # a row for each axis
    least: Array  # a number for each axis

    @classmethod
    def towards(cls, axes: Array, height: float, law: IntegerNoise) -> Tilt:
        """Return the shift along every axis at which most proposals are accepted."""
        p, norm = axes.shape[1], np.sqrt(np.einsum("ij,ij->i", axes, axes))
        shortest, relative_error = math.sqrt(least_square(p)) * law.width, (4 * p + 64) * 2.0**-53
        # A long enough vector u of the cap of the axis t has <u, t> >= height shortest |t|.  The
        # shift is factor t + r with |r| <= sqrt(p), where r is the rounding to whole numbers.  It
        # ends before the cap begins: <shift, t> < <u, t>.  For u,
        #     <u, shift> >= (height factor |t| - |r|) |u|.
        # The 2 sqrt(p) and 1.001 sqrt(p) below pay for r, with round-off.  Where no bound is
        # positive, nothing is shifted.
        edge = height * shortest * (1 - relative_error) - 2 * math.sqrt(p)
        factor = min(edge, MOST_SHIFT * law.width) * (1 - relative_error) / norm
        shifts: Array = np.rint(factor[:, None] * axes)
        along = height * factor * norm * (1 - relative_error)
        lower_bounds = np.floor((along - 1.001 * math.sqrt(p)) * shortest * (1 - relative_error))
        is_shifted = lower_bounds > 0
        if edge <= 0:
            is_shifted = np.zeros_like(is_shifted)
        return cls(
            np.where(is_shifted[:, None], shifts, 0.0), np.where(is_shifted, lower_bounds, 0.0)
        )

    def at(self, places: Bits) -> Tilt:
        """Return the shifts and bounds of some rows."""
        return Tilt(self.shifts[places], self.least[places])


def tilt_coins(vectors: Array, tilt: Tilt, law: IntegerNoise, rng: np.random.Generator) -> Bits:
    """Return heads with probability ``exp(-(<u, shift> - least) / width^2)`` for rows u; exact."""
    along = np.einsum("ij,ij->i", vectors, tilt.shifts)
    squares = [np.einsum("ij,ij->i", rows, rows) for rows in (vectors, tilt.shifts)]
    error_bound = (4 * vectors.shape[1] + 64) * 2.0**-53 * np.sqrt(squares[0] * squares[1])
    uniform_words = random_words(len(along), rng)
    position = uniform_words.astype(float)

    def compare(excess: Array) -> tuple[Bits, Bits]:
        height = 2.0**64 * np.exp(-np.maximum(excess, 0) / law.width**2)
        return compare_to_height(position, height)

    # A coin is surely heads if it is below the least height that the error allows, and surely tails
    # if it is above the greatest.  Whole numbers decide the others.
    heads, _ = compare(along - tilt.least + error_bound)
    below_greatest, unsure_of_greatest = compare(along - tilt.least - error_bound)
    for i in np.flatnonzero(~heads & (below_greatest | unsure_of_greatest)):
        energy = Fraction(_dot(vectors[i], tilt.shifts[i]) - int(tilt.least[i]))
        heads[i] = below_exponential(
            int(uniform_words[i]), energy / Fraction(law.width) ** 2, Fraction(2**64), rng
        )
    return heads


def long_enough(vectors: Array, law: IntegerNoise = LAW) -> Bits:
    """Return whether ``|u|^2`` is at least `least_square` widths squared, for rows u; exact."""
    p = vectors.shape[1]
    squares, threshold = np.einsum("ij,ij->i", vectors, vectors), least_square(p) * law.width**2
    longer: Bits = squares > threshold
    for i in np.flatnonzero(np.abs(squares - threshold) <= (4 * p + 64) * 2.0**-53 * threshold):
        longer[i] = _dot(vectors[i], vectors[i]) >= least_square(p) * Fraction(law.width) ** 2
    return longer


def sides(vectors: Array, axes: Array) -> Array:
    """Return the sign of ``<u, t>`` for rows u and t of whole numbers; exact."""
    product = np.einsum("ij,ij->i", vectors, axes)
    squares = np.einsum("ij,ij->i", vectors, vectors) * np.einsum("ij,ij->i", axes, axes)
    margin = (4 * vectors.shape[1] + 64) * 2.0**-53 * np.sqrt(squares)
    signs: Array = np.sign(product)
    for i in np.flatnonzero(np.abs(product) <= margin):
        exact = _dot(vectors[i], axes[i])
        signs[i] = (exact > 0) - (exact < 0)
    return signs


def _dot(first: Array, second: Array) -> int:
    return sum(int(x) * int(y) for x, y in zip(first, second, strict=True))


def in_cap(vectors: Array, axes: Array, height: float) -> Bits:
    """Return whether ``<u, t> >= height |u| |t|`` for rows of whole numbers; exact."""
    product = np.einsum("ij,ij->i", vectors, axes)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors) * np.einsum("ij,ij->i", axes, axes))
    margin = (4 * vectors.shape[1] + 64) * 2.0**-53 * lengths
    inside: Bits = product > height * lengths
    for i in np.flatnonzero(np.abs(product - height * lengths) <= margin):
        along = _dot(vectors[i], axes[i])
        squares = _dot(vectors[i], vectors[i]) * _dot(axes[i], axes[i])
        inside[i] = along >= 0 and along * along >= Fraction(height) ** 2 * squares
    return inside
