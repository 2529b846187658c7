"""Whether the results of two recorded runs are equal, and at which path they first differ.

A recorded run is code that an audit runs while it follows the noise in its numbers.  Its result,
any object, is first copied to nests of lists and dicts of plain values.  A difference is reported
as a path such as ``model.weights[2]``, never as values, because values may be private.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.algorithm_runs.differences import difference
from audits.recorded_runs.noisy_numbers import noisy_of, use

# Objects of these types are parts of a program and not of its result: they are left out.
SKIPPED = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
)
# Levels of nesting that are compared; deeper parts are ignored.  Results may hold cycles.
DEEPEST = 12
# Floats of two runs count as equal up to this share of the larger one, as a sum of the same rows in
# another order is rounded differently.
ROUND_OFF = 1e-9


def plain_result(result: Any, depth: int = 0) -> Any:
    """Copy a result as nests of plain values; a number with followed noise counts as released."""
    if noisy_of(result) is not None:
        return plain_result(use(result), depth)
    if result is None or isinstance(result, (bool, int, float, complex, str, bytes, np.generic)):
        return result
    if isinstance(result, SKIPPED) or depth > DEEPEST:
        return None
    next_depth = depth + 1
    if isinstance(result, np.ndarray):
        if result.dtype.hasobject:
            return [plain_result(part, next_depth) for part in result.ravel().tolist()]
        return np.array(result)
    if isinstance(result, dict):
        # Keys that are not strings are written as in code, so that 1 and "1" differ.
        names = {key: key if isinstance(key, str) else f"[{key!r}]" for key in result}
        return {names[key]: plain_result(value, next_depth) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [plain_result(part, next_depth) for part in result]
    if isinstance(result, (set, frozenset)):
        return sorted((plain_result(part, next_depth) for part in result), key=repr)
    return _plain_object(result, next_depth)


def _plain_object(result: Any, depth: int) -> Any:
    """Copy an object of another type: as an array, by its attributes, or by its items."""
    for method in ("to_numpy", "toarray", "numpy"):  # frames, sparse matrices, tensors
        convert = getattr(result, method, None)
        if callable(convert):
            try:
                array = np.asarray(convert())
            except Exception:  # the method may need arguments; then the attributes are read
                continue
            names = getattr(result, "columns", None)
            columns = [] if names is None else list(map(str, names))
            return [plain_result(array, depth), columns]
    attributes = dict(getattr(result, "__dict__", {}))
    for kind in type(result).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(result, name):
                attributes[name] = getattr(result, name)
    if not attributes and isinstance(result, Iterator):
        return [plain_result(part, depth) for part in result]
    return {"class": type(result).__name__, **plain_result(attributes, depth)}


def where_they_differ(one: Any, other: Any, path: str = "") -> str:
    """The path to the first difference of two plain results, from ``path``; "" if equal."""
    shown_path = path or "the result"
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return f"the names in {shown_path}"
        parts = [(f"{path}.{name}" if path else name, one[name], other[name]) for name in one]
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"the length of {shown_path}"
        parts = [(f"{shown_path}[{k}]", one[k], other[k]) for k in range(len(one))]
    else:
        return "" if same_value(one, other) else shown_path
    differences = (where_they_differ(a, b, part_path) for part_path, a, b in parts)
    return next(filter(None, differences), "")


def same_value(one: Any, other: Any) -> bool:
    """True if two values are equal: arrays of floats up to `ROUND_OFF` of the largest entry."""
    if _is_float(one) and _is_float(other):
        a, b = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
        if a.shape != b.shape:
            return False
        with np.errstate(all="ignore"):
            largest = max(np.max(np.abs(a), initial=0.0), np.max(np.abs(b), initial=0.0))
            tolerance = ROUND_OFF * largest if np.isfinite(largest) else 0.0
            is_close = np.abs(a - b) <= tolerance
        return bool(np.all(is_close | (a == b) | (np.isnan(a) & np.isnan(b))))
    try:
        return not difference(one, other)
    except (ParameterError, TypeError, ValueError):  # they cannot be compared in another way
        return repr(plain_result(one)) == repr(plain_result(other))


def _is_float(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind == "f"
    except ValueError:
        return False
