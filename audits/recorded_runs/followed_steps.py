"""What recorded code does with a noisy number: steps, questions and uses.

An audit runs a function twice, on data and on their neighbour, and the second run gets the outputs
that the `Tape` of the first recorded.  A run hands out noise as a *followed* number: an object that
holds the `Event` which made it, whose `View` says how much of which noise is in it, and what was
added.  The privacy loss is only known when the noise is added to the private value, so arithmetic
must not hide it.

What the code does with a followed number has one of these effects:

- a *step* gives a new followed number ``value + factor x noise``: addition, multiplication by plain
  numbers, the selection of elements, and of noise alone, called *pure*, also a linear map;
- a *question*, such as a comparison, gives a plain answer, which is recorded;
- another function of noise alone is noise of an unknown law;
- anything else *uses* the number: it then counts as released, and what is computed is plain.

`followed_values` calls these functions from the operators of numbers and arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from audits.recorded_runs.call_sites import call_site
from audits.recorded_runs.tape import COMPARISON, Event, EventKind, Tape, current_tape
from audits.recorded_runs.views import (
    View,
    add,
    broadcast,
    fits,
    join,
    linear_map,
    plain_view,
    scale,
    select,
)

# the sign of (first - second) for which the comparison is true
GREATER = {"greater": 1.0, "greater_equal": 1.0, "less": -1.0, "less_equal": -1.0}
LINEAR_PRODUCTS = {"matmul", "vecdot", "matvec", "vecmat"}
LINEAR_SUMS = {"reduce", "accumulate", "reduceat"}  # methods of add
HARMLESS = {"isfinite", "isnan", "isinf"}  # they reveal nothing about noise that has a density
ROUND_OFF = 1e-9  # absolute: by how much sums of probabilities may be wrong by rounding


def event_of(operand: Any) -> Event | None:
    """The event that made a followed number; None for a plain one."""
    return getattr(operand, "followed_event", None)


def _events_of(operands: Iterable[Any]) -> list[Event]:
    """The events of those operands that are followed."""
    return [event for event in map(event_of, operands) if event is not None]


def plain(operand: Any) -> Any:
    """The plain number, array or nest of these; nothing counts as released by this call."""
    if hasattr(operand, "as_plain"):  # also a tensor or array that is no longer followed
        return operand.as_plain()
    if type(operand) in (tuple, list):
        return type(operand)(map(plain, operand))
    return operand


def use(operand: Any) -> Any:
    """The plain number, array or nest of these; what is followed in it counts as released."""
    event = event_of(operand)
    if event is not None:
        event.used = True
    if hasattr(operand, "as_plain"):
        return operand.as_plain()
    if type(operand) in (tuple, list):
        return type(operand)(map(use, operand))
    return operand


def view_of(operand: Any) -> View:
    """The view of an operand; an operand that was used already counts as its plain number."""
    event = event_of(operand)
    if event is None or event.view is None or event.used:
        return plain_view(plain(operand))
    return event.view


def compute(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Any) -> Any:
    """Call a numpy ufunc with a followed input; the result is an event, or plain.

    Three ways are tried in turn: arithmetic or a comparison that can be followed, a function of
    noise alone, and the call with plain numbers.  By the last the inputs count as released, but
    not by the functions in `HARMLESS`.
    """
    out = options.pop("out", None)
    tape = current_tape()
    followed = [x for x in inputs if event_of(x) is not None]
    are_numbers = all(np.asarray(plain(x)).dtype.kind in "biuf" for x in inputs)
    is_plain_call = method == "__call__" and not options and are_numbers
    result: Any = NotImplemented
    if tape is not None and is_plain_call and any(map(_is_unused, inputs)):
        result = _arithmetic(tape, ufunc, inputs, followed)
    if result is NotImplemented and tape is not None and _all_pure(followed):
        result = _function_of_noise(tape, ufunc, method, inputs, options)
    if result is NotImplemented:
        harmless = ufunc.__name__ in HARMLESS
        plain_inputs = [plain(x) if harmless else use(x) for x in inputs]
        result = getattr(ufunc, method)(*plain_inputs, **options)
    if out is None or out[0] is None:
        return result
    output = result.output if isinstance(result, Event) else plain(result)
    np.copyto(np.asarray(plain(out[0])), output, casting="unsafe")
    is_followed = isinstance(result, Event) or event_of(result) is not None
    return result if is_followed else out[0]


def _is_unused(operand: Any) -> bool:
    """Whether this is a followed number that does not count as released."""
    event = event_of(operand)
    return event is not None and not event.used


def is_noise_alone(operand: Any) -> bool:
    """Whether this is noise to which nothing was added, and that does not count as released."""
    return event_of(operand) is not None and _all_pure([operand])


def _all_pure(followed: list[Any]) -> bool:
    events = list(map(event_of, followed))
    return bool(events) and all(
        event is not None and event.pure and not event.used for event in events
    )


def _arithmetic(tape: Tape, ufunc: np.ufunc, inputs: tuple[Any, ...], followed: list[Any]) -> Any:
    """The followed result of arithmetic on numbers; NotImplemented if the noise is not followed."""
    name = ufunc.__name__
    if name in GREATER:
        return _question(tape, ufunc, inputs)
    if name in ("log", "absolute"):
        if not _all_pure(followed):
            return NotImplemented
        of_uniform = _log_of_uniform if name == "log" else _size_of_uniform
        return of_uniform(tape, ufunc, inputs[0])
    # The sign of noise is the answer to a question.
    if name in ("sign", "copysign") and event_of(inputs[-1]) is not None and _all_pure(followed):
        above = _question(tape, np.greater_equal, (inputs[-1], 0.0))
        signs = np.where(above, 1.0, -1.0)[()]
        return signs if name == "sign" else signs * np.abs(inputs[0])
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
        if len(followed) > 1 or at_divisor or not _still_being_made(noisy, _shape(inputs)):
            return NotImplemented
        factor = np.asarray(inputs[1] if noisy is inputs[0] else inputs[0], dtype=float)
        with np.errstate(all="ignore"):
            view = scale(view_of(noisy), factor if name == "multiply" else 1 / factor)
    else:
        return NotImplemented
    # `_operands_of_sum` may have released some of the operands, or all.
    still_followed = list(filter(_is_unused, inputs))
    if not still_followed:
        return NotImplemented
    is_sum_with_number = name in ("add", "subtract") and len(still_followed) < len(inputs)
    adds_value = is_sum_with_number and not _is_uniform_shifted(tape, inputs)
    pure = _all_pure(still_followed) and not adds_value
    return step(tape, name, lambda: ufunc(*map(plain, inputs)), view, still_followed, pure)


def _shape(inputs: tuple[Any, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(plain(x)) for x in inputs))


def _still_being_made(operand: Any, shape: tuple[int, ...]) -> bool:
    """Whether arithmetic with this operand, with a result of this shape, is followed.

    It is for noise alone, and for a noisy number of this shape within the line of code that made
    it.  If a later line computes with a noisy number, the number counts as released.
    """
    event = event_of(operand)
    if event is None or event.used:
        return False
    return event.pure or (event.site == call_site() and event.shape == shape)


def _operands_of_sum(tape: Tape, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of a sum, with plain numbers in place of those that are released by it.

    A noisy number stays followed if pure noise of the shape of the result is added to it, or within
    the line that made it; all are released if the view of the sum would be too large (`fits`).
    """
    shape = _shape(inputs)
    events = list(map(event_of, inputs))
    pure = [event is not None and event.pure for event in events]
    followable = fits([view_of(x) for x in inputs], shape)
    operands = []
    for k, operand in enumerate(inputs):
        gets_more_noise = pure[1 - k] and np.shape(plain(operand)) == shape
        stays = gets_more_noise or _still_being_made(operand, shape)
        if pure[k] and np.shape(operand) != shape and _laws_of(tape, events[k]) <= {"uniform"}:
            stays = False  # one uniform number added to many values hides none of them
        operands.append(operand if stays and followable else use(operand))
    return tuple(operands)


def _is_uniform_shifted(tape: Tape, inputs: tuple[Any, ...]) -> bool:
    """Whether a sum is a plain number and a uniform one, as in 1 - u: it is still noise alone."""
    numbers = [x for x in inputs if event_of(x) is None]
    noises = [x for x in inputs if event_of(x) is not None]
    return (
        len(noises) == 1
        and all(type(x) in (int, float) for x in numbers)
        and _laws_of(tape, event_of(noises[0])) == {"uniform"}
    )


def step(
    tape: Tape,
    name: str,
    make: Callable[[], Any],
    view: View,
    followed: list[Any],
    pure: bool,
    counted: bool = True,
    **facts: Any,
) -> Any:
    """Record a step and return its event; ``make`` computes its plain output.

    ``followed`` are the followed operands; ``pure`` says that the result is noise alone.  In the
    second run the tape takes `pure` from the recorded event.
    """
    event = tape.event(EventKind.STEP, name, make, shape=view.shape, view=view, **facts)
    if tape.recorded is None:
        event.pure = pure
        event.uniform = pure and _laws_of(tape, event) == {"uniform"}
    for operand_event in _events_of(followed):
        operand_event.steps += counted
    return event


def choose(tape: Tape, name: str, operands: list[Any], pick: Callable[..., Any]) -> Any:
    """Pick elements of followed and plain arrays: indexing, reshaping, joining.

    Position k is the k-th element of all operands, flattened and joined.  ``pick`` gets for each
    operand an array of the positions of its elements, and returns an array of those it picks.
    """
    sizes = [np.size(plain(operand)) for operand in operands]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    positions = [
        np.arange(start, start + size).reshape(np.shape(plain(operand)))
        for start, size, operand in zip(starts, sizes, operands, strict=True)
    ]
    chosen = np.asarray(pick(*positions))
    view = select(join([view_of(operand) for operand in operands]), chosen)
    followed = [operand for operand in operands if event_of(operand) is not None]
    flat = np.concatenate([np.ravel(plain(operand)) for operand in operands])
    if (view.noises < 0).all():
        return flat[chosen]
    # The result is still noise alone if its elements without noise are all 0.
    pure = _all_pure(followed) and not np.any(view.value[(view.noises < 0).all(axis=-1)])
    return step(tape, name, lambda: flat[chosen], view, followed, pure)


def ask(tape: Tape, name: str, outcome: Any, sides: tuple[View, View], operands: list[Any]) -> Any:
    """Record that code learned which side is greater; return the recorded outcome."""
    event = tape.event(
        EventKind.QUESTION, name, lambda: outcome, shape=np.shape(outcome), sides=sides
    )
    for operand_event in _events_of(operands):
        operand_event.asked += 1
    return event.output.copy() if isinstance(event.output, np.ndarray) else event.output


def _question(tape: Tape, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """The answer to a comparison, which is recorded; NotImplemented if no operand is followed."""
    for operand, threshold in (inputs, inputs[::-1]):
        if event_of(operand) is not None and _is_threshold(tape, operand, threshold):
            use(operand)
    if not any(map(_is_unused, inputs)):
        return NotImplemented
    outcome = ufunc(*map(plain, inputs))
    greater, smaller = (broadcast(view_of(x), np.shape(outcome)) for x in inputs)
    followed = [x for x in inputs if event_of(x) is not None]
    if GREATER[ufunc.__name__] < 0:
        greater, smaller = smaller, greater
    earlier_question = tape.expected()  # the recorded event at this place, in the second run
    answer = ask(tape, COMPARISON, outcome, (greater, smaller), followed)
    pure = all(event.pure for event in _events_of(followed))
    earlier_sides = () if earlier_question is None else earlier_question.sides or ()
    has_plain_side_moved = any(
        (side.noises < 0).all() and not np.array_equal(earlier.value, side.value, equal_nan=True)
        for earlier, side in zip(earlier_sides, (greater, smaller), strict=False)
    )
    if has_plain_side_moved and not pure:
        # The plain side differs between the runs, so it is private; and the other holds a value.
        # The noisy number then counts as released, and this run goes on with its own outcome.
        tape.events[-1].sides = None
        for operand in followed:
            use(operand)
        return outcome
    return answer


def _is_threshold(tape: Tape, operand: Any, threshold: Any) -> bool:
    """Whether a uniform number is compared with more plain ones than it has elements.

    It is then a random threshold and no coin, unless the plain numbers are cumulative
    probabilities, as in a draw by inversion: these rise to 1.
    """
    event = event_of(operand)
    if event is None or event.used or not event.pure or event_of(threshold) is not None:
        return False
    levels = np.asarray(threshold, dtype=float)
    plain_operand = plain(operand)
    as_many = levels.size <= np.size(plain_operand) and levels.ndim <= np.ndim(plain_operand)
    if as_many or _laws_of(tape, event) != {"uniform"}:
        return False
    view = event.view
    if view is None or view.noises.shape[-1] != 1 or not levels.size:
        return True
    factors = view.factors[..., 0]
    with np.errstate(all="ignore"):
        uniform_levels = np.atleast_1d((levels - view.value) / factors)
    # The level of the uniform number U at which value + factor U is the plain number.
    rises = np.all(np.diff(uniform_levels) >= -ROUND_OFF)
    return not (rises and np.all(np.abs(uniform_levels[..., -1] - 1) < ROUND_OFF))


def place_of_largest(tape: Tape, operand: Any, smallest: bool = False) -> Any:
    """Record that code learned the position of the largest number, and return that position."""
    flat = np.ravel(operand.as_plain())
    best = np.argmin(flat) if smallest else np.argmax(flat)
    view = view_of(operand)
    all_numbers = select(view, np.arange(flat.size))
    winner = select(view, np.full(flat.size, int(best)))
    sides = (all_numbers, winner) if smallest else (winner, all_numbers)
    name = "argmin" if smallest else "argmax"
    event = tape.event(EventKind.QUESTION, name, lambda: best, shape=(flat.size,), sides=sides)
    for operand_event in _events_of([operand]):
        operand_event.asked += 1
    return event.output


def _function_of_noise(tape: Tape, ufunc: np.ufunc, method: str, inputs: Any, options: Any) -> Any:
    """Record a function of noise alone; unless it is linear, its noise is of an unknown law."""
    sums = ufunc is np.add and method in LINEAR_SUMS
    if sums or (ufunc.__name__ in LINEAR_PRODUCTS and method == "__call__"):
        result = linear_step(tape, ufunc.__name__, getattr(ufunc, method), inputs, options)
        if result is not NotImplemented:
            return result
    plain_inputs = [plain(x) for x in inputs]
    others = plain_arguments(inputs, options)
    computed = getattr(ufunc, method)(*plain_inputs, **options)
    return noise_from_noise(tape, ufunc.__name__, computed, list(inputs), others)


def linear_step(
    tape: Tape,
    name: str,
    function: Callable[..., Any],
    arguments: Any,
    options: Any,
) -> Any:
    """Record a function that is linear in its one followed argument, which is noise alone.

    The result is `NotImplemented` if more arguments are followed, or its view is not.
    """
    followed_positions = [k for k, x in enumerate(arguments) if event_of(x) is not None]
    if len(followed_positions) != 1 or any(event_of(x) is not None for x in options.values()):
        return NotImplemented
    (position,) = followed_positions
    noise = arguments[position]

    def of(values: Any) -> Any:
        return function(*arguments[:position], values, *arguments[position + 1 :], **options)

    view = linear_map(view_of(noise), of)
    if view is None:
        return NotImplemented
    return step(tape, name, lambda: of(plain(noise)), view, [noise], True)


def plain_arguments(arguments: Any, options: Any) -> dict[str, Any]:
    """The arguments that are not followed, by name; they must be equal in both runs."""
    named = {f"operand {k}": x for k, x in enumerate(arguments) if event_of(x) is None}
    return named | {name: x for name, x in options.items() if event_of(x) is None}


def noise_from_noise(
    tape: Tape, name: str, computed: Any, operands: list[Any], others: dict[str, Any]
) -> Any:
    """Record noise of an unknown law that was made of other noise and of ``others``.

    What is added to that noise must be equal in both runs, like the others.
    """
    if np.asarray(computed).dtype.kind not in "biuf":
        return NotImplemented
    followed = [x for x in operands if event_of(x) is not None]
    added = {f"what is added to noise {k}": view_of(x).value for k, x in enumerate(followed)}
    others = {**others, **{label: value for label, value in added.items() if np.any(value)}}
    shape = np.shape(computed)
    origins = frozenset().union(*(tape.origins_of(view_of(x)) for x in followed))
    numbers = tape.number_noises("unknown", 1.0, name, shape, origins)[..., None]
    view = View(numbers, np.ones(numbers.shape), np.zeros(shape))
    return step(tape, name, lambda: computed, view, followed, True, equal=others)


def _laws_of(tape: Tape, event: Event | None) -> set[str]:
    """The names of the laws of the noises in an event; none for an event that is not followed."""
    if event is None or event.view is None:
        return set()
    noises = event.view.noises
    return {
        block.law
        for block in tape.blocks
        if np.any((noises >= block.start) & (noises < block.stop))
    }


def _single_uniform(tape: Tape, operand: Any) -> View | None:
    """The view of an operand whose every element has one uniform noise; None of any other."""
    event = event_of(operand)
    if event is None or event.view is None or event.view.noises.shape[-1] != 1:
        return None
    return event.view if _laws_of(tape, event) == {"uniform"} else None


def _size_of_uniform(tape: Tape, ufunc: np.ufunc, operand: Any) -> Any:
    # if U is uniform on [0, 1], |f U - f / 2| is uniform on [0, |f| / 2]
    uniform = _single_uniform(tape, operand)
    if uniform is None or np.any(uniform.value + uniform.factors[..., 0] / 2 != 0):
        return NotImplemented
    view = view_of(operand)
    origins = tape.origins_of(view)
    noises = tape.number_noises("uniform", 1.0, "abs", view.shape, origins)[..., None]
    sizes = View(noises, np.abs(view.factors) / 2, np.zeros(view.shape))
    return step(tape, "absolute", lambda: ufunc(plain(operand)), sizes, [operand], True)


def _log_of_uniform(tape: Tape, ufunc: np.ufunc, operand: Any) -> Any:
    # with f > 0, log(f U) = log f + log U and log(f - f U) = log f + log(1 - U);
    # -log U and -log(1 - U) are exponential noise
    uniform = _single_uniform(tape, operand)
    if uniform is None:
        return NotImplemented
    factors, value = uniform.factors[..., 0], uniform.value
    if not np.all(((value == 0) & (factors > 0)) | ((value == -factors) & (factors < 0))):
        return NotImplemented
    view = view_of(operand)
    origins = tape.origins_of(view)
    noises = tape.number_noises("log of uniform", 1.0, "log", view.shape, origins)[..., None]
    logs = View(noises, np.ones(noises.shape), np.log(np.abs(view.factors[..., 0])))
    return step(tape, "log", lambda: ufunc(plain(operand)), logs, [operand], True)
