"""Parameters that have a new name: the old one is accepted, with a `FutureWarning`.

`renamed_parameters` decorates a data class, such as an estimator; `renamed_arguments` decorates a
function or a method; `renamed_attribute` is the old name of a method.  Only the new name is seen in
signatures, in ``get_params``, and in what scikit-learn shows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from accountant.errors import ParameterError
from dp_attest.calls import callers_level

P = ParamSpec("P")
R = TypeVar("R")
EstimatorT = TypeVar("EstimatorT")


def renamed_arguments(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function whose keywords have new names.

    Parameters
    ----------
    **new_names : str
        The new name of each old one, as in ``level="confidence"``.

    Returns
    -------
    callable
        A decorator; what it returns refuses an old name next to its new one.

    Examples
    --------
    >>> import warnings
    >>> @renamed_arguments(level="confidence")
    ... def outside(confidence=0.5):
    ...     return 1 - confidence
    >>> with warnings.catch_warnings(record=True) as raised:
    ...     warnings.simplefilter("always")
    ...     outside(level=0.75)
    0.25
    >>> print(raised[0].category.__name__, "-", raised[0].message)
    FutureWarning - level of outside is now called confidence
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _accepting_old_names(function, function.__qualname__, new_names)

    return decorate


def renamed_parameters(**new_names: str) -> Callable[[type[EstimatorT]], type[EstimatorT]]:
    """Return a decorator of a data class, such as an estimator, whose parameters have new names.

    The constructor and ``set_params`` accept the old names, and attributes are read and written by
    them.  Pickles that were written before have the new names once they are read.

    Parameters
    ----------
    **new_names : str
        The new name of each old one, as in ``radius="row_bound"``.

    Returns
    -------
    callable
        A decorator that changes the class and returns it; it stands above ``@dataclass``.

    Examples
    --------
    >>> import warnings
    >>> from dataclasses import dataclass
    >>> from sklearn.base import BaseEstimator
    >>> @renamed_parameters(radius="row_bound")
    ... @dataclass(eq=False, repr=False)
    ... class Shortened(BaseEstimator):
    ...     row_bound: float = 1.0
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     Shortened(radius=2.0)
    Shortened(row_bound=2.0)
    """

    def decorate(cls: Any) -> Any:
        name, cls._new_names = cls.__name__, new_names
        for method in ("__init__", "set_params"):
            if hasattr(cls, method):
                accepting = _accepting_old_names(getattr(cls, method), name, new_names)
                setattr(cls, method, accepting)
        for old, new in new_names.items():
            setattr(cls, old, renamed_attribute(name, old, new))
        restored = getattr(cls, "__setstate__", None)
        if restored is not None:
            cls.__setstate__ = _restoring_old_names(restored, new_names)
        return cls

    return decorate


def _restoring_old_names(
    restored: Callable[[Any, Any], None], new_names: dict[str, str]
) -> Callable[[Any, Any], None]:
    """Return a ``__setstate__`` that also reads what was pickled under the old names."""

    @wraps(restored)
    def restore(estimator: Any, state: Any) -> None:
        if isinstance(state, dict):
            state = {new_names.get(key, key): value for key, value in state.items()}
        restored(estimator, state)

    return restore


def _accepting_old_names(
    function: Callable[P, R], owner: str, new_names: dict[str, str]
) -> Callable[P, R]:
    """Return the function, which also accepts the old names; its signature has the new ones."""

    @wraps(function)
    def renaming(*args: Any, **kwargs: Any) -> R:
        return function(*args, **_under_new_names(owner, kwargs, new_names))

    return cast("Callable[P, R]", renaming)


def settings_under_new_names(estimator: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of an estimator under the new names of its parameters.

    Parameters
    ----------
    estimator : estimator
        One whose class `renamed_parameters` decorates, or any other.
    settings : dict
        Values of some of its parameters, under old or new names.

    Returns
    -------
    dict
        The same values; each old name was warned of.
    """
    new_names = getattr(type(estimator), "_new_names", {})
    return _under_new_names(type(estimator).__name__, settings, new_names)


def _under_new_names(
    owner: str, arguments: dict[str, Any], new_names: dict[str, str]
) -> dict[str, Any]:
    """Return the arguments under their new names, with a warning of each old one."""
    renamed = {key: value for key, value in arguments.items() if key not in new_names}
    for old in [key for key in arguments if key in new_names]:
        new, value = new_names[old], arguments[old]
        if new in arguments:
            raise ParameterError(old, value, f"left out where {new} is given")
        _warn_of_old_name(owner, old, new)
        renamed[new] = value
    return renamed


def renamed_attribute(owner: str, old: str, new: str) -> property:
    """Return the attribute of the old name: the value, or the method, of the new one.

    Parameters
    ----------
    owner : str
        Name of the class.
    old, new : str
        The two names.

    Returns
    -------
    property
        For the body of the class.
    """

    def read(estimator: Any) -> Any:
        _warn_of_old_name(owner, old, new)
        return getattr(estimator, new)

    def write(estimator: Any, value: Any) -> None:
        _warn_of_old_name(owner, old, new)
        setattr(estimator, new, value)

    return property(read, write, doc=f"The old name of ``{new}``.")


def _warn_of_old_name(owner: str, old: str, new: str) -> None:
    """Warn of an old name at the line that used it."""
    message = f"{old} of {owner} is now called {new}"
    warnings.warn(message, FutureWarning, stacklevel=callers_level())
