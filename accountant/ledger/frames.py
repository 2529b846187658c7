"""Data frames as a gate, which answers queries on private data, holds them.

Each query gets a frame object of its own, so that it may change the object without changing what
later queries see.  `FrameRows` holds a frame of pandas, polars or Arrow in memory.  `LazyRows`
holds a lazy frame of polars, of which a query reads one portion after another, and
`FramePartitions` a Dask frame, whose partitions are on workers; neither is in memory as a whole.
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

# The name of the class of frames in each library that `FrameRows` accepts.
FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


class FrameFacts(NamedTuple):
    """What is public of a frame: its library, and the type of each column, as text, by name."""

    backend: str  # "pandas", "polars" or "pyarrow"
    types: Mapping[str, str]


def is_frame(data: Any) -> bool:
    """Return whether data are a frame of pandas, polars or Arrow.

    No library is imported for this: if one is not imported yet, the data cannot be of it.
    """
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
    """Return whether data are a lazy frame of polars, whose rows are read only when needed."""
    library = sys.modules.get("polars")
    return library is not None and isinstance(data, library.LazyFrame)


class FrameRows:
    """A data frame in memory, indexed by rows; its memory is copied where it could be written to.

    polars copies on write and a table of Arrow cannot be changed, so the queries share one memory.
    A pandas frame is made anew for each query: its columns of plain numbers are immutable and
    shared, the other columns are copied.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        backend = type(frame).__module__.split(".")[0]
        if backend not in FRAMES:  # a subclass of another library may report anything
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
    """A lazy frame of polars: a query gets a clone of it, and reads it in portions.

    The rows are counted when this is made.  They cannot be indexed.
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
    """A Dask data frame: only workers read its rows, and check the types of its columns.

    When this is made, the rows are counted, and a partition whose column types are not those that
    the frame declares is refused.  A query gets a Dask frame of its own, and reduces it on the
    workers.  The rows cannot be indexed.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        names = list(frame.columns)
        if not names or len(set(names)) < len(names) or not all(type(n) is str for n in names):
            raise ParameterError(argument, names, "a frame whose columns have distinct names")
        self._frame = frame.copy()  # the caller may assign columns to the frame, in place
        type_words = {name: type_word(kind) for name, kind in zip(names, frame.dtypes, strict=True)}
        # The answers of the workers are small and are frames of pandas.
        self.facts = FrameFacts("pandas", MappingProxyType(type_words))
        self.shape: tuple[int, int] = (self._counted(argument), len(names))

    def fresh(self) -> Any:
        """Return the frame for one query."""
        return self._frame.copy()

    def _counted(self, argument: str) -> int:
        """Return the number of rows; refuse partitions that do not have the types of the frame."""
        import dask

        kinds = [str(kind) for kind in self._frame.dtypes]
        counting_tasks = [dask.delayed(Looked(kinds))(piece) for piece in self._frame.to_delayed()]
        lengths: list[int] = list(dask.compute(*counting_tasks))
        if wrong := [partition_index for partition_index, rows in enumerate(lengths) if rows < 0]:
            allowed = "of the types that the frame declares, in all: use .astype(...) on the frame"
            raise ParameterError(argument, f"partition {wrong[0]}", allowed)
        return sum(lengths)

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a Dask frame are not brought here"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class Looked:
    """A task for a worker: count the rows of one partition, and check its column types."""

    def __init__(self, kinds: list[str]) -> None:
        self._kinds = kinds

    def __call__(self, partition: Any) -> int:
        """Return the number of rows; -1 if the types are not the declared ones."""
        has_declared_types = [str(kind) for kind in partition.dtypes] == self._kinds
        return len(partition) if has_declared_types else -1


def type_word(kind: Any) -> str:
    """Return the first word of a column's type, such as "int64" or "category".

    The rest, in brackets, is not public: it may list categories, which depend on the data.  For
    categories that are floats the word of their float type is returned, so that the schema, which
    allows no floats as names of persons, refuses them too.
    """
    inner = getattr(getattr(kind, "categories", None), "dtype", None)  # in pandas
    if str(kind).startswith("dictionary"):  # in Arrow
        inner = kind.value_type
    if re.match("(?i)float|double|halffloat|decimal", str(inner)):
        kind = inner
    return "".join(re.findall(r"^\w*", str(kind)))


def frozen_columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a pandas frame by name.

    Columns of plain numbers become arrays on immutable memory, the others copies of their series.
    """
    columns = {}
    for name in frame.columns:
        kind = frame[name].dtype
        is_plain_numbers = isinstance(kind, np.dtype) and not kind.hasobject
        # From an array of objects pandas would infer another type by its rows; a series keeps its.
        columns[name] = (
            immutable(frame[name].to_numpy())
            if is_plain_numbers
            else frame[name].reset_index(drop=True).copy()
        )
    return columns
