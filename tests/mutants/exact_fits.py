"""Fits that were wrong at any epsilon, or would be, and the designs that convict them."""

import math
from dataclasses import replace

import numpy as np

from algorithms import PrivateLasso, PrivateLogisticRegression, SparseERM
from tests.laws.exact_fits import (
    CLASSES,
    FEATURES,
    lasso_in_a_ball,
    logistic,
    shortened,
    sklearn_logistic,
    squared,
)


class RowsShortenedInTheFitAlone(PrivateLogisticRegression):
    """Finds coefficients of rows of length 1, and predicts from whole ones."""

    def _exact_minimum(self, bound, executor):
        honest = super()._exact_minimum(bound, executor)
        return replace(honest, rows=lambda rows: shortened(rows, 1.0))


class ConstantDropped(PrivateLasso):
    """Fits a constant, and predicts without it."""

    def run(self, ledger, executor=None):
        return np.append(super().run(ledger, executor)[:-1], 0.0)


class BallOfTheConstantToo(PrivateLasso):
    """Binds the constant to the ball: a feature that is always 1."""

    def run(self, ledger, executor=None):
        found = super().run(ledger, executor)
        return found * min(1.0, 0.3 / np.abs(found).sum())


class ConstantThresholded(SparseERM):
    """Lets the constant compete with features for a place."""

    def _next(self, theta, gradient, step, ridge):
        moved = super()._next(theta, gradient, step, ridge)
        moved[-1] = 0.0
        return moved


class MapOfShortenedRows(PrivateLogisticRegression):
    """Takes moments of rows of an eighth of the longest, and gradients of whole rows."""

    def _row_bound(self, features):
        return super()._row_bound(features) / 8


class ConstantClip(PrivateLogisticRegression):
    """Clips most gradients at any signal."""

    def run(self, ledger, executor=None):
        self.clip = 0.2
        return super().run(ledger, executor)


AT_THE_OPTIMUM = {
    RowsShortenedInTheFitAlone: ("coins", "labels", sklearn_logistic, logistic),
    ConstantDropped: ("coins", "targets", lambda X, y: lasso_in_a_ball(X, y, 4.0), squared),
    BallOfTheConstantToo: ("coins", "targets", lambda X, y: lasso_in_a_ball(X, y, 4.0), squared),
}
# by a design and the tolerance that honest ones keep there
NEAR_IT = {
    MapOfShortenedRows: ("coins", 0.005),
    ConstantClip: ("one-hot", 0.005),
    ConstantThresholded: ("imbalanced", 0.03),
}
SETTINGS = {
    RowsShortenedInTheFitAlone: {"classes": CLASSES},
    MapOfShortenedRows: {"classes": CLASSES},
    ConstantClip: {"classes": CLASSES},
    ConstantThresholded: {
        "classes": CLASSES,
        "sparsity": FEATURES,
        "row_bound": math.sqrt(FEATURES),
    },
}
