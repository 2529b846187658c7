"""Parameters declare domain, meaning and typical values once; checks, docs and tests read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from accountant.domains import Domain
from accountant.plans.plan import DECLARED_PLAN_KINDS

REQUIRED: Any = dataclasses.MISSING
REGISTERED: list[type[Any]] = []
M = TypeVar("M")


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter may be, means and typically is; a domain may depend on other fields."""

    domain: Domain | Callable[[Any], Domain]
    text: str
    typical: tuple[Any, ...]
    knob: bool

    def domain_of(self, fields: Any) -> Domain:
        """The domain, given an object that holds the other fields."""
        return self.domain(fields) if callable(self.domain) else self.domain


def param(
    domain: Domain | Callable[[Any], Domain],
    text: str,
    *,
    typical: tuple[Any, ...],
    default: Any = REQUIRED,
    knob: bool = False,
) -> Any:
    """Declare a field: domain, meaning, values for tests; `calibrate` turns the knob."""
    meaning = Parameter(domain, text, typical, knob)
    return dataclasses.field(default=default, metadata={"meaning": meaning})


def parameters_of(cls: Any) -> dict[str, Parameter]:
    """The declared parameters of a mechanism class, by name."""
    return {f.name: f.metadata["meaning"] for f in dataclasses.fields(cls)}


@dataclass_transform(frozen_default=True, field_specifiers=(param,))
def declare(cls: type[M]) -> type[M]:
    """Make a frozen dataclass of a mechanism and register it."""
    made = dataclasses.dataclass(frozen=True, slots=True, repr=False)(cls)
    REGISTERED.append(made)
    DECLARED_PLAN_KINDS.append(made)  # type: ignore[arg-type]  # plan files may name it
    return made
