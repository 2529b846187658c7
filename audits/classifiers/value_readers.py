"""How a walk reads values: numbers, texts, bytes, dates, ranges, names."""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np

from audits.classifiers.array_readers import read_array
from audits.classifiers.object_reader import read_any, read_own_fields
from audits.classifiers.output_walk import MAX_NUMBERS, OutputWalk, type_name
from audits.runs.release_functions import RaisedOutcome

NUMBER_IN_TEXT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MAX_TEXT = 1 << 16  # characters in which numbers are looked for
EPOCH = datetime.datetime(1970, 1, 1)


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
    read_own_fields(output, walk)


@read_any.register(float)
@read_any.register(np.floating)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    if isinstance(output, np.longdouble):
        walk.exact.append(output.tobytes())
    walk.number(float.__float__(output) if isinstance(output, float) else float(output))
    read_own_fields(output, walk)


@read_any.register(complex)
@read_any.register(np.complexfloating)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.number(float(output.real))
    walk.number(float(output.imag))
    read_own_fields(output, walk)


@read_any.register(np.ndarray)
@read_any.register(np.generic)
@read_any.register(np.timedelta64)  # numbers whose base is the same as that of integer literals
def _(output: Any, walk: OutputWalk) -> None:
    read_array(output, walk)
    read_own_fields(output, walk)


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
    read_own_fields(output, walk)


@read_any.register(bytes)
@read_any.register(bytearray)
@read_any.register(memoryview)
def _(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    _read_bytes(bytes(output), walk)
    read_own_fields(output, walk)


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


def _read_bytes(content: bytes, walk: OutputWalk) -> None:
    if len(content) > MAX_NUMBERS // 2:
        walk.exact.append(content)
    walk.number(float(len(content)))
    walk.array(np.frombuffer(content, np.uint8))


def _ratio(output: Fraction) -> float:
    try:
        return float(output)
    except OverflowError:
        return float("inf") if output > 0 else float("-inf")
