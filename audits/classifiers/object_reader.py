"""How a walk reads any object: by its fields, its items, its number, or what a copy is made from.

``read_any`` is the table of readers by type, which `python_readers` fills.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from audits.classifiers.output_walk import ITEMS_BEYOND, MAX_WORDS, OutputWalk, as_float, type_name


@functools.singledispatch
def read_any(output: Any, walk: OutputWalk) -> None:
    """Read any object by its fields, items, array, number, or state; else it is opaque."""
    walk.word(type_name(output))
    before = len(walk.words), len(walk.numbers)
    read_fields(output, walk)
    if hasattr(type(output), "__array__"):
        walk.part(".array", np.asarray(output))
    elif isinstance(output, (Iterable, Sequence)):
        read_items(output, walk)
    elif any(hasattr(type(output), name) for name in ("__float__", "__int__", "__index__")):
        if hasattr(type(output), "__int__") or hasattr(type(output), "__index__"):
            walk.exact.append(b"%x" % int(output))
        walk.number(float(output) if hasattr(type(output), "__float__") else as_float(int(output)))
    was_read = (len(walk.words), len(walk.numbers)) != before
    # a type that says itself what a copy is made from may hold more than its fields
    has_own_state = any(
        name in vars(base)
        for base in type(output).__mro__[:-1]
        for name in ("__reduce__", "__reduce_ex__")
    )
    if not was_read or has_own_state:
        _read_state(output, walk)
    if (len(walk.words), len(walk.numbers)) == before:
        walk.blind(type(output).__name__)


def read_enum(output: enum.Enum, walk: OutputWalk) -> None:
    """Read a member of an enumeration: its name and its value."""
    walk.word(f"{type_name(output)} {output.name}")
    walk.part(".value", output.value)


def read_items(output: Any, walk: OutputWalk) -> None:
    """Items of anything that iterates, consumed once and never more than are used."""
    endless = not hasattr(type(output), "__len__")
    limit = walk.items_left if endless else MAX_WORDS
    listed = list(itertools.islice(iter(output), limit))
    walk.items_left -= len(listed) if endless else 0
    walk.word(f"length {len(listed)}")
    walk.items(listed)
    if len(listed) == limit:
        walk.blind(f"{ITEMS_BEYOND} {limit:,}")


def read_own_fields(output: Any, walk: OutputWalk) -> None:
    """Fields that a subclass of a built-in type adds to its value."""
    if getattr(output, "__dict__", None):
        read_fields(output, walk)


def read_fields(output: Any, walk: OutputWalk) -> None:
    """Fields, private ones too, in ``__dict__`` or in slots."""
    fields = dict(getattr(output, "__dict__", {}))
    for kind in type(output).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else list(slots):
            hidden = name.startswith("__") and not name.endswith("__")
            stored_name = f"_{kind.__name__.lstrip('_')}{name}" if hidden else name
            if name not in {"__dict__", "__weakref__"} and hasattr(output, stored_name):
                fields[stored_name] = getattr(output, stored_name)
    for name in sorted(map(str, fields)):
        walk.word(name)
        walk.part(f".{name}", fields[name])


def _read_state(output: Any, walk: OutputWalk) -> None:
    """What a copy of the object would be made from, where it says so."""
    try:
        recipe = output.__reduce_ex__(4)
    except Exception:  # it cannot be copied
        return
    if isinstance(recipe, str):  # the object is a global, which is known by its name
        walk.word(recipe)
        return
    arguments = recipe[1][1:] if recipe[0] is copyreg.__newobj__ else recipe[1]  # type: ignore[attr-defined]
    for state in (*arguments, *recipe[2:3]):
        empty = state is None or (isinstance(state, (dict, tuple)) and not state)
        if not empty and not isinstance(state, type):
            walk.part(".state", state)
