"""Functions of numpy on arrays that remember their noise: which keep it in sight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.recorded_runs.followed_steps import (
    Wrap,
    choose,
    event_of,
    linear_step,
    noise_from_noise,
    place_of_largest,
    plain,
    plain_arguments,
    use,
)
from audits.recorded_runs.tape import Tape, current_tape

# functions that choose elements of their first argument, or join elements of several
CHOOSING = {
    np.reshape, np.ravel, np.transpose, np.squeeze, np.expand_dims, np.copy, np.take, np.flip,
    np.roll, np.swapaxes, np.moveaxis, np.tile, np.repeat, np.diag, np.atleast_1d, np.delete,
    np.broadcast_to, np.split, np.array_split,
}  # fmt: skip
JOINING = {np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.append}
# functions that are linear in an argument: of noise alone they make noise of a known law
LINEAR = {
    np.sum, np.mean, np.cumsum, np.diff, np.trace, np.dot, np.vdot, np.inner, np.outer,
    np.tensordot, np.einsum, np.convolve, np.correlate, np.kron, np.cross, np.average,
    np.linalg.solve,
}  # fmt: skip
ABOUT_SHAPE = {np.shape, np.size, np.ndim, np.zeros_like, np.ones_like, np.empty_like, np.full_like}


def call_array_function(function: Any, arguments: Any, options: Any, wrap: Wrap) -> Any:
    """Call a function of numpy of which an argument is followed."""
    tape = current_tape()
    if function in ABOUT_SHAPE:
        return function(*map(plain, arguments), **options)
    result: Any = NotImplemented
    if tape is not None:
        result = _followed_result(tape, function, arguments, options, wrap)
    if result is not NotImplemented:
        return result
    return function(*map(use, arguments), **{name: use(value) for name, value in options.items()})


def _followed_result(tape: Tape, function: Any, arguments: Any, options: Any, wrap: Wrap) -> Any:
    name: str = function.__name__
    thing: Any = arguments[0] if arguments else None
    pick: Any
    is_followed = event_of(thing) is not None
    if function in (np.argmax, np.argmin) and is_followed and len(arguments) == 1 and not options:
        return place_of_largest(tape, thing, function is np.argmin)
    if function in CHOOSING and is_followed:
        pick = lambda places: function(places, *arguments[1:], **options)  # noqa: E731
        return chosen(tape, name, thing, pick, wrap)
    if function in (np.triu, np.tril) and is_followed:
        return thing * function(np.ones(np.shape(plain(thing))), *arguments[1:], **options)
    if function is np.append:
        pick = lambda array, appended: np.append(array, appended, *arguments[2:], **options)  # noqa: E731
        return choose(tape, name, list(arguments[:2]), pick, wrap)
    if function in JOINING:
        pick = lambda *parts: function(parts, *arguments[1:], **options)  # noqa: E731
        return choose(tape, name, list(thing), pick, wrap)
    if function is np.where and len(arguments) == 3:
        return _where(tape, wrap, *arguments)
    if function in (np.searchsorted, np.digitize) and (
        inverted := _inverted(function, *arguments, **options)
    ):
        return inverted[0]
    followed = [event for event in map(event_of, arguments) if event is not None]
    if not followed or not all(event.pure for event in followed):
        return NotImplemented
    if function in LINEAR and not (function is np.linalg.solve and is_followed):
        linear = linear_step(tape, name, function, arguments, options, wrap)
        if linear is not NotImplemented:
            return linear
    computed = function(*map(plain, arguments), **options)
    if not isinstance(computed, (np.ndarray, np.generic)):
        return NotImplemented
    others = plain_arguments(arguments, options)
    return noise_from_noise(tape, name, computed, list(arguments), others, wrap)


def chosen(tape: Tape, name: str, thing: Any, pick: Callable[[Any], Any], wrap: Wrap) -> Any:
    """Elements of one followed array; a list of arrays if it is split."""
    shape = np.shape(plain(thing))
    parts = pick(np.arange(int(np.prod(shape))).reshape(shape))
    if isinstance(parts, list):
        return [choose(tape, name, [thing], lambda _, part=part: part, wrap) for part in parts]
    return choose(tape, name, [thing], lambda _: parts, wrap)


def _where(tape: Tape, wrap: Wrap, condition: Any, one: Any, other: Any) -> Any:
    condition = use(condition)
    things = [thing if event_of(thing) is not None else np.asarray(thing) for thing in (one, other)]
    return choose(tape, "where", things, lambda a, b: np.where(condition, a, b), wrap)


def _inverted(function: Any, one: Any, other: Any, side: Any = False) -> list[Any]:
    """The place of followed numbers among plain levels, level by level; [] if it is not that."""
    levels, thing = (one, other) if function is np.searchsorted else (other, one)
    if event_of(levels) is not None or event_of(thing) is None or np.ndim(levels) != 1:
        return []
    right = side == "right" if function is np.searchsorted else not side
    below = np.less_equal if right else np.less
    places = below(levels, thing if np.ndim(plain(thing)) == 0 else thing[..., None])
    return [places.sum(axis=-1)]
