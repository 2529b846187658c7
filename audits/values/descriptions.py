"""Values of a pair in words: their kinds, digests, and the place where they differ.

A pair are the two neighbouring values that an audit tells apart.  Numbers that a caller wrote as a
pair are shown.  Records never are: of arrays, texts, frames and containers the words give the size,
where the two differ, and the first digits of a digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.values.digests import (
    FRAME_LIBRARIES,
    NUMBERS,
    digest,
    equal_values,
    frame_columns,
)

SHOWN_DIGITS = 8  # characters of a digest that are shown
MAX_DIGITS = 20  # of an integer with more digits only the number of bits is shown
MAX_COMPARED = 100_000  # lists with more items are not compared one by one


def is_shown(value: Any) -> bool:
    """Whether a value is no record: a single number, or None."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biufc"
    return value is None or isinstance(value, NUMBERS)


def describe_value(value: Any) -> str:
    """A number as it is, to four digits; of any other value its kind and its size."""
    if not is_shown(value):
        return _kind_text(value)
    number = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(number, (float, complex)):
        return f"{number:.4g}"
    if isinstance(number, int) and abs(number) >= 10**MAX_DIGITS:
        return f"an integer of {number.bit_length()} bits"
    return str(number)


def describe_pair(first: Any, second: Any) -> str:
    """Both values in words: what they are, where they differ, and the heads of their digests."""
    if is_shown(first) and is_shown(second):
        return f"{describe_value(first)} against {describe_value(second)}"
    first_text, second_text = describe_value(first), describe_value(second)
    heading = (
        f"two values, each {first_text}"
        if first_text == second_text
        else f"{first_text} against {second_text}"
    )
    digests = [digest(value) for value in (first, second)]
    shown_digests = ", ".join(
        hexadecimal[:SHOWN_DIGITS] for hexadecimal in digests if hexadecimal is not None
    )
    parts = [difference_place(first, second), f"sha256 {shown_digests}" if shown_digests else ""]
    return "; ".join([heading, *filter(None, parts)])


def describe_hidden_pair(first: Any, second: Any) -> str:
    """The pair in words where its values are not shown; "" where they are."""
    return "" if is_shown(first) and is_shown(second) else describe_pair(first, second)


def pair_names(first: Any, second: Any) -> tuple[str, str]:
    """What a sentence calls the two values: numbers by themselves, others by their place."""
    if is_shown(first) and is_shown(second):
        return describe_value(first), describe_value(second)
    return "the first value", "the second value"


def difference_place(first: Any, second: Any) -> str:
    """Where two values of one kind differ: in which rows, items or keys; "" if not known."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = {*first, *second}
        equal_count = sum(
            key in first and key in second and equal_values(first[key], second[key]) for key in keys
        )
        return f"differ in {len(keys) - equal_count} of {len(keys)} keys"
    if type(first) is not type(second):
        return ""
    noun = "character" if isinstance(first, str) else "item"
    if isinstance(first, np.ndarray) or is_frame(first):
        noun = "entry" if np.ndim(first) == 1 else "row"
    try:
        changed = _changed_rows(first, second)
    except Exception:  # values of any kind
        return ""
    return "" if changed is None else _place_text(changed, len(first), len(second), noun)


def is_frame(value: Any) -> bool:
    """Whether it is a frame, a series or an index of pandas or polars."""
    library = type(value).__module__.split(".")[0]
    return library in FRAME_LIBRARIES and hasattr(value, "to_numpy")


def _place_text(changed: NDArray[np.intp], first_length: int, second_length: int, word: str) -> str:
    """Where two values of these lengths differ, in words; ``word`` is what a part is called."""
    if first_length != second_length:
        if changed.size == 0:
            return f"the same in the first {min(first_length, second_length)}"
        return f"first differ in {word} {changed[0]}"
    if changed.size == 0:
        return "differ in their types or names"
    if changed.size == 1:
        return f"differ in {word} {changed[0]}"
    plural = "entries" if word == "entry" else f"{word}s"
    return f"differ in {changed.size:,} {plural}, the first is {changed[0]}"


def _changed_rows(first: Any, second: Any) -> NDArray[np.intp] | None:
    """The places of rows or items that differ, as far as both values have them."""
    if isinstance(first, np.ndarray):
        return None if first.ndim == 0 else np.flatnonzero(_rows_differ(first, second))
    if is_frame(first):
        columns = zip(frame_columns(first), frame_columns(second), strict=True)
        changed = [_rows_differ(*column_pair) for column_pair in columns]
        return np.flatnonzero(np.any(changed, axis=0)) if changed else None
    if not isinstance(first, (list, tuple, str, bytes)) or len(first) > MAX_COMPARED:
        return None
    item_pairs = zip(first, second, strict=False)
    return np.flatnonzero(
        [not equal_values(left_item, right_item) for left_item, right_item in item_pairs]
    )


def _rows_differ(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Of each row that both arrays have, whether it differs."""
    common = min(len(first), len(second))
    left_rows, right_rows = np.asarray(first)[:common], np.asarray(second)[:common]
    if left_rows.shape != right_rows.shape:
        return np.ones(common, dtype=bool)
    if left_rows.dtype.kind == right_rows.dtype.kind == "O":
        item_pairs = zip(left_rows.ravel(), right_rows.ravel(), strict=True)
        differs = np.array([not equal_values(*items) for items in item_pairs], dtype=bool)
        differs = differs.reshape(left_rows.shape)
    else:
        missing = [side != side for side in (left_rows, right_rows)]  # noqa: PLR0124 (NaN)
        differs = (left_rows != right_rows) & ~(missing[0] & missing[1])
    return np.asarray(differs.reshape(common, -1).any(axis=1))


def _kind_text(value: Any) -> str:
    """The kind of a value and its size."""
    name = type(value).__name__
    if isinstance(value, (str, bytes, bytearray)):
        return f"{_article(name)} of length {len(value)}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        noun = "an array" if isinstance(value, np.ndarray) else _article(name)
        return f"{noun} of shape {tuple(shape)}"
    if isinstance(value, (list, tuple, Mapping, Set)):
        return f"{_article(name)} of length {len(value)}"
    return _article(name)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
