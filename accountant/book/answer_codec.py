"""Released answers as JSON in bytes, as a book stores them, and back.

Strings, booleans, None and lists are stored as they are in JSON.  Every other value is an object of
one field, whose name is a tag: "int" (in decimal), "float" and "complex" (in hexadecimal, so that
no digit is lost), "tuple", "dict", and "array" or "scalar" of numpy (a .npy file in base 64).
Nothing is ever pickled, so that reading a stored answer runs no code of others.
"""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np

from accountant.errors import PrivateValueError

MAX_ANSWER_BYTES = 1 << 28  # bytes of one stored answer at most, 256 MiB
# codes of numpy for what an array may hold: numbers, truth values, bytes and strings of fixed width
ARRAY_KINDS = "biufcSU?"
ALLOWED = f"of numbers, words, arrays and nests of them, at most {MAX_ANSWER_BYTES >> 20} MiB"


def encode_answer(answer: Any) -> bytes:
    """Return the answer as bytes that decode to exactly the same value."""
    raw = json.dumps(_to_plain(answer), separators=(",", ":"), allow_nan=False).encode()
    if len(raw) > MAX_ANSWER_BYTES:
        raise PrivateValueError("answer", ALLOWED)
    return raw


def decode_answer(raw: bytes) -> Any:
    """Return the answer that `encode_answer` encoded; arrays are read-only.

    Raises ValueError for content that `encode_answer` never writes: pickled objects, unknown tags,
    floats in decimal.
    """
    return _from_plain(
        json.loads(raw, parse_float=_refuse_decimal_float, parse_constant=_refuse_decimal_float)
    )


def _to_plain(answer: Any) -> Any:
    """Return the answer as values that JSON can state, with tags."""
    # numpy's own types come first, because a numpy.float64 is also a float
    if isinstance(answer, np.ndarray | np.generic):
        array = np.asarray(answer)
        if array.dtype.kind not in ARRAY_KINDS:
            raise PrivateValueError("answer", ALLOWED)
        if array.nbytes > MAX_ANSWER_BYTES:
            raise PrivateValueError("answer", ALLOWED)
        file = io.BytesIO()
        np.lib.format.write_array(file, array, allow_pickle=False)
        tag = "array" if isinstance(answer, np.ndarray) else "scalar"
        return {tag: base64.b64encode(file.getvalue()).decode()}
    if answer is None or isinstance(answer, bool | str):
        return answer
    if isinstance(answer, int):
        return {"int": str(answer)}
    if isinstance(answer, float):
        return {"float": answer.hex()}
    if isinstance(answer, complex):
        return {"complex": [answer.real.hex(), answer.imag.hex()]}
    if isinstance(answer, tuple | list):
        parts = [_to_plain(part) for part in answer]
        return {"tuple": parts} if isinstance(answer, tuple) else parts
    if isinstance(answer, dict) and all(isinstance(key, str) for key in answer):
        return {"dict": {key: _to_plain(value) for key, value in answer.items()}}
    raise PrivateValueError("answer", ALLOWED)


def _from_plain(plain: Any) -> Any:
    """Return the answer that `_to_plain` has turned into these values."""
    if plain is None or isinstance(plain, bool | str):
        return plain
    if isinstance(plain, list):
        return [_from_plain(part) for part in plain]
    if not isinstance(plain, dict) or len(plain) != 1:
        raise ValueError("is no stored answer")
    [(tag, content)] = plain.items()
    if tag in {"array", "scalar"}:
        raw = io.BytesIO(base64.b64decode(content, validate=True))
        array: Any = np.lib.format.read_array(raw, allow_pickle=False)
        array.flags.writeable = False
        return array if tag == "array" else array[()]
    if tag == "int":
        return int(content)
    if tag == "float":
        return float.fromhex(content)
    if tag == "complex":
        return complex(*map(float.fromhex, content))
    if tag == "tuple":
        return tuple(_from_plain(part) for part in content)
    if tag == "dict":
        return {key: _from_plain(value) for key, value in content.items()}
    raise ValueError("is no stored answer")


def _refuse_decimal_float(word: str) -> Any:
    """Refuse a number with a fraction or an exponent, NaN or infinity, where JSON has it bare."""
    raise ValueError(f"{word!r}: floats are stored in hexadecimal")
