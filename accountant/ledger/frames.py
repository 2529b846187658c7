"""Data frames as a gate, which answers queries on private data, holds them.

Each query gets a frame object of its own, so that it may change the object without changing what
later queries see.  `FrameRows` holds a frame of pandas, polars or Arrow in memory.  `LazyRows`
holds a lazy frame, whose rows an engine has: polars, DuckDB, Spark, or one behind Ibis or SQLFrame.
`FramePartitions` holds a Dask frame, whose partitions are on workers.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.immutable_arrays import immutable

# The name of the class of frames in each library that `FrameRows` accepts.
FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
LAZY_LIBRARIES = {"polars", "duckdb", "_duckdb", "pyspark", "sqlframe", "ibis"}
# Engines whose comparison of texts cannot be seen here: two persons may be one there, "a" and "A".
UNKNOWN_COLLATIONS = {"sqlframe", "ibis"}


class FrameFacts(NamedTuple):
    """What is public of a frame: its library, and the type of each column, as text, by name."""

    backend: str  # "pandas", "polars" or "pyarrow"
    types: Mapping[str, str]
    ordered: bool = True  # whether its rows have an order
    tables: Mapping[str, FrameFacts] = MappingProxyType({})  # of frames that are held together
    joinable: bool = True  # whether one query of the engine can read all of them


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
    """Return whether data are a lazy frame, whose rows an engine reads only when needed."""
    if type(data).__module__.split(".")[0] not in LAZY_LIBRARIES:
        return False
    import narwhals as nw

    return isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame)


class FrameRows:
    """A data frame in memory, indexed by rows; its memory is copied where it could be written to.

    A frame of polars and a table of Arrow may lie on arrays that their owner still writes to, so
    they are copied once; queries share this copy, which they cannot write to.  A pandas frame is
    made anew for each query: its columns of plain numbers and of Arrow's types are immutable and
    shared, the other columns are copied.  Objects within a cell, such as lists, are never copied: a
    query that changes one changes it for later queries.
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
        self._frame_class = type(frame)
        match backend:
            case "pandas":
                self._frame: Any = frozen_columns(frame)
            case "polars":
                self._frame = frame[np.arange(frame.height)]  # a slice would share the memory
            case _:
                self._frame = immutable_table(frame)

    def fresh(self) -> Any:
        """Return the frame for one query."""
        match self.facts.backend:
            case "pandas":
                columns = {
                    name: column if type(column) is np.ndarray else column.copy()
                    for name, column in self._frame.items()
                }
                return self._frame_class(columns, copy=False)
            case "polars":
                return self._frame.clone()
            case _:
                return self._frame  # a table of Arrow has no method that changes it

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
    """A lazy frame: a query gets it, and asks its engine for what it needs of the rows.

    The rows are counted when this is made.  They cannot be indexed.  Each query reads the source
    anew, such as a file or a table: it sees what changed there.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        import narwhals as nw

        lazy: Any = nw.from_native(frame)
        types = lazy.collect_schema()
        if not types:
            raise ParameterError(argument, [], "a frame with columns")
        self._frame = frame
        library = type(frame).__module__.split(".")[0]
        type_words = {name: type_word(kind) for name, kind in types.items()}
        for name, word in type_words.items():
            if word == "String" and (library in UNKNOWN_COLLATIONS or has_collation(frame, name)):
                type_words[name] = "String_of_the_engine"
        polars = lazy.implementation.is_polars()
        backend = "polars" if polars else "pyarrow"  # of frames of answers
        self.facts = FrameFacts(backend, MappingProxyType(type_words), ordered=polars)
        rows = lazy.select(nw.len()).collect().item()
        self.shape: tuple[int, int] = (int(rows), len(types))

    def fresh(self) -> Any:
        """Return the frame for one query."""
        return self._frame.clone() if self.facts.backend == "polars" else self._frame

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a lazy frame stay with their engine"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class FrameTables:
    """Several frames of one library that a query gets together, by their names.

    Persons may have rows in each.  The facts and the number of rows are those of the first, beside
    the facts of all.
    """

    def __init__(self, argument: str, held: Mapping[str, Any]) -> None:
        self._held = dict(held)
        if len({type(frame) for frame in self._held.values()}) > 1:
            kinds = [type(frame.fresh()).__name__ for frame in self._held.values()]
            raise ParameterError(argument, kinds, "frames of one library, all lazy or none")
        first_frame = next(iter(self._held.values()))
        tables = {name: frame.facts for name, frame in self._held.items()}
        if len({facts.backend for facts in tables.values()}) > 1:
            backends = [facts.backend for facts in tables.values()]
            raise ParameterError(argument, backends, "frames of one library")
        self.facts: FrameFacts = first_frame.facts._replace(
            tables=MappingProxyType(tables), joinable=are_joinable(self._held.values())
        )
        self.shape: tuple[int, int] = first_frame.shape

    def fresh(self) -> dict[str, Any]:
        """Return the frames for one query."""
        return {name: frame.fresh() for name, frame in self._held.items()}

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of several tables are not parts of one"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


def are_joinable(tables: Iterable[Any]) -> bool:
    """Return whether one query can read all lazy frames: their engines may be others."""
    frames = [frame.fresh() for frame in tables if isinstance(frame, LazyRows)]
    if not frames:
        return True
    import narwhals as nw

    joined, *remaining = [
        nw.from_native(frame).head(0).select(nw.lit(0).alias(f"column {index}"))
        for index, frame in enumerate(frames)
    ]
    try:
        for frame in remaining:
            joined = joined.join(frame, how="cross")
        joined.collect()
    except Exception:  # each engine has errors of its own for frames of another connection
        return False
    return True


def has_collation(frame: Any, name: str) -> bool:
    """Return whether texts of a column of Spark are compared otherwise than letter by letter."""
    if not type(frame).__module__.startswith("pyspark"):
        return False
    return getattr(frame.schema[name].dataType, "collation", "UTF8_BINARY") != "UTF8_BINARY"


class FramePartitions:
    """A Dask data frame: only workers read its rows, and check its columns.

    When this is made, the rows are counted, and a partition whose columns do not have the names
    and types that the frame declares, in order, is refused.  A query gets a Dask frame of its own,
    and reduces it on the workers.  The rows cannot be indexed.
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
        """Return the number of rows; refuse partitions whose columns are not the frame's."""
        import dask

        count = dask.delayed(PartitionRowCount(column_types(self._frame)))
        lengths: list[int] = list(dask.compute(*map(count, self._frame.to_delayed())))
        if wrong := [partition_index for partition_index, rows in enumerate(lengths) if rows < 0]:
            allowed = (
                "of the columns and types that the frame declares, in all: "
                "use .astype(...) on the frame"
            )
            raise ParameterError(argument, f"partition {wrong[0]}", allowed)
        return sum(lengths)

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a Dask frame are not brought here"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class PartitionRowCount:
    """A task for a worker: count the rows of one partition, and check its columns."""

    def __init__(self, declared_types: list[tuple[str, str]]) -> None:
        self._declared_types = declared_types

    def __call__(self, partition: Any) -> int:
        """Return the number of rows; -1 if the columns are not the declared ones, in order."""
        return len(partition) if column_types(partition) == self._declared_types else -1


def column_types(frame: Any) -> list[tuple[str, str]]:
    """Return the name and the type, as text, of each column of a frame of pandas or Dask."""
    return [(name, str(kind)) for name, kind in zip(frame.columns, frame.dtypes, strict=True)]


def type_word(kind: Any) -> str:
    """Return the first word of a column's type, such as "int64" or "category".

    The rest, in brackets, is not public: it may list categories, which depend on the data.  For
    categories and sparse columns of floats the word of their float type is returned, so that the
    schema, which allows no floats as names of persons, refuses them too.
    """
    kind = getattr(kind, "pyarrow_dtype", kind)  # a type of Arrow in a pandas frame
    inner = getattr(getattr(kind, "categories", None), "dtype", kind)  # in pandas
    if str(kind).startswith("Sparse"):  # in pandas
        inner = kind.subtype
    if str(kind).startswith("dictionary"):  # in Arrow
        inner = kind.value_type
    if re.match("(?i)float|double|halffloat|decimal", str(inner)):
        kind = inner
    return "".join(re.findall(r"^\w*", str(kind)))


def immutable_table(table: Any) -> Any:
    """Return a table of Arrow on memory that nothing in Python can write to.

    It is copied unless it lies there already, as one from a file that is mapped read-only does.
    """
    ipc = sys.modules["pyarrow"].ipc
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    if not any(buffer and buffer.is_mutable for chunk in chunks for buffer in chunk.buffers()):
        return table
    stream = io.BytesIO()
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return ipc.open_stream(stream.getvalue()).read_all()


def frozen_columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a pandas frame by name.

    Columns of plain numbers become arrays on immutable memory, those of Arrow's types series on
    immutable memory, and the others copies of their series.
    """
    pandas, columns = sys.modules["pandas"], {}
    for name in frame.columns:
        column: Any = frame[name].reset_index(drop=True)
        kind = column.dtype
        if isinstance(kind, np.dtype) and not kind.hasobject:
            columns[name] = immutable(frame[name].to_numpy())
        elif hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", "") == "pyarrow":
            table = immutable_table(sys.modules["pyarrow"].table({name: column.array}))
            columns[name] = pandas.Series(pandas.array(table[name], dtype=kind), name=name)
        else:
            # From an array of objects pandas would infer another type by its rows; a series keeps
            # its own.
            columns[name] = column.copy()
    return columns
