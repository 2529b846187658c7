"""A strategy of a matrix mechanism that is given entry by entry, also from a file.

Its sensitivity is the greatest norm of a sum of columns, over the patterns of steps that a record
may be used in; it follows from the inner products of columns (`gram_bounds`).

References: Denisov, McMahan, Rush, Smith & Thakurta (2022); Choquette-Choo, McMahan, Rush &
Thakurta (2023), Equation 5, for absolute inner products.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
    "a matrix of finite real numbers up to 1e100, not all below 1e-100 (multiply it and the scale "
    f"by one number), with at most {MAX_ENTRIES:,} entries"
)


@plan_field
@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StrategyMatrix(Strategy):
    """A strategy given entry by entry: a row for each release, a column for each step.

    It is invertible where it is lower triangular with no 0 on the diagonal, or else has independent
    columns.  Where a step depends on earlier releases, as in training, the matrix has to be lower
    triangular: no row may look ahead.

    Parameters
    ----------
    entries : array_like
        Rows of numbers; `from_npy` reads a file.

    References
    ----------
    Denisov et al. (2022).

    Examples
    --------
    >>> from accountant import FixedEpochs, StrategyMatrix, sensitivity
    >>> sums = StrategyMatrix([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    >>> sensitivity(sums, FixedEpochs(epochs=2)).squared  # steps 0 and 2: 1 + 1 + 4 + 4
    10
    """

    entries: Array
    _hash: int = field(init=False)

    def __init__(self, entries: ArrayLike | Sequence[Sequence[float]]) -> None:
        checked_entries = _checked_entries(entries)
        object.__setattr__(self, "entries", checked_entries)
        object.__setattr__(self, "_hash", hash((checked_entries.shape, checked_entries.tobytes())))

    @classmethod
    def from_npy(cls, path: str | os.PathLike[str]) -> StrategyMatrix:
        """Read the matrix of an .npy file, such as another library's optimiser wrote.

        Parameters
        ----------
        path : path
            A file of one array of two axes; arrays of objects are refused unread.

        Returns
        -------
        StrategyMatrix
            The same numbers.

        Raises
        ------
        ParameterError
            If it cannot be read, or is no matrix of finite numbers.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from accountant import StrategyMatrix
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/c.npy", np.tri(3))
        ...     StrategyMatrix.from_npy(f"{folder}/c.npy")
        StrategyMatrix(((1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0)))
        """
        if not isinstance(path, str | os.PathLike):
            raise ParameterError("path", path, "the path of an .npy file")
        name = os.fspath(path)
        allowed = "an .npy file of one array of numbers (numpy.save writes it)"
        if Path(name).suffix != ".npy":
            raise ParameterError("path", name, allowed)
        try:
            with np.errstate(over="ignore"):  # a shape beyond 2^63 bytes is refused below
                array = np.lib.format.open_memmap(name, mode="r")
        except OSError as error:
            raise ParameterError("path", name, f"a file that can be read ({error})") from None
        except (ValueError, OverflowError, EOFError, SyntaxError):
            raise ParameterError("path", name, allowed) from None
        try:
            return cls(array)
        except ParameterError as error:
            shape = f"{name}: {array.dtype} of shape {array.shape}"
            raise ParameterError("path", shape, error.allowed) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StrategyMatrix):
            return NotImplemented
        return self._hash == other._hash and np.array_equal(self.entries, other.entries)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.entries.size > SHOWN_ENTRIES:
            return f"StrategyMatrix(<{self.rows} x {self.columns} numbers>)"
        return f"StrategyMatrix({tuple(map(tuple, self.entries.tolist()))})"

    def __reduce__(self) -> tuple[type[StrategyMatrix], tuple[Array]]:
        return StrategyMatrix, (self.entries,)

    @property
    def columns(self) -> int:
        """The number of steps."""
        return int(self.entries.shape[1])

    @property
    def rows(self) -> int:
        """The number of releases."""
        return int(self.entries.shape[0])

    @property
    def largest_entry(self) -> float:
        """The greatest absolute value."""
        return float(np.abs(self.entries).max())

    @property
    def bands(self) -> int | None:
        """The number of diagonals down to the last that is not 0; None if not lower triangular."""
        row, column = np.nonzero(self.entries)
        reach = row - column
        square = self.rows == self.columns
        return int(reach.max()) + 1 if square and reach.min() >= 0 else None

    @property
    def is_invertible(self) -> bool:
        """Whether the diagonal of a triangular matrix is not 0, or the columns are independent."""
        if self.bands is not None:
            return bool(np.diagonal(self.entries).all())
        return bool(np.linalg.matrix_rank(self.entries) == self.columns)

    @property
    def log_volume(self) -> float:
        """The sum of ``ln |d_i|`` over the diagonal of the matrix, or of the R of its QR."""
        triangle = self.entries if self.bands else np.linalg.qr(self.entries, mode="r")
        return float(np.log(np.abs(np.diagonal(triangle))).sum())

    def sensitivity_under(self, participation: Participation) -> Sensitivity:
        """Return the greatest norm of a sum of columns, or a bound of it, by inner products."""
        return sensitivity_by_inner_products(self.entries, participation, _gram)

    def times(self, steps: Array, entrywise: Entrywise | None = None) -> Array:
        """Return the matrix product."""
        values = np.asarray(steps, dtype=float)
        entries = self.entries if entrywise is None else entrywise(self.entries)
        product: Array = entries @ values.reshape(self.columns, -1)
        return product.reshape(self.rows, *values.shape[1:])

    def recovered(self, rows: Array) -> Array:
        """Return the solution x of C x = rows, by substitution or by least squares."""
        values = np.asarray(rows, dtype=float)
        flat = values.reshape(self.rows, -1)
        if self.bands is None:
            solution = np.linalg.lstsq(self.entries, flat, rcond=None)[0]
        else:
            from scipy.linalg import solve_triangular

            solution = solve_triangular(self.entries, flat, lower=True)
        solved: Array = solution.reshape(self.columns, *values.shape[1:])
        return solved

    def rounded(self, bits: int) -> StrategyMatrix:
        """Return the matrix with entries rounded to multiples of 2^-bits."""
        return StrategyMatrix(np.ldexp(np.rint(np.ldexp(self.entries, bits)), -bits))


def _gram(entries: Array, _separation: int) -> Array:
    """Return the inner products of columns by their distance: [d, j] is that of j and j + d."""
    products, n = entries.T @ entries, entries.shape[1]
    inner_products = np.zeros((n, n))
    for d in range(n):
        inner_products[d, : n - d] = np.diagonal(products, d)
    return inner_products


def _checked_entries(entries: object) -> Array:
    """Return the entries on memory that nothing can write to, or raise `ParameterError`."""
    try:
        values = np.asarray(entries)
    except (ValueError, TypeError):
        raise ParameterError("entries", entries, f"rectangular: {ALLOWED}") from None
    masked = isinstance(entries, np.ma.MaskedArray)
    if values.dtype.kind not in "iuf" or values.ndim != 2 or masked:
        raise ParameterError("entries", entries, ALLOWED)
    if not 0 < values.size <= MAX_ENTRIES:
        raise ParameterError("entries", f"shape {values.shape}", ALLOWED)
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(values, dtype=float)
    if not (np.abs(floats) <= 1e100).all() or np.abs(floats).max() < LEAST_ENTRY:
        raise ParameterError("entries", entries, ALLOWED)
    return np.ndarray(floats.shape, float, (floats + 0.0).tobytes())
