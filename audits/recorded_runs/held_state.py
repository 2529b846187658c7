"""What a function keeps from one call to the next: defaults, closures, globals, caches, attributes.

An audit calls a function on data and then on a neighbour.  If the function keeps a private value of
the first call, such as in a default argument, the second call shows that value again, and the two
seem not to differ.  So every run begins with what the function held before the first one.

Looked at are the function, the functions and classes of the user's own code that it names, and the
object that it is a method of.  Generators of random numbers go on from where they are, and so does
what code only appends to, as a list of what was seen: it shows nothing to a later call.
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
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.call_sites import is_library

CONTAINERS = (dict, list, set, deque, bytearray, np.ndarray)
# Objects of these types are not copied: programs, and generators, which must go on.
LEFT_AS_THEY_ARE = (
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type,
    np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random,
)  # fmt: skip
# Instructions of Python that read or set a name, and those that take a method of it.
NAMES = {f"{verb}_{scope}" for verb in ("LOAD", "STORE") for scope in ("GLOBAL", "DEREF", "NAME")}
METHODS = {"LOAD_METHOD", "LOAD_ATTR"}
APPENDING = {"append", "appendleft", "extend", "add", "put", "write"}
LARGEST = 10**6  # a larger array is taken for data, and not copied
ABSENT = object()  # stands for the value of a name that is not there


@final
class Container(NamedTuple):
    """A value that can be changed, a copy of it, its parts as they were, and what it is."""

    value: Any
    before: Any
    parts: list[Any]
    label: str


@final
class HeldState:
    """The state that a function holds, as it was when this was made."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._bindings: list[tuple[dict[str, Any], dict[str, Any]]] = []  # names, values before
        self._cells: list[tuple[Any, Any]] = []  # of closures, with the values before
        self._containers: dict[int, Container] = {}
        self._caches: dict[int, Any] = {}  # functions that remember their results
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
        elif isinstance(value, types.FunctionType) and not is_library(value.__code__.co_filename):
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
        name, read_names = function.__name__, set(names_read_in(function.__code__))
        for parameter in inspect.signature(function).parameters.values():
            label = f"`{parameter.name}`, a default argument of {name}"
            self._remember(parameter.default, label)
        self._remember(function.__dict__, f"attributes of {name}")
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for label, cell in cells:
            with contextlib.suppress(ValueError):  # it may still be empty
                self._visit(cell.cell_contents)
                if label in read_names:
                    self._cells.append((cell, cell.cell_contents))
                    self._remember(cell.cell_contents, f"`{label}` of {name}")
        values = {label: function.__globals__.get(label, ABSENT) for label in read_names}
        self._bindings.append((function.__globals__, values))
        for label, global_value in values.items():
            self._visit(global_value)
            self._remember(global_value, f"`{label}`")

    def _remember(self, value: Any, label: str) -> None:
        """Keep a copy of a value that can be changed, if it can be copied."""
        is_container = isinstance(value, CONTAINERS) and id(value) not in self._containers
        if is_container and not (isinstance(value, np.ndarray) and value.size > LARGEST):
            with contextlib.suppress(Exception):  # of locks, files and the like there is no copy
                container = Container(value, _copied(value), _parts(value), label)
                self._containers[id(value)] = container

    def changes(self) -> list[str]:
        """What differs now from what it was, in words."""
        changed = [c.label for c in self._containers.values() if _has_changed(c)]
        for names, values in self._bindings:
            changed += [
                f"`{name}`"
                for name, before in values.items()
                if names.get(name, ABSENT) is not before
            ]
        changed += [
            f"the cache of {cache.__name__}"
            for cache in self._caches.values()
            if cache.cache_info().currsize
        ]
        return list(dict.fromkeys(changed))

    def restore(self) -> None:
        """Put everything back to what it was."""
        for names, values in self._bindings:
            for name, before in values.items():
                if before is not ABSENT and names.get(name, ABSENT) is not before:
                    names[name] = before
                elif before is ABSENT:
                    names.pop(name, None)
        for cell, before in self._cells:
            if cell.cell_contents is not before:
                cell.cell_contents = before
        for cache in self._caches.values():
            cache.cache_clear()
        for container in filter(_has_changed, self._containers.values()):
            value, before = container.value, _copied(container.before)
            if isinstance(value, np.ndarray):
                if value.shape == before.shape:
                    np.copyto(value, before)
            elif isinstance(value, (list, bytearray)):
                value[:] = before
            else:
                value.clear()
                (value.extend if isinstance(value, deque) else value.update)(before)
            container.parts[:] = _parts(value)


def _is_of_user(kind: type) -> bool:
    """Whether a class is defined in the user's own code."""
    file = getattr(inspect.getmodule(kind), "__file__", None)
    return kind.__module__ == "__main__" or (file is not None and not is_library(file))


def names_read_in(code: types.CodeType) -> Iterator[str]:
    """The names that code, and the functions within it, do anything with but append to them."""
    for instruction, following in itertools.pairwise(dis.get_instructions(code)):
        is_appended_to = following.opname in METHODS and following.argval in APPENDING
        if instruction.opname in NAMES and not is_appended_to:
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_read_in(constant)


def _copied(value: Any) -> Any:
    """A deep copy, in which generators and parts of the program are the same objects."""
    memo = {id(part): part for part in _parts(value) if isinstance(part, LEFT_AS_THEY_ARE)}
    return copy.deepcopy(value, memo)


def _parts(value: Any) -> list[Any]:
    """What a container holds, as a flat list."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return [value.tobytes(), value.shape]
    return [bytes(value)] if isinstance(value, bytearray) else list(value)


def _has_changed(container: Container) -> bool:
    """Whether a container holds other objects than before."""
    now = _parts(container.value)
    return len(now) != len(container.parts) or not all(
        part is before or (type(part) is type(before) in (bytes, tuple) and part == before)
        for part, before in zip(now, container.parts, strict=True)
    )
