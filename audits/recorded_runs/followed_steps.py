"""What recorded code computes with followed numbers: arithmetic, selections, functions of noise.

An audit hands noise to the code as *followed* numbers, to see to which private value it is added,
and with which factor: only then the privacy loss of what is released is known.  What the code does
with a followed number has one of these effects:

- a *step* gives a new followed number ``value + factor x noise``: addition, multiplication by plain
  numbers, the selection of elements, and of noise alone, called *pure*, also a linear map;
- a *question*, such as a comparison, gives a plain answer (`questions`);
- another function of noise alone is noise of an unknown law;
- anything else *uses* the number: it then counts as released, and what is computed is plain.

A step is recorded on the `Tape` of the run, and gives a `NoisyNumber`; its `View` has the value,
and each noise in it with its factor.  `followed_values` calls these functions from the operators of
numbers and arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.recorded_runs.call_sites import call_site
from audits.recorded_runs.noisy_numbers import (
    NoisyNumber,
    is_noise_alone,
    is_unused,
    noisy_among,
    noisy_of,
    plain,
    use,
    view_of,
)
from audits.recorded_runs.questions import COMPARISON_SIGNS, compared
from audits.recorded_runs.tape import Tape, current_tape
from audits.recorded_runs.views import View, add, fits, join, linear_map, scale, select

# ufuncs that are linear in each of their two operands
LINEAR_PRODUCTS = {"matmul", "vecdot", "matvec", "vecmat"}
LINEAR_SUMS = {"reduce", "accumulate", "reduceat"}  # methods of add
LARGEST_EXACT = 2**53  # the floats up to it include all whole numbers
SUMS = {"add", "subtract", "multiply", "divide"}
HARMLESS = {"isfinite", "isnan", "isinf"}  # they reveal nothing about noise that has a density


def compute(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Any) -> Any:
    """Call a numpy ufunc with a followed input; the result is a `NoisyNumber`, or plain.

    Three ways are tried in turn: arithmetic or a comparison that can be followed, a function of
    noise alone, and the call with plain numbers.  By the last the inputs count as released, but
    not by the functions in `HARMLESS`.  A way that does not apply returns ``NotImplemented``.
    """
    out = options.pop("out", None)
    tape = current_tape()
    followed = [x for x in inputs if noisy_of(x) is not None]
    are_numbers = all(np.asarray(plain(x)).dtype.kind in "biuf" for x in inputs)
    is_plain_call = method == "__call__" and not options and are_numbers
    result: Any = NotImplemented
    integers = [x for x in map(np.asarray, map(plain, inputs)) if x.dtype.kind in "iuO" and x.size]
    # Views are made of floats, which do not tell apart larger whole numbers.
    if tape is not None and any(
        np.any((x > LARGEST_EXACT) | (x < -LARGEST_EXACT)) for x in integers
    ):
        tape.beyond_floats.append(call_site())
        tape = None  # the inputs are used
    if tape is not None and is_plain_call and any(map(is_unused, inputs)):
        result = _arithmetic(tape, ufunc, inputs, followed)
    # A second call of ``at`` would change its first operand once more.
    # A sum of another type, as by ``dtype``, may be one with a private number.
    is_typed_sum = ufunc.__name__ in SUMS and method == "__call__" and bool(options)
    is_of_noise = method != "at" and ufunc.nout == 1 and is_noise_alone(*followed)
    is_of_noise = is_of_noise and not is_typed_sum
    if result is NotImplemented and tape is not None and is_of_noise:
        result = _function_of_noise(tape, ufunc, method, inputs, options)
    if result is NotImplemented:
        harmless = ufunc.__name__ in HARMLESS
        plain_inputs = [plain(x) if harmless else use(x) for x in inputs]
        result = getattr(ufunc, method)(*plain_inputs, **options)
    if out is None:
        return result
    if ufunc.nout > 1:
        return tuple(map(written, result, out))
    return written(result, out[0])


def written(result: Any, target: Any) -> Any:
    """Write a result to the array ``target``, if any; return what stands for the result then."""
    if target is None:
        return result
    output = result.output if isinstance(result, NoisyNumber) else plain(result)
    np.copyto(np.asarray(plain(target)), output, casting="unsafe")
    is_followed = isinstance(result, NoisyNumber) or noisy_of(result) is not None
    return result if is_followed else target


def _arithmetic(tape: Tape, ufunc: np.ufunc, inputs: tuple[Any, ...], followed: list[Any]) -> Any:
    """The followed result of arithmetic on numbers; NotImplemented if the noise is not followed.

    ``followed`` are those of the ``inputs`` that are followed.  A comparison has a plain answer.
    """
    name = ufunc.__name__
    if name in COMPARISON_SIGNS:
        return compared(tape, ufunc, inputs)
    if name in ("log", "absolute", "sign", "copysign"):
        is_pure = is_noise_alone(*followed)
        return _log_size_or_sign(tape, ufunc, inputs) if is_pure else NotImplemented
    if name in ("negative", "positive"):
        view = scale(view_of(inputs[0]), -1.0 if name == "negative" else 1.0)
    elif name in ("add", "subtract"):
        inputs = _operands_of_sum(tape, inputs)
        left_view, right_view = map(view_of, inputs)
        view = add(left_view, right_view, 1.0 if name == "add" else -1.0)
    elif name in ("multiply", "divide", "true_divide"):
        noisy = followed[0]
        # A product of two noises, and a number divided by noise, are not followed.
        at_divisor = name != "multiply" and noisy is not inputs[0]
        if len(followed) > 1 or at_divisor or not _still_being_made(noisy, _result_shape(inputs)):
            return NotImplemented
        factor = np.asarray(inputs[1] if noisy is inputs[0] else inputs[0], dtype=float)
        with np.errstate(all="ignore"):
            view = scale(view_of(noisy), factor if name == "multiply" else 1 / factor)
    else:
        return NotImplemented
    # `_operands_of_sum` may have released some of the operands, or all.
    still_followed = list(filter(is_unused, inputs))
    if not still_followed:
        return NotImplemented
    is_sum_with_number = name in ("add", "subtract") and len(still_followed) < len(inputs)
    adds_value = is_sum_with_number and not _is_uniform_shifted(tape, inputs)
    pure = is_noise_alone(*still_followed) and not adds_value
    return _step(tape, name, lambda: ufunc(*map(plain, inputs)), view, still_followed, pure)


def _result_shape(inputs: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of the result of arithmetic with these inputs."""
    return np.broadcast_shapes(*(np.shape(plain(x)) for x in inputs))


def _still_being_made(operand: Any, shape: tuple[int, ...]) -> bool:
    """Whether arithmetic with this operand, with a result of this shape, is followed.

    It is for noise alone, and for a noisy number of this shape within the line of code that made
    it.  If a later line computes with a noisy number, the number counts as released.
    """
    noisy = noisy_of(operand)
    if noisy is None or noisy.used:
        return False
    return noisy.pure or (noisy.site == call_site() and noisy.view.shape == shape)


def _operands_of_sum(tape: Tape, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The two operands of a sum, with plain numbers in place of those that are released by it.

    A noisy number stays followed if pure noise is added to it and the result has its shape, or
    within the line that made it; both are released if the view of the sum would be too large.
    """
    shape = _result_shape(inputs)
    is_small_enough = fits([view_of(x) for x in inputs], shape)
    first, second = inputs
    operands = []
    for operand, other in ((first, second), (second, first)):
        noisy, noisy_other = noisy_of(operand), noisy_of(other)
        other_is_pure = noisy_other is not None and noisy_other.pure
        gets_more_noise = other_is_pure and np.shape(plain(operand)) == shape
        stays = gets_more_noise or _still_being_made(operand, shape)
        if noisy is not None and noisy.pure and np.shape(operand) != shape:
            # One uniform number added to many values hides none of them.
            stays = stays and not tape.laws_of(noisy.view) <= {"uniform"}
        operands.append(operand if stays and is_small_enough else use(operand))
    return tuple(operands)


def _is_uniform_shifted(tape: Tape, inputs: tuple[Any, ...]) -> bool:
    """Whether a sum is a plain number and a uniform one, as in 1 - u: it is still noise alone."""
    noises = noisy_among(inputs)
    are_single_numbers = all(type(x) in (int, float) for x in inputs if noisy_of(x) is None)
    is_uniform = len(noises) == 1 and tape.laws_of(noises[0].view) == {"uniform"}
    return is_uniform and are_single_numbers


def _step(
    tape: Tape,
    name: str,
    make: Callable[[], Any],
    view: View,
    operands: list[Any],
    pure: bool,
    equal: dict[str, Any] | None = None,
) -> NoisyNumber:
    """Record a step on these operands; ``make`` computes its plain result, which has this view.

    ``pure`` says that the result is noise alone, and ``equal`` has what must be equal in both runs.
    """
    tape.withdraw_step(name, noisy_among(operands))
    result = tape.step(name, make, view, pure, equal)
    for noisy in noisy_among(operands):
        noisy.steps += 1
    return result


def choose(tape: Tape, name: str, operands: list[Any], pick: Callable[..., Any]) -> Any:
    """Pick elements of followed and plain arrays: indexing, reshaping, joining.

    Position k is the k-th element of all operands, flattened and joined.  ``pick`` gets for each
    operand an array of the positions of its elements, and returns an array of those it picks.
    """
    sizes = [np.size(plain(operand)) for operand in operands]
    # the position of the first element of each operand
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    positions = [
        np.arange(start, start + size).reshape(np.shape(plain(operand)))
        for start, size, operand in zip(starts, sizes, operands, strict=True)
    ]
    chosen = np.asarray(pick(*positions))
    view = select(join([view_of(operand) for operand in operands]), chosen)
    followed = [operand for operand in operands if noisy_of(operand) is not None]
    flat = np.concatenate([np.ravel(plain(operand)) for operand in operands])
    if (view.noises < 0).all():
        return flat[chosen]
    # The result is still noise alone if its elements without noise are all 0.
    pure = is_noise_alone(*followed) and not np.any(view.value[(view.noises < 0).all(axis=-1)])
    return _step(tape, name, lambda: flat[chosen], view, followed, pure)


def _function_of_noise(tape: Tape, ufunc: np.ufunc, method: str, inputs: Any, options: Any) -> Any:
    """Record a function of noise alone; unless it is linear, its noise is of an unknown law."""
    is_sum = ufunc is np.add and method in LINEAR_SUMS
    if is_sum or (ufunc.__name__ in LINEAR_PRODUCTS and method == "__call__"):
        result = linear_step(tape, ufunc.__name__, getattr(ufunc, method), inputs, options)
        if result is not NotImplemented:
            return result
    computed = getattr(ufunc, method)(*map(plain, inputs), **options)
    return noise_from_noise(tape, ufunc.__name__, computed, inputs, options)


def linear_step(
    tape: Tape,
    name: str,
    function: Callable[..., Any],
    arguments: Any,
    options: Any,
) -> Any:
    """Record a function that is linear in its one followed argument.

    The result is `NotImplemented` if more arguments are followed, or its view is not.
    """
    followed_positions = [k for k, x in enumerate(arguments) if noisy_of(x) is not None]
    if len(followed_positions) != 1 or noisy_among(options.values()):
        return NotImplemented
    (position,) = followed_positions
    noise = arguments[position]

    def image(values: Any) -> Any:
        return function(*arguments[:position], values, *arguments[position + 1 :], **options)

    view = linear_map(view_of(noise), image)
    if view is None:
        return NotImplemented
    return _step(tape, name, lambda: image(plain(noise)), view, [noise], is_noise_alone(noise))


def noise_from_noise(
    tape: Tape, name: str, computed: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Record noise of an unknown law, which a function ``computed`` from these arguments.

    The plain arguments must be equal in both runs, and so must what is added to the noise in the
    followed ones.
    """
    if np.asarray(computed).dtype.kind not in "biuf":
        return NotImplemented
    named = {f"operand {k}": x for k, x in enumerate(arguments)} | options
    equal = {label: x for label, x in named.items() if noisy_of(x) is None}
    followed = [x for x in arguments if noisy_of(x) is not None]
    for k, operand in enumerate(followed):
        value = view_of(operand).value
        if np.any(value):
            equal[f"what is added to noise {k}"] = value
    shape = np.shape(computed)
    origins = frozenset().union(*(tape.origins_of(view_of(x)) for x in followed))
    noises = tape.number_noises("unknown", 1.0, name, shape, origins)
    view = View(noises, np.ones(noises.shape), np.zeros(shape))
    return _step(tape, name, lambda: computed, view, followed, True, equal)


def _log_size_or_sign(tape: Tape, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """The logarithm, size or sign of noise alone, if its law is known; else NotImplemented."""
    name = ufunc.__name__
    if name in ("log", "absolute"):
        noisy = noisy_of(inputs[0])
        if noisy is None or noisy.view.noises.shape[-1] != 1:
            return NotImplemented
        if tape.laws_of(noisy.view) != {"uniform"}:
            return NotImplemented
        of_uniform = _log_of_uniform if name == "log" else _size_of_uniform
        view = of_uniform(tape, noisy.view)
        if view is None:
            return NotImplemented
        return _step(tape, name, lambda: ufunc(plain(inputs[0])), view, [inputs[0]], True)
    if noisy_of(inputs[-1]) is None:
        return NotImplemented
    # The sign of noise is the answer to a question.
    above = compared(tape, np.greater_equal, (inputs[-1], 0.0))
    signs = np.where(above, 1.0, -1.0)[()]
    return signs if name == "sign" else signs * np.abs(inputs[0])


def _size_of_uniform(tape: Tape, view: View) -> View | None:
    """The view of |f U - f / 2|, which is uniform on [0, |f| / 2]; None of another sum.

    U is noise that is uniform on [0, 1], and f its factor.
    """
    if np.any(view.value + view.factors[..., 0] / 2 != 0):
        return None
    noises = tape.number_noises("uniform", 1.0, "abs", view.shape, tape.origins_of(view))
    return View(noises, np.abs(view.factors) / 2, np.zeros(view.shape))


def _log_of_uniform(tape: Tape, view: View) -> View | None:
    """The view of log(f U) or log(f - f U) with f > 0; None of another sum.

    U is noise that is uniform on [0, 1].  The logarithms are log f + log U and log f + log(1 - U),
    in which -log U and -log(1 - U) are exponential noise.
    """
    factors, value = view.factors[..., 0], view.value
    if not np.all(((value == 0) & (factors > 0)) | ((value == -factors) & (factors < 0))):
        return None
    origins = tape.origins_of(view)
    noises = tape.number_noises("log of uniform", 1.0, "log", view.shape, origins)
    return View(noises, np.ones(noises.shape), np.log(np.abs(factors)))
