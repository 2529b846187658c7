"""Data frames as a gate holds them: each query gets its own copy, and may change it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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


def type_word(kind: object) -> str:
    """Return the first word of a type: what is in brackets may be categories that the data have.

    Of categories that are floats it is the word of floats, which name no persons.
    """
    inner = getattr(getattr(kind, "categories", None), "dtype", None)  # of pandas
    if str(kind).startswith("dictionary"):
        inner = kind.value_type  # type: ignore[attr-defined]  # of Arrow
    if re.match("(?i)float|double|halffloat|decimal", str(inner)):
        kind = inner
    return re.match(r"\w*", str(kind))[0]  # type: ignore[index]  # it always matches


def frozen_columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a pandas frame, those of plain numbers on immutable memory."""
    columns = {}
    for name in frame.columns:
        kind = frame[name].dtype
        plain = isinstance(kind, np.dtype) and not kind.hasobject
        # a series, because pandas infers the type of an array of objects from its rows
        columns[name] = (
            immutable(frame[name].to_numpy())
            if plain
            else frame[name].reset_index(drop=True).copy()
        )
    return columns
