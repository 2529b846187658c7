"""How a walk reads Python's own types: a table by type that any type can join.

A third-party type is found by its name in `library_readers`, without an import of its package; any
other object shows its fields, its items, its array, its number, or how it would be copied.
"""

from __future__ import annotations

import array
import collections
import copyreg
import datetime
import enum
import functools
import io
import itertools
import re
import types
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np

from audits.classifiers.library_readers import LIBRARY_READERS, read_array
from audits.classifiers.output_walk import MAX_NUMBERS, OutputWalk, Reader, as_float, type_name
from audits.runs.release_functions import RaisedOutcome

NUMBER_IN_TEXT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MAX_TEXT = 1 << 16  # characters in which numbers are looked for
PLAIN_KEYS = (str, int, float, bool, bytes, type(None))  # whose repr is their value
EPOCH = datetime.datetime(1970, 1, 1)


@functools.lru_cache(maxsize=4096)
def reader_of(kind: type) -> Reader:
    """The reader of a type: by name for libraries, else the table's, else that of any object."""
    for base in kind.__mro__:
        found = LIBRARY_READERS.get(f"{base.__module__.partition('.')[0]}.{base.__qualname__}")
        if found is not None:
            return found
    if issubclass(kind, enum.Enum):
        return _read_enum
    return read_any.dispatch(kind)


@functools.singledispatch
def read_any(output: Any, walk: OutputWalk) -> None:
    """Read any object by its fields, items, array, number, or state; else it is opaque."""
    walk.word(type_name(output))
    before = len(walk.words), len(walk.numbers)
    _read_fields(output, walk)
    if hasattr(type(output), "__array__"):
        walk.part(".array", np.asarray(output))
    elif isinstance(output, (Iterable, Sequence)):
        _read_items(output, walk)
    elif any(hasattr(type(output), name) for name in ("__float__", "__int__", "__index__")):
        _read_conversion(output, walk)
    if (len(walk.words), len(walk.numbers)) == before:
        _read_state(output, walk)
    if (len(walk.words), len(walk.numbers)) == before:
        walk.blind(type(output).__name__)


@read_any.register(type(None))
@read_any.register(type(...))
@read_any.register(type(NotImplemented))
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(repr(output))


@read_any.register
def _(output: RaisedOutcome, walk: OutputWalk) -> None:
    walk.word(f"raised {output.kind} {output.message}")


@read_any.register(int)
@read_any.register(np.integer)
@read_any.register(np.bool_)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.whole(int(output))
    _read_own_fields(output, walk)


@read_any.register(float)
@read_any.register(np.floating)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    if isinstance(output, np.longdouble):
        walk.exact.append(output.tobytes())
    walk.number(float(output))
    _read_own_fields(output, walk)


@read_any.register(complex)
@read_any.register(np.complexfloating)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.number(float(output.real))
    walk.number(float(output.imag))


@read_any.register(np.ndarray)
@read_any.register(np.generic)
def _(output: Any, walk: OutputWalk) -> None:
    read_array(output, walk)


@read_any.register
def _(output: str, walk: OutputWalk) -> None:
    # numbers written in a text are numbers, and the text around them is structure
    numbers = NUMBER_IN_TEXT.findall(output[:MAX_TEXT])
    words = NUMBER_IN_TEXT.sub("#", output[:MAX_TEXT])
    walk.word(f"{type_name(output)} {words!r}")
    if numbers or len(output) > MAX_TEXT:
        walk.exact.append(output.encode("utf-8", "surrogatepass"))
    walk.number(float(len(output)))
    for number in numbers:
        walk.number(float(number))
    _read_own_fields(output, walk)


@read_any.register(bytes)
@read_any.register(bytearray)
@read_any.register(memoryview)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    _read_bytes(bytes(output), walk)


@read_any.register
def _(output: Fraction, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.exact.append(f"{output.numerator:x}/{output.denominator:x}".encode())
    walk.number(_ratio(output))


@read_any.register
def _(output: Decimal, walk: OutputWalk) -> None:
    exponent = output.as_tuple().exponent
    walk.word(f"{type_name(output)} {exponent if isinstance(exponent, str) else ''}")
    walk.exact.append(str(output).encode())
    walk.number(float("nan") if output.is_snan() else float(output))


@read_any.register
def _(output: datetime.datetime, walk: OutputWalk) -> None:
    away = output.utcoffset()
    walk.word(f"{type_name(output)} {output.tzname()} {away} {output.fold}")
    walk.exact.append(output.isoformat().encode())
    plain = output.replace(tzinfo=None) - (away or datetime.timedelta())
    walk.number((plain - EPOCH).total_seconds())


@read_any.register
def _(output: datetime.date, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.number(float(output.toordinal()))


@read_any.register
def _(output: datetime.time, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.tzname()} {output.utcoffset()} {output.fold}")
    of_day = (output.hour * 60 + output.minute) * 60 + output.second
    walk.number(of_day + output.microsecond * 1e-6)


@read_any.register
def _(output: datetime.timedelta, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.exact.append(str(output).encode())
    walk.number(output.total_seconds())


@read_any.register
def _(output: datetime.tzinfo, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.tzname(None)} {getattr(output, 'key', None)}")


@read_any.register(range)
@read_any.register(slice)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.items([output.start, output.stop, output.step])


@read_any.register
def _(output: uuid.UUID, walk: OutputWalk) -> None:
    walk.word("UUID")
    _read_bytes(output.bytes, walk)


@read_any.register
def _(output: PurePath, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.part("", str(output))


@read_any.register
def _(output: array.array, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(f"array {output.typecode}")
    walk.part("", output.tounicode() if output.typecode in "uw" else np.asarray(output))


@read_any.register
def _(output: Mapping, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    keys = list(itertools.islice(output, MAX_NUMBERS))
    words = [key_word(key) for key in keys]
    mapping_words(type_name(output), words, walk)
    if len(output) > len(keys):
        walk.blind(f"{type(output).__name__} with more than {MAX_NUMBERS:,} keys")
    for at in sorted(range(len(keys)), key=words.__getitem__):
        walk.part(f"[{words[at]}]", output[keys[at]])
    _read_own_fields(output, walk)


@read_any.register
def _(output: Set, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(type_name(output))
    walk.word(f"items {len(output)}")
    for one in sorted(output, key=key_word):  # sets have no order
        walk.part("{}", one)
    _read_own_fields(output, walk)


@read_any.register(tuple)
@read_any.register(list)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {len(output)}")
    walk.items(output)
    _read_own_fields(output, walk)


@read_any.register
def _(output: collections.deque, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(f"{type_name(output)} {len(output)} {output.maxlen}")
    walk.items(output)


@read_any.register
def _(output: Iterator, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(type_name(output))
    _read_items(output, walk)


@read_any.register
def _(output: io.IOBase, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    if isinstance(output, (io.StringIO, io.BytesIO)):
        walk.part("", output.getvalue())
        walk.number(float(output.tell()))
    else:  # reading it would change it
        walk.blind(type(output).__name__)


@read_any.register
def _(output: BaseException, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.part(".args", output.args)
    _read_fields(output, walk)


@read_any.register(type)
@read_any.register(types.ModuleType)
@read_any.register(types.BuiltinFunctionType)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {getattr(output, '__qualname__', output.__name__)}")


@read_any.register
def _(output: types.FunctionType, walk: OutputWalk) -> None:
    walk.word(f"function {output.__qualname__}")
    cells = [cell.cell_contents for cell in output.__closure__ or ()]
    walk.part(".closure", cells)
    walk.part(".defaults", (output.__defaults__, output.__kwdefaults__))
    if not (cells or output.__defaults__ or output.__kwdefaults__):
        walk.blind("function")  # what it computes is not known


@read_any.register
def _(output: types.MethodType, walk: OutputWalk) -> None:
    walk.word(f"method {output.__qualname__}")
    walk.part(".__self__", output.__self__)


def key_word(key: Any) -> str:
    """A key or an item as a word that depends on its value, not on its address."""
    if type(key) in PLAIN_KEYS or (
        type(key) is tuple and all(type(one) in PLAIN_KEYS for one in key)
    ):
        return repr(key)
    walk = OutputWalk(reader_of)
    walk.read(key)
    exact = [walk.row().tobytes(), *walk.exact]
    return f"{' '.join(walk.words)} {b' '.join(exact).hex()}"


def mapping_words(name: str, keys: list[str], walk: OutputWalk) -> None:
    """The words of a mapping with such keys, in the mapping's own order."""
    walk.word(name)
    walk.word(f"keys {len(keys)}")
    for key in keys:
        walk.word(f"key {key}")


def _read_enum(output: enum.Enum, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.name}")
    walk.part(".value", output.value)


def _read_bytes(content: bytes, walk: OutputWalk) -> None:
    if len(content) > MAX_NUMBERS // 2:
        walk.exact.append(content)
    walk.number(float(len(content)))
    walk.array(np.frombuffer(content, np.uint8))


def _read_items(output: Any, walk: OutputWalk) -> None:
    """Items of anything that iterates, consumed once and never more than are used."""
    some = list(itertools.islice(iter(output), MAX_NUMBERS + 1))
    walk.word(f"length {len(some)}")
    walk.items(some)  # the last of too many has no room


def _read_own_fields(output: Any, walk: OutputWalk) -> None:
    """Fields that a subclass of a built-in type has beside its value."""
    if getattr(output, "__dict__", None):
        _read_fields(output, walk)


def _read_fields(output: Any, walk: OutputWalk) -> None:
    """Fields, private ones too, in ``__dict__`` or in slots."""
    fields = dict(getattr(output, "__dict__", {}))
    for kind in type(output).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else list(slots):
            hidden = name.startswith("__") and not name.endswith("__")
            there = f"_{kind.__name__.lstrip('_')}{name}" if hidden else name
            if name not in {"__dict__", "__weakref__"} and hasattr(output, there):
                fields[there] = getattr(output, there)
    for name in sorted(map(str, fields)):
        walk.word(name)
        walk.part(f".{name}", fields[name])


def _read_conversion(output: Any, walk: OutputWalk) -> None:
    """An object that converts to a number."""
    if hasattr(type(output), "__int__") or hasattr(type(output), "__index__"):
        walk.exact.append(b"%x" % int(output))
    walk.number(float(output) if hasattr(type(output), "__float__") else as_float(int(output)))


def _read_state(output: Any, walk: OutputWalk) -> None:
    """What a copy of the object would be made from, where it says so."""
    try:
        made = output.__reduce_ex__(4)
    except Exception:  # it cannot be copied
        return
    if isinstance(made, str):  # a name of its own
        walk.word(made)
        return
    arguments = made[1][1:] if made[0] is copyreg.__newobj__ else made[1]  # type: ignore[attr-defined]
    for one in (*arguments, *made[2:3]):
        empty = one is None or (isinstance(one, (dict, tuple)) and not one)
        if not empty and not isinstance(one, type):
            walk.part(".state", one)


def _ratio(output: Fraction) -> float:
    try:
        return float(output)
    except OverflowError:
        return float("inf") if output > 0 else float("-inf")
