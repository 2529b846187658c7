"""Values inside plans that are no plans, such as a strategy matrix: files know them by name."""

from __future__ import annotations

from typing import TypeVar

F = TypeVar("F", bound="type[PlanField]")


class PlanField:
    """An immutable value that a plan holds in a field; its constructor says what it is made of."""

    __slots__ = ()


PLAN_FIELD_KINDS: dict[str, type[PlanField]] = {}


def plan_field(cls: F) -> F:
    """Register a final dataclass of values inside plans under its name."""
    PLAN_FIELD_KINDS[cls.__name__] = cls
    return cls


def is_plan_field(value: object) -> bool:
    """Return whether the exact class of a value is registered."""
    return PLAN_FIELD_KINDS.get(type(value).__name__) is type(value)
