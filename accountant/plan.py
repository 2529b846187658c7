"""A plan is a value: what will be released, as a tree of sequences, repetitions and parallels.

Losses and mechanisms are plans of one release, so ``500 * a + b`` and
``Sequential([Repeat(a, 500), b])`` are the same thing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from accountant.domains import Whole
from accountant.errors import ParameterError

if TYPE_CHECKING:
    from accountant.loss import Loss

COUNT = Whole(0)


class Plan(ABC):
    """Anything that can be released, once or in composition."""

    __slots__ = ()
    __array_ufunc__ = None  # so that numpy's integers leave ``count * plan`` to `__rmul__`

    @abstractmethod
    def losses(self) -> Iterator[tuple[Loss | Parallel, int]]:
        """Yield (loss, count): what an accountant adds up, equal losses merged."""

    @abstractmethod
    def leaves(self) -> Iterator[Plan]:
        """Yield what a ledger will be asked for, in order: single releases and parallels."""

    @property
    @abstractmethod
    def reversed(self) -> Plan:
        """The same plan seen with the two neighbours exchanged."""

    def __add__(self, other: Plan) -> Sequential:
        if not isinstance(other, Plan):
            return NotImplemented
        return Sequential((*_parts(self), *_parts(other)))

    def __mul__(self, count: int) -> Repeat:
        return Repeat(self, count)

    __rmul__ = __mul__


class Release(Plan):
    """A plan of one single release: a loss, or a mechanism that has one."""

    __slots__ = ()

    def leaves(self) -> Iterator[Plan]:
        """Yield itself."""
        yield self


@dataclass(frozen=True, slots=True)
class Sequential(Plan):
    """Releases one after another on the same data, each may depend on earlier answers."""

    parts: tuple[Plan, ...]

    def __init__(self, parts: Iterable[Plan]) -> None:
        object.__setattr__(self, "parts", _checked(parts))

    def losses(self) -> Iterator[tuple[Loss | Parallel, int]]:
        """Yield the losses of all parts, equal ones merged."""
        return _merged(pair for part in self.parts for pair in part.losses())

    def leaves(self) -> Iterator[Plan]:
        """Yield the leaves of all parts in order."""
        return (leaf for part in self.parts for leaf in part.leaves())

    @property
    def reversed(self) -> Sequential:
        """Every part reversed."""
        return Sequential(part.reversed for part in self.parts)


@dataclass(frozen=True, slots=True)
class Repeat(Plan):
    """One plan ``count`` times in sequence; ``count = 0`` releases nothing."""

    part: Plan
    count: int

    def __post_init__(self) -> None:
        _checked((self.part,))
        object.__setattr__(self, "count", COUNT.check("count", self.count))

    def losses(self) -> Iterator[tuple[Loss | Parallel, int]]:
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
        """The part reversed, as often."""
        return Repeat(self.part.reversed, self.count)


@dataclass(frozen=True, slots=True)
class Parallel(Plan):
    """Plans on disjoint groups of users, the group of a user being public: costs the dearest."""

    parts: tuple[Plan, ...]

    def __init__(self, parts: Iterable[Plan]) -> None:
        object.__setattr__(self, "parts", _checked(parts))

    @property
    def distinct(self) -> tuple[Plan, ...]:
        """The parts without repetitions: what an accountant has to look at."""
        return tuple(dict.fromkeys(self.parts))

    def losses(self) -> Iterator[tuple[Loss | Parallel, int]]:
        """Yield itself: accountants take the maximum over its parts."""
        if self.parts:
            yield self, 1

    def leaves(self) -> Iterator[Plan]:
        """Yield itself, if any part releases something: the ledger opens a part for each group."""
        if any(next(part.leaves(), None) is not None for part in self.distinct):
            yield self

    @property
    def reversed(self) -> Self | Parallel:
        """Every part reversed."""
        return Parallel(part.reversed for part in self.parts)


def directions(plan: Plan) -> tuple[Plan, ...]:
    """The plan, and its reverse where that is a different one."""
    backwards = plan.reversed
    return (plan,) if dict(backwards.losses()) == dict(plan.losses()) else (plan, backwards)


def as_plan(plan: object) -> Plan:
    """Return the plan, or raise `ParameterError`."""
    if not isinstance(plan, Plan):
        raise ParameterError("plan", plan, "a plan, a loss or a mechanism")
    return plan


def _parts(plan: Plan) -> tuple[Plan, ...]:
    return plan.parts if isinstance(plan, Sequential) else (plan,)


def _checked(parts: Iterable[Plan]) -> tuple[Plan, ...]:
    if isinstance(parts, (str, Plan)) or not isinstance(parts, Iterable):
        raise ParameterError("parts", parts, "a list of plans, losses or mechanisms")
    return tuple(as_plan(part) for part in parts)


def _merged(pairs: Iterable[tuple[Loss | Parallel, int]]) -> Iterator[tuple[Loss | Parallel, int]]:
    total: dict[Loss | Parallel, int] = {}
    for loss, count in pairs:
        total[loss] = total.get(loss, 0) + count
    yield from total.items()
