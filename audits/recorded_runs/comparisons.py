"""Whether the results of two recorded runs are equal, and at which paths they differ.

A recorded run is code that an audit runs while it follows the noise in its numbers.  Its result,
any object, is first copied to nests of lists and dicts of plain values.  A difference is reported
as a path such as ``model.weights[2]``, never as values, because values may be private.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.algorithm_runs.differences import difference
from audits.recorded_runs.noisy_numbers import noisy_of, plain, use

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
# Objects of these modules keep accounts of all calls so far, which are no result of one call.
ACCOUNTS = ("diffprivlib.accountant",)
# Stands in a result for a part that differs between runs on the same data.
UNSTEADY = "a part that differs between runs on the same data"
# Levels of nesting that are compared; deeper parts are ignored.  Results may hold cycles.
DEEPEST = 12
# Floats of two runs count as equal up to this share of the larger one, as a sum of the same rows in
# another order is rounded differently.
ROUND_OFF = 1e-9


def plain_result(result: Any, depth: int = 0) -> Any:
    """Copy a result as nests of plain values; a number with followed noise counts as released."""
    noisy = noisy_of(result)
    if noisy is not None:
        # Compiled code may have written other numbers over the noise.
        noisy.shown = noisy.pure and same_value(plain(result), noisy.output)
        return plain_result(use(result), depth)
    if result is None or isinstance(result, (bool, int, float, complex, str, bytes, np.generic)):
        return result
    is_account = str(type(result).__module__).startswith(ACCOUNTS)
    if isinstance(result, SKIPPED) or is_account or depth > DEEPEST:
        return None
    if isinstance(result, (bytearray, memoryview)):
        return bytes(result)
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
    if not attributes:  # such as a Decimal or a date: what it would be built from again
        with contextlib.suppress(Exception):  # not every object says so
            attributes = {"state": result.__reduce_ex__(2)[1:]}
    return {"class": type(result).__name__, **plain_result(attributes, depth)}


def where_they_differ(one: Any, other: Any) -> str:
    """The path to the first difference of two plain results; "" if equal."""
    return next(paths_of_differences(one, other), "")


def paths_of_differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The paths to all differences of two plain results, from ``path``.

    Where names or lengths differ, the parts below are not compared.
    """
    shown_path = path or "the result"
    if isinstance(one, dict) and isinstance(other, dict) and list(one) != list(other):
        yield f"the names in {shown_path}"
    elif isinstance(one, list) and isinstance(other, list) and len(one) != len(other):
        yield f"the length of {shown_path}"
    elif isinstance(one, (dict, list)) and type(one) is type(other):
        for (part_path, part), (_, other_part) in zip(
            parts_of_result(one, path), parts_of_result(other, path), strict=True
        ):
            yield from paths_of_differences(part, other_part, part_path)
    elif not same_value(one, other):
        yield shown_path


def parts_of_result(result: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The parts of a dict or list with their paths; none of another value."""
    if isinstance(result, dict):
        for name, part in result.items():
            yield (f"{path}.{name}" if path else name), part
    elif isinstance(result, list):
        for k, part in enumerate(result):
            yield f"{path or 'the result'}[{k}]", part


def leaves_of(result: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All plain values in a result by their paths, and the names and lengths of what holds them."""
    shown_path = path or "the result"
    if isinstance(result, dict):
        yield f"the names in {shown_path}", list(result)
    elif isinstance(result, list):
        yield f"the length of {shown_path}", len(result)
    else:
        yield shown_path, result
    for part_path, part in parts_of_result(result, path):
        yield from leaves_of(part, part_path)


def without_parts(result: Any, paths: frozenset[str], path: str = "") -> Any:
    """The result with a fixed value in place of the parts at these paths."""
    shown_path = path or "the result"
    if paths & {shown_path, f"the names in {shown_path}", f"the length of {shown_path}"}:
        return UNSTEADY
    parts = [without_parts(part, paths, below) for below, part in parts_of_result(result, path)]
    if isinstance(result, dict):
        return dict(zip(result, parts, strict=True))
    return parts if isinstance(result, list) else result


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
