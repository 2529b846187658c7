"""Generalised linear models by a trusted curator: Poisson, Huber and quantile regressions.

They are one descent, that of `PrivateLinearRegression`, with another line of the table of losses
(`REGRESSION_LOSSES`): the plan is the same whatever the loss is.

References: McCullagh & Nelder (1989); Huber (1964); Koenker & Bassett (1978); Song, Chaudhuri &
Sarwate (2013).
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score
from sklearn.utils.validation import check_is_fitted

from accountant.domains import BOOLEAN, POSITIVE, POSITIVE_DELTA, IntegerRange, Interval, OneOf
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, check_relation
from accountant.plans.plan import Sequential
from algorithms.base.estimators import PrivateRegressor
from algorithms.base.exact_minimum import record_weights
from algorithms.base.fit_data import (
    checked_shape,
    generator_of,
    validated_data,
    validated_fit_data,
    with_weights,
)
from algorithms.base.glm_losses import poisson_mean
from algorithms.base.noisy_gradient_rounds import GradientRounds, mu_of_budget
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import clipped_rows, row_products
from algorithms.base.signal import gradients_hidden
from algorithms.linear_models.closing_gradient import linear_part
from algorithms.linear_models.feature_moments import Moves
from algorithms.linear_models.mapped_plan import (
    Sizes,
    noise_of,
    private_plan,
    released_map,
    worth_of,
)
from algorithms.linear_models.regression_rounds import (
    CLIP_SQUARE,
    CONSTANT_SQUARE,
    REGRESSION_LOSSES,
    SHARES,
    RegressionLoss,
    descend_mapped,
)

POISSON, QUANTILE = "poisson", "quantile"
LOSS = OneOf(tuple(REGRESSION_LOSSES))
BOUND = Interval(1e-50, 1e50)  # the squares are finite floats
LEVEL = Interval(0.0, 1.0, "()")


@dataclass(eq=False, repr=False)
class PrivateGeneralizedLinearModel(PrivateRegressor):
    """A Poisson, Huber or quantile regression; (epsilon, delta)-DP for every record.

    It releases what `PrivateLinearRegression` does by "descent": the mean of features and their
    products, which precondition the descent, then noisy mean gradients, each record's clipped.  The
    clipping norm, or the threshold of Huber's loss, follows the residuals at no further cost.

    Parameters
    ----------
    loss : {"poisson", "huber", "quantile"}
        "poisson" fits the logarithm of the mean of counts in [0, y_bound]; "huber" a centre that
        far targets pull no more than near ones: four fifths of the residuals count as in least
        squares, the others by their sign; "quantile" the ``quantile`` of the targets.
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in (0, 1).
    quantile : float
        Which quantile "quantile" predicts, in (0, 1); other losses do not use it.
    fit_intercept : bool
        Whether a constant is added to scores.
    x_bound : float
        Largest absolute feature; larger ones are clipped, in predictions too.
    y_bound : float
        Largest absolute target; larger ones are clipped.  A mean of counts is at most as large.
    weight_bound : float
        Largest weight of a record; a record counts as the share of it, and costs the same privacy.
    rounds : int or None
        Number of gradients; None takes 60 to 200, by shape and epsilon.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        that adds nothing to any sum.
    non_private : bool
        The minimiser of the mean loss itself, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        Coefficients of scores.
    intercept_ : float
        The constant of scores.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    McCullagh & Nelder (1989); Huber (1964); Koenker & Bassett (1978); Song, Chaudhuri & Sarwate
    (2013), with a norm that follows a quantile (Andrew, Thakkar, McMahan & Ramaswamy 2021).

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateGeneralizedLinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 3))
    >>> y = rng.poisson(np.exp(0.7 * X[:, 0] + 0.5))
    >>> model = PrivateGeneralizedLinearModel(
    ...     epsilon=1.0, delta=1e-6, y_bound=20.0, random_state=0
    ... ).fit(X, y)
    >>> round(float(model.coef_[0]), 1), round(model.intercept_, 1)
    (0.7, 0.5)
    """

    _: KW_ONLY
    loss: str = POISSON
    epsilon: float
    delta: float
    quantile: float = 0.5
    fit_intercept: bool = True
    x_bound: float = 1.0
    y_bound: float = 1.0
    weight_bound: float = 1.0
    rounds: int | None = None
    relation: str = REPLACE
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Sequential | NoPrivacy:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        budget = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        size = features + BOOLEAN.check("fit_intercept", self.fit_intercept)
        rounds = None if self.rounds is None else IntegerRange(1).check("rounds", self.rounds)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        BOUND.check("x_bound", self.x_bound)
        POSITIVE.check("weight_bound", self.weight_bound)
        self._regression_loss()
        if self.non_private:
            return NoPrivacy()
        sizes, mu = Sizes(records, features, size), mu_of_budget(*budget)
        moves, constant = Moves.of(relation), CONSTANT_SQUARE * self.fit_intercept
        worth = worth_of(sizes, mu, SHARES, moves, CLIP_SQUARE, constant)
        plan = private_plan(budget, sizes, rounds or worth.rounds, worth.shares, relation)
        return self._warned_plan(plan, features)

    def hidden_by_noise(self, plan: Any, features: int) -> bool:
        """Return whether noise exceeds any signal; see `PrivateEstimator.hidden_by_noise`."""
        del features
        rounds = GradientRounds.of(plan)
        # Gradients are in units of the norm to which they are clipped.
        return gradients_hidden(rounds.mechanism, rounds.count, longest=1.0)

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return coefficients, and the constant last if one is fitted, from released values."""
        features = ledger.shape[1]
        size, loss = features + self.fit_intercept, self._regression_loss()
        if self.non_private:
            weights = partial(record_weights, weight_bound=self.weight_bound)
            rows = partial(clipped_rows, bound=self.x_bound)
            minimum = loss.exact_minimum(rows, self.fit_intercept, weights, executor)
            theta = ledger.release(ledger.plan, minimum, shape=(features + 1, 1))
            return np.asarray(theta)[:size, 0]
        mapped = released_map(
            ledger,
            self.x_bound,
            math.hypot(self.x_bound * math.sqrt(features), self.fit_intercept),
            self.fit_intercept,
            executor,
            SHARES,
            CLIP_SQUARE,
            CONSTANT_SQUARE,
            curvature=1.0,
        )
        descent = descend_mapped(ledger, mapped, loss, executor, weight_bound=self.weight_bound)
        return linear_part(mapped, size) @ descent.theta[:, 0]

    def fit(
        self,
        X: Any,
        y: Any = None,
        executor: Executor | None = None,
        ledger: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on features and targets; see `PrivateRegressor.fit`.

        ``sample_weight`` is clipped to [0, weight_bound]; None weighs every record alike.
        """
        X, y = validated_fit_data(self, X, y)
        data = with_weights(self, X, y, sample_weight)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, ledger=ledger)
        theta = self.run(self.ledger_, executor)
        self.coef_ = theta[: X.shape[1]]
        self.intercept_ = float(theta[-1]) if self.fit_intercept else 0.0
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    def predict(self, X: Any) -> Array:
        """Return predictions for X (records, features), clipped as in the fit.

        They are means of counts, centres or quantiles, as the loss says.
        """
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        scores = row_products(clipped_rows(X, self.x_bound), self.coef_) + self.intercept_
        return poisson_mean(scores, self.y_bound) if self.loss == POISSON else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the explained share of the loss, as scikit-learn's regressors of its kind do.

        It is that of the Poisson deviance, of the pinball loss, or, of Huber's regression, of the
        squared error.
        """
        measured = {
            POISSON: partial(d2_tweedie_score, power=1),
            QUANTILE: partial(d2_pinball_score, alpha=self.quantile),
        }
        predicted = self.predict(X)
        if self.loss == POISSON:  # the deviance at a mean of 0 is infinite
            predicted = np.maximum(predicted, np.finfo(float).tiny)
        return float(measured.get(self.loss, r2_score)(y, predicted, sample_weight=sample_weight))

    def _noise_summary(self) -> str:
        rounds = GradientRounds.of(self.plan_)
        return (
            f"noise of deviation {noise_of(rounds.mechanism):.4g} clipping norms on every "
            f"coordinate of {rounds.count} gradients, after {len(self.plan_.parts) - 1} releases "
            f"of moments; features are clipped to ±{self.x_bound:g} and targets to "
            f"{'[0, ' if self.loss == POISSON else '±'}{self.y_bound:g}"
            f"{']' if self.loss == POISSON else ''}"
        )

    def _regression_loss(self) -> RegressionLoss:
        name, y_bound = LOSS.check("loss", self.loss), BOUND.check("y_bound", self.y_bound)
        return REGRESSION_LOSSES[name](y_bound, LEVEL.check("quantile", self.quantile))
