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

    The traceback starts anew in this frame, so that the frames of the function itself are dropped.
    The tracebacks of the errors that led to this one are dropped too, and this frame forgets its
    own arguments.  Other errors are faults of a program, and keep theirs.
    """

    @functools.wraps(function)
    def called(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        __tracebackhide__ = True  # pytest does not show this frame, which says nothing to users
        try:
            return function(*arguments, **options)
        except ParameterError as error:
            chain: list[BaseException] = [error]
            for later in chain:
                for earlier in (later.__cause__, later.__context__):
                    if earlier is not None and earlier not in chain:
                        chain.append(earlier)
                later.__traceback__ = None
            del arguments, options, chain, later, earlier
            raise error.with_traceback(None)  # noqa: B904

    return called
