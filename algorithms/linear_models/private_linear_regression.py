"""Linear regression by a trusted curator: noisy clipped gradients or noisy sufficient statistics.

"statistics" is one release: products of features, and of features with the target.  "descent" is a
sequence of releases: the *shares of targets* in cells between their bounds; the *moments* (mean and
mean squared length of rows); the *products* of features, if noise does not hide them; the *rounds*,
each a mean of clipped gradients; and, where intervals are wanted, a *closing* gradient that clips
hardly any record.  Shares of targets say where the descent begins.  Moments and products make a
linear *map* of the features, a preconditioner of the descent.  The *signal* is about the length of
a clipped gradient over the noise of all rounds together (`signal_of`).

References: Song, Chaudhuri & Sarwate (2013); Wang (2018).
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
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
from accountant.plans.plan import Release, Sequential
from algorithms.base.column_bounds import BOUNDS_SHARE, HEADROOM, PrivatelyBounded
from algorithms.base.fit_data import (
    PUBLIC,
    checked_shape,
    finds_bounds,
    generator_of,
    validated_data,
    validated_fit_data,
    with_weights,
)
from algorithms.base.intervals import CONFIDENCE, normal_interval
from algorithms.base.noisy_gradient_rounds import GradientRounds, calibrated_gaussian, mu_of_budget
from algorithms.base.non_private import NoPrivacy
from algorithms.base.renamed_parameters import renamed_arguments
from algorithms.base.row_blocks import MeanOfBlocks, row_products
from algorithms.base.signal import gradients_hidden
from algorithms.linear_models.closing_gradient import (
    SHARES_WITH_INTERVALS,
    Closing,
    close_descent,
    coefficient_errors,
    linear_part,
)
from algorithms.linear_models.mapped_plan import (
    Shares,
    Sizes,
    Worth,
    mean_noise,
    noise_of,
    private_plan,
    products_fit,
    released_map,
)
from algorithms.linear_models.regression_plan import (
    CLIP_SQUARE,
    SHARES,
    constant_plan,
    square_of_constant,
    worth_of_regression,
)
from algorithms.linear_models.regression_rounds import (
    USUAL_CONSTANT,
    USUAL_SLOPES,
    SquaredRounds,
    descend_mapped,
)
from algorithms.linear_models.sufficient_statistics import (
    BlockStatistics,
    Statistics,
    StatisticUnits,
    coefficient_covariance,
    solved,
    statistics_sensitivity,
    unpacked,
    vector_size,
)
from algorithms.linear_models.target_shares import (
    CELLS,
    TargetRange,
    released_constant,
    released_range,
)

AUTO, DESCENT, STATISTICS = "auto", "descent", "statistics"
METHOD = OneOf((AUTO, DESCENT, STATISTICS))
BOUND = Interval(1e-50, 1e50)  # the fourth powers are finite floats
# "auto" releases statistics where the norm of the noise on products is at most this share of the
# square of a feature at its bound.  That takes several 100,000 records.  On fewer, statistics are
# much worse than a descent (docs/algorithms.md: AdaSSP is such a release).
STATISTICS_NOISE = 1e-3


@dataclass(eq=False, repr=False)
class PrivateLinearRegression(PrivatelyBounded):
    """Least squares with ridge and intercept; (epsilon, delta)-DP for every record.

    Features and targets are those scaled to the public bounds; data beyond them are clipped.
    "descent" releases where targets lie, then the mean of features and their products, which
    precondition the descent so that few steps are enough, then noisy mean gradients, each record's
    clipped to a norm that follows the residuals.  Where the shape shows that noise would hide
    slopes, only the constant is released, and `coef_` is 0.  "statistics" releases noisy products
    of features and targets once.  "auto" takes "statistics" where the plan shows that their noise
    is small, on many records, and "descent" elsewhere.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in (0, 1).
    method : {"auto", "descent", "statistics"}
        What is released.
    fit_intercept : bool
        Whether a constant is added to predictions.
    ridge : float
        Ridge penalty, of half the squared length of `coef_`, added to half the mean squared error;
        it adds no privacy loss.
    x_bound : float
        Largest absolute feature; larger ones are clipped, in predictions too.
    y_bound : float
        Largest absolute target; larger ones are clipped.
    row_bound : float or None
        Euclidean norm of a row, with the constant, beyond which a record counts less in the fit:
        ``(row_bound / norm)^2``, as if row and target were shortened.  Predictions are of whole
        rows.  None takes the longest within ``x_bound``: every record counts alike.  "descent"
        takes at least ``x_bound / 10``.
    weight_bound : float
        Largest weight of a record; a record counts as the share of it, and costs the same privacy.
    rounds : int or None
        Number of gradients, if any; None takes 60 to 200, by shape and epsilon.
    intervals : bool
        Whether `interval` is wanted, for which "descent" keeps two fifths of the budget: for a last
        gradient that clips hardly any record.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        that adds nothing to any sum.
    non_private : bool
        Least squares themselves, whatever the method, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    bounds : {"public", "private"}
        Whether ``x_bound`` and ``y_bound`` bound the columns as they are, or are the outer ends of
        a noisy histogram that finds the scale of each, see `PrivateScaler`.  Targets are then
        clipped at their scale and features at 16 times theirs; ``row_bound`` and ``ridge`` are
        about features over their scales.
    bounds_share : float
        Share of the squared budget that this histogram gets.

    Attributes
    ----------
    column_bounds_ : ColumnBounds or None
        The scales, limits and noisy clipped shares of the features and, last, of the target.
    coef_ : numpy.ndarray of shape (features,)
        Coefficients.
    intercept_ : float
        The constant of predictions.
    method_ : str
        What was released.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Song, Chaudhuri & Sarwate (2013), with a norm that follows a quantile (Andrew, Thakkar, McMahan
    & Ramaswamy 2021); Wang (2018), Algorithm 2, with one Gaussian for all statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 3))
    >>> y = 0.5 * X[:, 0] - 0.2 + 0.05 * rng.normal(size=20_000)
    >>> model = PrivateLinearRegression(epsilon=1.0, delta=1e-6, random_state=0).fit(X, y)
    >>> round(float(model.coef_[0]), 1), round(model.intercept_, 1), model.method_
    (0.5, -0.2, 'descent')
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    method: str = AUTO
    fit_intercept: bool = True
    ridge: float = 0.0
    x_bound: float = 1.0
    y_bound: float = 1.0
    row_bound: float | None = None
    weight_bound: float = 1.0
    rounds: int | None = None
    intervals: bool = False
    relation: str = REPLACE
    non_private: bool = False
    random_state: Any = None
    bounds: str = PUBLIC
    bounds_share: float = BOUNDS_SHARE

    _headroom = HEADROOM

    def plan(self, shape: tuple[int, ...]) -> Release | Sequential:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        if finds_bounds(self):
            return self._plan_with_bounds((records, features))
        budget = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        NON_NEGATIVE.check("ridge", self.ridge)
        POSITIVE.check("weight_bound", self.weight_bound)
        size = features + BOOLEAN.check("fit_intercept", self.fit_intercept)
        rounds = None if self.rounds is None else IntegerRange(1).check("rounds", self.rounds)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        units, method = self._units(features), METHOD.check("method", self.method)
        if self.non_private:
            return NoPrivacy()
        sizes, mu = Sizes(records, features, size, cells=CELLS), mu_of_budget(*budget)
        shares = self._shares()
        products = products_fit(sizes, mu, shares)
        if method == AUTO:
            # The noise on a product has the deviation s = gram unit / (n mu) on the diagonal, and
            # s / sqrt 2 off it: as a matrix its norm is about s sqrt(2 p).
            noise = units.gram * math.sqrt(2 * size) / (records * mu)
            hidden = self.intervals and not products
            method = (
                STATISTICS if noise <= STATISTICS_NOISE * self.x_bound**2 or hidden else DESCENT
            )
        if method == DESCENT:
            if self.intervals and not products:
                allowed = "False: noise hides products of features; or more records or epsilon"
                raise ParameterError("intervals", self.intervals, allowed)
            worth = self._worth((records, features))
            rounds = rounds or worth.rounds
            if not rounds:
                return self._warned_plan(constant_plan(budget, records, relation), features)
            plan = private_plan(budget, sizes, rounds, worth.shares, relation)
            return self._warned_plan(plan, features)
        moved, releases = statistics_sensitivity(records), 1
        return calibrated_gaussian(*budget, releases, moved, vector_size(size))

    def hidden_by_noise(self, plan: Any, features: int) -> bool:
        """Return whether noise exceeds any signal; see `PrivateEstimator.hidden_by_noise`."""
        if finds_bounds(self):
            return self._of_scaled((1, features)).hidden_by_noise(plan.parts[-1], features)
        del features
        if not isinstance(plan, Sequential):  # with statistics, `interval` reports a large noise
            return False
        rounds = GradientRounds.of(plan)
        # Gradients are in units of the norm to which they are clipped.
        return gradients_hidden(rounds.mechanism, rounds.count, longest=1.0)

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return coefficients and intercept, computed from released values only."""
        if finds_bounds(self):
            return self._run_scaled(ledger, executor)
        return self._result(ledger, executor)[0]

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

        ``sample_weight`` is clipped to [0, weight_bound]; None weighs every record alike.  A weight
        of 2 is no second record: it has no noise of its own, and costs the same privacy.  For a
        constant alone all records weigh alike.
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
        self.method_ = DESCENT if isinstance(plan, Sequential) else STATISTICS
        self.records_, self.weighted_ = X.shape[0], sample_weight is not None
        theta, released = self._result(self.ledger_, executor)
        self.statistics_ = released if isinstance(released, Statistics) else None
        self.closing_ = released if isinstance(released, Closing) else None
        self.coef_ = theta[:-1] if self.fit_intercept else theta
        self.intercept_ = float(theta[-1]) if self.fit_intercept else 0.0
        self.column_bounds_ = self.scaled_fit_ = None
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    def predict(self, X: Any) -> Array:
        """Return predictions for X (records, features), clipped as in the fit."""
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        return np.asarray(row_products(self._within_bounds(X), self.coef_) + self.intercept_)

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float = 0.95) -> Array:
        """Return intervals for the coefficients of least squares in the population.

        They count the noise, and the sampling of records whose residuals have one variance; their
        centres are coefficients without a ridge.  A descent must have had ``intervals=True``.

        Parameters
        ----------
        confidence : float
            Probability that an interval covers its coefficient, in (0, 1).

        Returns
        -------
        numpy.ndarray of shape (features, 2)
            Lower and upper ends; with an intercept a last row is its own.

        Raises
        ------
        ParameterError
            If the fit was a descent without ``intervals``, or noise hides a direction of the
            features.
        """
        check_is_fitted(self)
        CONFIDENCE.check("confidence", confidence)
        if self.weighted_:
            allowed = "None before the fit: errors are those of records of equal weight"
            raise ParameterError("sample_weight", "given", allowed)
        if self.column_bounds_ is not None:
            return self._scaled_interval(confidence)
        if self.statistics_ is not None:
            centre, covariance = coefficient_covariance(self.statistics_, self.records_)
        elif self.closing_ is not None:
            centre, covariance = coefficient_errors(self.closing_)
        else:
            allowed = 'True before the fit, or method="statistics": the bias of clipped gradients '
            raise ParameterError("intervals", False, allowed + "is not known")
        self._warn_if_not_private("intervals are")
        return normal_interval(centre, np.sqrt(np.maximum(np.diag(covariance), 0.0)), confidence)

    def _result(
        self, ledger: Any, executor: Executor | None
    ) -> tuple[Array, Statistics | Closing | None]:
        """Return coefficients with the intercept, and the release that their error follows from."""
        records, features = ledger.shape
        size = features + self.fit_intercept
        if isinstance(ledger.plan, Sequential):
            return self._descent(ledger, executor)
        units, row = self._units(features), self._row_bound(features)
        penalty = np.full(size, float(self.ridge))
        if self.fit_intercept:
            penalty[-1] = 0.0
        reach = self.x_bound * self._reach
        work = BlockStatistics(
            reach, self.y_bound, self.fit_intercept, row, units, self.weight_bound
        )
        query = MeanOfBlocks(work, records, executor)
        released = ledger.release(ledger.plan, query, shape=vector_size(size))
        statistics = unpacked(released, size, units, noise_of(ledger.plan))
        return solved(statistics, penalty), statistics

    def _descent(self, ledger: Any, executor: Executor | None) -> tuple[Array, Closing | None]:
        """Return coefficients with the intercept, from moments and gradients; and the last one."""
        (_, features), ridge = ledger.shape, float(self.ridge)
        # With a bound far below the features' own the round-off of long rows would matter.
        reach = self.x_bound * self._reach
        bound = max(self._row_bound(features), reach / 10)
        worth, targets = self._worth(ledger.shape), TargetRange(0.0, self.y_bound)
        shares = worth.shares
        if not GradientRounds.of(ledger.plan).count:
            constant = released_constant(ledger, self.y_bound, executor)
            return np.append(np.zeros(features), constant), None
        if shares.targets:
            targets = released_range(ledger, self.y_bound, self.fit_intercept, executor)
        mapped = released_map(
            ledger,
            reach,
            bound,
            self.fit_intercept,
            executor,
            shares,
            CLIP_SQUARE,
            square_of_constant(shares),
            curvature=1.0,
            penalty=ridge,
            row_bound=math.inf if self.row_bound is None else bound,
        )
        loss = SquaredRounds(self.y_bound, targets)
        descent = descend_mapped(ledger, mapped, loss, executor, ridge, self.weight_bound)
        closing = None
        if self.intervals:
            closing = close_descent(ledger, mapped, descent, self.y_bound, executor)
        usual = USUAL_SLOPES * targets.reach**2, USUAL_CONSTANT * targets.reach**2
        noise = descent.unit * mean_noise(ledger.plan)
        theta = mapped.without_noise(descent.theta - descent.start, noise, usual) + descent.start
        theta = mapped.in_l1_ball(theta, self._l1_radius)
        return linear_part(mapped, theta.size) @ theta[:, 0], closing

    def _worth(self, shape: tuple[int, int]) -> Worth:
        """Return what a descent releases before its gradients, and how many of them."""
        budget = float(self.epsilon), float(self.delta)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        return worth_of_regression(
            shape,
            budget,
            self._shares(),
            relation,
            self.fit_intercept,
            self.intervals,
            is_mean=True,
        )

    def _shares(self) -> Shares:
        """Return the shares of the budget of a descent."""
        return SHARES_WITH_INTERVALS if BOOLEAN.check("intervals", self.intervals) else SHARES

    def _row_bound(self, features: int) -> float:
        longest = math.sqrt(
            features * BOUND.check("x_bound", self.x_bound) ** 2 + self.fit_intercept
        )
        if self.row_bound is None:
            return longest
        return min(BOUND.check("row_bound", self.row_bound), longest)

    def _units(self, features: int) -> StatisticUnits:
        y_bound = BOUND.check("y_bound", self.y_bound)
        return StatisticUnits.of(self._row_bound(features), y_bound, self.relation)

    def _noise_summary(self) -> str:
        if self.column_bounds_ is not None:
            return self._scaled_summary()
        clipped = f"features are clipped to ±{self.x_bound:g} and targets to ±{self.y_bound:g}"
        if self.statistics_ is None:
            rounds = GradientRounds.of(self.plan_)
            if not rounds.count:
                return (
                    f"noise of deviation {noise_of(rounds.mechanism):.4g} on the mean of targets "
                    f"over their reach; slopes are 0, as noise would hide them; {clipped}"
                )
            before = len(self.plan_.parts) - (1 if self.closing_ is None else 2)
            closing = "" if self.closing_ is None else ", and of a last one that clips hardly any"
            return (
                f"noise of deviation {noise_of(rounds.mechanism):.4g} clipping norms on every "
                f"coordinate of {rounds.count} gradients{closing}, after {before} other releases; "
                f"{clipped}"
            )
        statistics: Any = self.statistics_
        return (
            f"noise of deviation {statistics.gram_noise:.4g} on products of features, "
            f"{statistics.products_noise:.4g} on those with targets; {clipped}"
        )
