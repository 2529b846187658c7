"""One machine's ternary vote, -1, 0 or 1 for each feature: the sign of an effect, or 0 for none.

Many machines hold data of their own; each computes its vote there, and a private mechanism
releases what they agree on.  The effects are means of features (`mean_signs`), coefficients of a
Lasso (`lasso_signs`), or partial correlations of pairs of variables (`graph_signs`).

References: Liu, Tu, Mao & Chen (2022), Algorithms 3 and 4; Meinshausen & Buhlmann (2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.numerics import Array

# The constant C of `threshold_rule`, without unit; tests/algorithms/voting/test_sign_vote.py
# simulates it.
THRESHOLD_CONSTANT = 5.0


def threshold_rule(
    machines: int, records: int, features: int, select: int, epsilon: float, delta: float
) -> float:
    """Return the threshold lambda_N on the absolute value of effects, for data of unit deviation.

    With m machines of n records each, N = m n, p features and s of them to select, it is

        C (sqrt(ln p / N) + r ln p / (m sqrt(n) epsilon) + 1 / n)

    with ``r = min(s, sqrt(s ln(1/delta)))``.  The second term is for privacy.  The paper has the
    root in place of r, and no rule for delta = 0, where r is s here.  It leaves C open.
    """
    privacy_factor = min(select, math.sqrt(select * -math.log(delta))) if delta > 0 else select
    privacy_term = privacy_factor * math.log(features) / (machines * math.sqrt(records) * epsilon)
    return THRESHOLD_CONSTANT * (
        math.sqrt(math.log(features) / (machines * records)) + privacy_term + 1 / records
    )


@final
@dataclass(frozen=True, slots=True)
class MachineVote:
    """A function from a machine's data to its ternary vote, given public numbers.

    ``estimator`` is a key of `SIGN_ESTIMATORS`, or a function from the data to the vote.
    ``machines`` is the number of machines, ``k`` the number of signs to be selected, and
    ``epsilon`` and ``delta`` the guarantee of the whole release.  ``threshold`` None takes
    `threshold_rule`, with the machine's own number of records.
    """

    estimator: str | Callable[[Any], Any]
    threshold: float | None
    machines: int
    k: int
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
            return vote((X, finite_array(y, 1)), self._threshold(records, features), self.k)
        if self.estimator == "graph":
            features = features * (features - 1) // 2  # the effects are those of pairs
        return vote(X, self._threshold(records, features), self.k)

    def _threshold(self, records: int, features: int) -> float:
        if self.threshold is not None:
            return self.threshold
        public_sizes = self.machines, records, features, self.k
        return threshold_rule(*public_sizes, self.epsilon, self.delta)


def mean_signs(X: Array, threshold: float, select: int) -> Array:
    """Return the signs of features' means; 0 where |mean| is at most the threshold (Algorithm 3).

    ``select`` is not used.
    """
    del select
    means = X.mean(axis=0)
    signs: Array = np.sign(means) * (np.abs(means) > threshold)
    return signs


def lasso_signs(data: tuple[Array, Array], threshold: float, select: int) -> Array:
    """Return signs of the Lasso at the least penalty >= threshold with at most ``select`` features.

    That is Algorithm 4.  The Lasso minimises ``|y - X theta|^2 / (2 n) + penalty |theta|_1``, for n
    records and without an intercept.
    """
    from sklearn.linear_model import lars_path  # votes on means do not need scikit-learn

    _, _, path = lars_path(*data, method="lasso", alpha_min=threshold)
    # The columns of the path are theta at its knots, from the largest penalty, where theta is 0, to
    # the threshold.  Between two knots the nonzero coordinates are those of both ends together.  So
    # the least penalty with at most ``select`` of them is at a knot, or at the end of the path.
    sparse_knots = np.flatnonzero(np.count_nonzero(path, axis=0) <= select)
    signs: Array = np.sign(path[:, sparse_knots[-1]])
    return signs


def graph_signs(X: Array, threshold: float, select: int) -> Array:
    """Return signs of partial correlations, in the order of ``numpy.triu_indices(variables, 1)``.

    Each standardised variable is regressed on the others by the Lasso with the penalty
    ``threshold`` (Meinshausen & Buhlmann).  A pair of variables has the vote of its two
    coefficients' sign if they have the same one, and 0 otherwise.  The strength of a pair is the
    smaller of the two absolute values; only the ``select`` strongest pairs vote.
    """
    from sklearn.linear_model import lars_path_gram

    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = finite_array(
            np.corrcoef(X, rowvar=False), 2
        )  # A constant variable is an error.
    variables = len(correlations)
    coefficients = np.zeros((variables, variables))
    for node in range(variables):
        other_nodes = np.arange(variables) != node
        _, _, coefficients[node, other_nodes] = lars_path_gram(
            correlations[other_nodes, node],
            correlations[np.ix_(other_nodes, other_nodes)],
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
    """Return the machine's own data as finite numbers in an array of so many axes.

    The error for other data is raised, and stays, on the machine that holds them.
    """
    array: Array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.size == 0 or not np.isfinite(array).all():
        raise ValueError("data must be finite numbers, one row a record")
    return array


SIGN_ESTIMATORS: dict[str, Callable[..., Array]] = {
    "mean": mean_signs,
    "lasso": lasso_signs,
    "graph": graph_signs,
}
