"""A walk through one output of a release, which collects what an audit can learn from.

An audit guesses from an output which of two values was released.  The walk collects words of the
structure (types, lengths, texts), numbers as floats, values that floats do not represent exactly,
and the parts that could not be read.

Readers of types (`python_readers`, `library_readers`) say what their types hold.
The walk keeps depth, cycles and sizes bounded, and names every part that no reader could look into.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

# Limits of what is read of one output, for memory and time.  What is beyond them is named as
# unseen.
MAX_NUMBERS = 1 << 20
MAX_WORDS = 8192  # words of the structure, and items that an iterator is asked for
MAX_DEPTH = 16  # nested containers; deeper ones are cut off
MAX_UNSEEN = 8  # largest number of unreadable parts of one output that are named
ITEMS_BEYOND = "items beyond the first"  # words for what an iterator was not asked for
EXACT = 1 << 53  # whole numbers up to this size are exact as floats
# A larger whole number is also read modulo this, a multiple of 16, of 1,000 and of the seconds of a
# week, so that its last digits and those of a time are known from it.
LAST_DIGITS = 604_800_000
MAX_TEXTS, TEXT_END = 4, 64  # texts whose ends are read letter by letter, and letters of each end
MAX_DECODED = 8  # parts of one output that are decoded
# The elements of arrays count as the corresponding types of Python, since chunks of outputs may
# come as either.
TYPE_NAMES = {
    "float64": "float",
    "int64": "int",
    "bool_": "bool",
    "bool": "bool",
    "str_": "str",
    "bytes_": "bytes",
    "complex128": "complex",
}


class EnoughRead(Exception):  # It ends a walk and is not an error.
    """The walk has read as much of an output as is used."""


Reader = Callable[[Any, "OutputWalk"], None]


@final
class OutputWalk:
    """What was read of one output, and the place where the walk is."""

    __slots__ = (
        "_left", "decoded", "exact", "items_left", "last_digits", "letters", "numbers", "path",
        "reader_of", "unseen", "within", "words",
    )  # fmt: skip

    def __init__(self, reader_of: Callable[[type], Reader], items: int = MAX_WORDS) -> None:
        self.reader_of = reader_of
        self.items_left = items  # items of iterators without a length that may still be read
        self.words: list[str] = []  # the structure
        self.numbers: list[Any] = []  # floats, and arrays of them
        self.exact: list[bytes] = []  # values that their floats do not determine
        self.last_digits: list[Any] = []  # of these values; they stand at the end of the row
        self.letters: list[bytes] = []  # both ends of the first texts, each 2 TEXT_END bytes long
        self.decoded: list[Any] = []  # what texts and bytes decode to, which is read at the end
        self.unseen: list[str] = []  # parts that no reader could look into, with the reason
        self.path: list[str] = []  # names of the parts that the walk is inside of, outermost first
        self.within: list[int] = []  # the ids of these objects
        self._left = MAX_NUMBERS  # numbers that may still be read

    def read(self, output: Any) -> None:
        """Read a whole output."""
        try:
            self.part("output", output)
            for value in self.decoded:  # what is decoded may have a code of its own, and appends it
                self.part("decoded", value)
        except EnoughRead:
            if self.items_left == 0:
                self.blind(f"{ITEMS_BEYOND} {MAX_WORDS:,}", 1)
            else:
                limits = f"{MAX_NUMBERS:,} numbers and {MAX_WORDS:,} words"
                self.blind(f"more than the first {limits}", 1)

    def part(self, name: str, value: Any) -> None:
        """Read a part by the reader of its type; ``name`` is what the path calls it."""
        self.path.append(name)
        if len(self.path) > MAX_DEPTH:
            self.word("...")
            self.blind("nested too deeply")
        elif id(value) in self.within:
            self.word(f"cycle {len(self.within) - self.within.index(id(value))}")
        else:
            self.within.append(id(value))
            try:
                self.reader_of(type(value))(value, self)
            except EnoughRead:
                raise
            except Exception as error:  # an object that cannot be read
                self.word(f"unreadable: {type(error).__name__}")
                self.blind(f"{type(value).__name__}, which raised {type(error).__name__}")
            self.within.pop()
        self.path.pop()

    def items(self, values: Iterable[Any]) -> None:
        """Read the items of a sequence, each at its place."""
        for index, value in enumerate(values):
            self.part(f"[{index}]", value)

    def word(self, text: str) -> None:
        """Add a word of structure."""
        self.words.append(text)
        if len(self.words) > MAX_WORDS:
            raise EnoughRead

    def number(self, number: float) -> None:
        """Add a number."""
        if self._left == 0:
            raise EnoughRead
        self._left -= 1
        self.numbers.append(number)

    def whole(self, number: int) -> None:
        """Add an integer of any size."""
        if not -EXACT <= number <= EXACT:
            self.exact.append(b"%x" % number)
            self.last_digits.append(float(number % LAST_DIGITS))
        self.number(as_float(number))

    def text(self, content: bytes) -> None:
        """Add both ends of a text, letter by letter."""
        if len(self.letters) < MAX_TEXTS:
            end = content[-TEXT_END:].rjust(TEXT_END, b"\0")
            self.letters.append(content[:TEXT_END].ljust(TEXT_END, b"\0") + end)

    def decode(self, values: Iterable[Any]) -> None:
        """Note what a text or bytes decode to; it is read after the output itself."""
        self.decoded.extend(itertools.islice(values, MAX_DECODED - len(self.decoded)))

    def array(self, numbers: NDArray[Any]) -> None:
        """Add the numbers of an array of booleans, integers, floats or times."""
        flat = numbers.ravel()
        if flat.dtype.kind in "mM":
            missing, counts = np.isnat(flat), flat.astype(np.int64)
            self._add(np.where(missing, np.nan, counts.astype(float)), counts)
            self.last_digits.append(clock_numbers(flat[:MAX_NUMBERS]))
        elif flat.dtype.kind == "c":
            self._add(np.stack([flat.real, flat.imag], axis=1).ravel().astype(float), flat)
        else:
            if flat.dtype.kind in "iu" and not_exact(flat):
                self.last_digits.append((flat[:MAX_NUMBERS] % LAST_DIGITS).astype(float))
            with np.errstate(over="ignore"):  # of long doubles
                self._add(flat.astype(float), flat)

    def blind(self, what: str, depth: int | None = None) -> None:
        """Note that the part at this place could not be read further; ``what`` describes it."""
        blind_spot = f"{''.join(self.path[:depth]) or 'output'}: {what}"
        if len(self.unseen) < MAX_UNSEEN and blind_spot not in self.unseen:
            self.unseen.append(blind_spot)

    def row(self) -> Array:
        """All numbers, as one row."""
        numbers = [*self.numbers, *self.last_digits]
        if all(type(number) is float for number in numbers):
            return np.array(numbers, dtype=float)
        return np.concatenate([np.ravel(number) for number in numbers]).astype(float)

    def _add(self, numbers: Array, exactly: NDArray[Any]) -> None:
        """Add the floats of an array, and its bytes where these do not determine it."""
        if not_exact(exactly):
            self.exact.append(array_bytes(exactly))
        accepted = numbers[: self._left]
        self._left -= accepted.size
        self.numbers.append(accepted)
        if accepted.size < numbers.size:
            raise EnoughRead


def clock_numbers(times: NDArray[Any]) -> Array:
    """Second of the day of each time, units of its type within the second; month and day of a date.

    Durations have no month, and count from midnight.  Types whose unit is a day or more have no
    second, those whose unit is longer than a day no day.  NaN stands for no time.
    """
    unit, step = np.datetime_data(times.dtype)
    if unit == "generic":
        return np.empty(0)
    parts: list[NDArray[Any]] = []
    if unit not in "YMWD":
        seconds = times.astype(f"{times.dtype.kind}8[s]")
        within_second = (times - seconds.astype(times.dtype)).astype(np.int64) * step
        parts += [seconds.astype(np.int64) % 86_400, within_second]
    if times.dtype.kind == "M" and unit != "Y":
        months = times.astype("M8[M]")
        parts.append(months.astype(np.int64) % 12 + 1)
        if unit != "M":
            parts.append((times.astype("M8[D]") - months.astype("M8[D]")).astype(np.int64) + 1)
    if not parts:
        return np.empty(0)
    numbers = np.stack(parts, axis=1).astype(float)
    numbers[np.isnat(times)] = np.nan
    return numbers.ravel()


def not_exact(numbers: NDArray[Any]) -> bool:
    """True if the floats of an array do not determine it."""
    if numbers.dtype.kind in "iumM" and numbers.dtype.itemsize == 8:
        numbers = numbers.view(np.int64) if numbers.dtype.kind in "mM" else numbers
        return bool(numbers.size and (numbers.max() > EXACT or numbers.min() < -EXACT))
    # long doubles, of which a complex number has two
    return numbers.dtype.kind in "fc" and numbers.dtype.itemsize > 8 * (
        1 + (numbers.dtype.kind == "c")
    )


def array_bytes(array: NDArray[Any]) -> bytes:
    """The bytes of an array, equal for equal numbers.

    Long doubles have padding bytes without a meaning.  So their mantissas are split into two
    doubles, which hold every bit, and their exponents are added.
    """
    if array.dtype.kind == "c" and not_exact(array):
        return array_bytes(array.real) + array_bytes(array.imag)
    if array.dtype.kind == "f" and not_exact(array):
        mantissas, exponents = np.frexp(array)
        upper_halves = mantissas.astype(float)
        with np.errstate(invalid="ignore"):  # infinite numbers have no lower half
            lower_halves = (mantissas - upper_halves).astype(float)
        lower_halves[~np.isfinite(upper_halves)] = 0.0
        parts: list[NDArray[Any]] = [upper_halves, lower_halves, exponents]
        return b"".join(part.tobytes() for part in parts)
    return array.tobytes()


def type_name(value: Any) -> str:
    """The name of a value's type, one for Python's own and the elements of arrays."""
    name = type(value).__name__
    return TYPE_NAMES.get(name, name)


def as_float(number: int | Fraction) -> float:
    """An exact number as a float; infinite beyond the floats."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
