"""The two values of ``--pair`` that an audit of a user's function compares, read from words.

A word of the command line is a number, or the name of a file of numbers, of a table or of JSON.  No
pickle is read, because reading one can run any code.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from accountant.errors import ParameterError

FORMS = "a number, or a file that ends in .npy, .npz, .csv, .json or .parquet"
WITHOUT_OBJECTS = "of numbers, without objects"  # words of two messages


def load_value(word: str) -> Any:
    """The value that a word of the command line means; raises `ParameterError` if there is none."""
    number = _as_number(word)
    if number is not None:
        return number
    suffix = Path(word).suffix.lower()
    if suffix not in READERS:
        raise ParameterError("--pair", word, FORMS)
    try:
        return READERS[suffix](word)
    except ParameterError:
        raise
    except OSError as error:
        reason = error.strerror or "another format"
        raise ParameterError("--pair", word, f"a {suffix} file to read ({reason})") from None
    except Exception as error:  # a parser may raise anything on a file of another kind
        reason = type(error).__name__
        raise ParameterError(
            "--pair", word, f"a {suffix} file that can be read ({reason})"
        ) from None


def _as_number(word: str) -> int | float | None:
    """The number that a word is, an integer if possible; None if it is no number."""
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
        raise ParameterError("--pair", word, "finite where it is a number")
    return None


def _numbers(word: str, value: Any) -> Any:
    """The value, if it is an array of numbers; an array without axes as a number.

    Kinds of numpy types: b bool, i and u integers, f floats, c complex numbers.
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
        raise ParameterError("--pair", word, f"a file {WITHOUT_OBJECTS}")
    return value.item() if value.ndim == 0 else value


def _load_array(word: str) -> Any:
    try:
        return _numbers(word, np.load(word, allow_pickle=False))
    except (ValueError, EOFError, SyntaxError, MemoryError):
        raise ParameterError("--pair", word, f"a .npy file {WITHOUT_OBJECTS}") from None


def _load_arrays(word: str) -> Any:
    """The array of a .npz file, or a dictionary of its arrays if it has several."""
    with np.load(word, allow_pickle=False) as file:
        arrays = {name: _numbers(word, file[name]) for name in file.files}
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays


def _load_table(word: str) -> Any:
    """A pandas data frame of a .csv or .parquet file."""
    try:
        pandas = importlib.import_module("pandas")  # optional, and slow to load
    except ImportError:
        raise ParameterError("--pair", word, _needs("pandas")) from None
    if Path(word).suffix.lower() == ".csv":
        return pandas.read_csv(word)
    try:
        return pandas.read_parquet(word)
    except ImportError:
        raise ParameterError("--pair", word, _needs("pyarrow")) from None


def _needs(library: str) -> str:
    return f"read by {library}, which is not installed: python -m pip install {library}"


READERS: dict[str, Callable[[str], Any]] = {
    ".npy": _load_array,
    ".npz": _load_arrays,
    ".json": lambda word: json.loads(Path(word).read_text(encoding="utf-8")),
    ".csv": _load_table,
    ".parquet": _load_table,
}
