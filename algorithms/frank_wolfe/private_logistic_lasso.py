"""Private logistic regression over the l1 ball, as a scikit-learn classifier of two classes."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, Self

from sklearn.metrics import accuracy_score
from sklearn.utils import ClassifierTags

from accountant.ledger.chunks import Chunks
from accountant.numerics import Array
from accountant.plans.adjacency import REPLACE
from algorithms.base.binary_labels import encode_two_classes
from algorithms.base.estimators import split_pairs, validated_fit_data
from algorithms.base.glm_losses import LOGISTIC
from algorithms.frank_wolfe.private_lasso import L1Estimator


class PrivateLogisticLasso(L1Estimator):
    """Logistic regression over the l1 ball of ``radius``, (epsilon, delta)-DP for every record.

    A classifier of two classes, which are public.  Features are clipped to
    ``[-x_bound, x_bound]``; there is no intercept (add a constant feature).  ``rounds``,
    ``selection``, ``relation``, ``random_state`` and sparse data as in `PrivateLasso`.

    After ``fit``: ``coef_``, ``classes_``, ``bounds_``, ``rounds_``, ``plan_``, ``ledger_``,
    ``transcript_``.  Source: Talwar, Thakurta & Zhang (2015), Algorithm 2, its noise recalibrated.
    """

    _loss = LOGISTIC
    classes_: Any

    def __init__(
        self,
        epsilon: float,
        delta: float,
        radius: float = 1.0,
        rounds: int | None = None,
        selection: str = "gumbel",
        x_bound: float = 1.0,
        relation: str = REPLACE,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.rounds = rounds
        self.selection = selection
        self.x_bound = x_bound
        self.relation = relation
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, executor: Executor | None = None) -> Self:
        """Fit on X (records, features), dense or sparse, and labels of two classes.

        `Chunks` and ``executor`` as in `PrivateLasso`.
        """
        if isinstance(X, Chunks) and y is None:
            X, y = split_pairs(validated_fit_data(self, X, y)[0])
        if y is not None:
            self.classes_, y = encode_two_classes(y)
        if not isinstance(X, Chunks):
            X, y = validated_fit_data(self, X, y)
        return self._fit(X, y, executor)

    def decision_function(self, X: Any) -> Array:
        """``<x, theta>`` of every row; positive for the second class."""
        return self._linear_predictor(X)

    def predict(self, X: Any) -> Any:
        """Predict the class of every row of X (records, features)."""
        second = self._linear_predictor(X) > 0
        return self.classes_[second.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """A classifier of two classes."""
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "classifier", None
        tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        return tags
