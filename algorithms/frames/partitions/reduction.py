"""Rows of a frame reduced where they lie: of a Dask frame, sums alone leave the workers.

Of each person only the first rows count, as many as the schema says.  So each partition is split
by a hash of the persons, the pieces with one hash are joined on one worker in the order of the
frame, which has all rows of its persons then, and the results of the joined pieces are added up.
The same rows count as of a frame in one piece.  Sums of whole numbers have no round-off, so they
are the same for any partitions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from accountant.errors import PrivateValueError
from accountant.ledger.frames import is_lazy, is_partitioned
from algorithms.frames.conditions import Condition
from algorithms.frames.rows import BLOCK, DeclaredRows, Rows, Values, numbered, places_beyond
from algorithms.frames.schema import Schema

TOGETHER = 8  # results that one task adds up
FEW_PARTS = 16  # parts by the hash of persons, at least, where there are as many partitions
PORTION = 2**20  # rows of a lazy frame that are read at once
Work = Callable[[Rows], Any]


class Reading(NamedTuple):
    """Which rows a worker reads, and as what."""

    used: tuple[str, ...]  # the columns that the statistics need
    where: Condition | None  # which rows are asked for; None for all
    schema: Schema

    def of(self, frame: Any) -> DeclaredRows:
        """Return the rows of a frame, or of a partition, that count if it is all there is."""
        return DeclaredRows(frame, self.used, self.where, self.schema)

    @property
    def columns(self) -> list[str]:
        """The columns of the frame that are read."""
        person = self.schema.person
        return list(dict.fromkeys([*self.used, *([] if person is None else [person])]))


def reduced(
    frame: Any, reading: Reading, work: Work, add: Callable[[Any, Any], Any] = operator.add
) -> Any:
    """Return the result of ``work`` on the rows that count.

    A frame in partitions is processed in groups of persons, and ``add`` joins the results of the
    groups in any order.
    """
    if is_lazy(frame):
        return reduce(add, (work(reading.of(portion)) for portion in portions(frame, reading)))
    if not is_partitioned(frame):
        return work(reading.of(frame))
    import dask

    return checked(dask.compute(added_up(tasks_of(frame, reading, work), add))[0])


def portions(frame: Any, reading: Reading) -> Iterator[Any]:
    """Yield the rows of a lazy polars frame in portions; all rows of a person are in one."""
    import polars as pl

    person = reading.schema.person
    selected = frame.select(reading.columns or list(frame.collect_schema())[:1])
    rows = selected.select(pl.len()).collect().item()
    portion_count = max(1, -(-rows // PORTION))
    for at in range(portion_count):
        if person is None:
            yield selected.slice(at * PORTION, PORTION).collect()
        else:  # Polars hashes a name alike in every portion; rows keep the order of the frame.
            yield selected.filter(pl.col(person).hash() % portion_count == at).collect()


def tasks_of(frame: Any, reading: Reading, work: Work) -> list[Any]:
    """Return a task for each partition, or for the persons of each hash, that does the work."""
    from dask import delayed

    # A frame needs one column at least to have rows.
    columns = reading.columns or list(frame.columns[:1])
    partitions = frame[columns].to_delayed()
    if reading.schema.person is None:
        return [
            delayed(Quiet(partial(work_of_rows, reading, work)))(partition)
            for partition in partitions
        ]
    # With more parts each part is smaller.  But each takes a piece of every partition, so that n
    # partitions and m parts need n m transfers: m grows as sqrt(n) only.
    parts = min(len(partitions), max(FEW_PARTS, 2 * math.isqrt(len(partitions))))
    cut = delayed(Quiet(partial(split_by_person, reading, parts)))
    split = [cut(partition) for partition in partitions]
    joined = delayed(Quiet(partial(work_of_pieces, reading.schema, work)))
    return [joined([pieces[part] for pieces in split]) for part in range(parts)]


def added_up(tasks: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return a task that joins the results of tasks in groups."""
    from dask import delayed

    joined = delayed(Quiet(partial(reduce, add)))
    while len(tasks) > 1:
        tasks = [joined(tasks[at : at + TOGETHER]) for at in range(0, len(tasks), TOGETHER)]
    return tasks[0]


def checked(outcome: Any) -> Any:
    """Return a result; raise where a worker failed."""
    if isinstance(outcome, Failed):
        raise PrivateValueError("a partition", f"readable as declared: it gave {outcome.name}")
    return outcome


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
        if isinstance(argument, list):
            for piece in argument:
                if isinstance(piece, Failed):
                    return piece
        try:
            return self._function(argument)
        except Exception as error:  # its message could show a row
            return Failed(type(error).__name__)


class Piece(NamedTuple):
    """Rows of some persons, as declared, with the names of their persons."""

    values: Values
    persons: NDArray[Any]


class GatheredRows(Rows):
    """The rows of some persons that count, from all partitions."""

    def __init__(self, values: Values, persons: NDArray[np.intp]) -> None:
        self._values, self._persons = values, persons

    def kept(self) -> tuple[Values, NDArray[np.intp]]:
        """Return the columns as declared of all rows that count, and the number of each person."""
        return self._values, self._persons

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Values, int]]:
        """Yield the columns as declared, and the number, of the rows that count of each block."""
        for start in range(0, max(1, self._persons.size), size):  # one block if there are no rows
            block = slice(start, min(start + size, self._persons.size))
            yield {n: column[block] for n, column in self._values.items()}, block.stop - start


def work_of_rows(reading: Reading, work: Work, partition: Any) -> Any:
    """Return the result of ``work`` on a partition in which each row is a person."""
    return work(reading.of(partition))


def split_by_person(reading: Reading, parts: int, partition: Any) -> list[Piece]:
    """Return the rows of a partition that may count, by a hash of their person.

    They are the first `Schema.rows_per_person` rows of each person in this partition; earlier
    partitions may have more of that person, which is looked at when the pieces are joined.
    """
    values, person_column = reading.of(partition).of_persons()
    persons = person_names(person_column)
    part = hash_persons(persons) % np.uint64(parts)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(parts + 1, dtype=np.uint64))
    shorter = {name: to_int16(column) for name, column in values.items()}
    where = [order[a:b] for a, b in pairwise(ends)]
    return [Piece({n: c[rows] for n, c in shorter.items()}, persons[rows]) for rows in where]


def work_of_pieces(schema: Schema, work: Work, pieces: Sequence[Piece]) -> Any:
    """Return the result of ``work`` on the first rows of each person in all partitions' pieces."""
    persons = np.concatenate([piece.persons for piece in pieces])
    codes = numbered(persons) if persons.dtype != object else number_strings(persons)
    keep = np.ones(codes.size, dtype=bool)
    keep[places_beyond(codes, schema.rows_per_person)] = False
    values = {
        name: from_int16(np.concatenate([piece.values[name] for piece in pieces])[keep])
        for name in pieces[0].values
    }
    return work(GatheredRows(values, codes[keep]))


def person_names(series: nw.Series[Any]) -> NDArray[Any]:
    """Return persons as whole numbers or strings: of one type in all partitions.

    A string with letters beyond ASCII is replaced by its UTF-8 bytes, each read as one letter, so
    that it can be hashed also where it has a lone surrogate, which is no text.
    """
    if series.dtype.is_integer():
        return series.to_numpy().astype(np.int64)
    if series.dtype != nw.String and series.len():
        raise PrivateValueError("person", "a column of whole numbers, or of strings")
    names = np.empty(len(series), dtype=object)
    names[:] = [
        name if name.isascii() else name.encode("utf-8", "surrogatepass").decode("latin-1")
        for name in series.to_list()
    ]
    return names


def number_strings(persons: NDArray[Any]) -> NDArray[np.intp]:
    """Return a number for each of some strings."""
    codes: dict[str, int] = {}
    return np.array([codes.setdefault(person, len(codes)) for person in persons], dtype=np.intp)


def hash_persons(persons: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of each person that is the same on every worker."""
    from pandas.util import hash_array

    return np.asarray(hash_array(persons, categorize=False), dtype=np.uint64)


def to_int16(column: NDArray[Any]) -> NDArray[Any]:
    """Return the index of labels in two bytes, for the way to another worker, where it fits.

    Columns of integers are such indices, at least -1 for no label; numbers are floats here.
    """
    if column.dtype.kind != "i" or column.max(initial=0) >= 2**15:
        return column
    return column.astype(np.int16)


def from_int16(column: NDArray[Any]) -> NDArray[Any]:
    """Return the index of labels as before `to_int16`; other columns stay."""
    return column.astype(np.intp) if column.dtype.kind == "i" else column
