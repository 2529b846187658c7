"""What a row adds to a regression: products of its terms and its target, as whole numbers.

Rows of a frame are sorted into cells, and `RegressionQuery` adds up, in every cell, the vectors
that `RowProducts` makes of its rows.  A vector has three parts: products of two terms, products of
a term with the target, and the target's square.  Each part is divided by a unit of `StatisticUnits`
such that one row, or the exchange of one for another, moves all parts together by at most 1 in the
Euclidean norm: the units are larger where rows are exchanged.  Of each number, `STEPS` steps are 1,
and it is rounded to whole steps, so that sums have no round-off.

References: Vu & Slavkovic (2009); docs/proofs/frames.md, section 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import narwhals as nw

from algorithms.frames.bases import STEPS
from algorithms.frames.columns.kinds import whole
from algorithms.frames.moments import fractions_of
from algorithms.frames.schema import Schema
from algorithms.linear_models.sufficient_statistics import StatisticUnits, vector_size


class Term(NamedTuple):
    """What a coefficient belongs to: a column of numbers, a label of a column, or the constant."""

    column: str | None
    label: str | int | bool | None = None

    def __str__(self) -> str:
        if self.column is None:
            return "constant"
        return self.column if self.label is None else f"{self.column} = {self.label}"


@final
@dataclass(frozen=True, slots=True)
class RowProducts:
    """Products of the terms of a row with each other, those with its target, and its square.

    Parameters
    ----------
    target : str
        The column that is fitted.
    features : tuple of str
        The other columns.
    schema : Schema
        What is public of them.
    """

    target: str
    features: tuple[str, ...]
    schema: Schema

    @property
    def terms(self) -> list[Term]:
        """The terms of the fit: numbers, labels but the first, and the constant at the end.

        The first label of a column is the one that the others are compared with: terms of all
        labels would add up to the constant.
        """
        fitted_terms: list[Term] = []
        for name in self.features:
            kind = self.schema.kind(name)
            if kind.bounds is None:
                fitted_terms += [Term(name, label) for label in kind.labels[1:]]
            else:
                fitted_terms.append(Term(name))
        return [*fitted_terms, Term(None)]

    @property
    def size(self) -> int:
        """How many sums a cell has: the length of the vector of a row."""
        return vector_size(len(self.terms))

    @property
    def units(self) -> StatisticUnits:
        """The units of the sums.

        Terms and target lie in [-1, 1].  A column of numbers has one term, and of the terms of a
        column of labels at most one is not 0.  So the squared length of all terms is at most 1 for
        each column, and 1 for the constant.
        """
        return StatisticUnits.of(math.sqrt(1 + len(self.features)), 1.0, self.schema.row_relation)

    @property
    def length(self) -> int:
        """How far one row, or two that are exchanged, move the sums in steps, at most.

        Before rounding it is `STEPS`.  Each of the ``size`` numbers is rounded, which with the
        round-off of floats moves it by less than 1, and an exchange rounds those of two rows.
        """
        return math.ceil(STEPS + 2 * math.sqrt(self.size))

    def __call__(self, values: Mapping[str, nw.Expr]) -> Iterator[Any]:
        """Yield what each row adds to each sum, in steps, of columns as declared."""
        units, columns = self.units, list(self._columns(values))
        target = self._centred(values, self.target)
        for i, column in enumerate(columns):
            for j, second in enumerate(columns[i:], i):
                # Entries off the diagonal weigh sqrt 2: the vector is as long as the matrix.
                weight = (1.0 if i == j else math.sqrt(2)) / units.gram
                yield whole(column * second * (weight * STEPS))
        for column in columns:
            yield whole(column * target * (STEPS / units.products))
        yield whole(target * target * (STEPS / units.square))

    def _columns(self, values: Mapping[str, nw.Expr]) -> Iterator[Any]:
        """Yield the terms of rows, each from -1 to 1; the constant as 1."""
        for term in self.terms:
            if term.column is None:
                yield 1.0
            elif term.label is None:
                yield self._centred(values, term.column)
            else:
                kind = self.schema.kind(term.column)
                label = kind.texts[kind.labels.index(term.label)]
                yield (values[term.column] == label).cast(nw.Float64)

    def _centred(self, values: Mapping[str, nw.Expr], name: str) -> nw.Expr:
        """Return where numbers lie between their bounds, from -1 to 1: twice their place less 1."""
        low, high = cast("tuple[float, float]", self.schema.kind(name).bounds)  # it has them
        centred: nw.Expr = (fractions_of(values[name], low, high, 2) - 1).clip(-1.0, 1.0)
        return centred
