"""Calls whose arguments do not fit: the error shows a call that works.

Python says which argument is missing or unknown, and nothing else.  What is called often, and by
people who begin, is decorated by `shows_call`; mechanisms and estimators, of which there are many,
get a call from their own parameters.
"""

from __future__ import annotations

import functools
import inspect
import sys
from abc import ABCMeta
from collections.abc import Callable
from typing import Any, TypeVar, cast

from dp_attest.installation import PACKAGES
from dp_attest.public_names import nearest_name

Called = TypeVar("Called", bound=Callable[..., Any])
# values that make sense in most calls; a parameter that is not here is shown as itself
USUAL_VALUES = {"epsilon": "1.0", "delta": "1e-6", "scale": "1.0", "sensitivity": "1.0"}


def shows_call(call: str = "", **remedies: str) -> Callable[[Called], Called]:
    """Return a decorator: arguments that do not fit raise TypeError with a call that works.

    Parameters
    ----------
    call : str, optional
        The call that is shown; by default it is made from the parameters without a default.
    **remedies : str
        What helps, by an argument that a call may have by mistake.
    """

    def decorate(function: Called) -> Called:
        @functools.wraps(function)
        def call_or_teach(*values: Any, **named: Any) -> Any:
            try:
                return function(*values, **named)
            except BaseException as error:
                words = None
                if isinstance(error, TypeError):
                    words = misfit(function, values, named, call, remedies)
                # A traceback may show local names: these can be data, or a passphrase.
                del values, named
                if words is None:  # the arguments fit: the error is of something else
                    raise
            raise TypeError(words)

        return cast("Called", call_or_teach)

    return decorate


class TeachingClass(ABCMeta):
    """The class of classes whose construction shows a call that works, as `shows_call` does."""

    def __call__(cls, *values: Any, **named: Any) -> Any:
        """Construct an object, or raise TypeError with a call that works."""
        try:
            return super().__call__(*values, **named)
        except BaseException as error:
            words = misfit(cls, values, named, "", {}) if isinstance(error, TypeError) else None
            del values, named  # as above
            if words is None:
                raise
        raise TypeError(words)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The parameters of the constructor, which `inspect.signature` would not find here."""
        construct: Any = cls  # as which mypy lets its constructor be looked at
        if construct.__init__ is object.__init__:
            return inspect.Signature()
        signature = inspect.signature(construct.__init__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def callers_level() -> int:
    """Return the stack level of a warning that points at the first call from outside of dp-attest.

    It is for the function that warns: ``warnings.warn(message, stacklevel=callers_level())``.
    """
    frame, level = sys._getframe(1), 1  # noqa: SLF001
    while frame.f_globals.get("__name__", "").partition(".")[0] in {"dp_attest", *PACKAGES}:
        if frame.f_back is None:
            break
        frame, level = frame.f_back, level + 1
    return level


def misfit(
    function: Callable[..., Any],
    values: tuple[Any, ...],
    named: dict[str, Any],
    call: str,
    remedies: dict[str, str],
) -> str | None:
    """Return why arguments do not fit a function, and what helps; None if they fit.

    No value is shown, as it may be private data.
    """
    signature = inspect.signature(function)
    try:
        signature.bind(*values, **named)
    except TypeError as error:
        why = str(error)
    else:
        return None
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    known, hint = [one.name for one in parameters], ""
    unknown = next((word for word in named if word not in known), None)
    if unknown is not None:
        why = f"got an unexpected keyword argument {unknown!r}"
        if unknown in remedies:
            return f"{name}: {why}; {remedies[unknown]}"
        begun = [word for word in known if word.startswith(unknown)]
        meant = begun[0] if begun else nearest_name(unknown, known)
        hint = "" if meant is None else f"did you mean {meant!r}? "
    return f"{name}: {why}; {hint}call it as {call or _call_of(name, parameters)}"


def _call_of(name: str, parameters: list[inspect.Parameter]) -> str:
    """Return a call with all arguments that must be given, and the sensitivity if there is one."""
    arguments = [
        f"{one.name}={USUAL_VALUES.get(one.name, one.name)}"
        for one in parameters
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and (one.default is one.empty or one.name == "sensitivity")
    ]
    return f"{name}({', '.join(arguments)})"
