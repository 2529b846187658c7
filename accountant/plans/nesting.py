"""How deep plans are nested: each node stores its depth, so it is computed once.

Costs, copies, hashes and files of a plan are computed from the inside out, one call in another for
each node on the way; nodes more than `MAX_NESTING` deep are refused when they are made.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

MAX_NESTING = 100


def nesting(plan: Any, base: type[Any]) -> int:
    """Return the depth of nested nodes; plans are the values of class ``base``."""
    depth = _remembered(plan, base)
    stack = [] if depth is not None else [plan]
    while stack:
        node = stack[-1]
        # equal parts are often one object
        parts = {id(part): part for part in _inner(node, base)}.values()
        levels = [(part, _remembered(part, base)) for part in parts]
        unknown = [part for part, level in levels if level is None]
        if unknown:
            stack += unknown
            continue
        depth = 1 + max(level for _, level in levels if level is not None)
        object.__setattr__(stack.pop(), "_nesting", depth)
    return depth or 0


def _remembered(plan: Any, base: type[Any]) -> int | None:
    """Return the depth of a node, 0 for what holds no plan; None where it is not known yet."""
    try:
        depth: int = plan._nesting  # noqa: SLF001  # kept for this function alone
    except AttributeError:
        return None if _inner(plan, base) else 0
    return depth


def _inner(plan: Any, base: type[Any]) -> tuple[Any, ...]:
    """Return the plans in the fields of a plan."""
    inner_plans: tuple[Any, ...] = ()
    for name in _fields(type(plan)):  # type: ignore[arg-type]  # classes hash
        value = getattr(plan, name)
        if isinstance(value, base):
            inner_plans += (value,)
        elif isinstance(value, tuple) and value and isinstance(value[0], base):
            inner_plans += value
    return inner_plans


@functools.cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple(field.name for field in dataclasses.fields(kind))
