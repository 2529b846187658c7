"""What answers have in common: their columns, as a frame of the library asked and as a table."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from accountant.numerics import Array
from accountant.table_display import Table, TableDisplay
from algorithms.frames.cells import Axis
from algorithms.frames.schema import Schema


class FramedAnswer(TableDisplay):
    """An answer with a value and an interval in each row of a frame."""

    __slots__ = ()

    asked: str
    backend: str

    @property
    def frame(self) -> Any:
        """The values with their intervals (of 95 %, or as asked), a row each.

        It is a frame of the library asked.
        """
        import narwhals as nw

        backend: Any = self.backend  # one of the libraries that a gate accepts
        return nw.from_dict(self._columns(), backend=backend).to_native()

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


def with_ends(
    columns: Mapping[str, list[Any]], name: str, value: Any, ends: Array | None
) -> dict[str, list[Any]]:
    """Return columns, followed by a column of the value and two columns of its interval, if any."""
    extended = dict(columns)
    numbers = {name: np.ravel(value)}
    if ends is not None:
        numbers |= dict(zip(("lower", "upper"), ends.reshape(-1, 2).T, strict=True))
    for header, column in numbers.items():
        # a column of the frame may have the name
        extended[header + "_" * (header in extended)] = column.tolist()
    return extended
