"""A linear classifier by scores: the data it is given, and what it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from accountant.errors import ParameterError
from accountant.ledger.chunks import Chunks
from accountant.numerics import Array
from algorithms.base.binary_labels import encode_classes
from algorithms.base.clipped_gradient_descent import clipped_rows
from algorithms.base.estimators import PrivateRegressor
from algorithms.base.fit_data import validated_data, validated_labelled_data
from algorithms.base.missing_values import filled
from algorithms.base.row_blocks import row_products
from algorithms.base.score_classifier import ScoreClassifier


class LinearClassifier(ScoreClassifier, PrivateRegressor):
    """Two or more public classes; a row of coefficients and a constant for each score."""

    classes: Any
    coef_: Array
    intercept_: Array
    x_bound: float

    def decision_function(self, X: Any) -> Array:
        """Return the scores of every row, clipped as in the fit."""
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        rows = clipped_rows(X, self.x_bound)
        scores = np.stack([row_products(rows, coefficients) for coefficients in self.coef_], axis=1)
        scores = scores + self.intercept_
        return np.asarray(scores[:, 0] if len(self.coef_) == 1 else scores)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a classifier of two or more classes."""
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "classifier", None
        tags.classifier_tags = ClassifierTags(poor_score=True)
        return tags

    def _checked_fit_data(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any]:
        """Return features and what the ledger of a fit holds; classes are 0, 1, ... in it."""
        if isinstance(X, Chunks) and weights is not None:
            raise ParameterError("weights", type(weights), "None where data are chunks")
        self.classes_, X, y = validated_labelled_data(self, X, y, encode_classes)
        arrays = (X,) if y is None else (X, y)
        if weights is not None:
            arrays = (*arrays, checked_weights(weights, X.shape[0]))
        return X, arrays[0] if len(arrays) == 1 else arrays


def checked_weights(weights: Any, records: int) -> Array:
    """Return weights as numbers; a missing one counts as 0."""
    numbers: Array = filled(weights)
    if numbers.shape != (records,):
        raise ParameterError("weights", numbers.shape, "numbers, one for each record")
    return numbers.astype(np.float64)
