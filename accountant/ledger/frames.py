"""Data frames as a gate holds them: each query gets its own object, and may change it.

`FrameRows` are in memory.  `LazyRows` and `FramePartitions` are not, as a whole: a query reads the
first in portions, and workers hold the parts of the second.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.immutable_arrays import immutable

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


class FrameFacts(NamedTuple):
    """What is public of a frame: the library it is of, and the type of every column by name."""

    backend: str
    types: Mapping[str, str]


def is_frame(data: Any) -> bool:
    """Return whether data are a frame of pandas, polars or Arrow; none of them is imported."""
    return any(
        isinstance(data, getattr(sys.modules[library], kind))
        for library, kind in FRAMES.items()
        if library in sys.modules
    )


def is_partitioned(data: Any) -> bool:
    """Return whether data are a Dask data frame; Dask is not imported."""
    library = sys.modules.get("dask.dataframe")
    return library is not None and isinstance(data, library.DataFrame)


def is_lazy(data: Any) -> bool:
    """Return whether data are a lazy frame of polars, which is read when it is asked."""
    library = sys.modules.get("polars")
    return library is not None and isinstance(data, library.LazyFrame)


class FrameRows:
    """A data frame with one row after another, copied where its memory could be written to.

    polars and Arrow copy on write, so each query gets an object of its own on the same memory.
    A pandas frame is made anew for each query, on immutable columns.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        backend = type(frame).__module__.split(".")[0]
        if backend not in FRAMES:  # a foreign subclass may report anything
            raise ParameterError(argument, type(frame), "a plain pandas, polars or Arrow frame")
        names = frame.column_names if backend == "pyarrow" else list(frame.columns)
        if not names or len(set(names)) < len(names) or not all(type(n) is str for n in names):
            raise ParameterError(argument, names, "a frame whose columns have distinct names")
        kinds = frame.schema.types if backend == "pyarrow" else list(frame.dtypes)
        type_words = {name: type_word(kind) for name, kind in zip(names, kinds, strict=True)}
        self.facts = FrameFacts(backend, MappingProxyType(type_words))
        self.shape: tuple[int, int] = (frame.shape[0], len(names))
        self._pandas = type(frame)
        self._frame: Any = frozen_columns(frame) if backend == "pandas" else frame[:]

    def fresh(self) -> Any:
        """Return the frame for one query."""
        match self.facts.backend:
            case "pandas":
                columns = {
                    name: column if type(column) is np.ndarray else column.copy()
                    for name, column in self._frame.items()
                }
                return self._pandas(columns, copy=False)
            case "polars":
                return self._frame.clone()
            case _:
                return self._frame  # a table of Arrow cannot be changed

    def __getitem__(self, who: Any) -> Any:
        frame = self.fresh()
        index = np.arange(self.shape[0])[who]
        match self.facts.backend:
            case "pandas":
                return frame.iloc[index].reset_index(drop=True)
            case "polars":
                return frame[index]
            case _:
                return frame.take(index)


class LazyRows:
    """A lazy frame of polars: a query gets it, and reads portions of it.

    The number of rows is counted at once.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        import polars as pl

        types = frame.collect_schema()
        if not types:
            raise ParameterError(argument, [], "a frame with columns")
        self._frame = frame
        type_words = {name: type_word(kind) for name, kind in types.items()}
        self.facts = FrameFacts("polars", MappingProxyType(type_words))
        self.shape: tuple[int, int] = (frame.select(pl.len()).collect().item(), len(types))

    def fresh(self) -> Any:
        """Return the frame for one query."""
        return self._frame.clone()

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a lazy frame are read in portions"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class FramePartitions:
    """A Dask data frame: its rows, and the types of its columns, are looked at by workers.

    The number of rows is counted at once, and all partitions must have the types of the frame.  A
    query gets a Dask frame of its own, and reduces it on the workers.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        names = list(frame.columns)
        if not names or len(set(names)) < len(names) or not all(type(n) is str for n in names):
            raise ParameterError(argument, names, "a frame whose columns have distinct names")
        self._frame = frame.copy()  # assigned columns change a frame in place
        type_words = {name: type_word(kind) for name, kind in zip(names, frame.dtypes, strict=True)}
        # answers are small, so they are plain frames of pandas
        self.facts = FrameFacts("pandas", MappingProxyType(type_words))
        self.shape: tuple[int, int] = (self._counted(argument), len(names))

    def fresh(self) -> Any:
        """Return the frame for one query."""
        return self._frame.copy()

    def _counted(self, argument: str) -> int:
        """Return the number of rows; refuse partitions that do not have the types of the frame."""
        import dask

        kinds = [str(kind) for kind in self._frame.dtypes]
        looked = [dask.delayed(Looked(kinds))(piece) for piece in self._frame.to_delayed()]
        lengths: list[int] = list(dask.compute(*looked))
        if wrong := [partition_index for partition_index, rows in enumerate(lengths) if rows < 0]:
            allowed = "of the types that the frame declares, in all: use .astype(...) on the frame"
            raise ParameterError(argument, f"partition {wrong[0]}", allowed)
        return sum(lengths)

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a Dask frame are not brought here"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class Looked:
    """Counts the rows of a partition on a worker: -1 if its types are not the declared ones."""

    def __init__(self, kinds: list[str]) -> None:
        self._kinds = kinds

    def __call__(self, partition: Any) -> int:
        """Return the number of rows."""
        same = [str(kind) for kind in partition.dtypes] == self._kinds
        return len(partition) if same else -1


def type_word(kind: Any) -> str:
    """Return the first word of a type: what is in brackets may be categories that the data have.

    Of categories that are floats it is the word of floats, which name no persons.
    """
    inner = getattr(getattr(kind, "categories", None), "dtype", None)  # of pandas
    if str(kind).startswith("dictionary"):
        inner = kind.value_type  # of Arrow
    if re.match("(?i)float|double|halffloat|decimal", str(inner)):
        kind = inner
    return "".join(re.findall(r"^\w*", str(kind)))


def frozen_columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a pandas frame, those of plain numbers on immutable memory."""
    columns = {}
    for name in frame.columns:
        kind = frame[name].dtype
        plain = isinstance(kind, np.dtype) and not kind.hasobject
        # The others stay series: pandas infers the type of an array of objects from its rows.
        columns[name] = (
            immutable(frame[name].to_numpy())
            if plain
            else frame[name].reset_index(drop=True).copy()
        )
    return columns
