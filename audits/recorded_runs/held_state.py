"""What a function keeps from one call to the next: defaults, closures, globals, caches, attributes.

An audit calls a function on data and then on a neighbour.  If the function keeps a private value of
the first call, such as in a default argument, the second call shows that value again, and the two
seem not to differ.  So every run begins with what the function held before the first one.

Looked at are the function, the functions and classes of its own code that it names, and the object
that it is a method of.  Generators of random numbers go on from where they are.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import inspect
import itertools
import random
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from audits.recorded_runs.call_sites import is_library

CONTAINERS = (dict, list, set, deque, bytearray, np.ndarray)
# Objects of these types are not copied: programs, and generators, which must go on.
LEFT_AS_THEY_ARE = (
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type,
    np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random,
)  # fmt: skip
NAMES = {f"{verb}_{scope}" for verb in ("LOAD", "STORE") for scope in ("GLOBAL", "DEREF", "NAME")}
METHODS_OF = {"LOAD_METHOD", "LOAD_ATTR"}
APPENDING = {"append", "appendleft", "extend", "add", "put", "write"}
MOST_NUMBERS = 10**6  # a larger array is taken for data, and not copied
_absent = object()  # stands for the value of a name that is not there


@final
class HeldState:
    """The state that a function holds, as it was when this was made."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # dicts of names, with the values of the names before; and the values that can be changed
        self._bindings: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._mutable: dict[int, tuple[Any, Any, list[Any], str]] = {}
        self._caches: dict[int, Any] = {}  # functions that remember their results
        self._cells: list[tuple[Any, Any]] = []
        self._visited: set[int] = set()
        self._visit(function)

    def _visit(self, value: Any) -> None:
        """Remember what this part of the program holds, and the parts that it names."""
        if id(value) in self._visited:
            return
        self._visited.add(id(value))
        if hasattr(value, "cache_clear") and hasattr(value, "cache_info"):
            self._caches[id(value)] = value
            value = getattr(value, "__wrapped__", value)
        if isinstance(value, functools.partial):
            self._visit(value.func)
            self._remember(value.keywords, "arguments of a partial function")
        elif isinstance(value, types.MethodType):
            self._visit(value.__self__)
            self._visit(value.__func__)
        elif isinstance(value, types.FunctionType):
            if not is_library(value.__code__.co_filename):
                self._visit_function(value)
        elif isinstance(value, type) and _is_of_user(value):
            for name, attribute in list(vars(value).items()):
                self._visit(getattr(attribute, "__func__", attribute))
                self._remember(attribute, f"{value.__name__}.{name}")
        elif not isinstance(value, LEFT_AS_THEY_ARE) and _is_of_user(type(value)):
            self._visit(type(value))
            attributes = getattr(value, "__dict__", None)
            self._remember(attributes, f"attributes of {type(value).__name__}")

    def _visit_function(self, function: types.FunctionType) -> None:
        name, read_names = function.__name__, set(_names_read_in(function.__code__))
        for parameter in inspect.signature(function).parameters.values():
            self._remember(parameter.default, f"`{parameter.name}`, a default argument of {name}")
        self._remember(function.__dict__, f"attributes of {name}")
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for label, cell in cells:
            with contextlib.suppress(ValueError):  # it may still be empty
                held = cell.cell_contents
                self._visit(held)
                if label in read_names:
                    self._cells.append((cell, held))
                    self._remember(held, f"`{label}` of {name}")
        names = {label: function.__globals__.get(label, _absent) for label in read_names}
        for label, held in names.items():
            self._visit(held)
            self._remember(held, f"`{label}`")
        self._bindings.append((function.__globals__, names))

    def _remember(self, value: Any, label: str) -> None:
        """Keep a copy of a value that can be changed, if it can be copied."""
        if not isinstance(value, CONTAINERS) or id(value) in self._mutable:
            return
        if isinstance(value, np.ndarray) and value.size > MOST_NUMBERS:
            return
        with contextlib.suppress(Exception):  # of locks, files and the like there is no copy
            self._mutable[id(value)] = (value, _copied(value), _parts(value), label)

    def changes(self) -> list[str]:
        """What differs now from what it was, in words."""
        changed = [
            label for value, _, parts, label in self._mutable.values() if not _same(parts, value)
        ]
        for names, before in self._bindings:
            changed += [f"`{k}`" for k, held in before.items() if names.get(k, _absent) is not held]
        changed += [f"the cache of {f.__name__}" for f in self._caches.values() if _is_filled(f)]
        return list(dict.fromkeys(changed))

    def restore(self) -> None:
        """Put everything back to what it was."""
        for names, before in self._bindings:
            for name, held in before.items():
                if names.get(name, _absent) is not held:
                    if held is _absent:
                        names.pop(name, None)
                    else:
                        names[name] = held
        for cell, held in self._cells:
            if cell.cell_contents is not held:
                cell.cell_contents = held
        for cache in self._caches.values():
            cache.cache_clear()
        for value, before, parts, _ in self._mutable.values():
            if not _same(parts, value):
                _fill(value, _copied(before))
                parts[:] = _parts(value)


def _is_of_user(kind: type) -> bool:
    """Whether a class is defined in the user's own code."""
    file = getattr(inspect.getmodule(kind), "__file__", None)
    return file is not None and not is_library(file)


def _names_read_in(code: types.CodeType) -> Iterator[str]:
    """The names that code, and the functions within it, do anything with but append to them.

    What is only appended to, as a list of what was seen, shows nothing to a later call.
    """
    instructions = list(dis.get_instructions(code))
    for instruction, following in itertools.pairwise(instructions):
        is_appended = following.opname in METHODS_OF and following.argval in APPENDING
        if instruction.opname in NAMES and not is_appended:
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_read_in(constant)


def _copied(value: Any) -> Any:
    """A deep copy, in which generators and parts of the program are the same objects."""
    parts = _parts(value)
    memo = {id(part): part for part in parts if isinstance(part, LEFT_AS_THEY_ARE)}
    return copy.deepcopy(value, memo)


def _parts(value: Any) -> list[Any]:
    """What a container holds, as a flat list."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return [value.tobytes(), value.shape]
    return [bytes(value)] if isinstance(value, bytearray) else list(value)


def _same(parts: list[Any], value: Any) -> bool:
    """Whether a container holds the same objects as before."""
    now = _parts(value)
    return len(now) == len(parts) and all(
        a is b or (type(a) is type(b) in (bytes, tuple, int, float, str) and a == b)
        for a, b in zip(now, parts, strict=True)
    )


def _is_filled(cache: Any) -> bool:
    return bool(cache.cache_info().currsize)


def _fill(value: Any, before: Any) -> None:
    """Give a container its former content."""
    if isinstance(value, np.ndarray):
        if value.shape == before.shape:
            np.copyto(value, before)
    elif isinstance(value, (list, bytearray)):
        value[:] = before
    else:
        value.clear()
        (value.extend if isinstance(value, deque) else value.update)(before)
