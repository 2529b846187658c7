"""The rows of a Dask frame that count, on its workers; sums alone leave them.

Of each person only the first rows count, as many as the schema says.  So each partition is split
by a hash of the persons, and the pieces with one hash are joined on one worker, which has all rows
of its persons then, each with its place in the frame.  The same rows count as of a frame in one
piece.  Sums of whole numbers have no round-off, so they are the same for any partitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accountant.errors import PrivateValueError
from algorithms.frames.rows import PERSON, PLACE, Reading
from algorithms.frames.sources import Query, Source, prepared

FEW_PARTS = 16  # parts by the hash of persons, at least, where there are as many partitions
FAR = 2**40  # the places of a partition's rows begin this far after those of the one before


class Failed:
    """The result of a failed task, and of each piece of that result."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, part: int) -> Failed:
        return self


class Quiet:
    """A task whose errors are not logged: logs show the rows that a task was given."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, argument: Any) -> Any:
        """Return the result, or `Failed`."""
        for piece in argument if isinstance(argument, list) else [argument]:
            if isinstance(piece, Failed):
                return piece
        try:
            return self._function(argument)
        except Exception as error:  # its message could show a row
            return Failed(type(error).__name__)


class Partitions(Source):
    """Rows in parts on workers, as tasks of Dask that return pandas frames."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self._tasks = tasks

    def then(self, query: Query) -> Source:
        """Return the rows that a query makes of each part."""
        from dask import delayed

        task = delayed(Quiet(partial(queried, query)))
        return Partitions([task(part) for part in self._tasks])

    def kept(self) -> Source:
        """Return rows that are computed once and stay with the workers."""
        import dask

        return Partitions(dask.persist(*self._tasks))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Bring the columns of all parts here, one below the other."""
        import dask

        tables = dask.compute(*self._tasks)
        for table in tables:
            if isinstance(table, Failed):
                raise PrivateValueError("a partition", f"readable as declared: it gave {table.name}")
        names = list(tables[0].columns)
        return {n: np.concatenate([table[n].to_numpy() for table in tables]) for n in names}


def queried(query: Query, part: Any) -> Any:
    """Return what a query makes of a pandas frame."""
    return query(nw.from_native(part).lazy()).collect().to_native()


def partitions_of(frame: Any, reading: Reading) -> Partitions:
    """Return the rows of a Dask frame that count."""
    from dask import delayed

    # A frame needs one column at least to have rows.
    columns = list(dict.fromkeys(reading.columns.values())) or list(frame.columns[:1])
    partitions = frame[columns].to_delayed()
    if reading.schema.person is None:
        task = delayed(Quiet(partial(counted, reading, 0)))
        return Partitions([task(partition) for partition in partitions])
    # With more parts each part is smaller.  But each takes a piece of every partition, so that n
    # partitions and m parts need n m transfers: m grows as sqrt(n) only.
    parts = min(len(partitions), max(FEW_PARTS, 2 * math.isqrt(len(partitions))))
    split = [
        delayed(Quiet(partial(split_by_person, reading, parts, number)))(partition)
        for number, partition in enumerate(partitions)
    ]
    joined = delayed(Quiet(partial(cut_pieces, reading)))
    return Partitions([joined([pieces[part] for pieces in split]) for part in range(parts)])


def counted(reading: Reading, number: int, partition: Any) -> Any:
    """Return the rows of a partition that may count, with their places in the whole frame."""
    table = prepared(partition, reading)
    if PLACE in table.collect_schema().names():
        table = table.with_columns(nw.col(PLACE).cast(nw.Int64) + number * FAR)
    return reading.counted(reading.read(table)).collect().to_native()


def split_by_person(reading: Reading, parts: int, number: int, partition: Any) -> list[Any]:
    """Return the rows of a partition that may count, by a hash of their person."""
    from pandas.util import hash_pandas_object

    rows = counted(reading, number, partition)
    hashes = hash_pandas_object(rows[PERSON], index=False, categorize=False).to_numpy()
    part = hashes % np.uint64(parts)
    return [rows[part == i] for i in range(parts)]


def cut_pieces(reading: Reading, pieces: Sequence[Any]) -> Any:
    """Return the first rows of each person in all partitions' pieces."""
    import pandas as pd

    rows = nw.from_native(pd.concat(pieces, ignore_index=True)).lazy()
    return reading.cut(rows).collect().to_native()
