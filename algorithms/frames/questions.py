"""What all questions to a frame do before anything is released."""

from __future__ import annotations

import dataclasses
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self, cast

from accountant.errors import ParameterError, PrivateValueError
from accountant.ledger.frame_rows import FrameFacts
from accountant.ledger.gate import Gate
from accountant.plans.parallel import Stated
from algorithms.frames.cells import Axis, keys_of, table_shape
from algorithms.frames.columns.keys import Key
from algorithms.frames.conditions import Condition
from algorithms.frames.schema import Schema

BY_KEYS = "count, sum_, mean, variance and quantiles"


class Question(ABC):
    """A question to a frame: a plan before any data, and a release through a ledger."""

    __slots__ = ()

    keys: tuple[Axis, ...]
    where: Condition | None

    _units: ClassVar[weakref.WeakKeyDictionary[Gate, str]] = weakref.WeakKeyDictionary()

    @property
    @abstractmethod
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""

    @abstractmethod
    def plan(self, schema: Schema) -> Stated:
        """Return what will be released; needs no data.

        Parameters
        ----------
        schema : Schema
            What is public of the frame.

        Returns
        -------
        Stated
            The releases, for the neighbours of the schema.
        """

    def group_by(self, keys: Any) -> Self:
        """Return the question for every group of rows.

        Parameters
        ----------
        keys : str, list of str or dict
            As ``by`` of the function that made it.

        Returns
        -------
        Question
            With an answer for every combination of the labels.
        """
        if self.keys:
            raise ParameterError("keys", keys, f"with those there are: {str(self)!r} has groups")
        made: Self = dataclasses.replace(self, keys=keys_of(keys, "keys"))  # type: ignore[type-var]  # questions are
        return made

    def _used(self, column: str | None) -> tuple[str, ...]:
        """Return a column, those of the cells and those of the condition, each once."""

        def names() -> Iterator[str]:
            if column is not None:
                yield column
            yield from (key.column for key in self.keys)
            yield from () if self.where is None else self.where.columns

        return tuple(dict.fromkeys(names()))

    def _check(self, schema: object, grouped: Iterable[str] = ()) -> None:
        """Refuse what is no schema, and columns that it does not declare as they are used.

        ``grouped`` are the columns that may have private keys.
        """
        if not isinstance(schema, Schema):
            raise ParameterError("schema", type(schema), "a Schema")
        for name in self.used:
            if isinstance(schema.kind(name), Key) and name not in grouped:
                allowed = "used in by= alone: its keys are private; a Category has public labels"
                if name in (key.column for key in self.keys):
                    allowed = f"a Category here: by private keys {BY_KEYS} are asked"
                raise ParameterError(f"column {name!r}", schema.kind(name), allowed)
        table_shape(self.keys, schema)
        if self.where is not None:
            self.where.check(schema)

    def _opened(self, ledger: Any, schema: Schema) -> FrameFacts:
        """Return what is public of the frame of a ledger; refuse one that does not fit."""
        if not isinstance(ledger, Gate):
            allowed = (
                "a Ledger, a Filter or the ledger of a Book, which holds the frame: "
                "Filter(frame, Budget(1.0)) for one"
            )
            raise ParameterError("ledger", type(ledger), allowed)
        schema.check_frame(ledger.frame_facts, self.used)
        facts = cast("FrameFacts", ledger.frame_facts)  # the check refuses arrays
        unit = self._units.setdefault(ledger, schema.unit)
        if unit != schema.unit:
            raise ParameterError("schema", schema.unit, f"one of {unit}: this ledger protects that")
        return facts

    def _lines(self, schema: Schema) -> list[str]:
        """Return the question in words, and what becomes of the rows it reads."""
        lines = [str(self)]
        lines += [f"  {name}: {schema.kind(name).rule}" for name in self.used]
        if schema.person is not None:
            most = f"{schema.rows_per_person} row" + "s" * (schema.rows_per_person > 1)
            lines.append(f"  of each {schema.person!r} the first {most} that can count")
        return lines

    def _words(self, asked: str) -> str:
        """Return what is asked with its cells and its condition."""
        asked += f" by {', '.join(key.column for key in self.keys)}" if self.keys else ""
        return asked + ("" if self.where is None else f" where {self.where!r}")


def unseen(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a query whose errors do not show a row."""

    def asked(frame: Any) -> Any:
        try:
            return read(frame)
        except Exception as error:  # its words could show a row
            name = type(error).__name__
            allowed = f"readable as the schema declares: it gave {name}"
            raise PrivateValueError("the frame", allowed) from None

    return asked


def refuse_unless_whole(ledger: Gate, plan: Stated, label: str | None) -> None:
    """Refuse several releases of which not all are allowed, before any is made."""
    if label is not None:
        allowed = "None for several releases: Book.ledger(name, data, plan, run=...) names them all"
        raise ParameterError("label", label, allowed)
    ledger.check(plan)
