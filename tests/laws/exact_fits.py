"""Ten random designs, and what says that a fit is far from the optimum of its objective.

References are scikit-learn's solvers, or SciPy's where it has none of the same objective.
"""

import warnings
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

RECORDS, FEATURES = 2000, 5
INFINITE = {"epsilon": np.inf, "delta": 1e-6, "non_private": True}
LARGE = {"epsilon": 50.0, "delta": 1e-6, "random_state": 0}
CLASSES = [0, 1]


class Design(NamedTuple):
    """Features within [-1, 1], labels 0 and 1, and targets within [-1, 1]."""

    X: Any
    labels: Any
    targets: Any


def rows_of(name, rng):
    """Features, and a scale of their coefficients."""
    shape = RECORDS, FEATURES
    uniform = rng.uniform(-1, 1, shape)
    if name == "coins":
        return np.sign(uniform), 0.4
    if name == "long rows":
        return np.sign(uniform) * np.abs(uniform) ** 0.2, 0.5
    if name == "off centre":
        return 0.95 + 0.05 * uniform, 15.0
    if name == "collinear":
        mixed = uniform[:, :2] @ rng.uniform(-0.5, 0.5, (2, FEATURES))
        return np.clip(mixed + 0.1 * rng.uniform(-1, 1, shape), -1, 1), 2.0
    if name == "one-hot":
        return np.eye(FEATURES)[rng.choice(FEATURES, RECORDS, p=[0.5, 0.25, 0.15, 0.07, 0.03])], 1.0
    if name == "heavy tails":
        return np.clip(rng.standard_t(2.5, shape) / 8, -1, 1), 3.0
    if name == "tiny":
        return 0.05 * uniform, 30.0
    if name == "rare marks":
        return np.where(np.arange(FEATURES) < 3, uniform, rng.random(shape) < 0.1), 1.5
    if name == "spread":
        return uniform * np.geomspace(1, 0.05, FEATURES), 4.0
    return uniform, 1.0  # imbalanced


NAMES = ("coins", "long rows", "off centre", "collinear", "imbalanced", "one-hot", "heavy tails",
         "tiny", "rare marks", "spread")  # fmt: skip
# small features far from 0, and all small ones: descent without a map has not arrived there
MAPPED_ONLY = ("off centre", "tiny", "spread")


def design(name):
    """A design by its name; labels and targets follow a linear model with noise."""
    rng = np.random.default_rng(NAMES.index(name))
    X, scale = rows_of(name, rng)
    scores = (X - X.mean(axis=0)) @ (scale * rng.normal(size=FEATURES))
    labels = (rng.random(RECORDS) < expit(scores - 3 * (name == "imbalanced"))).astype(int)
    targets = 0.3 + 0.15 * scores / scores.std() + 0.1 * rng.normal(size=RECORDS)
    return Design(X, labels, np.clip(targets, -1, 1))


def quiet_fit(made, X, y):
    """A fit whose warnings that it is not private are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(X, y)


def scores_of(made, X):
    """The scores of two classes, or predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.decision_function(X) if hasattr(made, "decision_function") else made.predict(X)


def logistic(scores, labels):
    return float(np.mean(np.logaddexp(0, np.where(labels > 0, -scores, scores))))


def squared(scores, targets):
    return float(np.mean((scores - targets) ** 2))


def sklearn_logistic(X, labels):
    """Scores of the unpenalised optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = LogisticRegression(C=np.inf, max_iter=50_000, tol=1e-10).fit(X, labels)
    return made.decision_function(X), np.append(made.coef_, made.intercept_)


def least_squares(X, targets):
    """Predictions of least squares."""
    made = LinearRegression().fit(X, targets)
    return made.predict(X), np.append(made.coef_, made.intercept_)


def lasso_in_a_ball(X, targets, radius):
    """Predictions of scikit-learn's Lasso at the penalty whose l1 norm is the radius."""
    free = LinearRegression().fit(X, targets)
    if np.abs(free.coef_).sum() <= radius:
        return free.predict(X), np.append(free.coef_, free.intercept_)
    low, high = 1e-12, 1.0
    for _ in range(60):
        middle = np.sqrt(low * high)
        made = Lasso(alpha=middle, tol=1e-12, max_iter=200_000).fit(X, targets)
        low, high = (middle, high) if np.abs(made.coef_).sum() > radius else (low, middle)
    return made.predict(X), np.append(made.coef_, made.intercept_)


def logistic_in_a_ball(X, labels, radius):
    """Scores of SciPy's optimum over positive and negative parts of coefficients."""
    signs, p = np.where(labels > 0, 1.0, -1.0), X.shape[1]

    def value_and_slope(flat):
        theta = flat[:p] - flat[p:-1]
        scores = X @ theta + flat[-1]
        slopes = -signs * expit(-signs * scores) / len(X)
        return logistic(scores, labels), np.append([slopes @ X, -(slopes @ X)], slopes.sum())

    inside = {"type": "ineq", "fun": lambda flat: radius - flat[:-1].sum(),
              "jac": lambda flat: np.append(-np.ones(2 * p), 0.0)}  # fmt: skip
    found = minimize(
        value_and_slope, np.zeros(2 * p + 1), jac=True, constraints=inside, method="SLSQP",
        bounds=[(0, None)] * (2 * p) + [(None, None)], options={"ftol": 1e-14, "maxiter": 1000},
    ).x  # fmt: skip
    theta = found[:p] - found[p:-1]
    return X @ theta + found[-1], np.append(theta, found[-1])


def best_of_supports(X, y, sparsity, optimum, loss):
    """The least loss over all sets of so many columns."""
    sets = combinations(range(X.shape[1]), sparsity)
    return min(loss(optimum(X[:, list(one)], y)[0], y) for one in sets)


def shortened(X, bound):
    """Rows of length at most ``bound``."""
    return X * np.minimum(1, bound / np.maximum(np.linalg.norm(X, axis=1), 1e-300))[:, None]


def optimum_violation(made, X, y, reference, loss, tolerance=1e-7, near=1e-3) -> str:
    """A fit whose loss exceeds the optimum, or whose scores lie elsewhere."""
    best, _ = reference
    found = scores_of(quiet_fit(made, X, y), X)
    if loss(found, y) > loss(best, y) + tolerance:
        return f"a loss of {loss(found, y)}, at the optimum {loss(best, y)}"
    apart = float(np.abs(found - best).max())
    if apart > near * max(1.0, float(np.abs(best).max())):
        return f"scores are {apart} from those of the optimum"
    return ""


def coefficient_violation(made, reference, near=1e-3) -> str:
    """Coefficients and an intercept far from those of the reference."""
    wanted = reference[1]
    found = np.append(np.ravel(made.coef_), made.intercept_)
    apart = float(np.abs(found - wanted).max())
    within = apart <= near * max(1.0, float(np.abs(wanted).max()))
    return "" if within else f"coefficients are {apart} from {wanted}"


def nearness_violation(made, X, y, best, loss, tolerance) -> str:
    """A private fit whose loss is far above that of the optimum."""
    found = loss(scores_of(quiet_fit(made, X, y), X), y)
    return "" if found <= best + tolerance else f"a loss of {found}, at the optimum {best}"


def calibrated(scores, labels):
    """The log loss by scikit-learn, as a second computation."""
    return log_loss(labels, expit(scores))
