"""Numbers and arrays that remember the noise in them, as operands of Python and of numpy.

An audit records what a function does with the random numbers that it draws, so that it can compute
the privacy loss of what is released.  Meanwhile noise is handed to the function as one of these
*followed* numbers.  Each holds a `NoisyNumber`, whose `View` says which noise is in it, with which
factor.  An operation gives another followed number where its noise is still known; else its
operands are *used*: they count as released as they are, and the result is plain.

Operators call numpy's universal functions, which `followed_steps` records on the `Tape` of the run.
The functions of numpy that are no universal functions are in `_call_array_function`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from audits.recorded_runs.followed_steps import (
    choose,
    compute,
    linear_step,
    noise_from_noise,
    written,
)
from audits.recorded_runs.noisy_numbers import (
    NoisyNumber,
    is_noise_alone,
    noisy_among,
    noisy_of,
    plain,
    use,
)
from audits.recorded_runs.questions import place_of_extreme
from audits.recorded_runs.tape import Tape, current_tape

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
# Methods of arrays that choose elements, which stay followed.
CHOOSING_METHODS = (
    "reshape", "ravel", "transpose", "squeeze", "take", "repeat", "swapaxes", "diagonal",
)  # fmt: skip
# Methods of arrays that use them, unless numpy has a function of this name that can be followed.
USING_METHODS = (
    "sum", "mean", "max", "min", "std", "var", "prod", "cumsum", "cumprod", "dot", "clip", "round",
    "argsort", "argpartition", "nonzero", "tobytes", "any",
    "all", "trace", "ptp",
)  # fmt: skip
# functions that choose elements of their first argument, or join elements of several
CHOOSING = {
    np.reshape, np.ravel, np.transpose, np.squeeze, np.expand_dims, np.copy, np.take, np.flip,
    np.roll, np.swapaxes, np.moveaxis, np.tile, np.repeat, np.diag, np.atleast_1d, np.delete,
    np.broadcast_to, np.split, np.array_split,
}  # fmt: skip
JOINING = {np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.append}
# functions that are linear in an argument: if this is noise alone, so is the result, of a known law
LINEAR = {
    np.sum, np.mean, np.cumsum, np.diff, np.trace, np.dot, np.vdot, np.inner, np.outer,
    np.tensordot, np.einsum, np.convolve, np.correlate, np.kron, np.cross, np.average,
    np.linalg.solve,
}  # fmt: skip
# functions that read the shape and the type of an argument, but none of its numbers
ABOUT_SHAPE = {np.shape, np.size, np.ndim, np.zeros_like, np.ones_like, np.empty_like, np.full_like}


def followed(result: Any) -> Any:
    """A result as code gets it: noise as a followed number or array, plain results as they are."""
    if not isinstance(result, NoisyNumber):
        return result
    output = result.output
    if isinstance(output, np.ndarray) and output.ndim:
        array = output.copy().view(FollowedArray)
        array.noisy_number = result
        return array
    kind = np.asarray(output).dtype.kind
    if kind == "b":  # Python has no subclass of bool, and ~ of a whole number is another one
        return output
    number: Any = FollowedInteger(int(output)) if kind in "iu" else FollowedNumber(float(output))
    number.noisy_number = result
    return number


def follow_nest(nest: Any) -> Any:
    """A followed array of a nested list that holds followed numbers; None if it holds none."""
    operands: list[Any] = []

    def positions_in(part: Any) -> Any:
        """The nest with each element replaced by its position in ``operands``."""
        if type(part) in (list, tuple):
            return [positions_in(element) for element in part]
        operands.append(part)
        return len(operands) - 1

    positions = positions_in(nest)
    tape = current_tape()
    if tape is None or not noisy_among(operands):
        return None
    if any(np.ndim(plain(operand)) for operand in operands):
        return followed(choose(tape, "array", list(nest), lambda *parts: np.array(parts)))
    return followed(choose(tape, "array", operands, lambda *_: np.array(positions)))


class _Followed(ABC):
    """What followed numbers and arrays have in common: numpy calls these methods of an operand."""

    noisy_number: NoisyNumber | None = None  # None if it is not followed any more

    @abstractmethod
    def as_plain(self) -> Any:
        """The plain number or array, which does not count as released by this call."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return followed(compute(ufunc, method, inputs, options))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return followed(_call_array_function(function, arguments, options))


def _binary(ufunc: Any, *, reflected: bool = False) -> Any:
    """An operator of two operands; ``reflected`` puts the other one first."""

    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float, np.generic, np.ndarray, list, tuple)):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return operate


def _used_number(name: str, kind: Any) -> Any:
    """A special method that uses the number, and is then that of its plain kind."""

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
        return getattr(np.float64(use(self)), name)  # code may expect one of numpy's floats


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
        setattr(_kind, f"__{_name}__", lambda self, function=_single: function(self))
    for _name in ("float", "int", "round", "trunc", "floor", "ceil", "str", "repr", "format"):
        setattr(_kind, f"__{_name}__", _used_number(f"__{_name}__", _plain))


class FollowedArray(_Followed, np.ndarray[Any, Any]):
    """An array that remembers its noise."""

    def __array_finalize__(self, source: Any) -> None:
        self.noisy_number = None

    def as_plain(self) -> Any:
        """The plain array."""
        return self.view(np.ndarray)

    @property
    def T(self) -> Any:  # the name that arrays have  # noqa: N802
        """The transposed array."""
        return self.transpose()

    def __getitem__(self, key: Any) -> Any:
        tape = current_tape()
        if tape is None or self.noisy_number is None:
            return self.as_plain()[use(key)]
        return chosen(tape, "[]", self, lambda positions: positions[use(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        tape = current_tape()
        if tape is None or (self.noisy_number is None and not is_noise_alone(value)):
            self.as_plain()[use(key)] = use(value)
            return

        # The array with the value in it is a choice of elements of both: `choose` calls ``put``
        # with the positions of the elements of this array, and of those of the value.
        def put(positions: Any, new_positions: Any) -> Any:
            updated = positions.copy()
            updated[use(key)] = new_positions
            return updated

        value = value if noisy_of(value) is not None else np.asarray(value)
        mixed = followed(choose(tape, "[]=", [self, value], put))
        np.copyto(self.as_plain(), plain(mixed), casting="unsafe")
        self.noisy_number = noisy_of(mixed)

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
        if tape is None or self.noisy_number is None:
            return self.as_plain().copy(order)
        return chosen(tape, "copy", self, lambda positions: positions)

    def flatten(self, order: Any = "C") -> Any:
        """A flat copy, still followed."""
        return self.reshape(-1, order=order)

    def sort(self, *arguments: Any, **options: Any) -> None:
        """Sort in place: this uses the numbers."""
        use(self).sort(*arguments, **options)
        self.noisy_number = None

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        """The array as another type: a followed copy if it is the same, else it is used."""
        if np.dtype(dtype) == self.dtype:
            return self.copy()
        return use(self).astype(dtype, *arguments, **options)

    def tolist(self) -> Any:
        """A list of followed numbers, nested as the array is."""
        return [part.tolist() if np.ndim(part) else part for part in self]

    def item(self, *arguments: Any) -> Any:
        """One number, still followed."""
        positions = np.arange(self.size).reshape(self.shape)
        return self.reshape(-1)[positions.item(*arguments)]

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """The places of numbers among these, which are used, as `numpy.searchsorted` has them.

        The numbers ``v`` stay followed: they may be uniform noise, and these the levels of a law
        that is drawn by inversion.
        """
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
    """An operator such as ``+=``: the array gets the numbers of the result, and its noise."""

    def operate(self: Any, other: Any) -> Any:
        result = ufunc(self, other)
        np.copyto(self.as_plain(), plain(result), casting="unsafe")
        self.noisy_number = noisy_of(result)
        return self

    return operate


def _place(operand: FollowedArray, smallest: bool, arguments: Any, options: Any) -> Any:
    """The place of the largest or smallest number; with an axis or options it uses all numbers."""
    tape = current_tape()
    if tape is not None and operand.noisy_number is not None and not (arguments or options):
        return place_of_extreme(tape, operand, smallest)
    name = "argmin" if smallest else "argmax"
    return getattr(use(operand), name)(*arguments, **options)


def _choosing_method(name: str) -> Any:
    """A method of `CHOOSING_METHODS`, applied to the positions of the elements."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        tape = current_tape()
        if tape is None or self.noisy_number is None:
            return getattr(self.as_plain(), name)(*arguments, **options)
        pick = lambda positions: getattr(positions, name)(*arguments, **options)  # noqa: E731
        return chosen(tape, name, self, pick)

    return method


def _using_method(name: str) -> Any:
    """A method of `USING_METHODS`, by numpy's function of this name if there is one."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        plain_options = {key: use(value) for key, value in options.items()}
        function = getattr(np, name, None)
        if function is not None and self.noisy_number is not None:
            return function(self, *arguments, **options)
        return getattr(use(self), name)(*map(use, arguments), **plain_options)

    return method


for _name in CHOOSING_METHODS:
    setattr(FollowedArray, _name, _choosing_method(_name))
for _name in ("add", "sub", "mul", "truediv"):
    setattr(FollowedArray, f"__i{_name}__", _in_place(BINARY[_name]))
for _name in USING_METHODS:
    setattr(FollowedArray, _name, _using_method(_name))


def _call_array_function(function: Any, arguments: Any, options: Any) -> Any:
    """Call a function of numpy of which an argument is followed.

    It is tried as a selection of elements, then as a function of noise alone; else all arguments
    are used.
    """
    tape = current_tape()
    if function in ABOUT_SHAPE:
        return function(*map(plain, arguments), **options)
    out = options.pop("out", None)
    result: Any = NotImplemented
    if tape is not None:
        result = _selection(tape, function, arguments, options)
        if result is NotImplemented:
            result = _function_of_noise(tape, function, arguments, options)
    if result is NotImplemented:
        plain_options = {name: use(value) for name, value in options.items()}
        result = function(*map(use, arguments), **plain_options)
    return written(result, out)


def _selection(tape: Tape, function: Any, arguments: Any, options: Any) -> Any:
    """The result of a function that selects, joins or places elements; else NotImplemented."""
    name: str = function.__name__
    operand: Any = arguments[0] if arguments else None
    pick: Any
    is_followed = noisy_of(operand) is not None
    if function in (np.argmax, np.argmin) and is_followed and len(arguments) == 1 and not options:
        return place_of_extreme(tape, operand, function is np.argmin)
    if function is np.diag and np.ndim(plain(operand)) == 1 and is_followed and not options:
        offset = arguments[1:]
        diagonal = np.diag(np.ones(len(operand), dtype=bool), *offset)
        pick = lambda places, zero: np.where(diagonal, np.diag(places, *offset), zero)  # noqa: E731
        return choose(tape, name, [operand, np.zeros(1)], pick)
    if function in CHOOSING and is_followed:
        pick = lambda positions: function(positions, *arguments[1:], **options)  # noqa: E731
        return chosen(tape, name, operand, pick)
    if function in (np.triu, np.tril) and is_followed:
        return operand * function(np.ones(np.shape(plain(operand))), *arguments[1:], **options)
    if function is np.append:
        array, appended, axis = by_name(("arr", "values", "axis"), arguments, options)
        pick = lambda *parts: np.append(*parts, axis)  # noqa: E731
        return choose(tape, name, [array, appended], pick)
    if function in JOINING and arguments:
        pick = lambda *parts: function(parts, *arguments[1:], **options)  # noqa: E731
        return choose(tape, name, list(operand), pick)
    if function is np.where and len(arguments) == 3:
        condition, *branches = arguments
        condition = use(condition)
        branches = [part if noisy_of(part) is not None else np.asarray(part) for part in branches]
        return choose(tape, name, branches, lambda a, b: np.where(condition, a, b))
    if function in (np.searchsorted, np.digitize):
        return _place_among_levels(function, arguments, options)
    return NotImplemented


def _function_of_noise(tape: Tape, function: Any, arguments: Any, options: Any) -> Any:
    """The noise that a function makes of noise alone; NotImplemented for other arguments."""
    name: str = function.__name__
    noises = noisy_among(arguments)
    # An array of values and noises is still being made: a sum of it may be what is released.
    is_mixed = (
        function in LINEAR
        and len(noises) == 1
        and not noises[0].used
        and bool((noises[0].view.noises < 0).all(axis=-1).any())
    )
    if not noises or not (is_mixed or all(noise.pure for noise in noises)):
        return NotImplemented
    # The solution of linear equations is linear in the right side, but not in the matrix.
    is_solve_of_noisy_matrix = function is np.linalg.solve and noisy_of(arguments[0]) is not None
    if function in LINEAR and not is_solve_of_noisy_matrix:
        linear = linear_step(tape, name, function, arguments, options)
        if linear is not NotImplemented or is_mixed:
            return linear
    computed = function(*map(plain, arguments), **options)
    if not isinstance(computed, (np.ndarray, np.generic)):
        return NotImplemented
    return noise_from_noise(tape, name, computed, arguments, options)


def chosen(tape: Tape, name: str, operand: Any, pick: Callable[[Any], Any]) -> Any:
    """Elements of one followed array; a list of arrays if it is split.

    ``pick`` gets an array of the positions of all elements, and returns those of the chosen ones.
    """
    shape = np.shape(plain(operand))
    parts = pick(np.arange(int(np.prod(shape))).reshape(shape))
    if isinstance(parts, list):
        return [
            followed(choose(tape, name, [operand], lambda _, part=part: part)) for part in parts
        ]
    return followed(choose(tape, name, [operand], lambda _: parts))


def by_name(names: Sequence[str], arguments: Any, options: Any) -> list[Any]:
    """The arguments of these names, given by place or by name; None for one that is not given."""
    named_arguments = {**dict(zip(names, arguments, strict=False)), **options}
    return [named_arguments.get(name) for name in names]


def _place_among_levels(function: Any, arguments: Any, options: Any) -> Any:
    """The places of followed numbers among plain levels, by a comparison with each level.

    The function is `numpy.searchsorted` or `numpy.digitize`.  A place is the number of levels
    below a number, as long as the levels do not fall.
    """
    if function is np.searchsorted:
        names = ("a", "v", "side", "sorter")
        levels, operand, side, sorter = by_name(names, arguments, options)
        counts_equal = side == "right"
    else:
        operand, levels, right = by_name(("x", "bins", "right"), arguments, options)
        counts_equal, sorter = not right, None
    if noisy_of(levels) is not None or noisy_of(operand) is None or np.ndim(levels) != 1:
        return NotImplemented
    if sorter is not None or (np.diff(levels) < 0).any():
        return NotImplemented
    below = np.less_equal if counts_equal else np.less
    places = below(levels, operand if np.ndim(plain(operand)) == 0 else operand[..., None])
    return places.sum(axis=-1)
