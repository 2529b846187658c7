"""Copies of a plan with its leaves replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from accountant.plans.plan import Plan, Release


def map_leaves(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Return ``plan`` with every leaf, a mechanism or a bare loss, replaced by ``change(leaf)``."""
    node: Any = plan  # every plan is a dataclass
    values = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    inner = {
        name: value
        for name, value in values.items()
        if isinstance(value, Plan)
        or (isinstance(value, tuple) and any(isinstance(element, Plan) for element in value))
    }
    if not inner:
        return change(plan) if isinstance(plan, Release) else plan
    changed: dict[str, Any] = {}
    for name, value in inner.items():
        if isinstance(value, Plan):
            changed[name] = map_leaves(value, change)
        else:
            # Equal parts stay one object, so that a million of them are rebuilt once.
            changed_parts = {part: map_leaves(part, change) for part in dict.fromkeys(value)}
            changed[name] = tuple(changed_parts[part] for part in value)
    copy: Plan = dataclasses.replace(node, **changed)
    return copy
