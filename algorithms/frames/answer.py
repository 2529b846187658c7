"""The answer to a question: the value with noise, its error, and a frame of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array
from algorithms.base.intervals import LEVEL
from algorithms.frames.bases import Basis, Statistic
from algorithms.frames.cells import Axis, table_shape
from algorithms.frames.estimates import Estimate, estimate, interval
from algorithms.frames.framed import FramedAnswer, named_cells, with_ends
from algorithms.frames.noise_tails import NAMES, Noise
from algorithms.frames.schema import Schema

FRAME_LEVEL = 0.95


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answer(FramedAnswer):
    """A released statistic.

    Parameters
    ----------
    asked : str
        What was asked, in words.
    statistic : Statistic
        What was asked of each cell.
    keys : tuple of Axis
        What rows were sorted by into cells.
    schema : Schema
        What is public of the frame.
    mechanism : DiscreteLaplace or DiscreteGaussian
        What was released with which noise.
    released : numpy.ndarray of int
        The noisy sums as the mechanism gave them.
    backend : str
        The library of the frame.
    rows : int
        The number of rows where it is public and counted as such, else 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from accountant import Budget, Filter
    >>> from algorithms.frames import Integer, Schema, mean
    >>> schema = Schema({"age": Integer(0, 100)})
    >>> ledger = Filter(pd.DataFrame({"age": [30, 50] * 5000}), Budget(1.0), rng=0)
    >>> answer = mean("age", epsilon=1.0).release(ledger, schema)
    >>> round(answer.value, 2), [round(end, 2) for end in answer.interval(0.95).tolist()]
    (39.99, [39.97, 40.01])
    """

    asked: str
    statistic: Statistic
    keys: tuple[Axis, ...]
    schema: Schema
    mechanism: Noise
    released: Array
    backend: str
    rows: int = 0

    @property
    def _basis(self) -> Basis:
        return self.statistic.basis(self.schema, NAMES[type(self.mechanism)])

    @property
    def _sums(self) -> Array:
        return self.released.reshape(-1, self._basis.size)

    @property
    def _estimate(self) -> Estimate:
        return estimate(self.statistic, self._sums, self.schema, self.mechanism, self.rows)

    def _shaped(self, cells: Array) -> Any:
        """Return what belongs to cells in the shape of the table; of one cell what it has."""
        shape = table_shape(self.keys, self.schema)
        if shape:
            return cells.reshape(*shape, *cells.shape[1:])
        return cells[0] if cells.ndim > 1 else cells[0].item()

    @property
    def value(self) -> Any:
        """The statistic: a number, or an array with an axis for each key."""
        point_estimate = self._estimate.value
        integer_valued = self._basis.unit == 1
        return self._shaped(
            np.rint(point_estimate).astype(np.int64) if integer_valued else point_estimate
        )

    @property
    def noise_scale(self) -> float:
        """The scale of the noise: in rows, or of a sum in the units of its column."""
        return float(self.mechanism.scale * self._basis.unit)

    @property
    def deviation(self) -> Any:
        """About the standard deviation of the value, by noise alone, in its own units."""
        return self._shaped(self._estimate.deviation)

    def interval(self, level: float = 0.95) -> Array:
        """Return an interval for the statistic of the frame itself, clipped and cut as declared.

        Noise is all that it counts: it says nothing of a population that the rows were drawn from.

        Parameters
        ----------
        level : float
            Chance that it covers, in (0, 1).  Of counts and whole sums at least that.

        Returns
        -------
        numpy.ndarray
            Lower and upper end, along the last axis; to nearest.
        """
        level = LEVEL.check("level", level)
        ends = interval(self.statistic, self._sums, self.schema, self.mechanism, level, self.rows)
        shaped: Array = self._shaped(ends)
        return shaped

    def _columns(self) -> dict[str, list[Any]]:
        cells = named_cells(self.keys, table_shape(self.keys, self.schema), self.schema)
        return with_ends(cells, self.statistic.name, self.value, self.interval(FRAME_LEVEL))

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"Answer({self.asked}: {math.prod(np.shape(self.value))} cells)"
        low, high = self.interval(FRAME_LEVEL)
        return f"Answer({self.asked}: {self.value:.6g}, 95 % within {low:.6g} .. {high:.6g})"
