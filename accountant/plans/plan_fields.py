"""Values inside plans that are no plans themselves, such as the strategy matrix `BinaryTree`.

A plan file (`accountant.serialisation`) stores such a value as the name of its class, which has to
be in the registry here, and the arguments of its constructor.
"""

from __future__ import annotations

from typing import TypeVar

F = TypeVar("F", bound="type[PlanField]")


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
