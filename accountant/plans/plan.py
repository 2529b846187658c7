"""A plan is a value: what will be released, as a tree of sequences, repetitions and parallels.

Losses and mechanisms are plans of one release, so ``500 * a + b`` and
``Sequential([Repeat(a, 500), b])`` are equal plans.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.plans.adjacency import Adjacency, common_relation

COUNT = IntegerRange(0)
DECLARED_PLAN_KINDS: list[type[Plan]] = []  # kinds of plans that other packages brought along


class Plan(ABC):
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

    __slots__ = ()
    __array_ufunc__ = None  # so that numpy's integers leave ``count * plan`` to `__rmul__`

    @abstractmethod
    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield what an accountant adds up, equal losses merged.

        Yields
        ------
        tuple of Item and int
            A loss, or parallel plans, and how often it occurs.
        """

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
        return Sequential((*_parts(self), *_parts(other)))

    def __mul__(self, count: int) -> Repeat:
        return Repeat(self, count)

    __rmul__ = __mul__


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


@dataclass(frozen=True, slots=True)
class Sequential(Plan):
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
        common_relation(self.parts)

    @property
    def relation(self) -> Adjacency | None:
        """The relation of its parts."""
        return common_relation(self.parts)

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield the losses of all parts, equal ones merged."""
        return _merge_equal_losses(pair for part in self.parts for pair in part.losses())

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
            yield from ((loss, times * self.count) for loss, times in self.part.losses())

    def leaves(self) -> Iterator[Plan]:
        """Yield the part's leaves ``count`` times, without unrolling them in memory."""
        for _ in range(self.count):
            empty = True
            for leaf in self.part.leaves():
                empty = False
                yield leaf
            if empty:  # it will be so every time
                return

    @property
    def reversed(self) -> Repeat:
        """The part reversed, repeated as often."""
        return Repeat(self.part.reversed, self.count)


def directions(plan: Plan) -> tuple[Plan, ...]:
    """Return the plan, and its reverse where that is a different one."""
    if all(item.reversed is item for item, _ in plan.losses()):
        return (plan,)
    backwards = plan.reversed
    return (plan,) if dict(backwards.losses()) == dict(plan.losses()) else (plan, backwards)


def as_plan(plan: object) -> Plan:
    """Return the plan, or raise `ParameterError`."""
    if not isinstance(plan, Plan):
        raise ParameterError("plan", plan, "a plan, a loss or a mechanism")
    return plan


def _parts(plan: Plan) -> tuple[Plan, ...]:
    return plan.parts if isinstance(plan, Sequential) else (plan,)


def checked_parts(parts: Iterable[Plan]) -> tuple[Plan, ...]:
    """Return the parts of a node, each checked to be a plan."""
    if isinstance(parts, (str, Plan)) or not isinstance(parts, Iterable):
        raise ParameterError("parts", parts, "a list of plans, losses or mechanisms")
    return tuple(as_plan(part) for part in parts)


def _merge_equal_losses(pairs: Iterable[tuple[Item, int]]) -> Iterator[tuple[Item, int]]:
    total: dict[Item, int] = {}
    for loss, count in pairs:
        total[loss] = total.get(loss, 0) + count
    yield from total.items()
