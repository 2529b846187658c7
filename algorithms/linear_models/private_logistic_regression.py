"""Logistic regression by a trusted curator: noisy moments, then rounds of clipped gradients.

The *moments* are the mean of the rows and of their squared lengths, and the products of the centred
rows where noise does not hide them.  They give a linear *map* of the features.  For mapped rows the
loss has a curvature of about 1 in every direction, so that few gradient steps are enough.  How many
rounds there are, and where gradients are clipped, follows from the *signal*: roughly the length of
a clipped gradient over the noise of all rounds together (`signal_of`).

References: Song, Chaudhuri & Sarwate (2013); Abadi et al. (2016), Algorithm 1.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from accountant.domains import BOOLEAN, POSITIVE, POSITIVE_DELTA, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, check_relation
from accountant.plans.plan import Repeat, Sequential
from algorithms.base.binary_labels import checked_classes, encode_classes
from algorithms.base.clipped_gradient_descent import MeanOfClippedGradients, descend
from algorithms.base.column_bounds import BOUNDS_SHARE, HEADROOM
from algorithms.base.exact_minimum import ExactMinimum, record_weights
from algorithms.base.fit_data import (
    PUBLIC,
    checked_shape,
    finds_bounds,
    generator_of,
    validated_data,
    validated_labelled_data,
    with_weights,
)
from algorithms.base.glm_losses import LOGISTIC_OF_CLASSES, MultinomialLoss, ScoreObjective
from algorithms.base.noisy_gradient_rounds import GradientRounds, mu_of_budget
from algorithms.base.non_private import NoPrivacy
from algorithms.base.renamed_parameters import renamed_arguments, renamed_parameters
from algorithms.base.row_blocks import MeanOfBlocks, clipped_rows, row_products
from algorithms.base.score_classifier import ScoreClassifier
from algorithms.base.signal import gradients_hidden
from algorithms.linear_models.class_shares import (
    BALANCED,
    BlockCalibration,
    BlockClasses,
    Calibration,
    ClassWeights,
    public_weights,
)
from algorithms.linear_models.closing_curvature import FOR_INTERVALS, CurvedIntervals, close_curved
from algorithms.linear_models.feature_moments import Moves
from algorithms.linear_models.mapped_plan import (
    Shares,
    Sizes,
    mean_noise,
    noise_of,
    private_plan,
    released_map,
    signal_of,
    worth_of,
)

BOUND = Interval(1e-50, 1e50)  # the squares are finite floats
RATE = Interval(0.0, 1.0, "()")
# These constants were chosen once, on training parts (docs/classification.md says how).  No privacy
# rests on them.
SHARES = Shares(moments=0.05, products=0.15, longest_constant=0.25)
# What is assumed: features explain a deviation of scores of 2, which times the curvature is 1, and
# the constant is 1.  The square of that times the curvature:
CONSTANT_SQUARE = 0.25
# The share of the squared budget of the shares of classes, before or after the descent.
CLASSES_SHARE = 0.05
# Slopes keep at least this part, however large the noise: it hardly changes probabilities, and
# classes follow the direction alone.
LEAST_KEPT = 0.5
# The length of the constant feature where intervals are wanted, in place of a calibration.
WITH_INTERVALS = {"shortest_constant": 0.5, "longest_constant": 0.5}
# A gradient is clipped to the norm 0.4 cbrt(signal / 100), but at least the first and at most the
# second of these numbers, times the root of the mean squared length of mapped rows.
CLIPS = (0.4, 2.0)
# The norm of the noise on products over their mean eigenvalue; see `length_in_products`.
PRODUCT_NOISE = 0.02


# `PrivatelyBounded` is the base for the arguments of `fit`; the tags say that it is a classifier.
@renamed_parameters(batch_rate="rate")
@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(ScoreClassifier, CurvedIntervals):
    """Logistic regression of two or more classes; (epsilon, delta)-DP for every record.

    A first release is the mean of features, a second one their products; both make a map under
    which few steps are enough.  Then every round releases the mean gradient, each record's clipped
    to a norm that the moments give.  Classes are public.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in (0, 1).
    classes : array_like or None
        The public classes; any other label counts as the first in order.  None is enough for
        boolean labels, and with ``non_private=True``; `plan` then takes two before a fit.
    fit_intercept : bool
        Whether a constant is added to scores.
    clip : float or None
        Norm to which a record's gradient is clipped, over the typical length of a mapped row; None
        takes .4 to 2, more for more records and a larger epsilon.
    rounds : int or None
        Number of gradients; None takes 60 to 200, by shape and epsilon.
    step : float or None
        Size of a step, where steps below 2 are surely stable.  None takes the least expected loss,
        by what is released of the features.
    x_bound : float
        Largest absolute feature; larger ones are clipped, in predictions too.
    row_bound : float or None
        Euclidean norm of a row, with the constant, beyond which a record counts less in the fit:
        ``(row_bound / norm)^2``; at least ``x_bound / 10``.  Predictions are of whole rows.  None
        takes the longest within ``x_bound``: every record counts alike.
    class_weight : dict, "balanced" or None
        What a record counts by its class: public weights, ``{class: weight}``, or with "balanced"
        one over the share of the class.  The shares are released first, with noise.  Probabilities
        are those of records that are weighted so.  None counts all alike, and releases last how
        often each class occurs and its mean probability, which calibrate the constant.
    weight_bound : float
        Largest weight of a record; weights are clipped to [0, weight_bound], and a record counts as
        the share of it.
    rate : float or None
        Sampling probability of a record in a round; None takes all records.
    intervals : bool
        Whether `interval` is wanted, of two classes: it keeps half of the budget for the curvature
        of the loss and a last gradient that clips hardly any record.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        that adds nothing to any sum.
    non_private : bool
        The minimiser of the mean loss itself, for comparison; needs ``epsilon=inf``.  Of several
        minimisers it is the shortest.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.
    bounds : {"public", "private"}
        Whether ``x_bound`` bounds the columns as they are, or is the outer end of a noisy histogram
        that finds the scale of each, as in `PrivateLinearRegression`.
    bounds_share : float
        Share of the squared budget that this histogram gets.

    Attributes
    ----------
    column_bounds_ : ColumnBounds or None
        The scales, limits and noisy clipped shares of the features.
    classes_ : numpy.ndarray
        The classes, in order.
    coef_ : numpy.ndarray of shape (1, features) or (classes, features)
        Coefficients; one row for two classes.
    intercept_ : numpy.ndarray of shape (1,) or (classes,)
        The constants of scores.
    calibration_ : Calibration or None
        With ``class_weight=None``: the released shares of the classes, their mean probabilities
        before the constant was moved to them, and the noise; of two classes those of the second.
    rounds_ : int
        The number of gradients; 1 without privacy, where the minimiser is released.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Song, Chaudhuri & Sarwate (2013); Abadi et al. (2016), Algorithm 1; Boehning & Lindsay (1988)
    for the map.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0.2, "yes", "no")
    >>> model = PrivateLogisticRegression(
    ...     epsilon=1.0, delta=1e-6, classes=["no", "yes"], random_state=0
    ... ).fit(X, y)
    >>> model.predict([[0.9, 0.5, 0.0], [-0.5, 0.0, 0.9]]).tolist()
    ['yes', 'no']
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    classes: Any = None
    fit_intercept: bool = True
    clip: float | None = None
    rounds: int | None = None
    step: float | None = None
    x_bound: float = 1.0
    row_bound: float | None = None
    class_weight: Any = None
    weight_bound: float = 1.0
    rate: float | None = None
    intervals: bool = False
    relation: str = REPLACE
    non_private: bool = False
    random_state: Any = None
    bounds: str = PUBLIC
    bounds_share: float = BOUNDS_SHARE

    _headroom = HEADROOM

    def plan(self, shape: tuple[int, ...]) -> Sequential | Repeat:
        """Return what a fit on ``shape = (records, features)`` will release; needs no data."""
        _, features = checked_shape(shape)
        if finds_bounds(self):
            return self._plan_with_bounds(shape)
        epsilon, delta = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        POSITIVE.check("weight_bound", self.weight_bound)
        for name in ("step", "clip"):
            if getattr(self, name) is not None:
                POSITIVE.check(name, getattr(self, name))
        rate = None if self.rate is None else RATE.check("rate", self.rate)
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        BOOLEAN.check("fit_intercept", self.fit_intercept)
        self._row_bound(features)
        if self.rounds is not None:
            IntegerRange(1).check("rounds", self.rounds)
        public_weights(self.class_weight, self._public_classes())
        if self.non_private:
            if self.class_weight == BALANCED:
                allowed = "None or {class: weight} without privacy: shares of classes are released"
                raise ParameterError("class_weight", self.class_weight, allowed)
            return Repeat(NoPrivacy(), 1)
        sizes, mu = self._sizes_and_mu(shape)
        worth = worth_of(
            sizes,
            mu,
            self._shares(),
            Moves.of(relation),
            self._clip(sizes, mu) ** 2 / self._loss().smoothness,
            CONSTANT_SQUARE * self.fit_intercept,
            needs_products=BOOLEAN.check("intervals", self.intervals),
        )
        if self.intervals:
            two_alike = self._outputs() == 1 and self.class_weight is None
            if not (two_alike and worth.shares.products):
                allowed = (
                    "False: noise hides products of features, or classes are not two, or weighted"
                )
                raise ParameterError("intervals", True, allowed)
        rounds = self.rounds or worth.rounds
        plan = private_plan((epsilon, delta), sizes, rounds, worth.shares, relation, rate)
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
        """Return (features + 1, outputs) coefficients, the intercepts last."""
        if finds_bounds(self):
            return self._run_scaled(ledger, executor)
        records, features = ledger.shape
        reach = self.x_bound * self._reach
        bound = max(self._row_bound(features), reach / 10)
        if self.non_private:
            minimum = self._exact_minimum(bound, executor)
            shape = features + 1, minimum.outputs
            return np.asarray(ledger.release(ledger.plan.part, minimum, shape=shape))
        rounds, loss = GradientRounds.of(ledger.plan), self._loss()
        sizes, mu = self._sizes_and_mu(ledger.shape)
        # The plan counts products in units of the square of the length to which rows are shortened,
        # so it is the same for every length.
        shares = self._shares()._replace(shortened_to=length_in_products(sizes, mu))
        of_classes = ClassWeights(None, 1.0)
        if shares.targets:
            part, outputs = ledger.plan.parts[0], self._outputs()
            query = MeanOfBlocks(BlockClasses(outputs), records, executor)
            released = ledger.release(part, query, shape=outputs)
            public = public_weights(self.class_weight, self._public_classes())
            of_classes = ClassWeights.of(released, noise_of(part), public)
        mapped = released_map(
            ledger,
            reach,
            bound,
            self.fit_intercept,
            executor,
            shares,
            self._clip(sizes, mu) ** 2 / self._loss().smoothness,
            CONSTANT_SQUARE,
            of_classes.mean,
            curvature=self._loss().smoothness,
            row_bound=math.inf if self.row_bound is None else bound,
        )
        clip = mapped.length * self._clip(sizes, mu)
        gradient = MeanOfClippedGradients(
            loss.slopes,
            clip,
            records * rounds.rate,
            mapped.features,
            executor,
            self.weight_bound,
            class_weights=of_classes.weights,
        )
        start = np.zeros((features + self.fit_intercept, self._outputs()))
        if self.step is not None:
            travel = self.step * rounds.count
            mapped = mapped._replace(steps=mapped.steps._replace(travel=travel, averaged=True))
        # The released gradients are in units of the clip, and of the mean weight of records, so the
        # step is multiplied by the one and divided by the other.
        unit = clip / of_classes.mean
        step = mapped.steps.travel / rounds.count * mapped.longest_step * unit
        averaged = mapped.steps.averaged
        theta = descend(ledger, rounds.part, gradient, start, step, rounds.count, averaged)
        if self.intervals:
            self.closing_ = close_curved(
                ledger, mapped, theta, LOGISTIC_OF_CLASSES, mapped.length / 2, executor
            )
        usual = 1.0, CONSTANT_SQUARE
        theta = mapped.without_noise(theta, unit * mean_noise(ledger.plan), usual, LEAST_KEPT)
        theta = mapped.in_l1_ball(theta, self._l1_radius)
        slopes, constant = mapped.features.coefficients(theta)
        self.calibration_ = None
        part = ledger.plan.parts[-1]
        if shares.calibration and not isinstance(part, Repeat):
            work = BlockCalibration(mapped.features, theta, self.weight_bound)
            query = MeanOfBlocks(work, records, executor)
            released = ledger.release(part, query, shape=2 * self._outputs())
            class_shares, probabilities = np.split(released, 2)
            self.calibration_ = Calibration(class_shares, probabilities, noise_of(part))
            constant = constant + self.calibration_.shift()
        return np.vstack([slopes, constant])

    @renamed_arguments(weights="sample_weight")
    def fit(
        self,
        X: Any,
        y: Any = None,
        executor: Executor | None = None,
        ledger: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on features and labels; see `PrivateRegressor.fit`.

        ``sample_weight`` is clipped to [0, weight_bound]; None weighs every record alike.  A weight
        of 2 is no second record: it has no noise of its own, and costs the same privacy.
        """
        if finds_bounds(self):
            return self._fit_scaled(X, y, executor, ledger, sample_weight=sample_weight)
        self.classes_, X, y = validated_labelled_data(self, X, y, encode_classes)
        if self.intervals and sample_weight is not None:
            allowed = "None where intervals are wanted: their errors are those of equal weights"
            raise ParameterError("sample_weight", type(sample_weight), allowed)
        data = with_weights(self, X, y, sample_weight)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger(data, plan, rng=rng, ledger=ledger)
        self.rounds_, self.closing_ = GradientRounds.of(plan).count, None
        theta = self.run(self.ledger_, executor)
        self.coef_, self.intercept_ = theta[:-1].T.copy(), theta[-1].copy()
        self.column_bounds_ = self.scaled_fit_ = None
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores of every row, clipped as in the fit."""
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        rows = self._within_bounds(X)
        scores = np.stack([row_products(rows, coefficients) for coefficients in self.coef_], axis=1)
        scores = scores + self.intercept_
        return np.asarray(scores[:, 0] if len(self.coef_) == 1 else scores)

    def _noise_summary(self) -> str:
        if self.column_bounds_ is not None:
            return self._scaled_summary()
        scale = noise_of(GradientRounds.of(self.plan_).mechanism)
        return (
            f"noise of deviation {scale:.4g} clipping norms on every coordinate of {self.rounds_} "
            f"gradients, beside {len(self.plan_.parts) - 1} other releases; features beyond "
            f"{self.x_bound:g} are clipped"
        )

    def _sizes_and_mu(self, shape: tuple[int, ...]) -> tuple[Sizes, float]:
        """Return the public sizes, and the mu of the whole budget."""
        records, features = shape
        outputs = self._outputs()
        sizes = Sizes(
            records, features, (features + self.fit_intercept) * outputs, outputs, outputs
        )
        return sizes, mu_of_budget(self.epsilon, self.delta)

    def _shares(self) -> Shares:
        """Return the shares of the budget."""
        if self.class_weight is not None:
            return SHARES._replace(targets=CLASSES_SHARE)
        if self.intervals:
            return SHARES._replace(**FOR_INTERVALS, **WITH_INTERVALS)
        return SHARES._replace(calibration=CLASSES_SHARE if self.fit_intercept else 0.0)

    def _public_classes(self) -> Any:
        """Return the classes in order; 0 and 1 where they are not known before a fit."""
        if self.classes is not None:
            return checked_classes(self.classes)
        return getattr(self, "classes_", np.array([0, 1]))

    def _clip(self, sizes: Sizes, mu: float) -> float:
        """Return the clipping norm, over the typical length of a mapped row."""
        return default_clip(sizes, mu) if self.clip is None else self.clip

    def _loss(self) -> ScoreObjective:
        """Return the loss of two classes, or of more."""
        return LOGISTIC_OF_CLASSES if self._outputs() == 1 else MultinomialLoss()

    def _outputs(self) -> int:
        """Return the number of scores: 1 of two classes."""
        count = len(self._public_classes())
        return 1 if count == 2 else count

    def _row_bound(self, features: int) -> float:
        x_bound = BOUND.check("x_bound", self.x_bound)
        longest = math.hypot(x_bound * math.sqrt(features), self.fit_intercept)
        if self.row_bound is not None:
            # With a shorter bound the round-off of long rows would matter.
            return min(longest, Interval(x_bound / 10, 1e50).check("row_bound", self.row_bound))
        return longest

    def _exact_minimum(self, bound: float, executor: Executor | None) -> ExactMinimum:
        """Return the query of a fit without privacy."""
        intercept, outputs = float(self.fit_intercept), self._outputs()
        clip = partial(clipped_rows, bound=self.x_bound)
        public = public_weights(self.class_weight, self._public_classes())
        weights = partial(
            record_weights,
            row_bound=bound,
            intercept=intercept,
            weight_bound=self.weight_bound,
            class_weights=None if public is None else public / public.max(),
        )
        return ExactMinimum(
            self._loss(), clip, self.fit_intercept, outputs, weights=weights, executor=executor
        )

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a classifier of two or more classes."""
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "classifier", None
        tags.classifier_tags = ClassifierTags(poor_score=True)
        return tags


def default_clip(sizes: Sizes, mu: float) -> float:
    """Return a larger norm for a larger signal: it adds more noise, and clips fewer gradients."""
    low, high = CLIPS
    return min(max(low * math.cbrt(signal_of(sizes, mu) / 100), low), high)


def length_in_products(sizes: Sizes, mu: float) -> float:
    """Return the length to which centred rows are shortened before their products are taken.

    It is a multiple of the root of their mean squared length.  It grows with the records and with
    mu, as long as the noise on products stays a small part of their mean eigenvalue.
    """
    # Let s be the multiple that is returned, n and p the numbers of records and of features.  In
    # units of the mean squared length, the noise on an entry of the p x p matrix of products has
    # the deviation s^2 sqrt 2 / (n mu sqrt(share)).  The norm of this noise is about sqrt(2 p)
    # times that (see `takes_products`).  The p eigenvalues add up to 1, so that their mean is
    # 1 / p.  Hence, for s = 1, the norm over the mean eigenvalue is
    norm_over_mean = 2 * sizes.features**1.5 / (sizes.records * mu * math.sqrt(SHARES.products))
    return max(SHARES.shortened_to, math.sqrt(PRODUCT_NOISE / norm_over_mean))
