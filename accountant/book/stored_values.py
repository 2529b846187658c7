"""What a book stores as bytes, and back: released answers, and the users whom a release names.

An answer is JSON.  Strings, booleans, None and lists are stored as they are.  Every other value is
an object of one field, whose name is a tag: "int" (in decimal), "float" and "complex" (in
hexadecimal, so that no digit is lost), "tuple", "dict", and "array" or "scalar" of numpy (a .npy
file in base 64).

A set of users is a slice, stated in the entry of the release, or a list of indices of rows, whose
differences are a compressed .npy file that is attached to the entry.

Nothing is ever pickled, so that reading what is stored runs no code of others.
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from accountant.book.chain.entries import digest
from accountant.errors import PrivateValueError
from accountant.ledger.private_data import Users

MAX_ANSWER_BYTES = 1 << 28  # bytes of one stored answer at most, 256 MiB
# codes of numpy for what an array may hold: numbers, truth values, bytes and strings of fixed width
ARRAY_KINDS = "biufcSU?"
ALLOWED = f"of numbers, words, arrays and nests of them, at most {MAX_ANSWER_BYTES >> 20} MiB"


# --- answers


def encode_answer(answer: Any) -> bytes:
    """Return the answer as bytes that decode to exactly the same value."""
    raw = json.dumps(_to_plain(answer), separators=(",", ":"), allow_nan=False).encode()
    if len(raw) > MAX_ANSWER_BYTES:
        raise PrivateValueError("answer", ALLOWED)
    return raw


def decode_answer(raw: bytes) -> Any:
    """Return the answer that `encode_answer` encoded; arrays are read-only.

    Raises ValueError for content that `encode_answer` never writes: pickled objects, unknown tags,
    floats in decimal, a tag with content of another type.
    """
    plain = json.loads(raw, parse_float=_refuse_decimal_float, parse_constant=_refuse_decimal_float)
    try:
        return _from_plain(plain)
    except (TypeError, AttributeError):
        raise ValueError("is no stored answer") from None


def _to_plain(answer: Any) -> Any:
    """Return the answer as values that JSON can state, with tags."""
    # numpy's own types come first, because a numpy.float64 is also a float
    if isinstance(answer, np.ndarray | np.generic):
        array = np.asarray(answer)
        if array.dtype.kind not in ARRAY_KINDS or isinstance(answer, np.ma.MaskedArray):
            raise PrivateValueError("answer", ALLOWED)
        if array.nbytes > MAX_ANSWER_BYTES:
            raise PrivateValueError("answer", ALLOWED)
        if isinstance(answer, np.ndarray):
            file = io.BytesIO()
            np.lib.format.write_array(file, array, allow_pickle=False)
            return {"array": base64.b64encode(file.getvalue()).decode()}
        return {"scalar": base64.b64encode(scalar_header(array.dtype) + array.tobytes()).decode()}
    if answer is None or isinstance(answer, bool | str):
        return answer
    if isinstance(answer, int):
        return {"int": int.__repr__(answer)}  # an Enum of whole numbers has words of its own
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


@cache
def scalar_header(dtype: np.dtype[Any]) -> bytes:
    """Return what stands before the bytes of one number in a .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.empty((), dtype), allow_pickle=False)
    return file.getvalue()[: -dtype.itemsize or None]


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


# --- users


class EncodedUsers(NamedTuple):
    """Users as an entry of the log names them."""

    who: Any  # None for all, [start, stop, step] of a slice, or how many indices are attached
    raw: bytes | None  # the bytes to attach to the entry, if any

    def facts(self) -> dict[str, Any]:
        """Return the fields of the entry: the users, and the digest of the attached bytes."""
        return {"who": self.who, "block": None if self.raw is None else digest(self.raw)}


def encode_users(who: Users | None) -> EncodedUsers:
    """Return users as JSON values, and an attachment with a few bits for each; None means all."""
    if who is None:
        return EncodedUsers(None, None)
    if isinstance(who, slice):
        return EncodedUsers([who.start, who.stop, who.step], None)
    index = np.asarray(who, dtype=np.int64)
    steps = np.diff(index, prepend=0)  # differences are small where the indices rise
    width = (
        np.min_scalar_type(int(steps.min(initial=0))),
        np.min_scalar_type(int(steps.max(initial=0))),
    )
    file = io.BytesIO()
    np.lib.format.write_array(file, steps.astype(np.promote_types(*width)), allow_pickle=False)
    return EncodedUsers(index.size, zlib.compress(file.getvalue(), 1))  # 1: quick, not smallest


def decode_users(encoded: Any, raw: bytes | None) -> Users:
    """Return the users that `encode_users` encoded; raise ValueError or TypeError for others."""
    if isinstance(encoded, list):
        return slice(*encoded)
    if raw is None:
        raise ValueError("users without their bytes")
    try:
        file = io.BytesIO(zlib.decompress(raw))
    except zlib.error:
        raise ValueError("users in bytes that are not compressed") from None
    steps = np.lib.format.read_array(file, allow_pickle=False)
    if steps.shape != (encoded,):
        raise ValueError("not as many users as the entry says")
    return np.cumsum(steps, dtype=np.intp)
