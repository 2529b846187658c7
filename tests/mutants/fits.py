"""Wrong fits: each publishes something of the data beside what it releases."""

import dataclasses
import warnings

import numpy as np

from algorithms import PrivateLasso, PrivateLogisticRegression, PrivateScaler
from algorithms.base.fit_data import filled
from tests.laws.test_fits import CASES


class PublishesLabels(PrivateLogisticRegression):
    """Keeps the labels that occur."""

    def fit(self, X, y, ledger=None):
        found = super().fit(X, y, ledger=ledger)
        found.labels_ = np.unique(np.asarray(y, dtype=str))
        return found


class InfersClasses(PrivateLogisticRegression):
    """Takes the classes of the labels, as the default once was."""

    def fit(self, X, y, ledger=None):
        self.classes = np.unique(np.asarray(y, dtype=str))
        return super().fit(X, np.asarray(y, dtype=str), ledger=ledger)


class SaysHowMany(PrivateLogisticRegression):
    """Counts the labels of the second class in its summary."""

    def fit(self, X, y, ledger=None):
        self._count = int(np.sum(np.asarray(y, dtype=str) == "1.0"))
        return super().fit(X, y, ledger=ledger)

    def summary(self):
        return f"{super().summary()}; {self._count} records"


class RefusesMissing(PrivateLasso):
    """Refuses a record whose feature is missing."""

    def fit(self, X, y, ledger=None):
        if X.dtype.kind == "f" and np.isnan(X).any():
            raise ValueError("Input X contains NaN")
        return super().fit(X, y, ledger=ledger)


class WarnsOfConstants(PrivateLasso):
    """Warns of a column in which all records are equal."""

    def fit(self, X, y, ledger=None):
        if (np.asarray(X) == np.asarray(X)[1]).all(axis=0).any():
            warnings.warn("a feature is constant", UserWarning, stacklevel=2)
        return super().fit(X, y, ledger=ledger)


class ScalesByTheData(PrivateLasso):
    """Scales features by their greatest values, in front of the gate."""

    def fit(self, X, y, ledger=None):
        numbers = filled(X)
        return super().fit(numbers / np.abs(numbers).max(axis=0), y, ledger=ledger)


class ScalesWeights(PrivateLasso):
    """Divides weights by their mean, in front of the gate."""

    def fit(self, X, y, ledger=None, sample_weight=None):
        weights = np.clip(filled(sample_weight), 0.0, 1.0)
        return super().fit(X, y, ledger=ledger, sample_weight=weights / (2 * weights.mean()))


class ScalesByTheGreatest(PrivateScaler):
    """Takes the greatest magnitude itself where the histogram finds a scale."""

    def transform(self, X):
        return X / self.greatest_

    def fit(self, X, y=None, ledger=None):
        self.greatest_ = np.abs(filled(X)).max(axis=0)
        return super().fit(X, y, ledger=ledger)


RIGHT, LASSO = CASES["PrivateLogisticRegression"], CASES["PrivateLasso"]


def beside(wrong, right):
    """A wrong fit on the data of the right one."""
    settings = right.made.get_params()
    return wrong.__name__, (dataclasses.replace(right, made=wrong(**settings)), right)


REPLAYED = dict([
    beside(PublishesLabels, RIGHT), beside(SaysHowMany, RIGHT), beside(ScalesByTheData, LASSO),
    beside(WarnsOfConstants, LASSO), beside(ScalesWeights, CASES["PrivateLasso, weights"]),
    beside(ScalesByTheGreatest, CASES["PrivateScaler"]),
])  # fmt: skip
KINDS = dict([beside(InfersClasses, RIGHT), beside(RefusesMissing, LASSO)])
