"""Decorators for functions and classes whose wrong calls are answered with an example.

Where the arguments do not fit the signature, Python would raise a `TypeError` without advice.
Decorated functions raise a `ParameterError` instead, which names the wrong argument and a call that
works.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from accountant.errors import ParameterError
from dp_attest.public_names import nearest_name

P = ParamSpec("P")
R = TypeVar("R")


def answered(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: a call that does not fit the signature raises an error with an example.

    ``example`` is a call that works, such as ``Number(0, 100)``.
    """

    def decorator(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*values: P.args, **named: P.kwargs) -> R:
            try:
                signature.bind(*values, **named)
            except TypeError:
                raise _refusal(signature, example, values, named) from None
            return function(*values, **named)

        return checked

    return decorator


def answered_class(example: str) -> Callable[[type[R]], type[R]]:
    """Return the same decorator for a class: it is about the calls that make its objects."""

    def decorator(cls: type[R]) -> type[R]:
        type.__setattr__(cls, "__init__", answered(example)(cls.__init__))
        return cls

    return decorator


def _refusal(signature: inspect.Signature, example: str, values: Any, named: Any) -> ParameterError:
    """Return the error for values that do not fit: an unknown name, too many, or one missing."""
    fields = dict(signature.parameters)
    if fields.pop("self", None) is not None:
        values = values[1:]
    for name, value in named.items():
        if name not in fields:
            meant = nearest_name(name, fields)
            hint = f"did you mean {meant!r}?" if meant else example
            return ParameterError(name, _shown(value), f"left out, it is no argument: {hint}")
    places = [
        parameter for parameter in fields.values() if parameter.kind is not parameter.KEYWORD_ONLY
    ]
    if len(values) > len(places):
        keyword_only = [
            parameter.name
            for parameter in fields.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        argument = keyword_only[0] if keyword_only else f"value {len(places) + 1}"
        allowed = f"{'given by name' if keyword_only else 'left out'}: {example}"
        return ParameterError(argument, _shown(values[len(places)]), allowed)
    for parameter, value in zip(places, values, strict=False):
        if parameter.name in named:
            return ParameterError(parameter.name, _shown(value), f"given once: {example}")
    provided = {parameter.name for parameter in places[: len(values)]} | set(named)
    lacking = [
        name
        for name, parameter in fields.items()
        if parameter.default is parameter.empty and name not in provided
    ]
    return ParameterError(", ".join(lacking), None, f"given: {example}")


def _shown(value: object) -> object:
    """Return what an error may show: a frame's column could have private values."""
    return value if isinstance(value, int | float | str | None) else type(value)
