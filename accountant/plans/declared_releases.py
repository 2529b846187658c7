"""The classes of releases that a gate rebuilds: declared once, and final from then on.

A gate draws from a copy that it made from a declared class and its fields, so that what is charged,
recorded and drawn is one and the same.  Other packages fill this list: no mechanism is known here.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, TypeVar

import numpy as np

from accountant.plans.plan import Plan


class DeclaredClass(NamedTuple):
    """A declared class with the names of its parameters."""

    cls: type[Any]
    fields: tuple[str, ...]


# by the identity of the class: a metaclass may say what it likes of equality
DECLARED_RELEASES: dict[int, DeclaredClass] = {}
# what every class body defines, and changes no behaviour
HARMLESS_NAMES = {
    "__abstractmethods__", "__annotate_func__", "__annotations__", "__annotations_cache__",
    "__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__",
    "__qualname__", "__slots__", "__static_attributes__", "__weakref__", "_abc_impl",
}  # fmt: skip
R = TypeVar("R", bound=type[Any])


def declare_release(cls: R) -> R:
    """Register a frozen dataclass of releases; from then on no subclass may override it.

    A class that is defined anew, as in a notebook, takes the place of the earlier one.
    """
    same = [one.cls for one in DECLARED_RELEASES.values() if one.cls.__name__ == cls.__name__]
    for other in same:
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{cls.__name__}: {other.__module__} has declared a class of this name")
        del DECLARED_RELEASES[id(other)]
    names = tuple(one.name for one in dataclasses.fields(cls) if one.init)
    DECLARED_RELEASES[id(cls)] = DeclaredClass(cls, names)
    cls.__init_subclass__ = classmethod(_refuse_overriding)  # type: ignore[assignment]  # bound
    return cls


def is_declared(release: Any) -> bool:
    """Return whether the exact class of a release is declared, and of all releases inside it."""
    return id(type(release)) in DECLARED_RELEASES and undeclared_part(release) is None


def undeclared_part(plan: Any) -> Any:
    """Return a part of a plan that can release and is not of a declared class; None if all are."""
    kind = type(plan)
    declared = DECLARED_RELEASES.get(id(kind))
    if declared is None:
        if hasattr(plan, "release"):
            return plan
        # else a node of a plan, or a loss, whose word is its own
    elif any(_is_code(getattr(plan, name)) for name in declared.fields):
        return plan
    found = map(undeclared_part, plans_inside(plan))
    return next((one for one in found if one is not None), None)


def idealised_part(plan: Any) -> Any:
    """Return a mechanism in a plan whose noise floats decide; None if there is none."""
    if getattr(plan, "arithmetic", "") == "idealised":
        return plan
    found = map(idealised_part, plans_inside(plan))
    return next((one for one in found if one is not None), None)


def plans_inside(plan: Any) -> list[Plan]:
    """Return the plans in the fields of a plan, each once."""
    fields = dataclasses.fields(plan) if dataclasses.is_dataclass(plan) else ()
    inside = [getattr(plan, one.name) for one in fields]
    parts = {id(p): p for one in inside for p in (one if isinstance(one, tuple) else (one,))}
    return [one for one in parts.values() if isinstance(one, Plan)]


def _is_code(value: object) -> bool:
    """Return whether a field is a function of an author's: it can keep what a query showed it."""
    if not callable(value) or isinstance(value, Plan):
        return False
    return getattr(np, getattr(value, "__name__", ""), None) is not value


def _refuse_overriding(cls: type[Any], /, **options: Any) -> None:
    """Refuse a subclass that changes what a declared class does."""
    declared: Any = next((one for one in cls.__mro__[1:] if id(one) in DECLARED_RELEASES), None)
    if declared is None:  # its base was defined anew since
        return
    super(declared, cls).__init_subclass__(**options)
    changed = sorted(n for n in set(vars(cls)) - HARMLESS_NAMES if hasattr(declared, n))
    if changed:
        raise TypeError(
            f"{cls.__name__} overrides {', '.join(changed)} of {declared.__name__}, which is "
            "declared and final: wrap it, or write a mechanism of its own"
        )
