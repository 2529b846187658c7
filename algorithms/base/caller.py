"""What an estimator says to its caller: errors that name its class, warnings at the caller's line.

scikit-learn's errors name the class whose parameter is wrong, which in a pipeline or a search is
half of the answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from accountant.errors import ParameterError

MethodT = TypeVar("MethodT", bound=Callable[..., Any])
# The methods of estimators whose errors name the class.
NAMED = ("plan", "fit", "partial_fit", "predict")
PACKAGE = str(Path(__file__).parents[1])


def naming_the_class(method: MethodT) -> MethodT:
    """Return the method of an estimator; the innermost estimator names itself in its errors."""

    @wraps(method)
    def named(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except ParameterError as error:
            error.owner = error.owner or type(self).__name__
            raise

    return named  # type: ignore[return-value]


def level_of_caller() -> int:
    """Return the ``stacklevel`` of a warning of the calling function: the first call from outside.

    That is the first one that is not of this package.
    """
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
