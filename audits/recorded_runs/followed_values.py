"""Numbers and arrays that remember the noise in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from audits.recorded_runs.array_functions import call_array_function, chosen
from audits.recorded_runs.events import Event
from audits.recorded_runs.followed_steps import (
    choose,
    compute,
    event_of,
    is_noise_alone,
    place_of_largest,
    plain,
    use,
)
from audits.recorded_runs.tape import current_tape

BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "pow": np.power,
    "mod": np.mod,
    "floordiv": np.floor_divide,
}
COMPARED = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute}
CHOOSING_METHODS = (
    "reshape", "ravel", "transpose", "squeeze", "take", "repeat", "swapaxes", "diagonal",
)  # fmt: skip
USING_METHODS = (
    "sum", "mean", "max", "min", "std", "var", "prod", "cumsum", "cumprod", "dot", "clip", "round",
    "argsort", "argpartition", "nonzero", "tobytes", "any",
    "all", "trace", "ptp",
)  # fmt: skip


def wrap(event: Event) -> Any:
    """The output of an event as a followed number or array."""
    output = event.output
    if isinstance(output, np.ndarray) and output.ndim:
        array = output.copy().view(FollowedArray)
        array.followed_event = event
        return array
    is_integer = np.asarray(output).dtype.kind in "biu"
    number: Any = FollowedInteger(int(output)) if is_integer else FollowedNumber(float(output))
    number.followed_event = event
    return number


def follow_nest(nest: Any) -> Any:
    """An array of a list that holds followed numbers; None if it holds none."""
    things: list[Any] = []

    def number(part: Any) -> Any:
        if type(part) in (list, tuple):
            return [number(element) for element in part]
        things.append(part)
        return len(things) - 1

    places = number(nest)
    tape = current_tape()
    if tape is None or all(event_of(thing) is None for thing in things):
        return None
    if any(np.ndim(plain(thing)) for thing in things):
        return choose(tape, "array", list(nest), lambda *parts: np.array(parts), wrap)
    return choose(tape, "array", things, lambda *_: np.array(places), wrap)


class _Followed(ABC):
    """Operators that numpy's universal functions carry out."""

    followed_event: Event | None = None

    @abstractmethod
    def as_plain(self) -> Any:
        """The plain number or array."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return compute(ufunc, method, inputs, options, wrap)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return call_array_function(function, arguments, options, wrap)


def _binary(ufunc: Any, *, reflected: bool = False) -> Any:
    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float, np.generic, np.ndarray, list, tuple)):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return operate


def _unary(ufunc: Any) -> Any:
    def operate(self: Any) -> Any:
        return ufunc(self)

    return operate


def _used_number(name: str, kind: Any) -> Any:
    def operate(self: Any, *arguments: Any) -> Any:
        return getattr(kind(use(self)), name)(*arguments)

    return operate


class FollowedNumber(_Followed, float):
    """A float that remembers its noise."""

    def as_plain(self) -> float:
        """The plain float."""
        return float.__float__(self)

    def __hash__(self) -> int:
        return hash(use(self))

    def item(self) -> Any:
        """The same number, still followed."""
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(np.float64(use(self)), name)  # what only numpy's floats have


class FollowedInteger(_Followed, int):
    """A whole number that remembers its noise."""

    def as_plain(self) -> int:
        """The plain whole number."""
        return int.__int__(self)

    def __hash__(self) -> int:
        return hash(use(self))

    def item(self) -> Any:
        """The same number, still followed."""
        return self


for _kind, _plain in ((FollowedNumber, float), (FollowedInteger, int)):
    for _name, _ufunc in BINARY.items():
        setattr(_kind, f"__{_name}__", _binary(_ufunc))
        setattr(_kind, f"__r{_name}__", _binary(_ufunc, reflected=True))
    for _name, _ufunc in COMPARED.items():
        setattr(_kind, f"__{_name}__", _binary(_ufunc))
    for _name, _single in UNARY.items():
        setattr(_kind, f"__{_name}__", _unary(_single))
    for _name in ("float", "int", "round", "trunc", "floor", "ceil", "str", "repr", "format"):
        setattr(_kind, f"__{_name}__", _used_number(f"__{_name}__", _plain))


class FollowedArray(_Followed, np.ndarray[Any, Any]):
    """An array that remembers its noise."""

    def __array_finalize__(self, source: Any) -> None:
        self.followed_event = None

    def as_plain(self) -> Any:
        """The plain array."""
        return self.view(np.ndarray)

    @property
    def T(self) -> Any:  # the name that arrays have  # noqa: N802
        """The transposed array."""
        return self.transpose()

    def __getitem__(self, key: Any) -> Any:
        tape = current_tape()
        if tape is None or self.followed_event is None:
            return self.as_plain()[use(key)]
        return chosen(tape, "[]", self, lambda places: places[use(key)], wrap)

    def __setitem__(self, key: Any, value: Any) -> None:
        tape = current_tape()
        if tape is None or (self.followed_event is None and not is_noise_alone(value)):
            self.as_plain()[use(key)] = use(value)
            return

        def put(places: Any, new: Any) -> Any:
            updated = places.copy()
            updated[use(key)] = new
            return updated

        value = value if event_of(value) is not None else np.asarray(value)
        mixed = choose(tape, "[]=", [self, value], put, wrap)
        np.copyto(self.as_plain(), plain(mixed), casting="unsafe")
        self.followed_event = event_of(mixed)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __float__(self) -> float:
        return float(use(self))

    def __int__(self) -> int:
        return int(use(self))

    def __bool__(self) -> bool:
        return bool(use(self))

    def __repr__(self) -> str:
        return repr(use(self))

    def __str__(self) -> str:
        return str(use(self))

    def __reduce__(self) -> Any:
        return use(self).__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def copy(self, order: Any = "C") -> Any:
        """A copy, still followed."""
        tape = current_tape()
        if tape is None or self.followed_event is None:
            return self.as_plain().copy(order)
        return chosen(tape, "copy", self, lambda places: places, wrap)

    def flatten(self, order: Any = "C") -> Any:
        """A flat copy, still followed."""
        return self.reshape(-1, order=order)

    def sort(self, *arguments: Any, **options: Any) -> None:
        """Sort in place: this uses the numbers."""
        use(self).sort(*arguments, **options)
        self.followed_event = None

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        """The array as another type: followed if these are floats."""
        if np.dtype(dtype) == self.dtype:
            return self.copy()
        return use(self).astype(dtype, *arguments, **options)

    def tolist(self) -> Any:
        """A list of followed numbers, nested as the array is."""
        return [part.tolist() if np.ndim(part) else part for part in self]

    def item(self, *arguments: Any) -> Any:
        """One number, still followed."""
        places = np.arange(self.size).reshape(self.shape)
        return self.reshape(-1)[places.item(*arguments)]

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """The places of numbers among these, which may be levels of a law that is inverted."""
        return (
            np.searchsorted(use(self), v, side)
            if sorter is None
            else np.searchsorted(use(self), use(v), side, sorter)
        )

    def argmax(self, *arguments: Any, **options: Any) -> Any:
        """The place of the largest number."""
        return _place(self, False, arguments, options)

    def argmin(self, *arguments: Any, **options: Any) -> Any:
        """The place of the smallest number."""
        return _place(self, True, arguments, options)


def _in_place(ufunc: Any) -> Any:
    def operate(self: Any, other: Any) -> Any:
        result = ufunc(self, other)
        np.copyto(self.as_plain(), plain(result), casting="unsafe")
        self.followed_event = event_of(result)
        return self

    return operate


def _place(thing: FollowedArray, smallest: bool, arguments: Any, options: Any) -> Any:
    tape = current_tape()
    if tape is not None and thing.followed_event is not None and not (arguments or options):
        return place_of_largest(tape, thing, smallest)
    name = "argmin" if smallest else "argmax"
    return getattr(use(thing), name)(*arguments, **options)


def _choosing_method(name: str) -> Any:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        tape = current_tape()
        if tape is None or self.followed_event is None:
            return getattr(self.as_plain(), name)(*arguments, **options)
        pick = lambda places: getattr(places, name)(*arguments, **options)  # noqa: E731
        return chosen(tape, name, self, pick, wrap)

    return method


def _using_method(name: str) -> Any:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        plain_options = {key: use(value) for key, value in options.items()}
        function = getattr(np, name, None)
        if function is not None and self.followed_event is not None:
            return function(self, *arguments, **options)
        return getattr(use(self), name)(*map(use, arguments), **plain_options)

    return method


for _name in CHOOSING_METHODS:
    setattr(FollowedArray, _name, _choosing_method(_name))
for _name in ("add", "sub", "mul", "truediv"):
    setattr(FollowedArray, f"__i{_name}__", _in_place(BINARY[_name]))
for _name in USING_METHODS:
    setattr(FollowedArray, _name, _using_method(_name))
