"""Answers as frames and tables of their values, and `ListedAnswer`: quantiles or top labels.

`FramedAnswer` is the base class of all answers of questions to a frame: it shows the values with
their intervals as a frame of the library that the data came from.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.table_display import Table, TableDisplay
from algorithms.base.renamed_parameters import renamed_arguments, renamed_parameters
from algorithms.frames.cells import Axis
from algorithms.frames.schema import Schema


class FramedAnswer(TableDisplay):
    """An answer with a value and an interval in each row of a frame."""

    __slots__ = ()

    asked: str
    backend: str
    noise_scale: Any  # a float

    @property
    def frame(self) -> Any:
        """The values with their intervals (of 95 %, or as asked), a row each.

        It is a frame of the library that the data came from.
        """
        import narwhals as nw

        backend: Any = self.backend  # one of the libraries that a gate accepts
        return nw.from_dict(self._columns(), backend=backend).to_native()

    def to_json(self) -> str:
        """Return what was asked, the values with their intervals, and the noise, as JSON.

        Returns
        -------
        str
            An object: ``asked``, ``noise_scale`` and ``columns``.  Dates are texts, and ends of
            intervals that are not finite are null.
        """
        columns = {
            name: [
                None if isinstance(cell, float) and not math.isfinite(cell) else cell
                for cell in column
            ]
            for name, column in self._columns().items()
        }
        facts = {"asked": self.asked, "noise_scale": self.noise_scale, "columns": columns}
        return json.dumps(facts, default=str)

    @abstractmethod
    def _columns(self) -> dict[str, list[Any]]:
        """Return the columns of the frame."""

    def _table(self) -> Table:
        columns = self._columns()
        return Table(list(columns), list(zip(*columns.values(), strict=True)), self.asked)


def named_cells(
    keys: Iterable[Axis], shape: tuple[int, ...], schema: Schema
) -> dict[str, list[Any]]:
    """Return the columns that name the cells of all numbers of an array of this shape.

    The first axes belong to the keys.
    """
    columns: dict[str, list[Any]] = {}
    index = np.indices(shape).reshape(len(shape), math.prod(shape))
    for key, places in zip(keys, index, strict=False):
        columns.update(key.shown(places, schema))
    return columns


def unused_name(name: str, columns: Mapping[str, Any]) -> str:
    """Return the name, with a "_" for each column that has it already."""
    while name in columns:
        name += "_"
    return name


def with_ends(
    columns: Mapping[str, list[Any]], name: str, value: Any, ends: Array | None
) -> dict[str, list[Any]]:
    """Return columns, followed by a column of the value and two columns of its interval, if any."""
    extended = dict(columns)
    numbers = {name: np.ravel(value)}
    if ends is not None:
        numbers |= dict(zip(("lower", "upper"), ends.reshape(-1, 2).T, strict=True))
    for header, column in numbers.items():
        extended[unused_name(header, extended)] = column.tolist()
    return extended


@renamed_parameters(level="confidence")
@final
@dataclass(frozen=True, slots=True, eq=False)
class ListedAnswer(FramedAnswer):
    """Released quantiles, or labels with counts.

    Parameters
    ----------
    asked : str
        What was asked, in words.
    labels : dict
        The columns that say what each value is of.
    name : str
        What the values are.
    value : Any
        A number, or an array of them.
    ends : numpy.ndarray or None
        Lower and upper ends along the last axis; None if none were asked for.
    confidence : float or None
        Probability that an interval covers what the frame has.
    noise_scale : float
        The scale of the noise, in rows or in persons.
    backend : str
        The library of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from accountant import Budget, Filter
    >>> from algorithms.frames import Integer, Schema, median
    >>> schema = Schema({"age": Integer(0, 100)})
    >>> ledger = Filter(pd.DataFrame({"age": range(100)}).sample(9000, replace=True,
    ...                 random_state=0), Budget(1.0), rng=0)
    >>> answer = median("age", epsilon=1.0).release(ledger, schema)
    >>> abs(answer.value - 49) <= 2, answer.interval().shape
    (True, (2,))
    """

    asked: str
    labels: Mapping[str, Sequence[Any]]
    name: str
    value: Any
    ends: Array | None
    confidence: float | None
    noise_scale: float
    backend: str

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float | None = None) -> Array:
        """Return an interval for what the frame itself has, clipped and cut as declared.

        Parameters
        ----------
        confidence : float, optional
            The confidence of the question: ends of another one were not released.

        Returns
        -------
        numpy.ndarray
            Lower and upper end, along the last axis; to nearest.
        """
        if self.ends is None or confidence not in {None, self.confidence}:
            allowed = f"{self.confidence}, as asked: ask with confidence=... for another one"
            raise ParameterError("confidence", confidence, allowed)
        return self.ends

    def _columns(self) -> dict[str, list[Any]]:
        labels = {name: list(column) for name, column in self.labels.items()}
        return with_ends(labels, self.name, self.value, self.ends)

    def __repr__(self) -> str:
        if np.ndim(self.value):
            return f"ListedAnswer({self.asked}: {np.size(self.value)} values)"
        if self.ends is None:
            return f"ListedAnswer({self.asked}: {shown(self.value)})"
        within = f"{self.confidence:.6g} within {shown(self.ends[0])} .. {shown(self.ends[1])}"
        return f"ListedAnswer({self.asked}: {shown(self.value)}, {within})"


def shown(value: Any) -> str:
    """Return a number, or a date, in few digits."""
    return str(value) if isinstance(value, dt.date | np.datetime64) else f"{value:.6g}"
