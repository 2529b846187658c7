"""The reader of each type: a table that any type can join, and names of types of libraries.

A third-party type is found by its name, without an import of its package.  A reader of another
type is added by ``read_any.register``, or under a name by `reads`.
"""

from __future__ import annotations

import enum
import functools

# this module enters its readers in the table
from audits.classifiers import python_readers
from audits.classifiers.library_readers import LIBRARY_READERS
from audits.classifiers.object_reader import read_any, read_enum
from audits.classifiers.output_walk import Reader

__all__ = ["python_readers", "reader_of"]


@functools.lru_cache(maxsize=4096)
def reader_of(kind: type) -> Reader:
    """The reader of a type: by name for libraries, else the table's, else that of any object."""
    for base in kind.__mro__:
        reader = LIBRARY_READERS.get(f"{base.__module__.partition('.')[0]}.{base.__qualname__}")
        if reader is not None:
            return reader
    if issubclass(kind, enum.Enum):
        return read_enum
    return read_any.dispatch(kind)
