"""Every minimax lower bound by the name of its problem.

`lower_bound` computes the bound, and `sample_size` the number of users that an error needs.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable
from typing import Any

from accountant.domains import POSITIVE, OneOf
from accountant.errors import ParameterError
from accountant.numerics.search import grow_until, least_integer_that
from audits.minimax.bounds.bound import LowerBound

# For each problem its name, which is also the name of its function, and the module of the function.
PROBLEMS = {
    "sparse_regression": "bounds.sparse_regression",
    "sparse_regression_zcdp": "bounds.sparse_regression",
    "sparse_regression_rdp": "bounds.sparse_regression",
    "label_regression": "bounds.label_private_regression",
    "label_optimisation": "bounds.label_optimisation",
    "central_regression": "bounds.central_regression",
    "private_lasso": "bounds.lasso",
    "private_mean": "bounds.mean",
    "private_histogram": "bounds.histogram",
    "private_selection": "bounds.selection",
}
_MAX_USERS = 2**50  # `sample_size` looks at no more users than these


def bound_function(problem: str) -> Callable[..., LowerBound]:
    """The function that computes a problem's bound."""
    name = OneOf(tuple(PROBLEMS)).check("problem", problem)
    function: Callable[..., LowerBound] = getattr(
        importlib.import_module(f"audits.minimax.{PROBLEMS[name]}"), name
    )
    return function


def lower_bound(problem: str, **parameters: Any) -> LowerBound:
    """Compute the least worst-case error of any private algorithm for a named problem.

    Parameters
    ----------
    problem : str
        A name of `PROBLEMS`.
    **parameters : object
        The parameters of the function of that name.

    Returns
    -------
    LowerBound
        The bound, rounded down.

    Raises
    ------
    ParameterError
        If the problem is unknown, or a parameter is missing, unknown or out of its range.

    Examples
    --------
    >>> from audits.minimax import lower_bound
    >>> bound = lower_bound("private_mean", n=1000, dimension=10, epsilon=1.0)
    >>> round(bound.value, 5)
    0.01207
    """
    function = bound_function(problem)
    signature = inspect.signature(function)
    try:
        signature.bind(**parameters)
    except TypeError as error:
        accepted = str(signature.replace(return_annotation=inspect.Signature.empty))
        allowed = f"those of {problem}" + accepted.replace("'", "")
        raise ParameterError("parameters", sorted(parameters), f"{allowed}: {error}") from None
    return function(**parameters)


def sample_size(problem: str, error: float, epsilon: float | None = None, **parameters: Any) -> int:
    """Compute the number of users below which no private algorithm reaches an error.

    Parameters
    ----------
    problem : str
        A name of `PROBLEMS`.
    error : float
        The error, positive, in the units of the problem's bound.
    epsilon : float, optional
        The epsilon of the problem.
    **parameters : object
        The other parameters of the function of that name, without ``n``.

    Returns
    -------
    int
        A number of users, rounded up to the next integer: the bound of one user less is above
        ``error``.

    Raises
    ------
    ParameterError
        If the bound does not fall as n doubles, 2^50 users do not suffice, or a parameter is out of
        its range.

    Examples
    --------
    >>> from audits.minimax import sample_size
    >>> sample_size("label_optimisation", error=0.1, epsilon=1.0, k=2)
    6
    """
    error = POSITIVE.check("error", error)
    values = parameters if epsilon is None else {"epsilon": epsilon, **parameters}
    if "n" in values:
        raise ParameterError("n", values["n"], "left out: sample_size computes it")

    @functools.cache
    def value(n: int) -> float:
        return lower_bound(problem, n=n, **values).value

    low, high = grow_until(lambda n: value(n) <= error, 1, _MAX_USERS)
    if value(high) > error:
        allowed = f"above {value(high):.3g}, the bound of 2^50 users"
        raise ParameterError("error", error, allowed)
    at_powers_of_two = [value(2**i) for i in range(high.bit_length() + 1)]
    # The next power of two is computed too: the answer is not unique if the bound rises again.  A
    # rise by 1e-6 may come from the search for the best hard family, and is allowed.
    if any(after > before * (1 + 1e-6) for before, after in itertools.pairwise(at_powers_of_two)):
        raise ParameterError("problem", problem, "one whose bound falls as n doubles")
    return least_integer_that(lambda n: value(n) <= error, low, high)
