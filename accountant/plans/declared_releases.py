"""The classes of releases that a gate rebuilds, and of values in plans: declared, and final.

A gate is what stands between a user and the data, such as a ledger: it charges a release, records
it, and draws its output.  It draws from a copy that it made from a declared class and its fields,
so that what is charged, recorded and drawn is one and the same.  Other packages fill this list: no
mechanism is known here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from accountant.plans.plan import Plan


class DeclaredClass(NamedTuple):
    """A class that gates rebuild."""

    cls: type[Any]
    fields: tuple[str, ...]  # the names of the parameters of its constructor


# By the identity of the class, because a metaclass may redefine equality.
DECLARED_RELEASES: dict[int, DeclaredClass] = {}
MOST_REMEMBERED = 10_000  # releases whose copy, or cost, is kept; then all of them are forgotten
# Names that every class body defines, without changing behaviour.
HARMLESS_NAMES = {
    "__abstractmethods__", "__annotate_func__", "__annotations__", "__annotations_cache__",
    "__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__",
    "__qualname__", "__slots__", "__static_attributes__", "__weakref__", "_abc_impl",
}  # fmt: skip
R = TypeVar("R", bound=type[Any])
F = TypeVar("F", bound="type[PlanField]")


def declare_release(cls: R) -> R:
    """Register a frozen dataclass of releases; from then on no subclass may override it.

    A class that is defined anew, as in a notebook, takes the place of the earlier one.
    """
    same = [
        declared.cls
        for declared in DECLARED_RELEASES.values()
        if declared.cls.__name__ == cls.__name__
    ]
    for earlier in same:
        if (earlier.__module__, earlier.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"{cls.__name__}: {earlier.__module__} has declared a class of this name"
            )
        del DECLARED_RELEASES[id(earlier)]
    names = tuple(field.name for field in dataclasses.fields(cls) if field.init)
    DECLARED_RELEASES[id(cls)] = DeclaredClass(cls, names)
    cls.__init_subclass__ = classmethod(_refuse_overriding)  # type: ignore[assignment]  # bound
    return cls


def is_declared(release: Any) -> bool:
    """Return whether the exact class of a release is declared, and of all releases inside it."""
    return id(type(release)) in DECLARED_RELEASES and undeclared_part(release) is None


def undeclared_part(plan: Any) -> Any:
    """Return a part of a plan that can release and is not of a declared class; None if all are."""
    for part in parts_of(plan):
        declared = DECLARED_RELEASES.get(id(type(part)))
        if declared is None:
            # Other parts are nodes of a plan, or losses, which state their own cost.
            if hasattr(part, "release"):
                return part
        elif any(_is_code(getattr(part, name)) for name in declared.fields):
            return part
    return None


def idealised_part(plan: Any) -> Any:
    """Return a mechanism in a plan whose noise floats decide; None if there is none."""
    idealised = (part for part in parts_of(plan) if getattr(part, "arithmetic", "") == "idealised")
    return next(idealised, None)


def parts_of(plan: Any) -> Iterator[Any]:
    """Yield a plan and all plans inside it, each once: many nodes may share a part."""
    unvisited, visited = [plan], {id(plan)}
    while unvisited:
        node = unvisited.pop()
        yield node
        fields = dataclasses.fields(node) if dataclasses.is_dataclass(node) else ()
        inside = [getattr(node, field.name) for field in fields]
        for value in inside:
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Plan) and id(part) not in visited:
                    visited.add(id(part))
                    unvisited.append(part)


def _is_code(value: object) -> bool:
    """Return whether a field is a function of the caller: it could store what a query shows."""
    if not callable(value) or isinstance(value, Plan):
        return False
    return getattr(np, getattr(value, "__name__", ""), None) is not value


def _refuse_overriding(cls: type[Any], /, **options: Any) -> None:
    """Refuse a subclass that changes what a declared class does."""
    declared: Any = next((base for base in cls.__mro__[1:] if id(base) in DECLARED_RELEASES), None)
    if declared is None:  # the declared base class was defined again since
        return
    super(declared, cls).__init_subclass__(**options)
    changed = sorted(n for n in set(vars(cls)) - HARMLESS_NAMES if hasattr(declared, n))
    if changed:
        raise TypeError(
            f"{cls.__name__} overrides {', '.join(changed)} of {declared.__name__}, which is "
            "declared and final: wrap it, or write a mechanism of its own"
        )


# --- values inside plans that are no plans themselves, such as the strategy matrix `BinaryTree`

# A plan file (`accountant.serialisation`) stores such a value as the name of its class, which has
# to be registered here, and the arguments of its constructor.


class PlanField:
    """An immutable value that a plan holds in a field.

    Each argument of the constructor is stored in the field of the same name, so that the value can
    be written to a file and made again: `BinaryTree(8)` has ``steps == 8``.
    """

    __slots__ = ()


PLAN_FIELD_KINDS: dict[str, type[PlanField]] = {}  # registered classes, by their names in files


def plan_field(cls: F) -> F:
    """Register a class, the decorator of every final subclass that may occur in plans."""
    PLAN_FIELD_KINDS[cls.__name__] = cls
    return cls


def is_plan_field(value: object) -> bool:
    """Return whether the exact class of a value is registered: a subclass may hold other fields."""
    return PLAN_FIELD_KINDS.get(type(value).__name__) is type(value)
