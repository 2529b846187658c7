"""How many records a fit clips: counted with noise, for the exact number is private.

Estimators clip records to public bounds and say nothing of it, since whether any record is beyond
them tells of that record.  A count of those records moves by at most 1 when one record is replaced,
so that geometric noise makes it a release like any other, which is charged.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.planning.calibration import calibrate
from algorithms.base.budgets import open_ledger
from algorithms.base.fit_data import validated_data
from algorithms.base.row_blocks import clipped_rows, row_lengths
from mechanisms import DiscreteLaplace

BOUNDS = ("x_bound", "y_bound", "row_bound")


def clipped_share(
    estimator: Any, X: Any, y: Any = None, *, epsilon: float, ledger: Any = None
) -> float:
    """Return the share of records that a fit of the estimator would clip, with noise.

    A great share says that bounds are too small, or that data should be scaled: `BoundsScaler`
    scales them by public bounds.

    Parameters
    ----------
    estimator : PrivateEstimator
        One that has ``x_bound``, ``y_bound`` or ``row_bound``; it is not fitted.
    X : array_like of shape (records, features)
        The features of the fit.
    y : array_like of shape (records,), optional
        Its targets, where the estimator has a ``y_bound``.
    epsilon : float
        The privacy of the count, which is pure; it is spent.
    ledger : Budget, Filter, Book, tuple or None
        What is charged, as in ``fit``.

    Returns
    -------
    float
        From 0 to 1; the standard deviation of its noise is about ``sqrt(2) / (epsilon records)``.

    Raises
    ------
    ParameterError
        If the estimator has no such bound, or a parameter is out of range.
    BudgetExceeded
        If ``ledger`` does not have ``epsilon`` left; nothing is spent or read.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateLasso, clipped_share
    >>> salaries = np.full((5000, 1), 40_000.0)
    >>> model = PrivateLasso(epsilon=1.0, delta=1e-6)  # x_bound is 1
    >>> clipped_share(model, salaries, np.zeros(5000), epsilon=0.1) > 0.9
    True
    """
    stated = {name: getattr(estimator, name, None) for name in BOUNDS}
    bounds = {name: bound for name, bound in stated.items() if isinstance(bound, float | int)}
    if not bounds:
        allowed = f"one that clips records: it has {' or '.join(BOUNDS)}"
        raise ParameterError("estimator", type(estimator).__name__, allowed)
    if ("y_bound" in bounds) > (y is not None):
        raise ParameterError("y", None, "given, for the estimator has a y_bound")
    noise = calibrate(DiscreteLaplace, sensitivity=1, epsilon=POSITIVE.check("epsilon", epsilon))
    unfitted = clone(estimator)
    targets = [y] if "y_bound" in bounds else []
    data = validated_data(unfitted, X, *targets, dtype=np.float64)
    gate = open_ledger(unfitted, data, 1 * noise, ledger=ledger)
    # A row_bound next to an x_bound is that of the row with its constant.
    constant = "x_bound" in bounds and getattr(estimator, "fit_intercept", False)
    count = gate.release(noise, partial(clipped_records, bounds, constant))
    return min(max(float(count) / gate.shape[0], 0.0), 1.0)


def clipped_records(bounds: dict[str, float], constant: bool, data: Any) -> int:
    """Return the number of records that are beyond a bound; a row may have a constant feature."""
    x, y = data if isinstance(data, tuple) else (data, None)
    is_clipped = np.zeros(x.shape[0], dtype=bool)
    if "x_bound" in bounds:
        is_clipped |= (np.abs(x) > bounds["x_bound"]).any(axis=1)
    if "row_bound" in bounds:
        rows = clipped_rows(x, bounds.get("x_bound", math.inf))
        with np.errstate(over="ignore"):  # a warning would tell of a long row
            is_clipped |= row_lengths(rows, constant) > bounds["row_bound"]
    if "y_bound" in bounds:
        is_clipped |= np.abs(y) > bounds["y_bound"]
    return int(is_clipped.sum())
