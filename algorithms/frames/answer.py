"""The answer to a question for a statistic: the noisy value, its error, intervals, and a frame.

All of it is computed from the released sums and public facts alone, so it costs no more privacy.

For means and variances, u is where a number lies between the public bounds of its column, from -1
to 1 (`moments`).  The mean of u is a ratio of two noisy sums, and its variance follows from three;
both are then put into the units of the column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.search import furthest_that
from algorithms.base.intervals import CONFIDENCE
from algorithms.base.renamed_parameters import renamed_arguments
from algorithms.frames.bases import Basis, Count, Persons, Statistic, Sum
from algorithms.frames.cells import Axis, keys_of, table_shape
from algorithms.frames.framed import FramedAnswer, ListedAnswer, named_cells, with_ends
from algorithms.frames.moments import Deviation, Moment, Variance
from algorithms.frames.noise_tails import NAMES, Noise, half_width, quantile, tail
from algorithms.frames.schema import Schema

FRAME_LEVEL = 0.95  # confidence of the intervals that a frame of answers shows


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

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float = 0.95) -> Array:
        """Return an interval for the statistic of the frame itself, clipped and cut as declared.

        Noise is all that it counts: it says nothing of a population that the rows were drawn from.

        Parameters
        ----------
        confidence : float
            Probability that it covers, in (0, 1).  Of counts and whole sums at least that.

        Returns
        -------
        numpy.ndarray
            Lower and upper end, along the last axis; to nearest.
        """
        confidence = CONFIDENCE.check("confidence", confidence)
        ends = interval(
            self.statistic, self._sums, self.schema, self.mechanism, confidence, self.rows
        )
        shaped: Array = self._shaped(ends)
        return shaped

    @renamed_arguments(level="confidence")
    def by(self, columns: str | Sequence[str] = (), confidence: float = 0.95) -> ListedAnswer:
        """Return the counts or sums by some of the columns: those of cells, added up.

        All groupings of one answer agree: the numbers of one are sums of those of another.  So
        they are not clipped, and a small count may be below 0.  It costs no more privacy.

        Parameters
        ----------
        columns : str or list of str
            Columns among those of the question; by default none, which gives the total.
        confidence : float
            Probability that an interval covers, in (0, 1).

        Returns
        -------
        ListedAnswer
            Values, with an axis for each column, and their intervals.
        """
        confidence = CONFIDENCE.check("confidence", confidence)
        axes = {key.column: axis for axis, key in enumerate(self.keys)}
        names = [key.column for key in keys_of(columns, "columns")]
        if not set(names) <= set(axes):
            raise ParameterError("columns", names, f"some of {list(axes)}, which the question has")
        if not isinstance(self.statistic, Count | Sum):
            allowed = "of counts and sums of rows: ask sum_ and count by the same columns"
            if isinstance(self.statistic, Persons):
                allowed = "of counts and sums of rows: a person may be in several groups"
            raise ParameterError("by", self.statistic.name, allowed)
        shape = table_shape(self.keys, self.schema)
        others = tuple(axis for name, axis in axes.items() if name not in names)
        summed = self._sums[:, 0].reshape(shape).sum(axis=others)
        order = sorted(names, key=axes.__getitem__)
        totals = summed.transpose([order.index(name) for name in names])
        unit = self._basis.unit
        cells = math.prod(shape[axis] for axis in others)
        half = half_width(self.mechanism, confidence, max(cells, 1))
        ends = np.stack([totals - half, totals + half], axis=-1) * unit
        grouping_keys = [self.keys[axes[name]] for name in names]
        grouping = f"{self.asked}, added up{' by ' if names else ''}{', '.join(names)}"
        value = totals if unit == 1 else totals * unit
        labels = named_cells(grouping_keys, totals.shape, self.schema)
        name, scale = self.statistic.name, self.noise_scale
        shown = value if names else value[()]
        return ListedAnswer(grouping, labels, name, shown, ends, confidence, scale, self.backend)

    def _columns(self) -> dict[str, list[Any]]:
        cells = named_cells(self.keys, table_shape(self.keys, self.schema), self.schema)
        return with_ends(cells, self.statistic.name, self.value, self.interval(FRAME_LEVEL))

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"Answer({self.asked}: {math.prod(np.shape(self.value))} cells)"
        low, high = self.interval(FRAME_LEVEL)
        return f"Answer({self.asked}: {self.value:.6g}, 95 % within {low:.6g} .. {high:.6g})"


class Estimate(NamedTuple):
    """The statistic of every cell, and about the standard deviation of its noise."""

    value: Array
    deviation: Array


def estimate(
    statistic: Statistic, sums: Array, schema: Schema, mechanism: Noise, public_rows: int = 0
) -> Estimate:
    """Return the statistic of every cell from its noisy sums, a row of ``sums`` for each.

    ``public_rows`` is the number of rows where it is public, else 0: then the sums have it.
    """
    if not isinstance(statistic, Moment):
        unit = statistic.basis(schema, NAMES[type(mechanism)]).unit
        value = possible(statistic, sums[:, 0] * unit, schema)
        return Estimate(value, np.full(len(sums), mechanism.deviation * unit))
    _, mean, spread, error = _moments(statistic, sums, mechanism, public_rows)
    middle, half = statistic.units(schema)
    if isinstance(statistic, Deviation):  # the root moves by half of what its square does, over it
        root = np.sqrt(spread)
        return Estimate(root * half, error * half / np.maximum(2 * root, np.sqrt(error)))
    if isinstance(statistic, Variance):
        return Estimate(spread * half**2, error * half**2)
    return Estimate(middle + half * mean, error * half)


def _moments(
    statistic: Moment, sums: Array, mechanism: Noise, public_rows: int
) -> tuple[Array, ...]:
    """Return, for every cell, about the rows, mean and variance of u, and the answer's deviation.

    u is where a number lies between its bounds, from -1 to 1.  The deviation is that of the noise
    alone, in units of u or of its square.
    """
    noise = NAMES[type(mechanism)]
    matrix = statistic.moments_of(noise)
    count, total, *squares = matrix @ sums.T
    count = count + public_rows  # one of the two is 0
    rows = np.maximum(count, 1.0)
    mean = np.where(count > 0, np.clip(total / rows, -1.0, 1.0), 0.0)
    spread = np.zeros(len(sums))
    if squares:
        # E(mean + noise)^2 = mean^2 + variance of the noise, which is subtracted.
        moved = np.linalg.norm(matrix[1] - mean[:, None] * matrix[0], axis=1)
        extra = (moved * mechanism.deviation / rows) ** 2
        spread = np.clip(squares[0] / rows - mean**2 + extra, 0.0, 1 - mean**2)
    weights = statistic.error_weights(noise, mean, spread)
    error = np.linalg.norm(weights, axis=1) * mechanism.deviation / rows
    return rows, mean, spread, error


def interval(
    statistic: Statistic,
    sums: Array,
    schema: Schema,
    mechanism: Noise,
    confidence: float,
    public_rows: int = 0,
) -> Array:
    """Return lower and upper ends for the statistic of every cell, as the frame has it."""
    if not isinstance(statistic, Moment):
        unit = statistic.basis(schema, NAMES[type(mechanism)]).unit
        half = half_width(mechanism, confidence)
        ends = np.stack([sums[:, 0] - half, sums[:, 0] + half], axis=1) * unit
        return possible(statistic, ends, schema)
    middle, half_range = statistic.units(schema)
    if not isinstance(statistic, Variance):
        return middle + half_range * _interval_of_ratio(
            statistic, sums, mechanism, confidence, public_rows
        )
    rows, mean, spread, _ = _moments(statistic, sums, mechanism, public_rows)
    weights = statistic.error_weights(NAMES[type(mechanism)], mean, spread)
    half_widths = quantile(mechanism, weights, confidence) / rows
    ends = np.clip(np.stack([spread - half_widths, spread + half_widths], axis=1), 0.0, 1.0)
    if isinstance(statistic, Deviation):
        return np.asarray(np.sqrt(ends) * half_range)
    return np.asarray(ends * half_range**2)


def _interval_of_ratio(
    statistic: Moment, sums: Array, mechanism: Noise, confidence: float, public_rows: int
) -> Array:
    """Return the least and the largest mean mu of u that the noise does not contradict.

    With S the sum of u and N the number of rows, S - mu N is 0 at the true mean mu.  So the same
    number from the noisy sums is then noise of a known law, and a mu that makes it too large is
    ruled out: Fieller's interval.
    """
    noise = NAMES[type(mechanism)]
    matrix = statistic.moments_of(noise)
    count, total = matrix @ sums.T
    count = count + public_rows
    _, mean, _, _ = _moments(statistic, sums, mechanism, public_rows)

    def agrees(mu: Array) -> NDArray[np.bool_]:
        # The weights of S - mu N; those of a mean do not depend on a variance.
        weights = statistic.error_weights(noise, mu, spread=np.zeros_like(mu))
        likely: NDArray[np.bool_]
        likely = tail(mechanism, weights, np.abs(total - mu * count)) >= 1 - confidence
        return likely

    ends = []
    for end in (-np.ones_like(mean), np.ones_like(mean)):
        furthest = furthest_that(agrees, mean, end, steps=40)
        # A cell without rows may have any mean.
        ends.append(np.where((count <= 0) | agrees(end), end, furthest))
    return np.stack(ends, axis=1)


def possible(statistic: Statistic, value: Array, schema: Schema) -> Array:
    """Return numbers clipped to what the statistic can be: nothing is counted below 0."""
    if isinstance(statistic, Count | Persons):
        return np.maximum(value, 0)
    if isinstance(statistic, Sum):
        bounds = cast("tuple[float, float]", schema.kind(statistic.column).bounds)
        value = np.maximum(value, 0) if bounds[0] >= 0 else value
        return np.minimum(value, 0) if bounds[1] <= 0 else value
    return value
