"""Sparse empirical risk minimisation, all records in one place: noisy gradients, thresholded."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.domains import NON_NEGATIVE, POSITIVE, POSITIVE_DELTA, IntegerRange, Interval, OneOf
from accountant.ledger.chunks import Chunks
from accountant.ledger.ledger import Ledger
from accountant.numerics import Array
from accountant.plans.plan import Release, Repeat
from algorithms.base.binary_labels import encode_two_classes
from algorithms.base.erm_losses import ERM_LOSSES, ErmLoss, MeanGradient
from algorithms.base.estimators import (
    PrivateRegressor,
    checked_shape,
    generator_of,
    split_pairs,
    validated_data,
    validated_fit_data,
)
from algorithms.base.hard_thresholding import keep_largest
from algorithms.base.noisy_gradient_rounds import affordable_rounds, calibrated_gaussian
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import row_products

LOSS = OneOf(tuple(ERM_LOSSES))
ROW_BOUND = Interval(1e-100, 1e100)  # whose squares are floats
RATE = Interval(0.0, 1.0, "()")


class SparseERM(PrivateRegressor):
    """A sparse linear model by noisy hard thresholding; (epsilon, delta)-DP for every record.

    ``loss`` is "logistic" (a classifier of two classes, which are public) or "squared" (Huber's,
    which is quadratic up to residuals of 1).  Rows are shortened to ``row_bound``, which bounds a
    record's gradient; ``penalty`` is a ridge, and free.  Every round releases the mean gradient
    with Gaussian noise; the relation is replace-one.  With ``batch_rate`` a round sees a Poisson
    sample instead, accounted as such, for add-remove neighbours and a public number of records:
    a record is exchanged for one that adds nothing, such as a row of zeros.
    By default steps are .9 of the longest that is stable on any rows, and rounds as many as noise
    allows.

    After ``fit``: ``coef_``, ``plan_``, ``ledger_``, ``transcript_``, ``rounds_``, ``classes_``.
    Source: Wang & Xu (2021), Algorithm 3, with noise calibrated exactly.
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        epsilon: float,
        delta: float,
        sparsity: int,
        rounds: int | None = None,
        step: float | None = None,
        penalty: float = 0.0,
        row_bound: float = 1.0,
        batch_rate: float | None = None,
        non_private: bool = False,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.sparsity = sparsity
        self.rounds = rounds
        self.step = step
        self.penalty = penalty
        self.row_bound = row_bound
        self.batch_rate = batch_rate
        self.non_private = non_private
        self.random_state = random_state

    def plan(self, shape: tuple[int, ...]) -> Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        records, features = checked_shape(shape)
        IntegerRange(1, features).check("sparsity", self.sparsity)
        loss, _, step = self._settings()
        epsilon, delta = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        longest = loss.steepest * ROW_BOUND.check("row_bound", self.row_bound)
        if self.rounds is not None:
            rounds = IntegerRange(1).check("rounds", self.rounds)
        else:
            rounds = affordable_rounds(2 * longest * step / records, features, epsilon, delta)
        rate = None if self.batch_rate is None else RATE.check("batch_rate", self.batch_rate)
        # replacing a record moves the mean by twice its gradient's bound over n; adding it to a
        # sample, by the bound over the sample's expected size
        sensitivity = 2 * longest / records if rate is None else longest / (rate * records)
        each: Release = NoPrivacy()
        if not self.non_private:
            each = calibrated_gaussian(epsilon, delta, rounds, sensitivity, features, rate)
        return Repeat(each if rate is None else PoissonSampled(each, rate), rounds)

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, seen through the gate alone."""
        records, features = ledger.shape
        loss, penalty, step = self._settings()
        expected = records * (1.0 if self.batch_rate is None else self.batch_rate)
        gradient = MeanGradient(loss, self.row_bound, expected, executor)
        theta = np.zeros(features)
        for _ in range(ledger.plan.count):
            gradient.theta = theta
            noisy = ledger.release(ledger.plan.part, gradient)
            theta = keep_largest(theta - step * (noisy + penalty * theta), self.sparsity)
        return theta

    def fit(self, X: Any, y: Any = None, executor: Executor | None = None) -> Self:
        """Fit on X (records, features), dense or sparse, and y; nothing is spent on bad input.

        X may be a memory map, or with y None `Chunks` that read pairs (X, y) anew every round: a
        block of users is in memory.  ``executor`` (threads by default) changes no bit.
        """
        logistic = LOSS.check("loss", self.loss) == "logistic"
        if isinstance(X, Chunks):
            X, y = validated_fit_data(self, X, y)
            if logistic:
                self.classes_, _ = encode_two_classes(split_pairs(X)[1])
                X = X.mapped(partial(_with_signed_labels, self.classes_), X.shape)
        else:
            if logistic and y is not None:
                self.classes_, y = encode_two_classes(y)
            X, y = validated_fit_data(self, X, y)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.plan_, self.rounds_ = plan, plan.count
        self.ledger_ = Ledger(X if y is None else (X, y), plan, rng=rng)
        self.coef_ = self.run(self.ledger_, executor)
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    @available_if(lambda self: self.loss == "logistic")  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def decision_function(self, X: Any) -> Array:
        """``<x, theta>`` of every row; positive for the second class."""
        return self._linear_predictor(X)

    def _linear_predictor(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        return row_products(X, self.coef_)

    def predict(self, X: Any) -> Any:
        """Predict the class, or the number, of every row of X (records, features)."""
        inner = self._linear_predictor(X)
        return self.classes_[(inner > 0).astype(int)] if self.loss == "logistic" else inner

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R^2 of a regression."""
        judge = accuracy_score if self.loss == "logistic" else r2_score
        return float(judge(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """A classifier of two classes or a regression, by the loss."""
        tags = super().__sklearn_tags__()
        if self.loss == "logistic":
            tags.estimator_type, tags.regressor_tags = "classifier", None
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        else:
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    def _noise_summary(self) -> str:
        part = self.plan_.part.part if self.batch_rate is not None else self.plan_.part
        last = np.asarray(self.transcript_[-1].output)
        share = min(1.0, last.size * part.scale**2 / float(last @ last))
        return (
            f"noise of deviation {part.scale:.4g} on every coordinate of {self.rounds_} gradients: "
            f"{share:.0%} of the last one's square"
        )

    def _settings(self) -> tuple[ErmLoss, float, float]:
        loss = ERM_LOSSES[LOSS.check("loss", self.loss)]
        penalty = NON_NEGATIVE.check("penalty", self.penalty)
        if self.step is not None:
            return loss, penalty, POSITIVE.check("step", self.step)
        # steps below 2 / l are stable for smoothness l, which shortened rows bound
        smooth = loss.smoothness * ROW_BOUND.check("row_bound", self.row_bound) ** 2 + penalty
        return loss, penalty, 1.8 / smooth


def _with_signed_labels(classes: Any, pair: tuple[Any, Array]) -> tuple[Any, Array]:
    """A piece with -1 and 1 for its labels."""
    return pair[0], np.where(pair[1] == classes[1], 1.0, -1.0)
