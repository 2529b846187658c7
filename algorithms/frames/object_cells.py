"""Cells that are Python objects: what each of them counts as depends on that cell alone.

A column of objects can hold anything: lists, which have no hash, numbers that are equal and of
other types, texts that no encoding takes.  Whatever is not of the kind declared is missing, so that
no single row decides between an answer and an exception.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

SURROGATES = re.compile("[\ud800-\udfff]")  # half characters, which are not valid text


def cells_of_objects(series: nw.Series[Any]) -> list[Any] | None:
    """Return the cells of a column of Python objects, also if they are categories; else None.

    The type of the column decides, not what narwhals infers from its rows.
    """
    native = series.to_native()
    kind = getattr(native, "dtype", None)
    categories = getattr(kind, "categories", None)  # of pandas, and of an Enum of polars
    if getattr(getattr(categories, "dtype", None), "hasobject", False):
        names = [*categories, None]  # type: ignore[misc]  # it has a dtype; code -1 is missing
        return [names[code] for code in native.cat.codes.tolist()]
    if getattr(kind, "hasobject", False) or series.dtype == nw.Object:
        return list(native)
    return None


def is_text(cell: Any) -> bool:
    """Return whether a cell is a text that can be encoded."""
    return isinstance(cell, str) and SURROGATES.search(cell) is None


def label_place(labels: Iterable[Any], none: int) -> Callable[[Any], int]:
    """Return a function that gives the index of a cell's label, ``none`` where it is no label."""
    indices = {label: index for index, label in enumerate(labels)}
    texts = any(isinstance(label, str) for label in indices)

    def place_of(cell: Any) -> int:
        # a number is the label that it is equal to, as in columns of numbers
        comparable = isinstance(cell, str) if texts else isinstance(cell, int | float | np.bool_)
        return indices.get(cell, none) if comparable else none

    return place_of


def person_of(cell: Any) -> str | None:
    """Return the name of the person that a cell names; None if it names none.

    Different names stay different: a float is none, since large whole numbers are one float.
    """
    if isinstance(cell, str):
        return "text " + cell if is_text(cell) else None
    if isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, int | np.integer):
        return f"number {int(cell)}"
    if isinstance(cell, bytes | bytearray):
        return "bytes " + cell.hex()
    if isinstance(cell, uuid.UUID):
        return f"uuid {cell.int}"
    if type(cell) is dt.date:
        return f"date {cell.isoformat()}"
    return None


def persons_of_objects(cells: Iterable[Any]) -> NDArray[np.object_]:
    """Return the names of the persons of some cells, None where there is none."""
    return np.fromiter((person_of(cell) for cell in cells), dtype=object)
