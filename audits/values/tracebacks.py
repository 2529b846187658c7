"""Tracebacks without private values.

For an error that leaves a test, pytest and other tools show the local variables and arguments of
the frames in its traceback.  Where an audit raises the error, these hold the two data sets that it
compares, and a log of the test would publish them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from accountant.errors import ParameterError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def without_values(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, whose `ParameterError` is raised from a frame that holds no argument.

    The traceback starts anew in this frame, so those of the function itself are dropped.  Those of
    the errors that led to this one are dropped too, and this frame forgets its own arguments.
    """

    @functools.wraps(function)
    def called(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        __tracebackhide__ = True  # pytest does not show this frame, which says nothing to users
        try:
            return function(*arguments, **options)
        except ParameterError as error:
            cause = error.__cause__ or error.__context__
            while cause is not None:
                cause.__traceback__, cause = None, cause.__cause__ or cause.__context__
            del arguments, options
            raise error.with_traceback(None)  # noqa: B904

    return called
