"""Questions to a frame: a plan before any data, and a release through a ledger."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError, PrivateValueError
from accountant.ledger.gate import Gate
from accountant.plans.parallel import Stated
from algorithms.frames.answer import Answer
from algorithms.frames.bases import Statistic
from algorithms.frames.cells import Key, table_shape
from algorithms.frames.conditions import Condition
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.noise_tails import NAMES, Noise
from algorithms.frames.schema import Schema
from algorithms.frames.sensitivities import sensitivities

EXACT_FLOATS = 2**52  # whole numbers up to here add up exactly as floats


@final
@dataclass(frozen=True, slots=True)
class FrameQuery:
    """One statistic of a frame; made by `count`, `sum_`, `mean`, `variance`, `histogram` and so on.

    All its numbers are released at once by one mechanism, so a ledger takes the whole of it or
    refuses it before anything is spent.

    Parameters
    ----------
    statistic : Statistic
        What is asked of each cell.
    keys : tuple of Key
        What rows are sorted by into cells.
    where : Condition or None
        Which rows count.
    guarantee : Guarantee
        What it may cost.

    Examples
    --------
    >>> from accountant import Tight
    >>> from algorithms.frames import Number, Schema, mean
    >>> query = mean("age", epsilon=0.5)
    >>> schema = Schema({"age": Number(0, 100)})
    >>> Tight().epsilon(query.plan(schema), delta=0.0) <= 0.5
    True
    """

    statistic: Statistic
    keys: tuple[Key, ...]
    where: Condition | None
    guarantee: Guarantee

    _units: ClassVar[weakref.WeakKeyDictionary[Gate, str]] = weakref.WeakKeyDictionary()

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""

        def names() -> Iterator[str]:
            if self.statistic.column is not None:
                yield self.statistic.column
            yield from (key.column for key in self.keys)
            yield from () if self.where is None else self.where.columns

        return tuple(dict.fromkeys(names()))

    def check(self, schema: Schema) -> None:
        """Refuse columns that the schema does not declare, or not as they are used.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Raises
        ------
        ParameterError
            With the column, and what it must be.
        """
        if not isinstance(schema, Schema):
            raise ParameterError("schema", type(schema), "a Schema")
        self.statistic.check(schema)
        table_shape(self.keys, schema)
        if self.where is not None:
            self.where.check(schema)

    def mechanism(self, schema: Schema) -> Noise:
        """Return the mechanism that releases it: of those that are allowed, the least error.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        DiscreteLaplace or DiscreteGaussian
            Noise on whole numbers, such as steps of 2^-30 of a range: `Answer` has the units.
        """
        self.check(schema)
        cells = int(np.prod(table_shape(self.keys, schema)))

        def noise_of(kind: str) -> Noise:
            basis = self.statistic.basis(schema, kind)
            moved = sensitivities(basis, schema, cells)
            return self.guarantee.mechanism(kind, moved, cells * basis.size, basis.unit)

        kinds = self.guarantee.kinds
        if len(kinds) == 1:
            return noise_of(kinds[0])
        usual = {kind: self.statistic.usual_error(kind) for kind in kinds}
        return min(map(noise_of, kinds), key=lambda one: one.deviation * usual[NAMES[type(one)]])

    def plan(self, schema: Schema) -> Stated:
        """Return what will be released; needs no data.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        Stated
            One release, for the neighbours of the schema.
        """
        return Stated(self.mechanism(schema), schema.relation)

    def explain(self, schema: Schema) -> str:
        """Return in words what is done to the data, and what it costs; needs no data.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        str
            A line for each fact.
        """
        mechanism = self.mechanism(schema)
        unit = self.statistic.basis(schema, NAMES[type(mechanism)]).unit
        lines = [str(self)]
        lines += [f"  {name}: {schema.kind(name).rule}" for name in self.used]
        if schema.person is not None:
            most = f"{schema.rows_per_person} row" + "s" * (schema.rows_per_person > 1)
            lines.append(f"  of each {schema.person!r} the first {most} that can count")
        lines.append(f"  neighbours: {schema.unit}")
        kind = type(mechanism).__name__
        lines.append(f"  {kind} noise of scale {mechanism.scale * unit:.6g} {self._unit_words}")
        lines.append(f"  costs {self.guarantee}")
        return "\n".join(lines)

    @property
    def _unit_words(self) -> str:
        return f"on the sum of {self.statistic.column}" if self.statistic.name == "sum" else "rows"

    def __str__(self) -> str:
        asked = self.statistic.name
        asked += "" if self.statistic.column is None else f" of {self.statistic.column}"
        asked += f" by {', '.join(key.column for key in self.keys)}" if self.keys else ""
        return asked + ("" if self.where is None else f" where {self.where!r}")

    def release(self, ledger: Any, schema: Schema, label: str | None = None) -> Answer:
        """Release it through a ledger, a filter or the ledger of a book.

        Parameters
        ----------
        ledger : Ledger
            Holds the frame.  All that is released through it protects persons of one column.
        schema : Schema
            What is public of the frame.
        label : str, optional
            Name of the answer in a book, which gives it again for the same label.

        Returns
        -------
        Answer
            The value with noise, and its error.

        Raises
        ------
        ParameterError
            If the frame has no such columns, or of other types; nothing is spent.
        OffPlan, BudgetExceeded
            If the ledger does not allow it; nothing is spent.
        """
        if not isinstance(ledger, Gate):
            allowed = "a Ledger, a Filter or the ledger of a Book, which holds the frame"
            raise ParameterError("ledger", type(ledger), allowed)
        mechanism, facts = self.mechanism(schema), ledger.frame_facts
        schema.check_frame(facts, self.used)
        assert facts is not None  # the check refuses arrays
        unit = self._units.setdefault(ledger, schema.unit)
        if unit != schema.unit:
            raise ParameterError("schema", schema.unit, f"one of {unit}: this ledger protects that")
        kind = NAMES[type(mechanism)]

        def asked(frame: Any) -> Any:
            try:
                return self.sums(frame, schema, kind)
            except Exception as error:  # its words could show a row
                name = type(error).__name__
                allowed = f"readable as the schema declares: it gave {name}"
                raise PrivateValueError("the frame", allowed) from None

        found = ledger.release(mechanism, asked, label)
        released = np.atleast_1d(found)
        return Answer(
            str(self), self.statistic, self.keys, schema, mechanism, released, facts.backend
        )

    def sums(self, frame: Any, schema: Schema, kind: str) -> Any:
        """Return what is released, before noise: exact sums of whole numbers.

        Parameters
        ----------
        frame : data frame
            The rows.
        schema : Schema
            What is public of the frame.
        kind : str
            The noise, "laplace" or "gaussian".

        Returns
        -------
        numpy.ndarray or int
            The numbers of each cell after those of the cell before; an int where there is one.
        """
        from algorithms.frames.rows import BLOCK, DeclaredRows

        shape, basis = table_shape(self.keys, schema), self.statistic.basis(schema, kind)
        cells = math.prod(shape)
        largest = max(abs(x) for vertex in basis.vertices for x in vertex)
        # whole numbers add up exactly as floats while no sum of a block can exceed 2^52
        size = min(EXACT_FLOATS // largest, max(BLOCK, cells))
        sums = np.zeros((basis.size, cells), dtype=np.int64)
        for values, rows in DeclaredRows(frame, self.used, self.where, schema).blocks(size):
            column = self.statistic.column
            given = None if column is None else values[column]
            added = self.statistic.contributions(given, schema, kind)
            index = self._cells(values, shape, schema) if shape else None
            for i, one in enumerate(added):
                sums[i] += summed(one, rows, index, cells)
        flat = sums.T.ravel()
        return flat if flat.size > 1 else int(flat[0])

    def _cells(
        self, values: dict[str, NDArray[Any]], shape: tuple[int, ...], schema: Schema
    ) -> NDArray[Any]:
        """Return the number of the cell of every row; the number of cells where it is in none."""
        cells, outside = np.zeros((), dtype=np.intp), np.zeros((), dtype=bool)
        for key, size in zip(self.keys, shape, strict=True):
            index = key.index(values[key.column], schema)
            cells = cells * size + index
            if index.min(initial=0) < 0:
                outside = outside | (index < 0)
        return np.where(outside, math.prod(shape), cells) if outside.ndim else cells


def summed(added: Any, rows: int, index: NDArray[Any] | None, cells: int) -> Any:
    """Return the sums in every cell of whole numbers, one for each row or one for all."""
    if index is None:
        return added * rows if isinstance(added, int) else int(added.sum())
    if isinstance(added, int):
        return added * np.bincount(index, minlength=cells)[:cells]
    return np.bincount(index, added, minlength=cells)[:cells].astype(np.int64)
