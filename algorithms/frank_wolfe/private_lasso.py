"""The private LASSO: Frank-Wolfe over the l1 ball, as a scikit-learn regressor.

References: Talwar, Thakurta & Zhang (2015), Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from accountant.domains import BOOLEAN, DELTA, POSITIVE, POSITIVE_DELTA, IntegerRange, OneOf
from accountant.ledger.chunks import Chunks
from accountant.numerics import Array
from accountant.plans.adjacency import REPLACE
from accountant.plans.plan import Repeat, Sequential
from algorithms.base.column_bounds import BOUNDS_SHARE, PrivatelyBounded
from algorithms.base.exact_minimum import ExactMinimum, record_weights
from algorithms.base.fit_data import (
    PUBLIC,
    checked_shape,
    finds_bounds,
    generator_of,
    split_pairs,
    validated_data,
    validated_fit_data,
    with_weights,
)
from algorithms.base.glm_losses import SQUARED, LinearLoss, ScoreLoss
from algorithms.base.noisy_gradient_rounds import MAX_ROUNDS, GradientRounds, mu_of_budget
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import clipped_rows
from algorithms.base.signal import selections_hidden
from algorithms.frank_wolfe.constant_scores import (
    SELECTIONS,
    ConstantScores,
    ShiftedSlope,
    released_constant,
)
from algorithms.frank_wolfe.constants import (
    GUMBEL,
    SELECTION,
    Bounds,
    noise_scale,
    optimal_rounds,
    selection_mechanism,
)
from algorithms.frank_wolfe.dense_scores import StreamedScores, run_frank_wolfe
from algorithms.frank_wolfe.polytopes import L1Ball
from algorithms.frank_wolfe.sparse_scores import run_sparse_frank_wolfe
from algorithms.linear_models.mapped_plan import Sizes, signal_of
from algorithms.linear_models.private_linear_regression import PrivateLinearRegression
from mechanisms.lazy_exponential import LazyExponential

AUTO, FRANK_WOLFE, DESCENT = "auto", "frank-wolfe", "descent"
METHOD = OneOf((AUTO, FRANK_WOLFE, DESCENT))
# "auto" takes descent where the signal (`signal_of`) is at least this: twice the longest clipped
# gradient over the length of the noise of a single round that had the whole budget.  The choice
# needs no data, and either method is as private.
CLEAR = 20.0
# What "auto" takes as the radius of selections and of a descent, whose noise does not grow with it.
RADIUS, DESCENT_RADIUS = 1.0, 64.0


class L1Estimator(PrivatelyBounded):
    """A linear model over the l1 ball, by private Frank-Wolfe or clipped gradient descent.

    The descent is that of a linear model, whose coefficients are moved to the nearest in the ball.
    """

    _loss: LinearLoss
    _linear_model: ClassVar[Callable[..., Any]]
    epsilon: float
    delta: float
    radius: float | str
    rounds: int | None
    selection: str
    x_bound: float
    y_bound: float = 1.0  # the bound of the labels -1 and 1
    relation: str
    method: str
    fit_intercept: bool
    weight_bound: float
    intercept_: float

    def plan(self, shape: tuple[int, ...], sparse: bool = False) -> Repeat | Sequential:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data.

        On ``sparse`` data "auto" selects vertices; with Gumbel selection a fit draws the same
        distribution lazily.
        """
        constant = BOOLEAN.check("fit_intercept", self.fit_intercept)
        POSITIVE.check("weight_bound", self.weight_bound)
        records, features = checked_shape(shape)
        if finds_bounds(self):
            return self._plan_with_bounds((records, features), sparse=sparse)
        selection = SELECTION.check("selection", self.selection)
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        if self._descends((records, features), sparse):
            POSITIVE_DELTA.check("delta", delta)
            self._bounds(DESCENT_RADIUS)
            if self.non_private:
                return Repeat(NoPrivacy(), 1)
            plan: Sequential = self._descent().plan((records, features))
            return plan
        sensitivity = self._sensitivity(records)
        if self.rounds is None:
            rounds = self.best_rounds(shape)
        else:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        rounds += SELECTIONS * constant
        if self.non_private:
            return Repeat(NoPrivacy(), rounds)
        scale = noise_scale(epsilon, delta, rounds, selection, sensitivity)
        vertex_selection: Any
        if sparse and selection == GUMBEL:
            vertex_selection = LazyExponential(scale, sensitivity)
        else:
            vertex_selection = selection_mechanism(scale, sensitivity, selection)
        return self._warned_plan(Repeat(vertex_selection, rounds), features)

    def hidden_by_noise(self, plan: Any, features: int) -> bool:
        """Return whether noise exceeds any signal; see `PrivateEstimator.hidden_by_noise`."""
        if finds_bounds(self):
            return self._of_scaled((1, features)).hidden_by_noise(plan.parts[-1], features)
        if isinstance(plan, Sequential):
            hidden: bool = self._descent().hidden_by_noise(plan, features)
            return hidden
        bounds = self._bounds()
        largest = bounds.radius * bounds.lipschitz(self._loss)
        return selections_hidden(plan.part, 2 * features, largest)

    def best_rounds(self, shape: tuple[int, ...]) -> int:
        """Return the optimum T* of the utility bound, which ``rounds=None`` takes.

        Parameters
        ----------
        shape : tuple of int
            (records, features).

        Returns
        -------
        int
            Number of selections, at least 1; without privacy 1,000.
        """
        epsilon = self._checked_epsilon()
        if self.non_private:
            return MAX_ROUNDS
        if finds_bounds(self):
            return self._of_scaled(checked_shape(shape)).best_rounds(shape)
        curvature = self._bounds().curvature(self._loss)
        records, features = checked_shape(shape)
        return optimal_rounds(
            curvature,
            self._sensitivity(records),
            2 * features,
            SELECTION.check("selection", self.selection),
            epsilon,
            DELTA.check("delta", self.delta),
        )

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return coefficients, the constant last if one is fitted, from released values only."""
        if finds_bounds(self):
            return self._run_scaled(ledger, executor)
        theta = self._run(ledger, executor, streamed=False)
        return theta if self.fit_intercept else theta[:-1]

    def _run(self, ledger: Any, executor: Executor | None, streamed: bool) -> Array:
        """Return coefficients and the constant; data may be read a block at a time."""
        plan, features = ledger.plan, ledger.shape[1]
        if self._is_descent(plan, ledger.shape):
            bounds = self._bounds(DESCENT_RADIUS)
            if self.non_private:
                minimum = ExactMinimum(
                    ScoreLoss.within(self._loss, -bounds.y, bounds.y),
                    partial(clipped_rows, bound=bounds.x),
                    self.fit_intercept,
                    l1_radius=bounds.radius,
                    weights=partial(record_weights, weight_bound=bounds.weight),
                    executor=executor,
                )
                return np.asarray(ledger.release(plan.part, minimum, shape=(features + 1, 1)))[:, 0]
            released = np.ravel(self._descent().run(ledger, executor))
            return released if len(released) > features else np.append(released, 0.0)
        bounds, constant = self._bounds(), 0.0
        if self.fit_intercept:
            constant = self._constant(ledger, np.zeros(features), radius=0.0, executor=executor)
        loss = replace(self._loss, slope=ShiftedSlope(self._loss, constant))
        rounds = self._vertices_of(plan)
        if streamed:
            query = StreamedScores(bounds, loss, L1Ball(bounds.radius), executor)
            theta = run_frank_wolfe(ledger, plan.part, rounds, bounds, query=query)
        else:
            lazily = isinstance(plan.part, LazyExponential)
            work = run_sparse_frank_wolfe if lazily else run_frank_wolfe
            theta = work(ledger, plan.part, rounds, bounds, loss)
        if self.fit_intercept:
            constant = self._constant(ledger, theta, radius=bounds.radius, executor=executor)
        return np.append(theta, constant)

    def _constant(
        self, ledger: Any, theta: Array, radius: float, executor: Executor | None
    ) -> float:
        """Return the constant that is selected at public coefficients of l1 norm <= ``radius``."""
        sensitivity = self._sensitivity(ledger.shape[0])
        query = ConstantScores(
            self._bounds(), self._loss, theta, radius, self.relation, sensitivity, executor
        )
        return released_constant(ledger, ledger.plan.part, query)

    def _vertices_of(self, plan: Repeat) -> int:
        """Return how many selections of a plan are of vertices."""
        return plan.count - SELECTIONS * self.fit_intercept

    def _fit(
        self, X: Any, y: Any, executor: Executor | None, ledger: Any, sample_weight: Any
    ) -> Self:
        """Make the plan, run it, and keep the results; y is None where X gives the pairs."""
        if y is None:
            X, y = split_pairs(X)
        data = with_weights(self, X, y, sample_weight)
        # The plan of a subclass may have no `sparse` argument.
        sparse_argument: dict[str, Any] = {"sparse": True} if issparse(X) else {}
        plan: Any = self.plan(X.shape, **sparse_argument)
        descends, rng = self._is_descent(plan, X.shape), generator_of(self.random_state)
        bounds = self._bounds(DESCENT_RADIUS if descends else RADIUS)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, ledger=ledger)
        self.bounds_ = bounds
        if isinstance(X, Chunks):
            theta = self._run(self.ledger_, executor, streamed=True)
        else:  # a subclass may run in its own way
            theta = self.run(self.ledger_)
            theta = theta if self.fit_intercept else np.append(theta, 0.0)
        self.coef_, self.intercept_ = theta[:-1], float(theta[-1])
        self.column_bounds_ = self.scaled_fit_ = None
        self._warn_if_not_private("coefficients are")
        self.rounds_ = GradientRounds.of(plan).count if descends else self._vertices_of(plan)
        self.transcript_ = self.ledger_.transcript
        return self

    def _linear_predictor(self, X: Any) -> Array:
        """Return ``<x, theta>`` and the constant for every row of X, clipped as in the fit."""
        check_is_fitted(self)
        self._warn_if_not_private("predictions are")
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        inner: Array = np.asarray(self._within_bounds(X) @ self.coef_)
        return inner + self.intercept_

    def _sensitivity(self, records: int) -> float:
        """Return how far one of the records moves the score of a vertex."""
        return self._bounds().score_sensitivity(records, self.relation, self._loss)

    def _descends(self, shape: tuple[int, ...], sparse: bool) -> bool:
        """Whether gradients are released by a fit on this shape."""
        method = METHOD.check("method", self.method)
        selections_asked = self.rounds is not None or self.selection != GUMBEL
        is_fixed = selections_asked or (sparse and not self.non_private) or not self.delta
        if method != AUTO or is_fixed:
            return method == DESCENT
        if self.non_private:
            return True
        records, features = shape
        mu = mu_of_budget(self._checked_epsilon(), DELTA.check("delta", self.delta))
        return signal_of(Sizes(records, features, features + self.fit_intercept), mu) >= CLEAR

    def _is_descent(self, plan: Repeat | Sequential, shape: tuple[int, ...]) -> bool:
        """Whether the plan is one of gradients."""
        if isinstance(plan, Sequential) or not isinstance(plan.part, NoPrivacy):
            return isinstance(plan, Sequential)
        return self._descends(shape, sparse=False)

    def _descent(self) -> Any:
        """Return the linear model whose descent this is."""
        bounds = self._bounds(DESCENT_RADIUS)
        model = self._linear_model(
            epsilon=self.epsilon,
            delta=self.delta,
            fit_intercept=self.fit_intercept,
            x_bound=bounds.x,
            weight_bound=bounds.weight,
            relation=self.relation,
        )
        model.__dict__ |= {
            "method": DESCENT,
            "y_bound": bounds.y,
            "_l1_radius": bounds.radius,
            "_warned_plan": self._warned_plan,  # a warning names this estimator
        }
        return model

    def _bounds(self, standard: float = RADIUS) -> Bounds:
        radius = standard if self.radius == AUTO else POSITIVE.check("radius", self.radius)
        x_bound = POSITIVE.check("x_bound", self.x_bound)
        y_bound = POSITIVE.check("y_bound", self.y_bound)
        return Bounds(radius, x_bound, y_bound, POSITIVE.check("weight_bound", self.weight_bound))

    def _noise_summary(self) -> str:
        if self.column_bounds_ is not None:
            return self._scaled_summary()
        scale = GradientRounds.of(self.plan_).mechanism.scale
        if isinstance(self.plan_, Sequential):
            if not self.rounds_:
                return "slopes are 0, as noise would hide them: a constant alone is released"
            return (
                f"noise of deviation {scale:.4g} clipping norms on every coordinate of "
                f"{self.rounds_} gradients, beside {len(self.plan_.parts) - 1} other releases"
            )
        also = f" and {SELECTIONS} constants" if self.fit_intercept else ""
        return (
            f"{self.selection} noise of scale {scale:.4g} on the scores of {self.rounds_} vertices"
            f"{also}"
        )


@dataclass(eq=False, repr=False)
class PrivateLasso(L1Estimator):
    """Least squares over the l1 ball of ``radius``, (epsilon, delta)-DP for every record.

    The constant of predictions is not bound to the ball.  On sparse data a round reads only rows
    and features that changed.

    "frank-wolfe" selects vertices of the ball with noise, which grows with the logarithm of the
    number of features, and with the worst residual there could be; two more selections find the
    constant.  Features far from 0 should be centred by public bounds for it: vertices are found at
    the first constant.  "descent" releases noisy mean
    gradients and projects to the ball; each record's gradient is clipped to a norm that follows the
    residuals.  "auto" takes "descent" on dense data where the plan shows that the noise of a round
    is small next to a clipped gradient, and without privacy; not if ``rounds`` or ``selection`` is
    given, or delta is 0.

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
        Number of private selections, the paper's T - 1; None takes `best_rounds`, which on small
        data is several times too many.
    selection : {"gumbel", "laplace", "permute-and-flip"}
        The selection mechanism.
    x_bound : float
        Largest absolute feature; larger ones are clipped, in predictions too.
    y_bound : float
        Largest absolute target; larger ones are clipped.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        that adds nothing, a row of zeros.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    method : {"auto", "frank-wolfe", "descent"}
        What is released: selected vertices, or gradients, which need delta above 0.
    non_private : bool
        For comparison, needs ``epsilon=inf``: the minimiser of the mean squared error in the ball,
        or the selections without noise where they are asked for.
    fit_intercept : bool
        Whether a constant is added to predictions.
    bounds : {"public", "private"}
        Whether ``x_bound`` and ``y_bound`` bound the columns as they are, or are the outer ends of
        a noisy histogram that finds the scale of each, see `PrivateScaler`, where it is clipped.
        The ball is then that of the coefficients of columns over their scales; delta is above 0.
    bounds_share : float
        Share of the squared budget that this histogram gets.
    weight_bound : float
        Largest weight of a record; weights are clipped to [0, weight_bound], and a record counts as
        the share of this bound.  For add-remove neighbours weights double the noise of the constant
        that is selected.

    Attributes
    ----------
    column_bounds_ : ColumnBounds or None
        The scales, limits and noisy clipped shares of the features and, last, of the target.
    coef_ : numpy.ndarray of shape (features,)
        Coefficients of l1 norm at most ``radius``.
    intercept_ : float
        The constant of predictions.
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
    >>> from algorithms import PrivateLasso
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
    >>> lasso = PrivateLasso(epsilon=2.0, delta=1e-6, rounds=10, random_state=0)
    >>> lasso.fit(X, X[:, 0]).coef_.round(1).tolist()
    [0.8, 0.0, 0.0, 0.0, 0.0]
    >>> lasso.plan_.count, round(lasso.plan_.part.scale, 4)
    (12, 0.0302)
    """

    _loss = SQUARED
    _linear_model = PrivateLinearRegression

    epsilon: float
    delta: float
    radius: float | str = AUTO
    rounds: int | None = None
    selection: str = "gumbel"
    x_bound: float = 1.0
    y_bound: float = 1.0
    relation: str = REPLACE
    random_state: Any = None
    method: str = AUTO
    non_private: bool = False
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
        """Fit on features and targets; see `PrivateRegressor.fit`.

        ``sample_weight`` is clipped to [0, weight_bound]; None weighs every record alike.  Sparse
        chunks draw other noise from a seed than a sparse matrix, of the same distribution.
        """
        if finds_bounds(self):
            return self._fit_scaled(X, y, executor, ledger, sample_weight=sample_weight)
        return self._fit(*validated_fit_data(self, X, y), executor, ledger, sample_weight)

    def predict(self, X: Any) -> Array:
        """Return predictions for X (records, features), clipped as in the fit."""
        return self._linear_predictor(X)
