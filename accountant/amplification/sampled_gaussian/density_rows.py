"""Normal densities of many members on shared complex nodes, and few rows that nearly span them.

Row i is n(y_k; m_i, mu_i^2).  Proof: `docs/proofs/schedules.md`, step 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from accountant.amplification.sampled_gaussian.sampled_schedule import products
from accountant.numerics import Array, Complex
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ULP

SAMPLE_ROWS = 300  # from which the space is found
MAX_RANK = 96
BLOCK_SIZE = 2**17
LEFT_OF_TOLERANCE = 1e-2  # of the mass, times the tolerance: columns with less are left


class DensityRows(NamedTuple):
    """Members of one group, how often each is released, and the nodes."""

    mu: Array
    mean: Array
    counts: Array
    y: Complex

    def blocks(self, some: Array | None = None) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Yield blocks of densities: their real and imaginary parts and absolute values."""
        mu, mean = (self.mu, self.mean) if some is None else (self.mu[some], self.mean[some])
        rows = max(1, BLOCK_SIZE // self.y.size)
        for first in range(0, mu.size, rows):
            part = slice(first, first + rows)
            square = mu[part, None] ** 2
            away = self.y.real - mean[part, None]
            size = np.exp((self.y.imag**2 - away * away) / (2 * square))
            size /= mu[part, None] * math.sqrt(2 * math.pi)
            angle = away * self.y.imag / square
            yield part, size * np.cos(angle), size * -np.sin(angle), size

    def column_sums(self) -> tuple[Complex, Array]:
        """Return the sums of counts times densities, and of their absolute values."""
        weight, absolute = np.zeros(self.y.size, dtype=complex), np.zeros(self.y.size)
        for part, real, imag, size in self.blocks():
            count = self.counts[part]
            weight += np.einsum("i,ik->k", count, real) + 1j * np.einsum("i,ik->k", count, imag)
            absolute += np.einsum("i,ik->k", count, size)
        return weight, absolute

    @property
    def ulps(self) -> Array:
        """A bound on the ulps of each column of densities, of the nodes in them, and of a sum."""
        low, high = float(np.min(self.mean)), float(np.max(self.mean))
        least = float(np.min(self.mu))
        far = np.maximum(np.abs(self.y - low), np.abs(self.y - high)) / least
        place = np.abs(self.y) + max(abs(low), abs(high))
        fixed = self.fixed_ulps(self.mu.size, self.y)
        bound: Array = fixed + 4 * far**2 + 8 * far * place / least
        return bound

    @staticmethod
    def fixed_ulps(members: int, y: Complex) -> Array:
        """Return the ulps that do not depend on how far a member is: of a node, and of sums."""
        rows = max(BLOCK_SIZE // y.size, 1)
        bound: Array = 80 + y.size / 8 + 16 * np.abs(y) + rows / 16 + members / rows
        return bound

    def factored(self, scale: Array, tolerance: float) -> tuple[FewRows, tuple[Complex, Array]]:
        """Return few rows that span the densities times ``scale``, and the column sums.

        A row that is left is shorter than ``tolerance`` times the longest one, if a sample tells.
        """
        both = np.concatenate([scale, scale])
        some = np.unique(np.linspace(0, self.mu.size - 1, SAMPLE_ROWS).astype(int))
        order = np.lexsort([self.mean, self.mu])[some]
        sample = np.concatenate(
            [np.concatenate([real, imag], axis=1) for _, real, imag, _ in self.blocks(order)]
        )
        sample *= both
        some = _columns_of_mass(sample, tolerance)
        basis = _basis(np.ascontiguousarray(sample[:, some]), tolerance)
        transposed = np.ascontiguousarray(basis.T)
        coordinates = np.empty((self.mu.size, basis.shape[0]))
        weight, absolute = np.zeros(self.y.size, dtype=complex), np.zeros(self.y.size)
        column_rest = np.zeros(both.size)
        rest = 0.0
        for part, real, imag, one in self.blocks():
            count = self.counts[part]
            rows = np.concatenate([real, imag], axis=1)
            weight += np.einsum("i,ik->k", count, real) + 1j * np.einsum("i,ik->k", count, imag)
            absolute += np.einsum("i,ik->k", count, one)
            rows *= both
            coordinates[part] = products(np.ascontiguousarray(rows[:, some]), basis)
            rows[:, some] -= products(coordinates[part], transposed)  # what is left
            column_rest += np.einsum("i,ik->k", count, rows)
            rest += float(ordered_dot(np.sum(np.abs(rows), axis=1), count))
        basis, narrow = np.zeros((basis.shape[0], both.size)), basis
        basis[:, some] = narrow
        sizes = np.einsum("i,ir->r", self.counts, np.abs(coordinates))
        spread = np.einsum("r,rk->k", sizes, np.abs(basis)).reshape(2, -1).sum(axis=0)
        found = FewRows(coordinates, basis, column_rest, rest, sizes, spread)
        return found, (weight, absolute)


class FewRows(NamedTuple):
    """Rows ``w_i = coordinates_i basis + rest_i`` of one group, times a scale."""

    coordinates: Array
    basis: Array
    column_rest: Array  # sum of counts times rest: of first order it is known
    rest: float  # sum of counts times |rest|
    sizes: Array  # sum of counts times |coordinates|, and that times |basis|, on the nodes
    spread: Array

    def inner(
        self, kernel: Complex, greatest: Array | None = None
    ) -> tuple[Complex, Complex, Array]:
        """Return what coordinates are multiplied by, the sum of all rests, and round-off.

        ``kernel``: on the nodes, over the scale of the rows, a column for each power;
        ``greatest``: a bound on its absolute value.  The round-off is that of sums over all
        members.
        """
        both = np.concatenate([kernel, 1j * kernel])
        inner = real_by_complex(self.basis, both)
        rank, terms = self.basis.shape
        # of the products by the basis, and of the coordinates
        lost: Any = 2 * rank + terms / 16 + 64
        if greatest is None:
            lost = lost * np.einsum("k,kj->j", self.spread, np.abs(kernel))
        else:
            lost = lost * float(np.sum(self.spread)) * greatest
        lost += (rank + 16) * np.einsum("r,rj->j", self.sizes, np.abs(inner))
        return inner, np.einsum("k,kj->j", self.column_rest, both), ULP * lost


def real_by_complex(left: Array, right: Complex) -> Complex:
    """Return ``sum_r left[i, r] right[r, j]``."""
    result = np.empty((left.shape[0], right.shape[1]), dtype=complex)
    left = np.ascontiguousarray(left)
    result.real = products(left, np.ascontiguousarray(right.real.T))
    result.imag = products(left, np.ascontiguousarray(right.imag.T))
    return result


def _columns_of_mass(rows: Array, tolerance: float) -> Any:
    """Return the columns that hold nearly all of the rows' mass; the others are left."""
    mass = np.einsum("ik->k", np.abs(rows))
    return np.flatnonzero(mass > LEFT_OF_TOLERANCE * tolerance * np.sum(mass))


def _basis(rows: Array, tolerance: float) -> Array:
    """Return orthonormal rows that nearly span the given ones: the longest that is left, first."""
    rows = rows.copy()
    kept: list[Array] = []
    first = 0.0
    for _ in range(MAX_RANK):
        square = np.einsum("ik,ik->i", rows, rows)
        at = int(np.argmax(square))
        first = first or float(square[at])
        if not square[at] > tolerance**2 * first:
            break
        one = rows[at] / math.sqrt(square[at])
        for other in kept:  # again, for round-off
            one = one - float(ordered_dot(other, one)) * other
        one /= math.sqrt(float(ordered_dot(one, one)))
        kept.append(one)
        rows -= np.outer(ordered_dot(rows, one), one)
    return np.array(kept)
