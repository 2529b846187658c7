"""What a row adds to a statistic, a few whole numbers, and how far a person can move their sums.

A number is counted in whole steps: in a sum of 2^-30 of the larger of its bounds' absolute values,
in a mean or variance of 2^-30 of its range.  Sums of whole numbers have no round-off, so the
sensitivity of what is released is that of the proof (docs/proofs/frames.md), and frames that are
stored otherwise, or in another order, give the same bits.

References: Casacuberta, Shoemate, Vadhan & Wagaman (2022), for the sensitivity of floating sums;
McSherry (2009); Kifer & Machanavajjhala (2011), for the neighbours; docs/proofs/frames.md.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import Adjacency
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.kinds import whole
from algorithms.frames.columns.numbers import Integer, Number
from algorithms.frames.schema import Schema

STEPS = 2**30  # how many steps a number has at most, as said above


@dataclass(frozen=True, slots=True)
class Basis:
    """The numbers that every cell sums: where the contribution of a row can lie, and their unit.

    Parameters
    ----------
    vertices : sequence of tuple of int
        The contribution of any row lies in the convex hull of these and of zero.
    unit : float
        What one step is worth in the units of the answer.
    """

    vertices: Sequence[tuple[int, ...]]
    unit: float

    @property
    def size(self) -> int:
        """How many numbers a cell has."""
        return len(self.vertices[0])


@dataclass(frozen=True, slots=True)
class Statistic(ABC):
    """A statistic of the rows of a cell.

    ``weight`` is a column of weights, none negative, or None where each row counts once.
    """

    name: ClassVar[str]

    column: str | None
    weight: str | None = None

    def check(self, schema: Schema) -> None:
        """Refuse a column that the statistic does not exist for."""
        kind = None if self.column is None else schema.kind(self.column)
        if kind is not None and not isinstance(kind, Number | Integer):
            allowed = "a Number or an Integer, which have public bounds"
            if isinstance(kind, Date):
                allowed += "; of dates ask median(column), or histogram(column, bins='month')"
            elif kind.bounds is None:
                allowed += f"; count(by={self.column!r}) counts the rows with each label"
            raise ParameterError(f"column {self.column!r}", kind, allowed)

    @abstractmethod
    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the basis of the sums for "laplace" or "gaussian" noise."""

    @abstractmethod
    def contributions(self, values: Any, schema: Schema, noise: str) -> list[Any]:
        """Return what is added up: for each sum an expression that is a whole number in each row.

        ``values`` are those of the column, an expression too.  An int stands for all rows.  `mixed`
        makes the sums of the basis from these sums.  No number is larger, in absolute value, than
        twice the largest coordinate of the basis.
        """

    def moved(self, schema: Schema, noise: str, cells: int) -> Sensitivities:
        """Return how far one person moves the sums of ``cells`` cells."""
        basis = self.basis(schema, noise)
        moved = sensitivities(basis, schema, cells)
        if self.weight is None:
            return moved
        # A weight puts what a row adds nearer to 0, and rounds each of its numbers by less than 1.
        rounded = 2 * schema.rows_per_person
        return Sensitivities(
            moved.l1 + rounded * basis.size, round_up(moved.l2 + rounded * basis.size**0.5)
        )

    def largest_weight(self, schema: Schema) -> float:
        """Return the public bound on the weight of a row; 1 where each row counts once."""
        if self.weight is None:
            return 1.0
        kind = schema.kind(self.weight)
        if not isinstance(kind, Number | Integer) or kind.low < 0:
            allowed = "a Number or an Integer from 0 on, whose upper bound is that of a weight"
            raise ParameterError(f"column {self.weight!r}", kind, allowed)
        return float(kind.high)

    def row_numbers(self, values: Any, weights: Any, schema: Schema, noise: str) -> list[Any]:
        """Return what is added up in each row: `contributions`, or the basis times the weight.

        Weights count as shares of the largest one.
        """
        parts = self.contributions(values, schema, noise)
        if self.weight is None:
            return parts
        share = weights * (1 / self.largest_weight(schema))
        mixing = self.mixed(np.eye(len(parts), dtype=np.int64), noise).tolist()
        return [
            whole(share * sum(factor * part for factor, part in zip(factors, parts, strict=True)))
            for factors in mixing
        ]

    def mixed(self, sums: NDArray[np.int64], noise: str) -> NDArray[np.int64]:
        """Return the sums of the basis from those of `contributions`, a column for each cell.

        A mean, say, adds up 1 and t, the place of x between its bounds.  For Laplace noise its
        basis has the sums of 1 - t and t, which a row moves less in the L1 norm.
        """
        del noise
        return sums

    def usual_error(self, noise: str) -> float:
        """Return about the deviation of the answer, for noise of deviation 1 on every sum."""
        del noise
        return 1.0

    def _bounds(self, schema: Schema) -> tuple[float, float]:
        return cast("tuple[float, float]", schema.kind(self.column).bounds)  # `check` was called


@final
@dataclass(frozen=True, slots=True)
class Count(Statistic):
    """How many rows there are."""

    name: ClassVar[str] = "count"

    def check(self, schema: Schema) -> None:
        """Refuse a column that is not declared."""
        if self.column is not None:
            schema.kind(self.column)

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the basis of a single sum, to which each row adds 1, or its weight in steps."""
        (steps,) = self.contributions(None, schema, noise)
        return Basis([(steps,)], self.largest_weight(schema) / steps)

    def contributions(self, values: Any, schema: Schema, noise: str) -> list[Any]:
        """Return 1, or 1 in steps where rows have weights."""
        return [1 if self.weight is None else STEPS]


@final
@dataclass(frozen=True, slots=True)
class Persons(Statistic):
    """How many persons have a row: each counts once in a cell, however many rows it has there."""

    name: ClassVar[str] = "persons"

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the basis of a single sum, to which each person adds 1."""
        return Basis([(1,)], 1.0)

    def check(self, schema: Schema) -> None:
        """Refuse rows that are joined from those of several persons."""
        schema.check_persons("count(...), which counts joined rows")

    def contributions(self, values: Any, schema: Schema, noise: str) -> list[Any]:
        """Return 1."""
        return [1]

    def moved(self, schema: Schema, noise: str, cells: int) -> Sensitivities:
        """Return how many cells a person has, at most; of who is exchanged those of both."""
        exchanged = schema.row_relation is Adjacency.REPLACE_ONE
        moved = min(cells, schema.groups * (2 if exchanged else 1))
        root = math.isqrt(moved)
        return Sensitivities(moved, float(root) if root**2 == moved else round_up(moved**0.5))


@final
@dataclass(frozen=True, slots=True)
class Sum(Statistic):
    """The sum of a column."""

    name: ClassVar[str] = "sum"

    def basis(self, schema: Schema, noise: str) -> Basis:
        """Return the bounds in steps; the steps of whole numbers are 1."""
        ends = [int(self._steps(float(end), schema)) for end in self._bounds(schema)]
        unit = self._unit(schema) * self.largest_weight(schema)
        return Basis([(end,) for end in ends if end], unit)

    def _whole(self, schema: Schema) -> bool:
        return isinstance(schema.kind(self.column), Integer) and self.weight is None

    def _unit(self, schema: Schema) -> float:
        if self._whole(schema):
            return 1.0
        return max(map(abs, self._bounds(schema))) / STEPS  # above 0, as the bounds differ

    def _steps(self, values: Any, schema: Schema) -> Any:
        """Return numbers in whole steps.

        No number has more steps than a larger one.  So none is beyond the steps of the bounds,
        which are computed here too, and on which the sensitivity rests.
        """
        # Not "if the unit is 1": that of a Number with the bound 2^30 is 1 too.
        if self._whole(schema):
            return values
        unit = self._unit(schema)
        # The reciprocal of the smallest units overflows.
        return whole(values * (1 / unit) if math.isfinite(1 / unit) else values / unit)

    def contributions(self, values: Any, schema: Schema, noise: str) -> list[Any]:
        """Return the numbers in steps."""
        return [self._steps(values, schema)]


class Sensitivities(NamedTuple):
    """How far a released vector can move, in the L1 norm and in the L2 norm."""

    l1: int
    l2: float


def sensitivities(basis: Basis, schema: Schema, cells: int) -> Sensitivities:
    """Return how far one person moves the sums of ``cells`` cells.

    What a person adds lies in m times the convex hull of zero and the vertices, each in any cell,
    for m rows a person.  A norm is convex, so it is largest at vertices.  Where the rows of each
    group are bounded too, the parts in different cells are orthogonal.
    """
    rows, vertices = schema.rows_per_person, [*basis.vertices, (0,) * basis.size]
    l1 = max(sum(map(abs, v)) for v in vertices)
    square = max(sum(x * x for x in v) for v in vertices)
    if schema.row_relation is Adjacency.REPLACE_ONE:
        for before, after in itertools.combinations(vertices, 2):
            moves = [a - b for a, b in zip(before, after, strict=True)]
            l1 = max(l1, sum(map(abs, moves)))
            square = max(square, sum(x * x for x in moves))
        if cells > 1:  # an exchanged row may move from one cell to another
            l1 = max(l1, 2 * max(sum(map(abs, v)) for v in vertices))
            square = max(square, 2 * max(sum(x * x for x in v) for v in vertices))
    if cells > 1 and schema.groups_per_person is not None:
        square *= min(cells, schema.groups)
        rows, total = schema.rows_per_person // schema.groups, rows * l1
    else:
        total = rows * l1
    root = math.isqrt(square)
    exact = root * root == square  # such as of one coordinate: then nothing is rounded up
    return Sensitivities(total, float(rows * root) if exact else round_up(rows * square**0.5))
