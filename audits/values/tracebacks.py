"""Tracebacks without private values: pytest shows the arguments of the function that raised."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from accountant.errors import ParameterError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def without_values(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, whose `ParameterError` is raised from a frame that holds no argument.

    Frames below it, and those of the errors before it, hold values of the pair: they are dropped.
    """

    @functools.wraps(function)
    def called(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        __tracebackhide__ = True
        try:
            return function(*arguments, **options)
        except ParameterError as error:
            cause = error.__cause__ or error.__context__
            while cause is not None:
                cause.__traceback__, cause = None, cause.__cause__ or cause.__context__
            del arguments, options
            raise error.with_traceback(None)  # noqa: B904

    return called
