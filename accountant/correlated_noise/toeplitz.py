"""Toeplitz strategies: each release is ``sum_d c_d x_(i-d)``, with the same coefficients for all i.

A matrix mechanism adds noise to C x; C is its strategy, and row i of x the sum of what all records
add in step i.  A record is used in the steps of a pattern, such as any k steps at least b apart
(`Participation`).

The sensitivity is the greatest norm of a sum of columns, over the patterns of steps that a record
may be used in.  If coefficients are not negative and do not rise, it is that of the earliest
pattern, the steps 0, b, 2 b, ...

References: Fichtenberger, Henzinger & Upadhyay (2022); Kalinin & Lampert (2024), "Banded square
root matrix factorization for differentially private model training", Theorem 2, for sensitivities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.correlated_noise.participation import (
    FixedEpochs,
    MinSeparation,
    Once,
    Participation,
)
from accountant.correlated_noise.strategy import (
    LEAST_ENTRY,
    STEPS,
    Entrywise,
    Sensitivity,
    Strategy,
    certified_root,
)
from accountant.domains import Interval, each_checked
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.declared_releases import plan_field

ENTRY = Interval(-1e100, 1e100)  # the values that a coefficient may have
BLOCK = 1024  # rows and columns of a block in a product: 8 MB
# Coefficients up to which a product is summed diagonal by diagonal, which is quicker than blocks.
MAX_SEPARATE_DIAGONALS = 64
# Steps up to which a strategy that no theorem covers is also bounded as a dense matrix, whose
# patterns are tried: a matrix of 1.3 MB, and seconds.
MAX_DENSE_STEPS = 400


@plan_field
@final
@dataclass(frozen=True, slots=True)
class Toeplitz(Strategy):
    """The lower triangular matrix with ``coefficients[d]`` everywhere on its d-th diagonal.

    Parameters
    ----------
    coefficients : sequence of float
        The first column from the diagonal down; the rest of it is 0.
    steps : int
        Steps of the run, at least as many as there are coefficients.

    References
    ----------
    Kalinin & Lampert (2024).

    Examples
    --------
    >>> from accountant import MinSeparation, Toeplitz, sensitivity
    >>> banded = Toeplitz((1.0, 0.5), steps=1000)
    >>> found = sensitivity(banded, MinSeparation(participations=4, separation=250))
    >>> found.squared is None, round(found.value**2, 9)  # columns do not meet: 4 times 1.25
    (True, 5.0)
    """

    coefficients: tuple[float, ...]
    steps: int

    def __init__(self, coefficients: Sequence[float] | Array, steps: int) -> None:
        checked = np.array(each_checked(ENTRY, "coefficients", coefficients))
        size = STEPS.check("steps", steps)
        if checked.size > size or np.abs(checked).max(initial=0.0) < LEAST_ENTRY:
            allowed = f"1 to {size:,} numbers, one for each step at most, not all below 1e-100"
            raise ParameterError("coefficients", coefficients, allowed)
        trimmed = checked[: int(np.flatnonzero(checked)[-1]) + 1]
        object.__setattr__(self, "coefficients", tuple(trimmed.tolist()))
        object.__setattr__(self, "steps", size)

    @property
    def columns(self) -> int:
        """The steps."""
        return self.steps

    @property
    def rows(self) -> int:
        """As many as steps."""
        return self.steps

    @property
    def largest_entry(self) -> float:
        """The greatest absolute coefficient."""
        return max(map(abs, self.coefficients))

    @property
    def bands(self) -> int:
        """The coefficients up to the last that is not 0."""
        return len(self.coefficients)

    @property
    def is_invertible(self) -> bool:
        """Whether the diagonal is not 0."""
        return self.coefficients[0] != 0

    @property
    def log_volume(self) -> float:
        """The logarithm of the diagonal, for every step."""
        return self.steps * math.log(abs(self.coefficients[0]))

    def sensitivity_under(self, participation: Participation) -> Sensitivity:
        """Return the norm of the sum of columns of the earliest pattern, or a bound.

        It is exact for one use, for columns that do not meet, and for coefficients that are not
        negative and, unless the uses are periodic, do not rise (Theorem 2 of Kalinin & Lampert).
        """
        c, n = np.array(self.coefficients), self.steps
        match participation:
            case Once():
                return _of_pattern(
                    c, n, uses=1, separation=n, reason="the first column is the longest"
                )
            case FixedEpochs():
                uses, separation = participation.epochs, participation.period(n)
                monotone = bool((c >= 0).all())
            case MinSeparation():
                uses, separation = participation.most(n), participation.separation
                monotone = bool((c >= 0).all() and (np.diff(c) <= 0).all())
            case _:
                raise ParameterError("participation", participation, "a declared one")
        if uses == 1:
            return _of_pattern(c, n, uses=1, separation=n, reason="the first column is the longest")
        if c.size <= separation:
            return _of_pattern(
                c, n, uses, separation, "columns of a pattern do not meet", disjoint=True
            )
        if monotone:
            return _of_pattern(c, n, uses, separation, "the earliest pattern meets itself most")
        # Larger coefficients have larger sums of columns.  Those above are at least |c|, and do not
        # rise where a pattern need not be periodic.
        above = np.abs(c)
        if isinstance(participation, MinSeparation):
            above = np.maximum.accumulate(above[::-1])[::-1]
        reason = "coefficients replaced by larger ones that fall: a bound"
        bound = _of_pattern(above, n, uses, separation, reason, exact=False)
        if n > MAX_DENSE_STEPS:
            return bound
        from accountant.correlated_noise.dense_matrix import StrategyMatrix

        dense = StrategyMatrix(self.times(np.eye(n))).sensitivity_under(participation)
        return dense if dense.value <= bound.value else bound

    def times(self, steps: Array, entrywise: Entrywise | None = None) -> Array:
        """Return the product, diagonal by diagonal or by blocks."""
        values = np.asarray(steps, dtype=float)
        c = np.array(self.coefficients)
        c = c if entrywise is None else entrywise(c)
        flat = values.reshape(self.steps, -1)
        if c.size > MAX_SEPARATE_DIAGONALS:
            return _product_in_blocks(c, flat).reshape(values.shape)
        product = np.zeros_like(flat)
        for d, entry in enumerate(c.tolist()):
            product[d:] += entry * flat[: len(flat) - d]
        return product.reshape(values.shape)

    def recovered(self, rows: Array) -> Array:
        """Return the solution x of C x = rows, row by row."""
        values = np.asarray(rows, dtype=float)
        if self.bands == 1 or not values.size:
            return values / self.coefficients[0]
        from scipy.signal import lfilter

        solution: Array = lfilter([1.0], self.coefficients, values, axis=0)
        return solution

    def rounded(self, bits: int) -> Toeplitz:
        """Return the matrix with rounded coefficients."""
        return Toeplitz(np.ldexp(np.rint(np.ldexp(self.coefficients, bits)), -bits), self.steps)


def _of_pattern(
    c: Array,
    n: int,
    uses: int,
    separation: int,
    reason: str,
    *,
    exact: bool = True,
    disjoint: bool = False,
) -> Sensitivity:
    """Return the norm of the sum of the columns 0, b, 2 b, ..., rounded up, for n steps.

    Here b is the separation, and ``uses`` the number of columns.  If they are ``disjoint``, no two
    columns have a row in common, so their squared norms add up.
    """
    integral = bool((c == np.rint(c)).all())
    power = math.frexp(float(np.abs(c).max()))[1]
    c = np.ldexp(c, -power)  # No square overflows, and those that underflow are negligible.
    # ``ulps`` is more than the sum of squares errs by: in half ulps, the additions of all squares,
    # or those of the entries of a sum of columns, which count twice in its square.
    if disjoint or uses == 1:
        squares = np.cumsum(c * c)
        full_square, last_start = squares[-1], (uses - 1) * separation
        tail = squares[min(n - last_start, c.size) - 1]
        squared, ulps = float((uses - 1) * full_square + tail), c.size + 4.0
    else:
        column = np.zeros(-(-n // separation) * separation)
        column[: c.size] = c
        summed = _window_sums(column.reshape(-1, separation), uses).ravel()[:n]
        squared, ulps = math.fsum(summed * summed), 4.0 * min(uses, len(column)) + 8
    value, total = certified_root(math.ldexp(squared, 2 * power), integral, ulps)
    return Sensitivity(value, exact, reason, total)


def _window_sums(rows: Array, uses: int) -> Array:
    """Return for each row the sum of it and of the ``uses - 1`` rows before, without subtracting.

    In blocks of ``uses`` rows, a window is the end of one block and the beginning of the next: the
    sum of a running sum from the right in one and one from the left in the other.
    """
    count = len(rows)
    if uses >= count:
        return np.cumsum(rows, axis=0)
    blocks = -(-count // uses)
    padded = np.zeros((blocks * uses, rows.shape[1]))
    padded[:count] = rows
    cubes = padded.reshape(blocks, uses, -1)
    beginnings = np.cumsum(cubes, axis=1)
    ends = np.zeros_like(cubes)  # row i: the rows after row i of the block before
    ends[1:, :-1] = np.cumsum(cubes[:-1, :0:-1], axis=1)[:, ::-1]
    sums: Array = (beginnings + ends).reshape(blocks * uses, -1)[:count]
    return sums


def _product_in_blocks(c: Array, values: Array) -> Array:
    """Return the product by matrix products of blocks, each used along its whole diagonal."""
    n, width = values.shape
    count = -(-n // BLOCK)
    padded = np.zeros((count * BLOCK, width))
    padded[:n] = values
    side_by_side = padded.reshape(count, BLOCK, width).transpose(1, 0, 2)
    # A block d blocks below the diagonal has the coefficient d BLOCK + i - j in row i, column j;
    # coefficients before the first and after the last are 0.
    extended = np.zeros((count + 1) * BLOCK + BLOCK)
    extended[BLOCK : BLOCK + c.size] = c
    lag = np.arange(BLOCK)[:, None] - np.arange(BLOCK)
    product = np.zeros((BLOCK, count, width))
    for d in range(min(count, -(-c.size // BLOCK) + 1)):
        block = extended[BLOCK + d * BLOCK + lag]
        operand = side_by_side[:, : count - d].reshape(BLOCK, -1)
        product[:, d:] += (block @ operand).reshape(BLOCK, count - d, width)
    return product.transpose(1, 0, 2).reshape(count * BLOCK, width)[:n]
