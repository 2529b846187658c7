"""Banded strategy matrices for correlated noise: each step affects only the next few rows.

A matrix mechanism adds noise to C x, where row i of x is the sum of what all records add in step i.
The strategy matrix C has a column for each step.  Its sensitivity is the greatest norm of the sum
of the columns of the steps in which one record is used, over all sets of steps that are allowed.

References: Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization", Section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.correlated_noise.gram_bounds import sensitivity_by_inner_products
from accountant.correlated_noise.participation import Participation
from accountant.correlated_noise.strategy import (
    LEAST_ENTRY,
    MAX_ENTRIES,
    SHOWN_ENTRIES,
    Entrywise,
    Sensitivity,
    Strategy,
)
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.declared_releases import plan_field

ALLOWED = (
    "a row of numbers for each diagonal, from the main one down, as scipy.linalg.solve_banded "
    f"takes them: finite, at most 1e100, not all below 1e-100, with at most {MAX_ENTRIES:,} entries"
)


@plan_field
@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandedMatrix(Strategy):
    """A lower triangular matrix by its diagonals: ``diagonals[d, j]`` is entry (j + d, j).

    Parameters
    ----------
    diagonals : array_like
        A row for each diagonal from the main one down, a column for each step; what would lie
        below the last row does not count.

    References
    ----------
    Choquette-Choo et al. (2023), Section 3.

    Examples
    --------
    >>> from accountant import BandedMatrix, MinSeparation, sensitivity
    >>> one = BandedMatrix([[3.0, 1.0, 2.0, 2.0], [4.0, 1.0, 1.0, 0.0]])
    >>> sensitivity(one, MinSeparation(participations=2, separation=2)).squared  # 25 + 5
    30
    """

    diagonals: Array
    _hash: int = field(init=False)

    def __init__(self, diagonals: ArrayLike | Sequence[Sequence[float]]) -> None:
        entries = _checked_diagonals(diagonals)
        object.__setattr__(self, "diagonals", entries)
        object.__setattr__(self, "_hash", hash((entries.shape, entries.tobytes())))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BandedMatrix):
            return NotImplemented
        return self._hash == other._hash and np.array_equal(self.diagonals, other.diagonals)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.diagonals.size > SHOWN_ENTRIES:
            return f"BandedMatrix(<{self.bands} diagonals of {self.columns} numbers>)"
        return f"BandedMatrix({tuple(map(tuple, self.diagonals.tolist()))})"

    def __reduce__(self) -> tuple[type[BandedMatrix], tuple[Array]]:
        return BandedMatrix, (self.diagonals,)

    @property
    def columns(self) -> int:
        """The number of steps."""
        return int(self.diagonals.shape[1])

    @property
    def rows(self) -> int:
        """The number of rows, which is the number of steps."""
        return self.columns

    @property
    def largest_entry(self) -> float:
        """The greatest absolute value."""
        return float(np.abs(self.diagonals).max())

    @property
    def bands(self) -> int:
        """The number of diagonals."""
        return int(self.diagonals.shape[0])

    @property
    def is_invertible(self) -> bool:
        """Whether the main diagonal has no 0."""
        return bool(self.diagonals[0].all())

    @property
    def log_volume(self) -> float:
        """The sum of the logarithms of the main diagonal."""
        return float(np.log(np.abs(self.diagonals[0])).sum())

    def sensitivity_under(self, participation: Participation) -> Sensitivity:
        """Return the greatest norm of a sum of columns that one record may take part in.

        Columns at least as far apart as the number of bands are orthogonal.  So where the
        separation is at least that, the lengths of the columns decide alone.
        """
        return sensitivity_by_inner_products(self.diagonals, participation, _gram)

    def times(self, steps: Array, entrywise: Entrywise | None = None) -> Array:
        """Return the product, diagonal by diagonal."""
        values = np.asarray(steps, dtype=float)
        flat = values.reshape(self.columns, -1)
        diagonals = self.diagonals if entrywise is None else entrywise(self.diagonals)
        product = np.zeros_like(flat)
        for d, entries in enumerate(diagonals):
            product[d:] += entries[: self.columns - d, None] * flat[: self.columns - d]
        return product.reshape(values.shape)

    def recovered(self, rows: Array) -> Array:
        """Return the solution of the banded system with these rows on the right-hand side."""
        from scipy.linalg import solve_banded

        values = np.asarray(rows, dtype=float)
        flat = values.reshape(self.columns, -1)
        solution: Array = solve_banded((self.bands - 1, 0), self.diagonals, flat)
        return solution.reshape(values.shape)

    def rounded(self, bits: int) -> BandedMatrix:
        """Return the matrix with rounded entries."""
        return BandedMatrix(np.ldexp(np.rint(np.ldexp(self.diagonals, bits)), -bits))


def _gram(diagonals: Array, separation: int) -> Array:
    """Return the inner products of columns by their distance: [d, j] is that of j and j + d.

    Distances below the separation, which no pattern has, are left out where none is farther.
    """
    bands, n = diagonals.shape
    products = np.zeros((1 if bands <= separation else bands, n))
    for d in range(len(products)):
        products[d, : n - d] = np.einsum(
            "ij,ij->j", diagonals[d:, : n - d], diagonals[: bands - d, d:]
        )
    return products


def _checked_diagonals(diagonals: object) -> Array:
    """Return the diagonals on memory that nothing can write to, or raise `ParameterError`."""
    try:
        values = np.asarray(diagonals)
    except (ValueError, TypeError):
        raise ParameterError("diagonals", diagonals, ALLOWED) from None
    masked = isinstance(diagonals, np.ma.MaskedArray)
    if values.dtype.kind not in "iuf" or values.ndim != 2 or masked:
        raise ParameterError("diagonals", diagonals, ALLOWED)
    if not 0 < values.size <= MAX_ENTRIES or values.shape[0] > values.shape[1]:
        raise ParameterError("diagonals", f"shape {values.shape}", f"{ALLOWED}, no more than steps")
    with np.errstate(over="ignore"):
        floats = np.array(values, dtype=float) + 0.0
    if not (np.abs(floats) <= 1e100).all():
        raise ParameterError("diagonals", diagonals, ALLOWED)
    for d in range(1, len(floats)):
        floats[d, floats.shape[1] - d :] = 0.0
    if np.abs(floats).max() < LEAST_ENTRY:
        raise ParameterError("diagonals", diagonals, ALLOWED)
    return np.ndarray(floats.shape, float, floats.tobytes())
