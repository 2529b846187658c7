"""One machine's vote on the signs: of means, Lasso paths or graphs; it runs where the data are.

References: Liu, Tu, Mao & Chen (2022), Algorithms 3 and 4; Meinshausen & Buhlmann (2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array

# The constant C of the threshold rule; tests/algorithms/voting/test_sign_vote.py simulates it.
THRESHOLD_CONSTANT = 5.0


def threshold_rule(
    machines: int, records: int, features: int, select: int, epsilon: float, delta: float
) -> float:
    """Return the threshold lambda_N for data of about unit deviation.

    ``C (sqrt(ln p / N) + sqrt(s ln(1/delta)) ln p / (m sqrt n epsilon) + 1 / n)`` with C = 5 and
    N = m n; the paper leaves C open, and has no rule for delta = 0, where s replaces the root.
    """
    root = min(select, math.sqrt(select * -math.log(delta))) if delta > 0 else select
    privacy = root * math.log(features) / (machines * math.sqrt(records) * epsilon)
    return THRESHOLD_CONSTANT * (
        math.sqrt(math.log(features) / (machines * records)) + privacy + 1 / records
    )


@final
@dataclass(frozen=True, slots=True)
class MachineVote:
    """A function from a machine's data to its ternary vote, given public numbers.

    ``threshold`` None takes `threshold_rule`, with the machine's own number of records.
    """

    estimator: str | Callable[[Any], Any]
    threshold: float | None
    machines: int
    select: int
    epsilon: float
    delta: float

    def __call__(self, data: Any) -> Any:
        """Return the vote of a machine that holds ``data``: X (records, features), or (X, y)."""
        if callable(self.estimator):
            return self.estimator(data)
        vote = SIGN_ESTIMATORS[self.estimator]
        X, y = data if isinstance(data, tuple) else (data, None)
        X = finite_array(X, 2)
        records, features = X.shape
        if self.estimator == "lasso":
            return vote((X, finite_array(y, 1)), self._threshold(records, features), self.select)
        if self.estimator == "graph":
            features = features * (features - 1) // 2
        return vote(X, self._threshold(records, features), self.select)

    def _threshold(self, records: int, features: int) -> float:
        if self.threshold is not None:
            return self.threshold
        numbers = self.machines, records, features, self.select
        return threshold_rule(*numbers, self.epsilon, self.delta)


def mean_signs(X: Array, threshold: float, select: int) -> Array:
    """Return signs of the means whose absolute value exceeds the threshold (Algorithm 3)."""
    del select
    means = X.mean(axis=0)
    signs: Array = np.sign(means) * (np.abs(means) > threshold)
    return signs


def lasso_signs(data: tuple[Array, Array], threshold: float, select: int) -> Array:
    """Return signs of the Lasso at the least penalty >= threshold with at most ``select`` features.

    That is Algorithm 4: ``|y - X theta|^2 / (2 n) + penalty |theta|_1``, without an intercept.
    """
    from sklearn.linear_model import lars_path  # votes on means do not need scikit-learn

    _, _, path = lars_path(*data, method="lasso", alpha_min=threshold)
    # Between two knots the nonzero coordinates are those of both ends together.  So the smallest
    # such penalty is a knot, or the end of the path.  Nothing is selected at the first knot.
    sparse_knots = np.flatnonzero(np.count_nonzero(path, axis=0) <= select)
    signs: Array = np.sign(path[:, sparse_knots[-1]])
    return signs


def graph_signs(X: Array, threshold: float, select: int) -> Array:
    """Return signs of partial correlations, in the order of ``numpy.triu_indices(variables, 1)``.

    Each standardised variable is regressed on the others by the Lasso; an edge is where both
    coefficients have one sign, and the ``select`` largest (by the smaller of the two) are kept.
    """
    from sklearn.linear_model import lars_path_gram

    with np.errstate(invalid="ignore", divide="ignore"):
        R = finite_array(np.corrcoef(X, rowvar=False), 2)  # a constant variable has no correlation
    variables = len(R)
    coefficients = np.zeros((variables, variables))
    for node in range(variables):
        other_nodes = np.arange(variables) != node
        _, _, coefficients[node, other_nodes] = lars_path_gram(
            R[other_nodes, node],
            R[np.ix_(other_nodes, other_nodes)],
            n_samples=1,
            method="lasso",
            alpha_min=threshold,
            return_path=False,
        )
    upper = np.triu_indices(variables, 1)
    forward, backward = coefficients[upper], coefficients.T[upper]
    strength = np.where(forward * backward > 0, np.minimum(np.abs(forward), np.abs(backward)), 0.0)
    signs: Array = np.sign(forward) * (strength > 0)
    if select < signs.size:
        signs[np.argsort(-strength, kind="stable")[select:]] = 0.0
    return signs


def finite_array(values: Any, axes: int) -> Array:
    """Return the machine's own data as numbers; an error stays on the machine."""
    array: Array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.size == 0 or not np.isfinite(array).all():
        raise ValueError("data must be finite numbers, one row a record")
    return array


SIGN_ESTIMATORS: dict[str, Callable[..., Array]] = {
    "mean": mean_signs,
    "lasso": lasso_signs,
    "graph": graph_signs,
}
