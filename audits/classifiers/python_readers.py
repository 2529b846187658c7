"""The reader of each type, and how Python's own types and any other object are read.

An audit guesses from an output of a release which value it came from, and its classifier needs
numbers.  `OutputWalk` takes an output apart and calls the reader of its type, which `reader_of`
finds: that of `library_readers` for a type of a library, found by its name without an import; else
that of the table ``read_any``, which any type can join.  Each function below that is called ``_``
enters itself in this table under the type of its first argument, or the types in its decorators;
`read_any` itself reads all other objects.

A reader tells the walk several kinds of facts.  ``walk.word`` takes text that describes the
structure, such as type and length.  ``walk.number``, ``walk.whole`` and ``walk.array`` take numbers
as floats, and ``walk.exact`` takes bytes of values that floats do not determine.  ``walk.part`` and
``walk.items`` walk into the values inside.  ``walk.blind`` names what no reader can look into.
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
import sys
import types
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.classifiers.decoding import decoded_floats, decoded_text, is_text, sure_code, unpacked
from audits.classifiers.library_readers import LIBRARY_READERS, read_array
from audits.classifiers.output_walk import (
    ITEMS_BEYOND,
    MAX_NUMBERS,
    MAX_WORDS,
    OutputWalk,
    Reader,
    array_bytes,
    as_float,
    type_name,
)
from audits.runs.release_functions import RaisedOutcome

PLAIN_KEYS = (str, int, float, bool, bytes, type(None))  # types whose repr shows the value only
NUMBER_IN_TEXT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# Number of characters of a text in which numbers are looked for; the rest counts only exactly.
MAX_TEXT = 1 << 16
EPOCH = datetime.datetime(1970, 1, 1)


@functools.lru_cache(maxsize=4096)
def reader_of(kind: type) -> Reader:
    """The reader of a type: by name for libraries, else the table's, else that of any object."""
    for base in kind.__mro__:
        reader = LIBRARY_READERS.get(f"{base.__module__.partition('.')[0]}.{base.__qualname__}")
        if reader is not None:
            return reader
    # A member of an enumeration that is also a number or a text is read as a member.
    return read_any.dispatch(enum.Enum if issubclass(kind, enum.Enum) else kind)


@functools.singledispatch
def read_any(output: Any, walk: OutputWalk) -> None:
    """Read any object by its fields, items, array, number, or state.

    If none of them adds a word or a number to the walk, the object is named as unseen.
    """
    walk.word(type_name(output))
    before = len(walk.words), len(walk.numbers)
    _read_fields(output, walk)
    if hasattr(type(output), "__array__"):
        walk.part(".array", np.asarray(output))
    elif isinstance(output, (Iterable, Sequence)):
        _read_items(output, walk)
    elif any(hasattr(type(output), name) for name in ("__float__", "__int__", "__index__")):
        if hasattr(type(output), "__int__") or hasattr(type(output), "__index__"):
            walk.exact.append(b"%x" % int(output))
        walk.number(float(output) if hasattr(type(output), "__float__") else as_float(int(output)))
    was_read = (len(walk.words), len(walk.numbers)) != before
    # A type that says itself what a copy is made from may hold more than its fields; the last class
    # of the order is `object`, of which every type has these methods.
    has_own_state = any(
        name in vars(base)
        for base in type(output).__mro__[:-1]
        for name in ("__reduce__", "__reduce_ex__")
    )
    if not was_read or has_own_state:
        _read_state(output, walk)
    if (len(walk.words), len(walk.numbers)) == before:
        walk.blind(type(output).__name__)


@read_any.register
def _(output: enum.Enum, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.name}")
    walk.part(".value", output.value)


@read_any.register(type(None))
@read_any.register(type(...))
@read_any.register(type(NotImplemented))
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(repr(output))


@read_any.register
def _(output: RaisedOutcome, walk: OutputWalk) -> None:
    walk.word(f"raised {output.kind}")
    walk.part(".message", output.message)


@read_any.register(int)
@read_any.register(np.integer)
@read_any.register(np.bool_)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.whole(int.__int__(output) if isinstance(output, int) else int(output))
    _read_own_fields(output, walk)


@read_any.register(float)
@read_any.register(np.floating)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    if isinstance(output, np.longdouble):
        walk.exact.append(array_bytes(np.atleast_1d(output)))
    walk.number(float.__float__(output) if isinstance(output, float) else float(output))
    _read_own_fields(output, walk)


@read_any.register(complex)
@read_any.register(np.complexfloating)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.number(float(output.real))
    walk.number(float(output.imag))
    _read_own_fields(output, walk)


@read_any.register(np.ndarray)
@read_any.register(np.generic)
@read_any.register(np.timedelta64)  # as a subclass of np.integer it would be read as a number
def _(output: Any, walk: OutputWalk) -> None:
    read_array(output, walk)
    _read_own_fields(output, walk)


@read_any.register
def _(output: str, walk: OutputWalk) -> None:
    codes = sure_code(output)
    for content in codes:
        walk.part(".decoded", content)
    if len(codes) == 1 and any(content == codes[0] for content in decoded_text(output)):
        walk.word(type_name(output))  # the text is a code, and nothing else
        walk.exact.append(output.encode())
        walk.number(float(len(output)))
        return
    # Numbers written in a text count as numbers, and the text around them, with "#" in place of
    # each number, as structure.
    numbers = NUMBER_IN_TEXT.findall(output[:MAX_TEXT])
    words = NUMBER_IN_TEXT.sub("#", output[:MAX_TEXT])
    walk.word(f"{type_name(output)} {words!r}")
    if numbers or len(output) > MAX_TEXT:
        walk.exact.append(output.encode("utf-8", "surrogatepass"))
    walk.number(float(len(output)))
    for number in numbers:
        walk.number(float(number))
    walk.text(output.encode("utf-8", "surrogatepass"))
    walk.decode(decoded_text(output))
    _read_own_fields(output, walk)


@read_any.register(bytes)
@read_any.register(bytearray)
@read_any.register(memoryview)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    content = bytes(output)
    inner = content.decode() if is_text(content) else unpacked(content)
    if inner is not None:
        walk.part(".decoded", inner)
    if isinstance(inner, bytes) or (inner is not None and sure_code(inner)):
        walk.exact.append(content)
        walk.number(float(len(content)))
    else:
        _read_bytes(content, walk)
        walk.decode([] if inner else decoded_floats(content))
    _read_own_fields(output, walk)


@read_any.register
def _(output: re.Pattern, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(f"Pattern {output.flags}")
    walk.part(".pattern", output.pattern)


@read_any.register
def _(output: re.Match, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word("Match")
    walk.items([output.string, output.re, output.pos, output.endpos, output.regs])


@read_any.register
def _(output: Fraction, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.exact.append(f"{output.numerator:x}/{output.denominator:x}".encode())
    walk.number(as_float(output))


@read_any.register
def _(output: Decimal, walk: OutputWalk) -> None:
    exponent = output.as_tuple().exponent
    walk.word(f"{type_name(output)} {exponent if isinstance(exponent, str) else ''}")
    walk.exact.append(str(output).encode())
    walk.number(float("nan") if output.is_snan() else float(output))


@read_any.register
def _(output: datetime.datetime, walk: OutputWalk) -> None:
    utc_offset = output.utcoffset()
    walk.word(f"{type_name(output)} {output.tzname()} {utc_offset} {output.fold}")
    walk.exact.append(output.isoformat().encode())
    utc_time = output.replace(tzinfo=None) - (utc_offset or datetime.timedelta())
    walk.number((utc_time - EPOCH).total_seconds())
    nanoseconds = 1000 * output.microsecond + getattr(output, "nanosecond", 0)
    calendar = [float(output.month), float(output.day)]
    walk.last_digits += [float((utc_time - EPOCH).seconds), float(nanoseconds), *calendar]


@read_any.register
def _(output: datetime.date, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.number(float(output.toordinal()))
    walk.last_digits += [float(output.month), float(output.day)]


@read_any.register
def _(output: datetime.time, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.tzname()} {output.utcoffset()} {output.fold}")
    seconds_of_day = (output.hour * 60 + output.minute) * 60 + output.second
    walk.number(seconds_of_day + output.microsecond * 1e-6)


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
    keys = list(itertools.islice(output, MAX_WORDS))
    words = [key_word(key, walk) for key in keys]
    mapping_words(type_name(output), words, walk)
    if isinstance(output, dict) and type(output).__iter__ is not dict.__iter__:
        # the methods of a subclass may hide stored items
        walk.part(".stored", list(dict.items(output)))
    elif len(output) > len(keys):
        walk.blind(f"{type(output).__name__} with more than {MAX_WORDS:,} keys")
    for index in sorted(range(len(keys)), key=words.__getitem__):
        walk.part(f"[{words[index]}]", output[keys[index]])
    if isinstance(output, collections.defaultdict):
        walk.part(".default_factory", output.default_factory)
    _read_own_fields(output, walk)


@read_any.register
def _(output: Set, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(type_name(output))
    walk.word(f"items {len(output)}")
    # sets have no order, so the items are read in the order of their words
    for item in sorted(output, key=lambda item: key_word(item, walk)):
        walk.part("{}", item)
    _read_own_fields(output, walk)


@read_any.register(tuple)
@read_any.register(list)
def _(output: Any, walk: OutputWalk) -> None:
    base = list if isinstance(output, list) else tuple
    if type(output) is not base and type(output).__iter__ is not base.__iter__:
        # the methods of a subclass may hide stored items
        walk.part(".stored", base(base.__getitem__(output, slice(None))))
        _read_items(output, walk)
        _read_own_fields(output, walk)
        return
    names = getattr(type(output), "_fields", None)  # of a named tuple
    if names is not None:
        walk.word(f"fields {names}")
    numbers = equal_numbers([output])
    if numbers is None:
        walk.word(f"{type_name(output)} {len(output)}")
        walk.items(output)
    else:
        walk.word(f"{type_name(output)} {len(output)} {numbers.dtype}")
        walk.array(numbers)
    _read_own_fields(output, walk)


@read_any.register
def _(output: collections.deque, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(f"{type_name(output)} {len(output)} {output.maxlen}")
    walk.items(output)


@read_any.register
def _(output: Iterator, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(type_name(output))
    if isinstance(output, types.GeneratorType):
        returned: list[Any] = []

        def items() -> Iterator[Any]:
            returned.append((yield from output))  # what the generator returns after its items

        _read_items(items(), walk)
        walk.part(".result", returned)
    else:
        _read_items(output, walk)


@read_any.register
def _(output: io.IOBase, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    if isinstance(output, (io.StringIO, io.BytesIO)):
        walk.part("", output.getvalue())
        walk.number(float(output.tell()))
    else:  # to read a file would change it
        walk.blind(type(output).__name__)


@read_any.register
def _(output: BaseException, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.part(".args", output.args)
    walk.part(".__cause__", output.__cause__)
    walk.part(".__context__", output.__context__)
    _read_fields(output, walk)


@read_any.register(type)
@read_any.register(types.ModuleType)
@read_any.register(types.BuiltinFunctionType)
def _(output: Any, walk: OutputWalk) -> None:
    name = getattr(output, "__qualname__", output.__name__)
    walk.word(f"{type_name(output)} {name}")
    if isinstance(output, types.BuiltinFunctionType):
        if not isinstance(output.__self__, types.ModuleType | None):
            walk.part(".__self__", output.__self__)
        return
    module_name = getattr(output, "__module__", output.__name__)
    object_of_name = sys.modules.get(module_name)
    for step in name.split(".") if isinstance(output, type) else ():
        object_of_name = getattr(object_of_name, step, None)
    if object_of_name is not output:  # the name does not lead to it: the release has made it
        walk.blind(type_name(output))


@read_any.register
def _(output: types.FunctionType, walk: OutputWalk) -> None:
    walk.word(f"function {output.__qualname__}")
    cells = [cell.cell_contents for cell in output.__closure__ or ()]
    walk.part(".closure", cells)
    walk.part(".defaults", (output.__defaults__, output.__kwdefaults__))
    if not (cells or output.__defaults__ or output.__kwdefaults__):
        walk.blind("function")  # nothing shows what it computes


@read_any.register
def _(output: types.MethodType, walk: OutputWalk) -> None:
    walk.word(f"method {output.__qualname__}")
    walk.part(".__self__", output.__self__)


def _read_items(output: Any, walk: OutputWalk) -> None:
    """Items of anything that iterates, consumed once and never more than are used."""
    endless = not hasattr(type(output), "__len__")
    limit = walk.items_left if endless else MAX_WORDS
    listed = list(itertools.islice(iter(output), limit))
    walk.items_left -= len(listed) if endless else 0
    walk.word(f"length {len(listed)}")
    walk.items(listed)
    if len(listed) == limit:
        walk.blind(f"{ITEMS_BEYOND} {limit:,}")


def _read_own_fields(output: Any, walk: OutputWalk) -> None:
    """Fields that a subclass of a built-in type adds to its value."""
    if getattr(output, "__dict__", None):
        _read_fields(output, walk)


def _read_fields(output: Any, walk: OutputWalk) -> None:
    """Fields, private ones too, in ``__dict__`` or in slots."""
    fields = dict(getattr(output, "__dict__", {}))
    for kind in type(output).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else list(slots):
            hidden = name.startswith("__") and not name.endswith("__")
            stored_name = f"_{kind.__name__.lstrip('_')}{name}" if hidden else name
            if name not in {"__dict__", "__weakref__"} and hasattr(output, stored_name):
                fields[stored_name] = getattr(output, stored_name)
    for name in sorted(map(str, fields)):
        walk.word(name)
        walk.part(f".{name}", fields[name])


def _read_state(output: Any, walk: OutputWalk) -> None:
    """What a copy of the object would be made from, where it says so."""
    try:
        recipe = output.__reduce_ex__(4)
    except Exception:  # it cannot be copied
        return
    if isinstance(recipe, str):  # the object is a global, which is known by its name
        walk.word(recipe)
        return
    # The recipe has a function that makes the copy, its arguments, and the state to set on it.  The
    # first argument of `copyreg.__newobj__` is the class, which was read already.
    arguments = recipe[1][1:] if recipe[0] is copyreg.__newobj__ else recipe[1]  # type: ignore[attr-defined]
    for state in (*arguments, *recipe[2:3]):
        empty = state is None or (isinstance(state, (dict, tuple)) and not state)
        if not empty and not isinstance(state, type):
            walk.part(".state", state)


def _read_bytes(content: bytes, walk: OutputWalk) -> None:
    """Read each byte as a number, after the length.

    A walk may not have room for all numbers of long contents, so these are read exactly too.
    """
    if len(content) > MAX_NUMBERS // 2:
        walk.exact.append(content)
    walk.number(float(len(content)))
    walk.array(np.frombuffer(content, np.uint8))


def equal_numbers(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """Lists of equal length as one array, if all elements are of one type: float, int or bool.

    None for other elements, for lists with fewer than two, and for integers beyond 64 bits.
    """
    kinds = set(map(type, itertools.chain.from_iterable(outputs)))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in {float, int, bool} or len(outputs[0]) < 2:
        return None
    numbers = np.array(outputs)
    return numbers if numbers.dtype == np.dtype(kind) else None


def key_word(key: Any, walk: OutputWalk) -> str:
    """A key of a mapping, or an item of a set, as text that depends only on its value."""
    if type(key) in PLAIN_KEYS or (
        type(key) is tuple and all(type(element) in PLAIN_KEYS for element in key)
    ):
        return repr(key)
    inner = OutputWalk(walk.reader_of)
    inner.read(key)
    exact = [inner.row().tobytes(), *inner.exact]
    return f"{' '.join(inner.words)} {b' '.join(exact).hex()}"


def mapping_words(name: str, keys: list[str], walk: OutputWalk) -> None:
    """Add to the walk the type name of a mapping, its number of keys, and the words of its keys."""
    walk.word(name)
    walk.word(f"keys {len(keys)}")
    for key in keys:
        walk.word(f"key {key}")
