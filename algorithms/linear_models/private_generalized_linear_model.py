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
from sklearn.utils.validation import check_is_fitted

from accountant.domains import (
    BOOLEAN,
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_DELTA,
    IntegerRange,
    Interval,
    OneOf,
)
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, check_relation
from accountant.plans.plan import Sequential
from algorithms.base.column_bounds import BOUNDS_SHARE, HEADROOM
from algorithms.base.exact_minimum import ExactMinimum, record_weights
from algorithms.base.fit_data import (
    PUBLIC,
    checked_shape,
    finds_bounds,
    generator_of,
    validated_data,
    validated_fit_data,
    with_weights,
)
from algorithms.base.noisy_gradient_rounds import GradientRounds
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import clipped_rows, row_products
from algorithms.base.signal import gradients_hidden
from algorithms.linear_models.closing_curvature import FOR_INTERVALS, CurvedIntervals, close_curved
from algorithms.linear_models.closing_gradient import gradient_deviation, linear_part
from algorithms.linear_models.mapped_plan import (
    Sizes,
    Worth,
    mean_noise,
    noise_of,
    private_plan,
    released_map,
)
from algorithms.linear_models.regression_plan import (
    CLIP_SQUARE,
    SHARES,
    square_of_constant,
    worth_of_regression,
)
from algorithms.linear_models.regression_rounds import (
    REGRESSION_LOSSES,
    USUAL_SCORES,
    USUAL_SLOPES,
    RegressionLoss,
    descend_mapped,
    exact_minimum,
)
from algorithms.linear_models.target_shares import CELLS, TargetRange, released_range

POISSON, QUANTILE = "poisson", "quantile"
# Gradients of counts are skewed: those of a normal law with as many short ones are no longer than
# most.  The clipping norm of the last one is larger by this.
SKEWED = 1.5
BOUND = Interval(1e-50, 1e50)  # the squares are finite floats
LEVEL = Interval(0.0, 1.0, "()")


@dataclass(eq=False, repr=False)
class PrivateGeneralizedLinearModel(CurvedIntervals):
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
    ridge : float
        Ridge penalty, of half the squared length of `coef_`, added to the mean of minus the
        log-likelihood, of half the squared error within Huber's threshold, or of the pinball loss.
    x_bound : float
        Largest absolute feature; larger ones are clipped, in predictions too.
    y_bound : float
        Largest absolute target; larger ones are clipped.  A mean of counts is at most as large.
    weight_bound : float
        Largest weight of a record; a record counts as the share of it, and costs the same privacy.
    rounds : int or None
        Number of gradients; None takes 60 to 200, by shape and epsilon.
    intervals : bool
        Whether `interval` is wanted, of "poisson" and "huber": it keeps half of the budget for the
        curvature of the loss and a last gradient that clips hardly any record.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        that adds nothing to any sum.
    non_private : bool
        The minimiser of the mean loss itself, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    bounds : {"public", "private"}
        Whether ``x_bound`` and ``y_bound`` bound the columns as they are, or are the outer ends of
        a noisy histogram that finds the scale of each, as in `PrivateLinearRegression`.  The bound
        of counts stays public.
    bounds_share : float
        Share of the squared budget that this histogram gets.

    Attributes
    ----------
    column_bounds_ : ColumnBounds or None
        The scales, limits and noisy clipped shares of the features and, but of counts, the target.
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
    ridge: float = 0.0
    x_bound: float = 1.0
    y_bound: float = 1.0
    weight_bound: float = 1.0
    rounds: int | None = None
    intervals: bool = False
    relation: str = REPLACE
    non_private: bool = False
    random_state: Any = None
    bounds: str = PUBLIC
    bounds_share: float = BOUNDS_SHARE

    _headroom = HEADROOM

    def plan(self, shape: tuple[int, ...]) -> Sequential | NoPrivacy:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        if finds_bounds(self):
            return self._plan_with_bounds((records, features))
        budget = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        size = features + BOOLEAN.check("fit_intercept", self.fit_intercept)
        rounds = None if self.rounds is None else IntegerRange(1).check("rounds", self.rounds)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        BOUND.check("x_bound", self.x_bound)
        POSITIVE.check("weight_bound", self.weight_bound)
        NON_NEGATIVE.check("ridge", self.ridge)
        self._regression_loss()
        if self.non_private:
            return NoPrivacy()
        sizes, worth = Sizes(records, features, size, cells=CELLS), self._worth((records, features))
        if self.intervals and not (worth.shares.products and self.loss != QUANTILE):
            allowed = "False: noise hides products of features, or the loss is that of a quantile"
            raise ParameterError("intervals", True, allowed)
        plan = private_plan(budget, sizes, rounds or worth.rounds, worth.shares, relation)
        return self._warned_plan(plan, features)

    def hidden_by_noise(self, plan: Any, features: int) -> bool:
        """Return whether noise exceeds any signal; see `PrivateEstimator.hidden_by_noise`."""
        if finds_bounds(self):
            return self._of_scaled((1, features)).hidden_by_noise(plan.parts[-1], features)
        del features
        rounds = GradientRounds.of(plan)
        # Gradients are in units of the norm to which they are clipped.
        return gradients_hidden(rounds.mechanism, rounds.count, longest=1.0)

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return coefficients, and the constant last if one is fitted, from released values."""
        if finds_bounds(self):
            return self._run_scaled(ledger, executor)
        features, reach = ledger.shape[1], self.x_bound * self._reach
        size, loss, ridge = features + self.fit_intercept, self._regression_loss(), self.ridge
        if self.non_private:
            query_of = partial(
                ExactMinimum,
                rows=partial(clipped_rows, bound=self.x_bound),
                fit_intercept=self.fit_intercept,
                weights=partial(record_weights, weight_bound=self.weight_bound),
                executor=executor,
            )
            minimum = partial(
                exact_minimum, loss=loss, y_bound=self.y_bound, ridge=ridge, query_of=query_of
            )
            theta = ledger.release(ledger.plan, minimum, shape=(features + 1, 1))
            return np.asarray(theta)[:size, 0]
        targets, shares = TargetRange(0.0, self.y_bound), self._worth(ledger.shape).shares
        if shares.targets:
            targets = released_range(ledger, self.y_bound, self.fit_intercept, executor)
            loss = loss.of_targets(targets)
        mapped = released_map(
            ledger,
            reach,
            math.hypot(reach * math.sqrt(features), self.fit_intercept),
            self.fit_intercept,
            executor,
            shares,
            CLIP_SQUARE,
            square_of_constant(shares),
            curvature=1.0,
        )
        descent = descend_mapped(ledger, mapped, loss, executor, ridge, self.weight_bound)
        if self.intervals:
            noise = noise_of(GradientRounds.of(ledger.plan).mechanism) / SHARES.unclipped_weight
            deviation = SKEWED * gradient_deviation(descent, noise)
            if loss.steered_share is not None:  # shares are of residuals within a width
                deviation = mapped.length * descent.loss.norm / 2
            self.closing_ = close_curved(
                ledger, mapped, descent.theta, descent.loss.loss, deviation, executor
            )
        usual = USUAL_SLOPES * targets.reach**2 if loss.is_equivariant else USUAL_SCORES
        averaged = mapped._replace(steps=mapped.steps._replace(averaged=True))
        noise = descent.unit * mean_noise(ledger.plan)
        theta = averaged.without_noise(descent.theta, noise, (usual, 1.0))
        theta[features:] = descent.theta[features:]  # 0 is no usual quantile, nor a usual mean
        return linear_part(mapped, size) @ theta[:, 0]

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
        if finds_bounds(self):
            return self._fit_scaled(X, y, executor, ledger, sample_weight=sample_weight)
        X, y = validated_fit_data(self, X, y)
        data = with_weights(self, X, y, sample_weight)
        if BOOLEAN.check("intervals", self.intervals) and sample_weight is not None:
            allowed = "None where intervals are wanted: their errors are those of equal weights"
            raise ParameterError("sample_weight", type(sample_weight), allowed)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, ledger=ledger)
        self.closing_ = None
        theta = self.run(self.ledger_, executor)
        self.coef_ = theta[: X.shape[1]]
        self.intercept_ = float(theta[-1]) if self.fit_intercept else 0.0
        self.column_bounds_ = self.scaled_fit_ = None
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
        scores = row_products(self._within_bounds(X), self.coef_) + self.intercept_
        return np.asarray(self._regression_loss().mean(scores))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the explained share of the loss, as scikit-learn's regressors of its kind do.

        It is that of the Poisson deviance, of the pinball loss, or, of Huber's regression, of the
        squared error.
        """
        metric = self._regression_loss().metric
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def _noise_summary(self) -> str:
        if self.column_bounds_ is not None:
            return self._scaled_summary()
        rounds = GradientRounds.of(self.plan_)
        return (
            f"noise of deviation {noise_of(rounds.mechanism):.4g} clipping norms on every "
            f"coordinate of {rounds.count} gradients, beside {len(self.plan_.parts) - 1} other "
            f"releases; features are clipped to ±{self.x_bound:g} and targets to at most "
            f"{self.y_bound:g} in size"
        )

    def _worth(self, shape: tuple[int, int]) -> Worth:
        """Return what is released before the gradients, and how many of them."""
        shares, budget = SHARES, (float(self.epsilon), float(self.delta))
        if BOOLEAN.check("intervals", self.intervals):
            shares = shares._replace(**FOR_INTERVALS)
        if not self._regression_loss().is_equivariant:
            shares = shares._replace(targets=0.0)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        return worth_of_regression(
            shape, budget, shares, relation, self.fit_intercept, self.intervals
        )

    @property
    def _scales_target(self) -> bool:
        return self._regression_loss().is_equivariant

    def _regression_loss(self) -> RegressionLoss:
        name = OneOf(tuple(REGRESSION_LOSSES)).check("loss", self.loss)
        y_bound = BOUND.check("y_bound", self.y_bound)
        return REGRESSION_LOSSES[name](y_bound, LEVEL.check("quantile", self.quantile))
