"""A description of how two results of an algorithm differ: values, order, masks, attributes.

An algorithm that is replayed with the same answers must return the same result, in everything that
code can read of it, to the last bit.  The description shows types, sizes and distances, and names
of members of enums, but no other part of a result, which may contain a private record.  A nest is a
dict, list or tuple whose items are numbers, texts, arrays or nests again.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.values.descriptions import describe_value

# Types whose objects have no attributes besides their value.
PLAIN = {bool, bytes, complex, dict, float, int, list, np.ndarray, str, tuple, type(None)}


def difference(one: Any, other: Any) -> str:
    """Describe how two numbers, arrays or nests of them differ; "" if they are equal."""
    if type(one) is not type(other):
        return f"{type(one).__name__} against {type(other).__name__}"
    return _difference_of_values(one, other) or _difference_of_attributes(one, other)


def _difference_of_values(one: Any, other: Any) -> str:
    """Describe how two values of one type differ, without the attributes of a subclass.

    Methods are called on the built-in type (`dict.keys(one)`), so that a subclass cannot override
    what is compared.
    """
    if isinstance(one, dict):
        # Code that iterates can read the order of the keys, so it is a part of the result.
        if dict.keys(one) != dict.keys(other) or list(dict.keys(one)) != list(dict.keys(other)):
            unshared = len(dict.keys(one) ^ dict.keys(other))
            return f"{unshared} keys in one of them alone" if unshared else "the order of the keys"
        pairs = zip(
            [*dict.keys(one), *dict.values(one)],
            [*dict.keys(other), *dict.values(other)],
            strict=True,
        )
        return next(filter(None, (difference(*pair) for pair in pairs)), "")
    if isinstance(one, (tuple, list)):
        kind: Any = tuple if isinstance(one, tuple) else list
        if kind.__len__(one) != kind.__len__(other):
            return f"{kind.__len__(one)} items against {kind.__len__(other)}"
        return next(filter(None, map(difference, kind.__iter__(one), kind.__iter__(other))), "")
    if one is None:
        return ""
    if isinstance(one, enum.Enum):  # Each member is one object.
        return "" if one is other else f"{one!r} against {other!r}"
    plain: Any
    for plain in (str, bytes, int):  # A bool is an int.
        if isinstance(one, plain):
            if plain.__eq__(one, other):
                return ""
            if plain is int:
                return f"by {describe_value(abs(int(one) - int(other)))}"
            # A text may be a private record, so that only its size is shown.
            return f"{describe_value(one)} against {describe_value(other)}"
    if isinstance(one, np.ma.MaskedArray):
        parts = ((p.data, np.ma.getmaskarray(p), p.fill_value) for p in (one, other))
        parts_of_one, parts_of_other = parts
        return next(filter(None, map(difference, parts_of_one, parts_of_other)), "")
    return _array_difference(np.asarray(one), np.asarray(other))


def _difference_of_attributes(one: Any, other: Any) -> str:
    """Describe how the attributes differ that a subclass adds to a number, an array or a nest."""
    if type(one) in PLAIN or isinstance(one, enum.Enum):
        return ""
    # Attributes of a masked array that begin with "_" are numpy's own, and were compared as values.
    if isinstance(one, np.ma.MaskedArray):
        states: list[Any] = [
            {name: value for name, value in vars(array).items() if name[0] != "_"}
            for array in (one, other)
        ]
    else:
        states = [object.__getstate__(one), object.__getstate__(other)]
    return "" if states[0] is states[1] is None else difference(*states)


def _array_difference(a: Any, b: Any) -> str:
    """Describe how two arrays differ: in shape, type or bytes, or by which distance of numbers."""
    if a.dtype.hasobject:
        raise ParameterError("result", a.dtype, "a number, an array, or a nest of them")
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} against {b.dtype}{b.shape}"
    if a.dtype.metadata != b.dtype.metadata:
        return "the metadata of the types"
    if a.tobytes() == b.tobytes():
        return ""
    if a.dtype.kind not in "biufc":
        return f"an array of {a.dtype}"
    with np.errstate(invalid="ignore"):
        return f"by {np.max(np.abs(a.astype(complex) - b.astype(complex))):.3g} at most"
