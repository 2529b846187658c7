"""Sums of ``ln(1 + x_i)`` over many members by few cells: each has the mean of its members.

With x_i = C_i I and d_i = x_i - its cell's mean, sum n_i d_i is 0 in a cell, and sum n_i d_i^2 of
all is one quadratic form of I; orders above are bounded.  Proof: `docs/proofs/schedules.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_schedule import products
from accountant.numerics import Array, Complex
from accountant.numerics.rounding import ULP

MAX_LEVELS = 16
MAX_SHARE = 0.5  # of 1, that a mean and a difference from it may be


@dataclass(frozen=True, slots=True)
class MergedMembers:
    """Means of cells and their counts, and the squares of what members differ from them."""

    columns: Array
    counts: Array
    square: Array  # sum of counts times d d^T
    absolute: Array  # sum of counts times |d| |d|^T
    greatest: Array  # |d| of each column
    ulps: float  # of the means, over sum of counts times |C| |I|
    sizes: Array  # sum of counts times |C|

    @classmethod
    def of(cls, columns: Array, counts: Array, place: Array) -> MergedMembers:
        """Return the cells; ``place`` says in which cell a member is."""
        order = np.argsort(place, kind="stable")
        columns, counts = np.ascontiguousarray(columns[order]), counts[order]
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        many = np.diff(starts, append=place.size)
        total = np.add.reduceat(counts, starts)
        mean = np.add.reduceat(columns * counts[:, None], starts, axis=0) / total[:, None]
        away = columns - np.repeat(mean, many, axis=0)
        left, size = np.ascontiguousarray(away.T), np.abs(away)
        square = products(np.ascontiguousarray((away * counts[:, None]).T), left)
        absolute = products(np.ascontiguousarray((size * counts[:, None]).T), np.abs(left))
        sizes = np.einsum("i,ir->r", counts, np.abs(columns))
        ulps = float(np.max(many)) + many.size / 8 + 16
        return cls(mean, total, square, absolute, np.max(size, axis=0), ulps, sizes)

    def log_sum(self, inner: Complex) -> tuple[Complex, Array, Array]:
        """Return ``sum n_i ln(1 + C_i I)`` at each I, a bound on all ``|C_i I|``, and the error.

        Of the sum over members, as if I were exact; the error is infinite where it is unknown.
        """
        real, imag = (np.ascontiguousarray(part) for part in (inner.real, inner.imag))
        transposed = np.ascontiguousarray(real.T), np.ascontiguousarray(imag.T)
        means = np.empty((self.counts.size, inner.shape[1]), dtype=complex)
        means.real, means.imag = (products(self.columns, part) for part in transposed)
        most = np.sqrt(np.max(means.real**2 + means.imag**2, axis=0)) * (1 + 1e-9)
        means += 1
        total: Complex = np.einsum("c,cj->j", self.counts, np.log(means))
        # I^T M I and I^* M I
        by_real, by_imag = (products(self.square, part) for part in transposed)
        parts = np.array([
            np.einsum("rj,rj->j", real, by_real),
            np.einsum("rj,rj->j", imag, by_imag),
            np.einsum("rj,rj->j", real, by_imag),
        ])  # fmt: skip
        total -= (parts[0] - parts[1] + 2j * parts[2]) / 2
        size = np.abs(inner)
        lost = np.einsum("rj,rj->j", size, products(self.absolute, np.ascontiguousarray(size.T)))
        lost *= ULP * (self.sizes.size * 4 + 64 + np.sum(self.counts) / 8)
        square = np.maximum(parts[0] + parts[1], 0.0) + lost
        away = np.minimum(np.sqrt(square), np.einsum("r,rj->j", self.greatest, size)) * (1 + 1e-9)
        known = most + away <= MAX_SHARE
        share = np.where(known, away / (1 - np.minimum(most, MAX_SHARE)), 0.5)
        some = np.where(known, most, 0.0)
        # |ln(1 + t) - t + t^2 / 2| <= |t|^3 / (3 (1 - |t|)), t = d / (1 + mean)
        third = share / (3 * (1 - share) * (1 - some) ** 2)
        error = square * (third + some * (2 + some) / (2 * (1 - some) ** 2)) * (1 + 1e-9)
        error += lost + ULP * self.ulps * 2 * np.einsum("r,rj->j", self.sizes, size)
        error += 4 * ULP * np.abs(total)
        return total, most + away, np.where(known, error, math.inf)


def cells_of_similar(value: Array, places: Array, counts: Array, limit: float) -> Array:
    """Return a cell for each member, about ``limit`` in all: the most different are halved first.

    ``value``: rows that are to be alike in a cell; ``places``: a row for each direction in which
    it may be halved.
    """
    cell: Any = np.zeros(places.shape[1], dtype=np.intp)
    for _ in range(MAX_LEVELS):
        many: Any = np.bincount(cell, counts)
        scores, gains = np.zeros(many.size), np.zeros((places.shape[0], many.size))
        spread = [one - (np.bincount(cell, counts * one) / many)[cell] for one in places]
        for one in value:
            away = one - (np.bincount(cell, counts * one) / many)[cell]
            score = np.bincount(cell, counts * away**2)
            scores += score
            for axis, side in enumerate(spread):
                both = np.bincount(cell, counts * away * side)
                gains[axis] += both**2 / (np.bincount(cell, counts * side**2) + 1e-300)
        left = limit - many.size
        if left < 1 or not np.max(scores) > 0:
            break
        least = np.sort(scores)[-min(many.size, math.floor(left))]
        least = max(least, float(np.max(scores)) / 64)
        halved = (scores >= least) & (np.bincount(cell) > 1)
        if not halved.any():
            break
        chosen = np.argmax(gains, axis=0)
        along = np.choose(chosen[cell], places)
        order = np.lexsort([along, cell])
        size: Any = np.bincount(cell)
        rank = np.empty(places.shape[1], dtype=np.intp)
        rank[order] = np.arange(places.shape[1]) - np.repeat(np.cumsum(size) - size, size)
        upper = halved[cell] & (2 * rank >= size[cell])
        fresh = np.cumsum(halved) - 1 + many.size
        cell = np.where(upper, fresh[cell], cell)
    result: Array = cell
    return result
