"""A plan is a value: what will be released, as a tree of sequences, repetitions and parallels.

Losses and mechanisms are plans of one release, so ``500 * a + b`` and
``Sequential([Repeat(a, 500), b])`` are equal plans.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.plans.adjacency import Adjacency, common_relation
from accountant.table_display import Table, TableDisplay

COUNT = IntegerRange(0)
# Costs, copies, hashes and files of a plan are computed from the inside out, one call in another
# for each node on the way: deeper plans would exceed Python's stack of a thousand calls.
MAX_NESTING = 100
DECLARED_PLAN_KINDS: list[type[Plan]] = []  # kinds of plans that other packages declared


class Plan(TableDisplay, ABC):
    """A value that says what will be released, once or in composition.

    Plans are built from mechanisms and losses: ``500 * a + b`` is a sequence of 500 times ``a``
    and once ``b``.  They are immutable, hash, compare and serialise, and know no data.

    Examples
    --------
    >>> from accountant import GaussianLoss, Plan, PureLoss
    >>> plan = 3 * GaussianLoss(0.1) + PureLoss(0.5)
    >>> isinstance(plan, Plan), list(plan.losses())
    (True, [(GaussianLoss(mu=0.1), 3), (PureLoss(epsilon=0.5), 1)])
    """

    __slots__ = ("_nesting",)  # what `nesting` remembers of a node
    __array_ufunc__ = None  # so that numpy's integers leave ``count * plan`` to `__rmul__`

    @abstractmethod
    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield what an accountant adds up, equal losses merged.

        Yields
        ------
        tuple of Item and int
            A loss, or parallel plans, and how often it occurs.
        """

    def losses_in_order(self) -> Iterator[tuple[Item, int]]:
        """Return the losses in the order of release, so that a loss may occur several times.

        Returns
        -------
        iterator of (Item, int)
            A loss, or parallel plans, and how often it is released in a row.
        """
        return self.losses()

    @abstractmethod
    def leaves(self) -> Iterator[Plan]:
        """Yield what a ledger releases, in order.

        Yields
        ------
        Plan
            A single release, or parallel plans.
        """

    @property
    @abstractmethod
    def reversed(self) -> Plan:
        """The same plan seen with the two neighbours exchanged."""

    @property
    def relation(self) -> Adjacency | None:
        """The neighbours the plan was stated for; None: those of its sensitivities."""
        return None

    def __add__(self, other: Plan) -> Sequential:
        if not isinstance(other, Plan):
            return NotImplemented
        return Sequential.joined(self, other)

    def __radd__(self, other: object) -> Plan:
        # `sum` starts with 0, which is no release
        return self if type(other) is int and other == 0 else NotImplemented

    def __mul__(self, count: int) -> Repeat:
        return Repeat(self, count)

    __rmul__ = __mul__

    def _table(self) -> Table:
        counts: dict[str, int] = {}
        for part in self.parts if isinstance(self, Sequential) else (self,):
            release, count = (part.part, part.count) if isinstance(part, Repeat) else (part, 1)
            counts[repr(release)] = counts.get(repr(release), 0) + count
        return Table(("release", "count"), list(counts.items()))


class Item(Plan):
    """One summand of an accountant: the loss of one release, or parallel plans."""

    __slots__ = ()

    @property
    @abstractmethod
    def reversed(self) -> Item:
        """The same item with the two neighbours exchanged."""


class Release(Plan):
    """A plan of one single release: a loss, or a mechanism that has one."""

    __slots__ = ()

    def leaves(self) -> Iterator[Plan]:
        """Yield this plan, once."""
        yield self

    @property
    def sampler(self) -> Sampler | None:
        """The sampler that draws the users it sees; None: it sees all of them."""
        return None

    @property
    def arithmetic(self) -> str:
        """ "exact" or "idealised", where floats decide the noise; "" where nothing is drawn."""
        return ""


class Sampler(Protocol):
    """A release that sees a secret sample of the users."""

    @property
    def part(self) -> Plan:
        """The plan that is released on the sample."""
        ...

    def select(self, users: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return the indices of one sample of ``users`` users."""
        ...


class _Joined:
    """The parts of two sequences, one after the other, not yet copied into one tuple."""

    __slots__ = ("first", "relation", "second")

    def __init__(self, first: Parts, second: Parts, relation: Adjacency | None) -> None:
        self.first, self.second, self.relation = first, second, relation

    def copied(self) -> tuple[Plan, ...]:
        """Return all parts in order."""
        parts: list[Plan] = []
        stack: list[Parts] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, _Joined):
                stack += (node.second, node.first)
            else:
                parts += node
        return tuple(parts)


Parts = tuple[Plan, ...] | _Joined


class _MaybeJoined(Plan):
    """A sequence whose parts are copied when they are first read, so that `+` copies nothing."""

    __slots__ = ("_joined",)

    def __getattr__(self, name: str) -> Any:
        # Python calls this for an empty slot, which is the parts until they are copied.
        if name != "parts":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        parts = self._joined.copied()
        object.__setattr__(self, "parts", parts)
        return parts


@dataclass(frozen=True, slots=True)
class Sequential(_MaybeJoined):
    """Releases one after another on the same data; each may depend on earlier answers.

    Parameters
    ----------
    parts : iterable of Plan
        In the order of their release; all stated for the same neighbours, or for none.

    Examples
    --------
    >>> from accountant import GaussianLoss, PureLoss, Sequential
    >>> Sequential([PureLoss(0.5), 3 * GaussianLoss(0.1)]) == PureLoss(0.5) + 3 * GaussianLoss(0.1)
    True
    """

    parts: tuple[Plan, ...]

    def __init__(self, parts: Iterable[Plan]) -> None:
        object.__setattr__(self, "parts", checked_parts(parts))
        object.__setattr__(self, "_joined", None)
        common_relation(self.parts)

    @classmethod
    def joined(cls, first: Plan, second: Plan) -> Sequential:
        """Return the parts of one plan and then those of another, in time that both share.

        Parameters
        ----------
        first : Plan
            A sequence, whose parts come first, or another plan.
        second : Plan
            The same of what follows.

        Returns
        -------
        Sequential
            Equal to ``Sequential([*parts of first, *parts of second])``.
        """
        sequence = cls.__new__(cls)
        relation = common_relation((first, second))
        object.__setattr__(sequence, "_joined", _Joined(_parts(first), _parts(second), relation))
        return sequence

    @property
    def relation(self) -> Adjacency | None:
        """The relation of its parts."""
        joined = getattr(self, "_joined", None)
        return common_relation(self.parts) if joined is None else joined.relation

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of all parts, equal ones merged."""
        total: dict[Item, int] = {}
        for part in self.parts:
            for loss, count in part.losses():
                total[loss] = checked_total(total.get(loss, 0) + count)
        yield from total.items()

    def losses_in_order(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of all parts in order."""
        return (pair for part in self.parts for pair in part.losses_in_order())

    def leaves(self) -> Iterator[Plan]:
        """Yield the leaves of all parts in order."""
        return (leaf for part in self.parts for leaf in part.leaves())

    @property
    def reversed(self) -> Sequential:
        """The same plan with every part reversed."""
        return Sequential(part.reversed for part in self.parts)


@dataclass(frozen=True, slots=True)
class Repeat(Plan):
    """One plan ``count`` times in sequence.

    Parameters
    ----------
    part : Plan
        What is repeated; ``count * part`` is the short form.
    count : int
        At least 0; 0 releases nothing.

    Examples
    --------
    >>> from accountant import PureLoss, Repeat, Tight
    >>> Tight().epsilon(Repeat(PureLoss(0.1), 10), delta=0.0)
    1.0
    """

    part: Plan
    count: int

    def __post_init__(self) -> None:
        checked_parts((self.part,))
        object.__setattr__(self, "count", COUNT.check("count", self.count))

    @property
    def relation(self) -> Adjacency | None:
        """The relation of its part."""
        return self.part.relation

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the part's losses, each ``count`` times as often."""
        if self.count:
            for loss, times in self.part.losses():
                yield loss, checked_total(times * self.count)

    def losses_in_order(self) -> Iterator[tuple[Item, int]]:
        """Yield the part's losses again and again; a single one at once."""
        items = list(itertools.islice(self.part.losses_in_order(), 2))
        if len(items) < 2:
            return self.losses()
        return (pair for _ in range(self.count) for pair in self.part.losses_in_order())

    def leaves(self) -> Iterator[Plan]:
        """Yield the part's leaves ``count`` times, without unrolling them in memory."""
        for _ in range(self.count):
            empty = True
            for leaf in self.part.leaves():
                empty = False
                yield leaf
            if empty:  # Every further repetition would be empty, too.
                return

    @property
    def reversed(self) -> Repeat:
        """The part reversed, repeated as often."""
        return Repeat(self.part.reversed, self.count)


def directions(plan: Plan) -> tuple[Plan, ...]:
    """Return the plan, and its reverse where that is a different one."""
    losses = list(plan.losses())
    if all(item.reversed is item for item, _ in losses):
        return (plan,)
    backwards = plan.reversed
    # The same losses in another order may cost another epsilon.
    return (plan,) if list(backwards.losses()) == losses else (plan, backwards)


def as_plan(plan: object) -> Plan:
    """Return the plan, or raise `ParameterError`."""
    if not isinstance(plan, Plan):
        allowed, shown = "a plan, a loss or a mechanism", plan
        if isinstance(plan, list | tuple):  # perhaps of data, which are not shown
            allowed, shown = f"{allowed}; Sequential([...]) joins several", type(plan).__name__
        elif isinstance(plan, type):
            allowed, shown = f"{allowed} with its numbers: Laplace(scale=10.0)", plan.__name__
        raise ParameterError("plan", shown, allowed)
    if nesting(plan) > MAX_NESTING:
        allowed = (
            f"nested at most {MAX_NESTING} deep: one Sequential of all parts is the same as many "
            "inside one another, and one Repeat with the product of the counts as many Repeats"
        )
        raise ParameterError("plan", type(plan).__name__, allowed)
    return plan


def nesting(plan: Any) -> int:
    """Return the depth of nested plans; each node stores its own, so it is computed once."""
    depth = _remembered_nesting(plan)
    stack = [] if depth is not None else [plan]
    while stack:
        node = stack[-1]
        # Equal parts are often one object.
        parts = {id(part): part for part in _inner_plans(node)}.values()
        levels = [(part, _remembered_nesting(part)) for part in parts]
        unknown = [part for part, level in levels if level is None]
        if unknown:
            stack += unknown
            continue
        depth = 1 + max(level for _, level in levels if level is not None)
        object.__setattr__(stack.pop(), "_nesting", depth)
    return depth or 0


def _remembered_nesting(plan: Any) -> int | None:
    """Return the depth of a node, 0 for what holds no plan; None where it is not known yet."""
    depth: int | None = getattr(plan, "_nesting", None)
    return 0 if depth is None and not _inner_plans(plan) else depth


def _inner_plans(plan: Any) -> tuple[Plan, ...]:
    """Return the plans in the fields of a plan."""
    inner: tuple[Plan, ...] = ()
    kind: Any = type(plan)  # not `__class__`, which a class can make say something else
    for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        value = getattr(plan, field.name)
        if isinstance(value, Plan):
            inner += (value,)
        elif isinstance(value, tuple) and value and isinstance(value[0], Plan):
            inner += value
    return inner


@functools.cache
def checked_total(count: int) -> int:
    """Return how often a loss occurs in a plan, or raise `ParameterError`."""
    if count > COUNT.high:
        allowed = f"at most {COUNT.high:,} releases of one loss in all: use a smaller count"
        raise ParameterError("count", count, allowed)
    return count


def _parts(plan: Plan) -> Parts:
    if not isinstance(plan, Sequential):
        return (plan,)
    joined: _Joined | None = getattr(plan, "_joined", None)
    return plan.parts if joined is None else joined


def checked_parts(parts: Iterable[Plan]) -> tuple[Plan, ...]:
    """Return the parts of a node, each checked to be a plan."""
    # An array without axes has an iterable type, and cannot be iterated.
    zero_dimensional = getattr(parts, "shape", None) == ()
    if isinstance(parts, (str, Plan)) or not isinstance(parts, Iterable) or zero_dimensional:
        raise ParameterError("parts", parts, "a list of plans, losses or mechanisms")
    checked = tuple(parts)
    for part in distinct_objects(checked):
        as_plan(part)
    return checked


def distinct_objects(parts: Sequence[Plan]) -> Iterable[Plan]:
    """Return each object once: a million equal parts are often one, and hashes take long."""
    if len(parts) > 1 and all(map(is_, parts, repeat(parts[0]))):  # twice as fast for this case
        return parts[:1]
    return dict(zip(map(id, parts), parts, strict=True)).values()
