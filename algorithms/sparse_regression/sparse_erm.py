"""Sparse empirical risk minimisation by a trusted curator: noisy gradients, thresholded.

References: Wang & Xu (2021), Algorithm 3.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self, final

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.domains import (
    BOOLEAN,
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_DELTA,
    IntegerRange,
    Interval,
    OneOf,
)
from accountant.ledger.private_data import first_array
from accountant.numerics import Array
from accountant.plans.plan import Release, Repeat
from algorithms.base.binary_labels import encode_two_classes
from algorithms.base.erm_losses import (
    ERM_LOSSES,
    MeanGradient,
    clipped_row_products,
    norm_clip_factors,
)
from algorithms.base.estimators import PrivateRegressor
from algorithms.base.exact_minimum import ExactMinimum, record_weights
from algorithms.base.fit_data import (
    checked_shape,
    generator_of,
    validated_data,
    validated_fit_data,
    validated_labelled_data,
    with_weights,
)
from algorithms.base.glm_losses import LinearLoss, ScoreLoss
from algorithms.base.hard_thresholding import keep_largest
from algorithms.base.noisy_gradient_rounds import (
    MAX_ROUNDS,
    GradientRounds,
    affordable_rounds,
    calibrated_gaussian,
)
from algorithms.base.non_private import NoPrivacy, level_of_caller
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.base.score_classifier import binary_probabilities
from algorithms.base.signal import gradients_hidden

LOSS = OneOf(tuple(ERM_LOSSES))
ROW_BOUND = Interval(1e-100, 1e100)  # the squares are finite floats
RATE = Interval(0.0, 1.0, "()")
# The next two were chosen once, on training parts (docs/classification.md says how): the bound to
# which slopes of the loss are clipped, and the largest noise that all rounds together may add to a
# coefficient, which says how many rounds there are.
CLIP = 0.5
NOISE = {"logistic": 2.0, "squared": 0.5}
# The constant feature over the bound of rows: it lengthens the longest row by about an eighth.
CONSTANT = 0.5
MOST_ROUNDS = 200  # what more of them would do, momentum does
ARRIVED = 1e-6  # rounds without noise end at this move, relative to the largest coefficient


@renamed_parameters(batch_rate="rate", penalty="ridge", residual_clip="slope_bound")
@dataclass(eq=False, repr=False)
class SparseERM(PrivateRegressor):
    """A sparse linear model by noisy hard thresholding; (epsilon, delta)-DP for every record.

    Every round releases the mean gradient with Gaussian noise.  Neighbours replace one record.
    With ``rate`` a round sees a Poisson sample, for neighbours that add or remove a record,
    and a public number of records: a record is replaced by one that adds nothing, such as a row of
    zeros.

    Parameters
    ----------
    loss : {"logistic", "squared"}
        "logistic" fits a classifier of two classes, which are public; "squared" is Huber's loss,
        quadratic up to residuals of 1.
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in (0, 1).
    sparsity : int
        Number of coefficients that may be nonzero.
    rounds : int or None
        Number of gradients; None takes as many as the noise allows, at most 200, with momentum
        where the noise allows more: together it adds at most 2 to a coefficient for "logistic",
        which needs a direction alone, 0.5 for "squared".
    step : float or None
        Step size; None takes 0.9 of the longest step that is stable on all rows.
    ridge : float
        Ridge penalty, which adds no privacy loss.
    row_bound : float
        Largest Euclidean norm of a row; longer rows are scaled to it, in predictions too.
    rate : float or None
        Sampling probability of a record in a round; None takes all records.
    non_private : bool
        For comparison, needs ``epsilon=inf``: the minimiser of the mean loss on the columns that
        1,000 rounds without noise find; with ``rounds``, so many rounds.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    slope_bound : float or None
        Largest slope of the loss at a record: less noise, and more bias where slopes are steeper.
        None takes 0.5, or 1 without noise, which is the loss as it is.
    classes : array_like or None
        The two public classes of a classifier; any other label counts as the first in order.  None
        is enough for boolean labels, and with ``non_private=True``.
    fit_intercept : bool
        Whether a constant is added to scores: by a feature that is always ``row_bound / 2``, or
        less for a longer ``step``, neither thresholded nor penalised.
    weight_bound : float
        Largest weight of a record; weights are clipped to [0, weight_bound], and a record counts as
        the share of this bound.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        Coefficients of shortened rows, at most ``sparsity`` of them not 0.
    intercept_ : float
        The constant of scores.
    classes_ : numpy.ndarray
        The two classes, of a classifier.
    rounds_ : int
        The number of gradients.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Wang & Xu (2021), Algorithm 3, with noise calibrated exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import SparseERM
    >>> X = np.random.default_rng(0).choice([-0.4, 0.4], (5000, 5))
    >>> model = SparseERM(epsilon=2.0, delta=1e-6, sparsity=1, rounds=5, random_state=0)
    >>> model.fit(X, X[:, 3] > 0).coef_.nonzero()[0].tolist()
    [3]
    """

    _: KW_ONLY
    loss: str = "logistic"
    epsilon: float
    delta: float
    sparsity: int
    rounds: int | None = None
    step: float | None = None
    ridge: float = 0.0
    row_bound: float = 1.0
    rate: float | None = None
    non_private: bool = False
    random_state: Any = None
    slope_bound: float | None = None
    classes: Any = None
    fit_intercept: bool = True
    weight_bound: float = 1.0

    def plan(self, shape: tuple[int, ...]) -> Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        IntegerRange(1, features).check("sparsity", self.sparsity)
        POSITIVE.check("weight_bound", self.weight_bound)
        steepest = self._steepest()
        epsilon, delta = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        constant = self._constant()
        longest = steepest * math.hypot(self.row_bound, constant)
        size = features + bool(constant)
        rate = None if self.rate is None else RATE.check("rate", self.rate)
        if self.rounds is not None:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        elif self.non_private:
            return Repeat(NoPrivacy(), 1)  # the exact minimiser on all records is released
        else:
            rounds = min(self._affordable_steps(records, features), MOST_ROUNDS)
        # Replacing a record moves the mean by 2 / n times the bound of gradients.  Adding it to a
        # sample moves the mean by the bound over the expected size of the sample.
        sensitivity = 2 * longest / records if rate is None else longest / (rate * records)
        release: Release = NoPrivacy()
        if not self.non_private:
            release = calibrated_gaussian(epsilon, delta, rounds, sensitivity, size, rate)
        plan = Repeat(release if rate is None else PoissonSampled(release, rate), rounds)
        return self._warned_plan(plan, features)

    def hidden_by_noise(self, plan: Any, features: int) -> bool:
        """Return whether noise exceeds any signal; see `PrivateEstimator.hidden_by_noise`."""
        del features
        rounds = GradientRounds.of(plan)
        longest = self._steepest() * math.hypot(self.row_bound, self._constant())
        return gradients_hidden(rounds.mechanism, rounds.count, longest)

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, and the constant last if one is fitted, from released values."""
        (loss, ridge, step), constant = self._settings(), self._constant()
        if self.non_private and self.rounds is None:
            size = ledger.shape[1] + bool(constant)
            following = partial(self._next, step=step, ridge=ridge)
            minimum = ExactSparseMinimum(
                loss, self.row_bound, constant, ridge, self.sparsity, following, self.weight_bound,
                executor,
            )  # fmt: skip
            return np.asarray(ledger.release(NoPrivacy(), minimum, shape=size))
        (records, features), rounds = ledger.shape, GradientRounds.of(ledger.plan)
        gradient = MeanGradient(
            loss, self.row_bound, records * rounds.rate, executor, constant, self.weight_bound
        )
        theta, velocity = np.zeros(features + bool(constant)), np.zeros(())
        steps = rounds.count
        if self.rounds is None:
            steps = self._affordable_steps(records, features)
        # The first half of the rounds finds the columns, without momentum, which would favour those
        # that are chosen already.  With momentum b a gradient acts 1 / (1 - b) times, so that all
        # rounds together move, and add noise, as much as all steps that the noise allows.
        plain_rounds = rounds.count // 2
        momentum = 1 - (rounds.count - plain_rounds) / (steps - plain_rounds)
        for t in range(rounds.count):
            gradient.theta = theta
            noisy = ledger.release(rounds.part, gradient, shape=theta.size)
            push = momentum * velocity if t >= plain_rounds else 0.0
            next_theta = self._next(theta, noisy, step, ridge, push)
            theta, velocity = next_theta, next_theta - theta
        theta[features:] *= constant
        return theta

    def _affordable_steps(self, records: int, features: int) -> int:
        """Return how many steps without momentum keep the noise within `NOISE`."""
        (_, _, step), constant = self._settings(), self._constant()
        moved = 2 * self._steepest() * math.hypot(self.row_bound, constant) * step / records
        size, limit = features + bool(constant), NOISE[self.loss]
        return affordable_rounds(moved, size, self._checked_epsilon(), self.delta, limit)

    def _next(
        self, theta: Array, gradient: Array, step: float, ridge: float, push: Array | float = 0.0
    ) -> Array:
        """Return the next iterate: the constant, the last one, is not thresholded."""
        slopes = slice(0, theta.size - self.fit_intercept)
        moved = theta - step * gradient + push
        moved[slopes] = keep_largest(moved[slopes] - step * ridge * theta[slopes], self.sparsity)
        return moved

    def _constant(self) -> float:
        """Return the value of the constant feature; 0 without one."""
        fitted = BOOLEAN.check("fit_intercept", self.fit_intercept)
        value = CONSTANT * ROW_BOUND.check("row_bound", self.row_bound)
        if self.step is not None:  # a step for features that are shorter than the bound
            smoothness = ERM_LOSSES[LOSS.check("loss", self.loss)].smoothness
            value = min(value, 1 / math.sqrt(smoothness * POSITIVE.check("step", self.step)))
        return value if fitted else 0.0

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
        logistic = LOSS.check("loss", self.loss) == "logistic"
        if logistic:
            type_of_labels = getattr(y, "dtype", None)
            self.classes_, X, y = validated_labelled_data(self, X, y, encode_two_classes)
            if self.classes_.dtype.kind in "iu" and getattr(type_of_labels, "kind", "") == "f":
                # types are public; whether a label is none of the classes is not
                message = (
                    f"labels are of type {type_of_labels}, and classes are whole numbers: a label "
                    f"that is none of {self.classes_.tolist()} counts as the first of them; give "
                    "y.astype(int), or loss='squared' for numbers to predict"
                )
                warnings.warn(message, stacklevel=level_of_caller())
        else:
            X, y = validated_fit_data(self, X, y)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        data = with_weights(self, X, y, sample_weight)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, ledger=ledger)
        theta, self.rounds_ = self.run(self.ledger_, executor), plan.count
        self.coef_, self.intercept_ = theta[: X.shape[1]], float(theta[X.shape[1] :].sum())
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    @available_if(lambda self: self.loss == "logistic")
    def decision_function(self, X: Any) -> Array:
        """Return the score of every shortened row; positive for the second class."""
        return self._linear_predictor(X)

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of both classes, for every row of X (records, features)."""
        return binary_probabilities(self._linear_predictor(X))

    def _linear_predictor(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        # Rows are shortened as in the fit.
        factors = norm_clip_factors(X, self.row_bound)
        return clipped_row_products(X, factors, self.coef_) + self.intercept_

    def predict(self, X: Any) -> Any:
        """Return the class, or the number, of every row of X (records, features)."""
        inner = self._linear_predictor(X)
        return self.classes_[(inner > 0).astype(int)] if self.loss == "logistic" else inner

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R^2 of a regression."""
        metric = accuracy_score if self.loss == "logistic" else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a two-class classifier or a regression, by the loss."""
        tags = super().__sklearn_tags__()
        if self.loss == "logistic":
            tags.estimator_type, tags.regressor_tags = "classifier", None
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        else:
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    def _noise_summary(self) -> str:
        scale = GradientRounds.of(self.plan_).mechanism.scale
        last_gradient = np.asarray(self.transcript_[-1].output)
        share = min(1.0, last_gradient.size * scale**2 / float(last_gradient @ last_gradient))
        return (
            f"noise of deviation {scale:.4g} on every coordinate of {self.rounds_} gradients: "
            f"{share:.0%} of the last one's square"
        )

    def _steepest(self) -> float:
        """Return the bound of slopes; no loss of the table has steeper ones than 1."""
        if self.slope_bound is not None:
            return min(1.0, POSITIVE.check("slope_bound", self.slope_bound))
        return 1.0 if self.non_private else CLIP

    def _settings(self) -> tuple[LinearLoss, float, float]:
        """Return the loss, whose slopes are bounded for any label, the ridge and the step."""
        loss = ERM_LOSSES[LOSS.check("loss", self.loss)].clipped(self._steepest())
        ridge = NON_NEGATIVE.check("ridge", self.ridge)
        if self.step is not None:
            return loss, ridge, POSITIVE.check("step", self.step)
        # Steps below 2 / l are stable for a loss of smoothness l, which shortened rows bound.
        longest = math.hypot(ROW_BOUND.check("row_bound", self.row_bound), self._constant())
        smooth = loss.smoothness * longest**2 + ridge
        return loss, ridge, 1.8 / smooth


@final
@dataclass(frozen=True)
class ExactSparseMinimum:
    """A query: hard thresholding without noise, then the minimiser on the columns it finds."""

    loss: LinearLoss
    row_bound: float
    constant: float
    ridge: float
    sparsity: int
    following: Callable[[Array, Array], Array]
    weight_bound: float
    executor: Executor | None = None

    def __call__(self, data: Any) -> Array:
        """Return coefficients, and the constant last if one is fitted."""
        records, features = first_array(data).shape
        gradient = MeanGradient(
            self.loss, self.row_bound, records, self.executor, self.constant, self.weight_bound
        )
        theta = np.ones(features + bool(self.constant))
        if self.sparsity < features:
            gradient.theta = np.zeros_like(theta)
            for _ in range(MAX_ROUNDS):
                theta = self.following(gradient.theta, gradient(data))
                moved = float(np.abs(theta - gradient.theta).max())
                if moved <= ARRIVED * float(np.abs(theta).max()):
                    break
                gradient.theta = theta
        columns = np.flatnonzero(theta[:features])
        minimum = ExactMinimum(
            ScoreLoss(self.loss),
            partial(shortened_columns, self.row_bound, columns),
            bool(self.constant),
            weights=partial(record_weights, weight_bound=self.weight_bound),
            executor=self.executor,
            ridge=self.ridge,
            columns=columns.size,
        )
        minimiser = minimum(data)[:, 0] if columns.size else np.zeros(1)
        theta = np.zeros(features + bool(self.constant))
        theta[columns] = minimiser[:-1]
        theta[features:] = minimiser[-1]
        return theta


def shortened_columns(row_bound: float, columns: Any, rows: Any) -> Any:
    """Return some columns of rows that are shortened as whole rows."""
    factors = norm_clip_factors(rows, row_bound)
    dense = rows[:, columns]
    dense = dense.toarray() if hasattr(dense, "toarray") else dense
    return dense * factors[:, None]
