"""Copies of a private value, one for each call of the audited function.

A function that changes its argument in place then changes only its own copy, so that every run of
an audit starts from the same value.  How to copy is decided once for a value, as an audit makes
many copies: the quickest way that is safe for its type is taken.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import itertools
import pickle
import types
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

# Types whose values nothing can change in place.  Attributes of functions and classes can be set,
# but they belong to the program: no copy of a function or class is another one.
UNCHANGING = {
    bool, int, float, complex, str, bytes, type(None), type, types.FunctionType, range, Fraction,
    Decimal, datetime.date, datetime.time, datetime.timedelta,
}  # fmt: skip
PLAIN_CONTAINERS = {list, tuple, dict, set, frozenset}
# Nested containers that are looked into; deeper ones and cycles are copied by `copy.deepcopy`.
MAX_DEPTH = 50


def copier(value: Any) -> Callable[[], Any]:
    """A function that returns a copy of the value at each call, or the value if it cannot change.

    A value that cannot be copied is returned as it is: see `is_shared`.
    """
    if is_unchanging(value):
        return functools.partial(_same, value)
    kind = type(value)
    if kind is np.ndarray and not value.dtype.hasobject:
        # "K" keeps the order of the axes in memory.
        return functools.partial(value.copy, "K")
    if kind in {list, dict, set} and all(map(is_unchanging, _children(value))):
        copied: Callable[[], Any] = value.copy
        return copied
    try:
        # Pickling is much quicker than `copy.deepcopy`, and a part that is in two places stays one
        # object.
        if _is_plain(value, 0):
            return functools.partial(pickle.loads, pickle.dumps(value, 4))
        copy.deepcopy(value)
    except Exception:  # methods of the value may raise anything
        return functools.partial(_same, value)
    return functools.partial(copy.deepcopy, value)


def remaker(value: Any) -> Callable[[], Any]:
    """A function that builds an equal value at each call, with new parts where that is possible.

    Unlike `copier` it makes new objects also of tuples and numbers, and of the items of a list.  So
    where two values are timed, all parts of both are equally new in memory.
    """
    if type(value) is not np.ndarray:
        with contextlib.suppress(Exception):  # methods of the value may raise anything
            if _is_plain(value, 0):
                return functools.partial(pickle.loads, pickle.dumps(value, 4))
    return copier(value)


def copies(value: Any) -> Iterator[Any]:
    """Copies of the value without end, or the value itself if it cannot change."""
    if is_unchanging(value):
        return itertools.repeat(value)
    make = copier(value)
    return (make() for _ in itertools.repeat(None))


def own_copy(value: Any) -> Any:
    """One copy of the value."""
    return copier(value)()


def is_shared(value: Any) -> bool:
    """Whether all calls get the same object, which they could change but which cannot be copied."""
    return not is_unchanging(value) and own_copy(value) is value


def is_unchanging(value: Any, depth: int = 0) -> bool:
    """Whether no code can change the value in place."""
    if isinstance(value, np.generic):
        return not isinstance(value, np.void)
    if type(value) in {tuple, frozenset}:
        return depth < MAX_DEPTH and all(is_unchanging(item, depth + 1) for item in value)
    if type(value) is types.BuiltinFunctionType:  # a method of an object can change that object
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
    return type(value) in UNCHANGING or isinstance(value, (Enum, type))


def _is_plain(value: Any, depth: int) -> bool:
    """Whether the value consists of Python's containers, contiguous arrays and unchanging values.

    Functions and classes do not count, as `pickle` stores them by their names.
    """
    if type(value) is np.ndarray:
        return not value.dtype.hasobject and value.flags.c_contiguous
    if type(value) in PLAIN_CONTAINERS:
        return depth < MAX_DEPTH and all(_is_plain(child, depth + 1) for child in _children(value))
    return type(value) in UNCHANGING and type(value) not in {types.FunctionType, type}


def _children(value: Any) -> list[Any]:
    return [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)


def _same(value: Any) -> Any:
    return value
