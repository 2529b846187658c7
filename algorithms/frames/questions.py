"""The base class of questions to a private data frame, and their checks before any release.

A question says its plan without a look at the data: it needs only the `Schema`, which declares what
is public of the columns.  It is then released through a ledger that holds the frame and the budget.
"""

from __future__ import annotations

import dataclasses
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from accountant.errors import ParameterError, PrivateValueError, UnsupportedPlan
from accountant.ledger.frames import FrameFacts
from accountant.ledger.gate import Gate
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Sequential
from algorithms.frames.cells import Axis, keys_of, table_shape
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.numbers import Number
from algorithms.frames.conditions import Condition
from algorithms.frames.guarantees import Guarantee
from algorithms.frames.schema import HASH, Schema
from mechanisms.gaussian_partition_selection import GaussianPartitionSelection

BY_KEYS = "count, sum_, mean, variance and quantiles"  # questions that can group by private keys
Released = TypeVar("Released")


class Question(ABC, Generic[Released]):
    """A question to a frame: a plan before any data, and a release through a ledger.

    ``keys`` are the axes by which rows are sorted into cells, ``where`` is the condition on rows
    that count, ``by_private_keys`` says whether the keys of one axis may be private, and
    ``finds_bounds`` whether a column may have unknown bounds.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]  # every question is one

    keys: tuple[Axis, ...]
    where: Condition | None
    by_private_keys: ClassVar[bool] = False
    finds_bounds: ClassVar[bool] = False

    # Which persons each ledger protects, as its first question said.
    _units: ClassVar[weakref.WeakKeyDictionary[Gate, str]] = weakref.WeakKeyDictionary()

    @property
    @abstractmethod
    def used(self) -> tuple[str, ...]:
        """The columns that it reads, but the one that names persons."""

    @property
    def group_axes(self) -> tuple[Axis, ...]:
        """What makes the groups of which a person may have only some; none where rows are cut."""
        return self.keys

    @property
    @abstractmethod
    def _cost(self) -> Guarantee:
        """The privacy that the answer may cost."""

    @abstractmethod
    def _check_own(self, schema: Schema) -> None:
        """Refuse columns that are declared, but not as this question uses them."""

    @abstractmethod
    def _planned(self, schema: Schema) -> Plan:
        """Return the mechanism that releases it, or a `Sequential` of several."""

    @abstractmethod
    def _noise_lines(self, schema: Schema, steps: list[Any]) -> Iterator[str]:
        """Yield what the releases are, in words."""

    @abstractmethod
    def _released(
        self, ledger: Any, schema: Schema, steps: list[Any], facts: FrameFacts, label: str | None
    ) -> Released:
        """Release it by the steps of its plan."""

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
        self._cost.check_stated()
        cells = [key.column for key in self.keys]
        if schema.order == HASH and any(isinstance(schema.kind(n), Key) for n in self.used):
            allowed = "a column where rows have a Key: its order by a hash would be that of texts"
            raise ParameterError("order", HASH, allowed)
        for name in self.used:
            if not isinstance(schema.kind(name), Key) or (self.by_private_keys and name in cells):
                continue
            allowed = "used in by= alone: its keys are private; a Category has public labels"
            if name in cells:
                allowed = f"a Category here: by private keys {BY_KEYS} are asked"
            raise ParameterError(f"column {name!r}", schema.kind(name), allowed)
        in_listed_bins = {key.column for key in self.keys if isinstance(key.bins, tuple)}
        for name in () if self.finds_bounds else set(schema.sources(self.used)) - in_listed_bins:
            if isinstance(kind := schema.kind(name), Number) and kind.is_unknown:
                allowed = f"with bounds: bounds({name!r}, epsilon=0.1) finds some in private"
                raise ParameterError(f"column {name!r}", "Number.unknown()", allowed)
        table_shape(self.keys, schema)
        if self.where is not None:
            self.where.check(schema)
        self._check_own(schema)

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
        self.check(schema)
        return Stated(self._planned(schema), schema.relation)

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
        steps: list[Any] = list(self.plan(schema).leaves())
        lines = [str(self), *(f"{name}: {schema.rule(name)}" for name in self.used)]
        if schema.joined is not None:
            lines.append(str(schema.joined))
        if schema.person is not None:
            rows, few = schema.rows_per_person, ""
            if schema.groups_per_person is not None and self.group_axes:
                rows //= schema.groups
                few = f" in each of the first {schema.groups} groups"
            row_limit = f"{rows} row" + "s" * (rows > 1)
            lines.append(f"of each {schema.person!r} the first {row_limit}{few} that can count")
        lines.append(f"neighbours: {schema.unit}{self._known(schema)}")
        lines += self._noise_lines(schema, steps)
        return "\n  ".join([*lines, f"costs {self._cost}"])

    def _known(self, schema: Schema) -> str:
        """Return what else is public, in words."""
        del schema
        return ""

    def release(self, ledger: Any, schema: Schema, label: str | None = None) -> Released:
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
        Answer, ListedAnswer or RegressionAnswer
            Values with noise, and their intervals.

        Raises
        ------
        ParameterError
            If the frame has no such columns, or of other types; nothing is spent.
        OffPlan, BudgetExceeded
            If the ledger does not allow all of it; nothing is spent.
        """
        plan = self.plan(schema)
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
        steps = list(plan.leaves())
        with ledger.answering(str(self)):
            if isinstance(plan.part, Sequential):
                try:
                    with ledger.reserving(plan, label):
                        return self._released(ledger, schema, steps, facts, None)
                except UnsupportedPlan as error:
                    raise unsupported(error, steps) from None
            return self._released(ledger, schema, steps, facts, label)

    @property
    def cost(self) -> str:
        """What the answer may cost, in words."""
        return str(self._cost)

    def costing(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        scale: float | None = None,
    ) -> Self:
        """Return the question at another cost, or at one where none was said.

        Parameters
        ----------
        epsilon, delta : float, optional
            The privacy that the answer may cost.
        rho : float, optional
            The privacy that it may cost as zero-concentrated rho; not of quantiles and `top_k`.
        scale : float, optional
            The scale of the noise, in place of a cost; of sums only.

        Returns
        -------
        Question
            The same in all else.
        """
        cost = dataclasses.replace(self._cost, epsilon=epsilon, delta=delta, rho=rho, scale=scale)
        cost.check_stated()
        if any(field.name == "guarantee" for field in dataclasses.fields(self)):
            return cast("Self", dataclasses.replace(cast("Any", self), guarantee=cost))
        if cost.epsilon is None:
            raise ParameterError("epsilon", None, "given: this question has no rho or scale")
        changed = dataclasses.replace(cast("Any", self), epsilon=cost.epsilon, delta=cost.delta)
        return cast("Self", changed)

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
        return dataclasses.replace(self, keys=keys_of(keys, "keys"))

    def _used(self, column: str | None) -> tuple[str, ...]:
        """Return a column and the columns of the keys and of the condition, without repetition."""
        if not isinstance(column, str | None):
            # The message must not show the rows of a column object.
            raise ParameterError("column", type(column), "the name of a column")
        names = [] if column is None else [column]
        names += [key.column for key in self.keys]
        names += [] if self.where is None else self.where.columns
        return tuple(dict.fromkeys(names))

    def _words(self, question: str) -> str:
        """Return the question in words, with its cells and its condition."""
        question += f" by {', '.join(map(str, self.keys))}" if self.keys else ""
        return question + ("" if self.where is None else f" where {self.where!r}")


def unsupported(error: UnsupportedPlan, steps: list[Any]) -> UnsupportedPlan:
    """Return the error that says what a filter takes in place of rounds of selections of keys."""
    if not any(isinstance(step, GaussianPartitionSelection) for step in steps):
        return error
    instead = 'noise="laplace" asks for one selection, which a filter of notion="pure" adds'
    return UnsupportedPlan(error.node, error.accountant, f"{instead}; rounds need a Ledger or Book")


def unseen(query: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the query with errors that do not show a row: they name the class of the error."""

    def guarded(frame: Any) -> Any:
        try:
            return query(frame)
        except Exception as error:  # its message could show a row
            name = type(error).__name__
            allowed = f"readable as the schema declares: it gave {name}"
            raise PrivateValueError("the frame", allowed) from None

    return guarded
