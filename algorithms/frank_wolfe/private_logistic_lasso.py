"""Private logistic regression over the l1 ball, as a scikit-learn classifier of two classes.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils import ClassifierTags

from accountant.numerics import Array
from accountant.plans.adjacency import REPLACE
from algorithms.base.binary_labels import encode_two_classes
from algorithms.base.column_bounds import BOUNDS_SHARE
from algorithms.base.fit_data import PUBLIC, finds_bounds, validated_labelled_data
from algorithms.base.glm_losses import LOGISTIC
from algorithms.base.score_classifier import ScoreClassifier
from algorithms.frank_wolfe.private_lasso import AUTO, L1Estimator
from algorithms.linear_models.private_logistic_regression import PrivateLogisticRegression


@dataclass(eq=False, repr=False)
class PrivateLogisticLasso(ScoreClassifier, L1Estimator):
    """Logistic regression over the l1 ball of ``radius``, (epsilon, delta)-DP for every record.

    A classifier of two classes, which are public.  The constant of scores is not bound to the ball.
    It selects vertices of the ball, or releases clipped gradients, as `PrivateLasso` does.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in [0, 1).
    radius : float or "auto"
        Largest l1 norm of the coefficients; "auto" takes 1 for selections, whose noise grows with
        it, and 64 for descent.
    rounds : int or None
        Number of private selections; None takes `best_rounds`.
    selection : {"gumbel", "laplace", "permute-and-flip"}
        The selection mechanism.
    x_bound : float
        Largest absolute feature; larger ones are clipped, in predictions too.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours, as in `PrivateLasso`.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    method : {"auto", "frank-wolfe", "descent"}
        What is released, as in `PrivateLasso`: selected vertices, or clipped gradients.
    non_private : bool
        For comparison, needs ``epsilon=inf``: the minimiser of the mean loss in the ball, or the
        selections without noise where they are asked for.
    classes : array_like or None
        The two public classes; any other label counts as the first in order.  None is enough for
        boolean labels, and with ``non_private=True``.
    fit_intercept : bool
        Whether a constant is added to scores.
    bounds : {"public", "private"}
        Whether ``x_bound`` bounds the columns as they are, or is the outer end of a noisy histogram
        that finds the scale of each, as in `PrivateLasso`.
    bounds_share : float
        Share of the squared budget that this histogram gets.
    weight_bound : float
        Largest weight of a record, as in `PrivateLasso`.

    Attributes
    ----------
    column_bounds_ : ColumnBounds or None
        The scales, limits and noisy clipped shares of the features.
    coef_ : numpy.ndarray of shape (features,)
        Coefficients of l1 norm at most ``radius``.
    intercept_ : float
        The constant of scores.
    classes_ : numpy.ndarray
        The two classes.
    bounds_ : Bounds
        The public bounds of the fit.
    rounds_ : int
        The number of vertices or of gradients.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Talwar, Thakurta & Zhang (2015), Algorithm 2, with noise recalibrated; Song, Chaudhuri & Sarwate
    (2013) for descent.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateLogisticLasso
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
    >>> model = PrivateLogisticLasso(epsilon=2.0, delta=1e-6, rounds=10, random_state=0)
    >>> model.fit(X, X[:, 0] > 0).coef_.round(1).tolist()
    [1.0, 0.0, 0.0, 0.0, 0.0]
    """

    _loss = LOGISTIC
    _linear_model = PrivateLogisticRegression

    epsilon: float
    delta: float
    radius: float | str = AUTO
    rounds: int | None = None
    selection: str = "gumbel"
    x_bound: float = 1.0
    relation: str = REPLACE
    random_state: Any = None
    method: str = AUTO
    non_private: bool = False
    classes: Any = None
    fit_intercept: bool = True
    bounds: str = PUBLIC
    bounds_share: float = BOUNDS_SHARE
    weight_bound: float = 1.0

    def fit(
        self,
        X: Any,
        y: Any = None,
        executor: Executor | None = None,
        ledger: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on features and labels of two classes; see `PrivateRegressor.fit`.

        ``sample_weight`` is clipped to [0, weight_bound]; None weighs every record alike.
        """
        if finds_bounds(self):
            return self._fit_scaled(X, y, executor, ledger, sample_weight=sample_weight)
        self.classes_, X, y = validated_labelled_data(self, X, y, encode_two_classes)
        return self._fit(X, y, executor, ledger, sample_weight)

    def decision_function(self, X: Any) -> Array:
        """Return ``<x, theta>`` and the constant for every row."""
        return self._linear_predictor(X)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a classifier of two classes."""
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "classifier", None
        tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        return tags
