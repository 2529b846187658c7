"""A mixin for classifiers: labels, probabilities and accuracy from the scores of public classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score

from accountant.numerics import Array


class ScoreClassifier:
    """Predictions from `decision_function`, which a subclass defines.

    A subclass names this class before the estimator's.  It is no abstract class, whose metaclass
    estimators do not have: Python does not check that the method is defined.
    """

    classes_: Any

    @abstractmethod
    def decision_function(self, X: Any) -> Array:
        """Return the scores of every record.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Features.

        Returns
        -------
        numpy.ndarray of shape (records,) or (records, classes)
            Of two classes, positive for the second; else a score for each.
        """

    def predict(self, X: Any) -> Any:
        """Return the class with the largest score for every record.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Features.

        Returns
        -------
        numpy.ndarray of shape (records,)
            Labels of ``classes_``; the first of equal ones.
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the scores: probabilities of the classes for the logistic loss.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Features.

        Returns
        -------
        numpy.ndarray of shape (records, classes)
            Rows add up to 1.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return binary_probabilities(scores)
        return np.asarray(softmax(scores, axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Features.
        y : array_like of shape (records,)
            True labels.
        sample_weight : array_like of shape (records,) or None
            Weights of the records.

        Returns
        -------
        float
            The share of records whose class is predicted, in [0, 1].
        """
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


def binary_probabilities(scores: Array) -> Array:
    """Return (records, 2) probabilities of the first and the second class."""
    return np.stack([expit(-scores), expit(scores)], axis=1)
