"""A digest of any value: equal values have equal digests.

Numbers are equal across types, as in Python; NaN equals NaN.  Other objects are read by the state
that pickle would store, part by part.  So an ``__eq__`` of their own does not matter, nor whether
two parts of a value are one object or two equal ones, which a pickle distinguishes.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Nested containers that are read; deeper ones, and so all cycles, count as unreadable.  It must
# only stay far below Python's own limit of recursion.
MAX_DEPTH = 50
EXACT_INTEGERS = 1 << 53  # all integers up to here, in absolute value, are floats
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
FRAME_LIBRARIES = {"pandas", "polars"}


def digest(value: Any) -> str | None:
    """The SHA-256 of a value in hexadecimal; None if a part of it can only be known by identity."""
    try:
        content = _read(value, 0)
    except Exception:  # its own methods may raise anything, and it may lie about its class
        return None
    return None if content is None else hashlib.sha256(content).hexdigest()


def equal_values(first: Any, second: Any) -> bool:
    """Whether two values surely are equal: the same object, or read as the same."""
    if first is second:
        return True
    first_digest = digest(first)
    return first_digest is not None and first_digest == digest(second)


def surely_differ(first: Any, second: Any) -> bool:
    """Whether two values surely differ: both can be read, and not as the same."""
    first_digest, second_digest = digest(first), digest(second)
    return first_digest is not None and second_digest is not None and first_digest != second_digest


def _read(value: Any, depth: int) -> bytes | None:
    """A value as bytes, the same for equal values; None if a part cannot be read.

    ``depth`` counts the containers that the value is in.  A dict of any class is read by its items;
    a list or tuple of a class of its own may have further state, so it is read by `object_parts`.
    """
    if isinstance(value, NUMBERS):
        return _number_bytes(value)
    if value is None or isinstance(value, (str, bytes, bytearray)):
        return _text_bytes(value)
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, (np.ndarray, np.generic)):
        return _read_array(np.asanyarray(value), depth)
    if isinstance(value, Mapping):
        items = (_read_parts("item", item, depth) for item in value.items())
        return _join_sorted("mapping", items)
    if isinstance(value, Set):
        return _join_sorted("set", (_read(item, depth + 1) for item in value))
    if type(value) in {list, tuple}:
        return _read_parts(type(value).__name__, value, depth)
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}".encode()
    if isinstance(value, (types.FunctionType, types.MethodType, types.ModuleType)):
        return None
    try:
        return _read_parts(type(value).__qualname__, object_parts(value), depth)
    except Exception:  # its own methods may raise anything
        return None


def _read_parts(kind: str, parts: Iterable[Any], depth: int) -> bytes | None:
    """A container of this kind with these parts, in their order, as bytes."""
    return _join(kind, _all_known(_read(part, depth + 1) for part in parts))


def _read_array(array: NDArray[Any], depth: int) -> bytes | None:
    """An array as bytes: its shape, and its numbers by value, whatever their type.

    Dates are read with their unit, structured arrays by field, and other arrays by element.
    """
    if isinstance(array, np.ma.MaskedArray):
        return _read_parts("masked", (np.ma.getmaskarray(array), array.data), depth)
    kind, head = array.dtype.kind, f"array {array.shape}"
    if kind in "biufc":
        return head.encode() + _number_array_bytes(np.asarray(array))
    if kind in "mM":
        return f"{head} {array.dtype}".encode() + array.astype(np.int64).tobytes()
    if array.dtype.names:
        fields = [np.asarray(array[name]) for name in array.dtype.names]
        return _read_parts(f"{head} {array.dtype.names}", fields, depth)
    return _read_parts(head, array.ravel().tolist(), depth)


def object_parts(value: Any) -> Iterable[Any]:
    """What an object is made of: columns of a frame, numbers of a tensor, else its pickled state.

    Raises whatever the object raises if it cannot be read.
    """
    if type(value).__module__.split(".")[0] in FRAME_LIBRARIES:
        return [*frame_labels(value), *frame_columns(value)]
    if hasattr(value, "__array__"):
        return [np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)]
    recipe = value.__reduce_ex__(4)
    if isinstance(recipe, str):
        return [recipe]
    # The recipe has a function that makes the object, its arguments, and up to three more items:
    # the state, and iterators of list elements and of dict items, which may be None.
    make, arguments, *further = recipe
    state, iterators = further[:1], [list(iterator or ()) for iterator in further[1:]]
    return [f"{make.__module__}.{make.__qualname__}", arguments, *state, *iterators]


def frame_labels(frame: Any) -> list[Any]:
    """The names of a frame or series, and its index where it has one."""
    names: Any = getattr(frame, "columns", getattr(frame, "name", None))
    index: Any = getattr(frame, "index", None)
    return [
        list(names) if hasattr(names, "__iter__") and not isinstance(names, str) else names,
        index.to_numpy() if hasattr(index, "to_numpy") else None,
    ]


def frame_columns(frame: Any) -> list[NDArray[Any]]:
    """The columns of a frame as arrays; a series or an index is one column."""
    if not hasattr(frame, "columns"):
        return [frame.to_numpy()]
    if hasattr(frame, "iloc"):  # pandas may have columns of one name
        return [frame.iloc[:, position].to_numpy() for position in range(frame.shape[1])]
    return [column.to_numpy() for column in frame]


def _number_bytes(value: Any) -> bytes:
    """A number by its value: 1, 1.0 and True are the same."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, complex) and number.imag == 0:
        number = number.real
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, int):
        return b"number " + hex(number).encode()  # repr refuses long integers
    return f"number {number!r}".encode()


def _number_array_bytes(array: NDArray[Any]) -> bytes:
    """The numbers of an array as 64-bit floats where these are exact, else one by one as text.

    Not all 64-bit integers are such floats, nor are all long doubles.  Complex numbers are two
    arrays of floats, or one if all are real.
    """
    array, kind = np.atleast_1d(array), array.dtype.kind
    if kind == "c":
        components = np.stack([array.real, array.imag])
        return _number_array_bytes(components if array.imag.any() else components[0])
    if kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest_size = max(int(array.max()), -int(array.min()))
        if largest_size > EXACT_INTEGERS:
            return b",".join(map(_number_bytes, array.ravel().tolist()))
    floats = array.astype(np.float64) + 0.0  # -0.0 equals 0.0
    missing = np.isnan(floats)
    if array.dtype.itemsize > 8 and not np.array_equal(floats[~missing], array[~missing]):
        return b",".join(map(_number_bytes, array.ravel()))
    floats[missing] = np.nan  # NaN has many bit patterns
    return floats.tobytes()


def _text_bytes(value: Any) -> bytes:
    """None, a text or bytes as bytes; texts may hold lone surrogates, which UTF-8 refuses."""
    if value is None:
        return b"none"
    kind = "text" if isinstance(value, str) else "bytes"
    body = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    return f"{kind} ".encode() + body


def _join_sorted(kind: str, parts: Iterable[bytes | None]) -> bytes | None:
    """A container whose order does not matter, as bytes."""
    contents = _all_known(parts)
    return None if contents is None else _join(kind, sorted(contents))


def _all_known(parts: Iterable[bytes | None]) -> list[bytes] | None:
    """The parts, or None as soon as one of them is None.

    A part in a cycle is None only at `MAX_DEPTH`.  If each container on the way read its other
    parts nevertheless, two parts in each would already make 2^50 calls.
    """
    contents = []
    for part in parts:
        if part is None:
            return None
        contents.append(part)
    return contents


def _join(kind: str, contents: list[bytes] | None) -> bytes | None:
    """The parts with their lengths before them, so that no two lists of parts look the same."""
    if contents is None:
        return None
    lengths = b"".join(len(part).to_bytes(8, "big") for part in contents)
    return f"{kind} {len(contents)} ".encode() + lengths + b"".join(contents)
