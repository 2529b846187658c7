"""The question for the bounds of a column of numbers, where they are not public.

The rows are counted in bins whose edges are powers of two.  With noise this is one release, as of
any histogram; the bounds are the ends of the bins that are counted above noise.  Whatever is asked
within them afterwards is charged for itself.

References: Wilson et al. (2020), section 5, for bounds from bins of powers of two.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast, final

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.frames import FrameFacts
from accountant.numerics import Array
from accountant.plans.plan import Plan
from algorithms.base.intervals import CONFIDENCE
from algorithms.frames.arguments import answered
from algorithms.frames.bases import Count
from algorithms.frames.cells import Axis
from algorithms.frames.columns.numbers import UNKNOWN_BOUND, Integer, Number
from algorithms.frames.conditions import Condition, checked_where
from algorithms.frames.framed import FramedAnswer
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.noise_tails import half_width
from algorithms.frames.queries import FrameQuery
from algorithms.frames.questions import Question
from algorithms.frames.schema import Schema

# Numbers nearer to 0 than the least power of two are in one bin; a whole number 0 has its own.
SMALLEST = {Number: -64, Integer: -1}
LARGEST = int(math.log2(UNKNOWN_BOUND))


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundsAnswer(FramedAnswer):
    """Released bounds of a column.

    Parameters
    ----------
    asked : str
        What was asked, in words.
    column : str
        Its name.
    kind : Number or Integer
        The column with these bounds, for the questions that follow; `bounded` puts it into a
        schema.
    counts : numpy.ndarray
        The noisy number of rows in each bin.
    noise_scale : float
        The scale of the noise, in rows.
    backend : str
        The library of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from accountant import Budget, Filter
    >>> from algorithms.frames import Number, Schema, bounds, mean
    >>> schema = Schema({"wage": Number.unknown()})
    >>> wages = pd.DataFrame({"wage": [900.0, 1500.0, 3100.0, 3900.0] * 2000})
    >>> ledger = Filter(wages, Budget(2.0), rng=0)
    >>> answer = bounds("wage", epsilon=1.0).release(ledger, schema)
    >>> answer.value
    (512.0, 4096.0)
    >>> round(mean("wage", epsilon=1.0).release(ledger, answer.bounded(schema)).value)
    2350
    """

    asked: str
    column: str
    kind: Number | Integer
    counts: Array
    noise_scale: float
    backend: str

    @property
    def value(self) -> tuple[float, float]:
        """The lower and the upper bound."""
        return self.kind.bounds

    def bounded(self, schema: Schema) -> Schema:
        """Return the schema with these bounds of the column.

        Parameters
        ----------
        schema : Schema
            As the question was asked with.

        Returns
        -------
        Schema
            Columns that follow from it have closer bounds too.
        """
        return schema.with_kind(self.column, self.kind)

    def _columns(self) -> dict[str, list[Any]]:
        low, high = self.value
        return {"column": [self.column], "low": [low], "high": [high]}

    def __repr__(self) -> str:
        return f"BoundsAnswer({self.asked}: {self.value[0]:g} .. {self.value[1]:g})"


@final
@dataclass(frozen=True, slots=True)
class BoundsQuery(Question[BoundsAnswer]):
    """The bounds of a column; made by `bounds`.

    Parameters
    ----------
    column : str
        A column of numbers, such as ``Number.unknown()``.
    where : Condition or None
        Which rows count.
    guarantee : Guarantee
        The privacy that the answer may cost.
    confidence : float
        Probability that no bin without rows is taken for one with rows.
    keys : tuple of Axis
        None: the bounds are those of all rows.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Number, Schema, bounds
    >>> plan = bounds("wage", epsilon=0.5).plan(Schema({"wage": Number.unknown()}))
    >>> 0.49 < Tight().epsilon(plan, delta=0.0) <= 0.5
    True
    """

    finds_bounds: ClassVar[bool] = True

    column: str
    where: Condition | None
    guarantee: Guarantee
    confidence: float
    keys: tuple[Axis, ...] = ()

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""
        return self._used(self.column)

    @property
    def group_axes(self) -> tuple[Axis, ...]:
        """The bins are groups of a person."""
        return (Axis(self.column),)

    @property
    def _cost(self) -> Guarantee:
        return self.guarantee

    def _check_own(self, schema: Schema) -> None:
        """Refuse a column that has no numbers, or that follows from others."""
        if not isinstance(schema.kind(self.column), Number | Integer):
            allowed = "a Number or an Integer, such as Number.unknown()"
            raise ParameterError(f"column {self.column!r}", schema.kind(self.column), allowed)
        if self.column in schema.formulas:
            allowed = "a column of the frame: the bounds of others follow from theirs"
            raise ParameterError("column", self.column, allowed)
        if self.keys:
            raise ParameterError("keys", self.keys, "left out: bounds are those of all rows")

    def counted(self, schema: Schema) -> FrameQuery:
        """Return the histogram that is released.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        FrameQuery
            The number of rows between powers of two, within what is declared.
        """
        kind = schema.kind(self.column)
        low, high = kind.bounds or (0.0, 0.0)  # `_check_own` refuses a column without them
        powers = [2.0**i for i in range(SMALLEST[type(kind)], LARGEST)]
        edges = [-power for power in reversed(powers)] + powers
        within = tuple(edge for edge in edges if low < edge < high)
        axis = Axis(self.column, (float(low), *within, float(high)))
        return FrameQuery(Count(None), (axis,), self.where, self.guarantee)

    def _planned(self, schema: Schema) -> Plan:
        """Return the noise on all bins."""
        return self.counted(schema).mechanism(schema)

    def _noise_lines(self, schema: Schema, steps: list[Any]) -> Iterator[str]:
        """Yield the bins, and the noise."""
        (axis,), (noise,) = self.counted(schema).keys, steps
        yield f"rows in {axis.size(schema)} bins between powers of 2, of both signs"
        yield f"{type(noise).__name__} noise of scale {noise.scale:.6g} rows"

    def __str__(self) -> str:
        return self._words(f"bounds of {self.column}")

    def _released(
        self, ledger: Any, schema: Schema, steps: list[Any], facts: FrameFacts, label: str | None
    ) -> BoundsAnswer:
        """Release the histogram, and take the ends of the bins that are counted above noise."""
        query, (noise,) = self.counted(schema), steps
        histogram = query._released(ledger, schema, steps, facts, label)  # noqa: SLF001
        counts, edges = histogram.released, query.keys[0].edges(schema)
        # Of n bins without rows one is above with a chance of n times that of one side.
        above = half_width(noise, 1 - min(0.5, 2 * (1 - self.confidence) / counts.size))
        taken = np.flatnonzero(counts > above)
        if not taken.size:  # the fullest bin, as far as noise shows
            taken = np.array([int(np.argmax(counts))])
        kind = cast("Number | Integer", schema.kind(self.column))
        low, high = edges[taken[0]], edges[taken[-1] + 1]
        if isinstance(kind, Integer):  # the upper edge of a bin is in it only if it is the last one
            low = min(math.ceil(low), kind.high - 1)
            high = max(low + 1, kind.high if high == kind.high else math.ceil(high) - 1)
        missing = (
            kind.missing if isinstance(kind.missing, str) else min(max(kind.missing, low), high)
        )
        bounded = dataclasses.replace(kind, low=low, high=high, missing=missing)
        scale = float(noise.scale)
        return BoundsAnswer(str(self), self.column, bounded, counts, scale, facts.backend)


@answered("bounds('wage', epsilon=0.1)")
def bounds(
    column: str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    scale: float | None = None,
    noise: str = "auto",
    confidence: float = 0.95,
    where: Condition | None = None,
) -> BoundsQuery:
    """Find bounds of a column of numbers, of which none are public: powers of two.

    A few rows beyond all others are left out of them, as noise hides few rows.

    Parameters
    ----------
    column : str
        A column that is declared as `Number.unknown()`, or with bounds that are far too wide.
    epsilon, delta : float, optional
        The privacy that the answer may cost; with delta above 0 Gaussian noise is tried too.
    rho : float, optional
        The privacy that it may cost as zero-concentrated rho, in place of epsilon and delta.
    scale : float, optional
        The scale of the noise, in rows, in place of a cost.
    noise : {"auto", "laplace", "gaussian"}
        Kind of the noise; "auto" takes the one with the least error.
    confidence : float
        Probability that no bin without rows is taken for one with rows.
    where : Condition, optional
        Which rows count, such as ``col("age") >= 18``.

    Returns
    -------
    BoundsQuery
        A question that is still to be planned and released.

    Examples
    --------
    >>> from algorithms.frames import Number, Schema, bounds
    >>> print(bounds("wage", epsilon=0.1).explain(Schema({"wage": Number.unknown()})))
    bounds of wage
      wage: bounds are unknown, rows without one do not count
      neighbours: one person more or less (each row is a person)
      rows in 383 bins between powers of 2, of both signs
      DiscreteLaplace noise of scale 10 rows
      costs epsilon 0.1
    """
    guarantee = Guarantee(epsilon, delta, rho, scale, noise)
    chance = CONFIDENCE.check("confidence", confidence)
    return BoundsQuery(column, checked_where(where), guarantee, chance)
