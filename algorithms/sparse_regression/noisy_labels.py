"""Private labels with public features: each user's label is clipped and noised, once.

Everything computed from the noisy labels afterwards is post-processing.  Confidence intervals take
the "sandwich" covariance A^-1 B A^-1 of White (1980): with j the gradient of a prediction in the
coefficients and r its residual, A is the sum of j j' (the "bread") and B that of r^2 j j' (the
"meat").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accountant.domains import DELTA, POSITIVE, POSITIVE_DELTA, OneOf
from accountant.errors import ParameterError
from accountant.ledger.private_data import take_rows
from accountant.numerics import Array
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Parallel
from accountant.plans.plan import Release
from algorithms.base.estimators import PrivateRegressor
from algorithms.base.fit_data import (
    checked_shape,
    generator_of,
    split_pairs,
    validated_data,
    validated_fit_data,
)
from algorithms.base.intervals import normal_interval
from algorithms.base.non_private import NoPrivacy
from algorithms.base.number_noise import (
    NUMBER_NOISE,
    least_noise,
    noise_variance,
    number_noise,
)
from algorithms.base.renamed_parameters import renamed_arguments
from algorithms.base.row_blocks import ordered_sum, row_blocks, row_products
from algorithms.sparse_regression.links import Link, link_of
from mechanisms.gaussian import Gaussian
from mechanisms.pure_from_approximate import PureFromApproximate

RANDOMIZER = OneOf(("auto", "gaussian", "laplace", "staircase", "bounded", "piecewise", "pure"))
USERS_PER_FEATURE = 4  # least number of users for each feature, for intervals
NEWTON_STEPS = 8  # Gauss-Newton steps of least squares, where the link is not linear


@lru_cache(maxsize=256)  # a fit asks several times, and a replay in every run
def label_randomizer(name: str, bound: float, epsilon: float, delta: float) -> Release:
    """Return the named mechanism of least noise for labels within a bound."""
    if name == "auto":
        return least_noise(bound, epsilon, delta)
    if name in NUMBER_NOISE:
        return number_noise(name, bound, epsilon)
    POSITIVE_DELTA.check("delta", delta)
    if name == "gaussian":
        return calibrate(
            Gaussian, sensitivity=2 * bound, arithmetic="exact", epsilon=epsilon, delta=delta
        )
    # `PureFromApproximate` draws one of several public samples of an inner mechanism.  It has about
    # 5 ln(1 / inner epsilon) candidates, and the inner epsilon is about an eighth of ``epsilon``.
    candidates = max(7, math.ceil(5 * math.log(8 / epsilon)))
    any_noise = Gaussian(1.0)
    try:
        pure = calibrate(
            PureFromApproximate, inner=any_noise, candidates=candidates, epsilon=epsilon
        )
    except ParameterError:
        allowed = "small enough for randomizer='pure' (about 2.6 at most)"
        raise ParameterError("epsilon", epsilon, allowed) from None
    # A label is at most the bound away from the reference value 0.  Its ``odds`` are twice the
    # inner epsilon.
    inner = calibrate(
        Gaussian, sensitivity=bound, arithmetic="exact", epsilon=pure.odds / 2, delta=delta
    )
    return PureFromApproximate(inner, pure.odds, candidates)


class LabelRegressor(PrivateRegressor, ABC):
    """A regression on noisy labels of bounded size and public features."""

    epsilon: float
    delta: float
    y_bound: float
    neighbours: ClassVar[str] = Adjacency.LABEL_REPLACE
    transcript_: Any
    randomizer: str = "auto"

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        checked_shape(shape)
        return Parallel([self.mechanism()])

    def mechanism(self) -> Release:
        """Return the mechanism of a label; any two labels within the bound are neighbours.

        Returns
        -------
        Release
            Of the least noise that meets epsilon and delta.

        Raises
        ------
        ParameterError
            If epsilon is too large for ``randomizer="pure"``.
        """
        bound = POSITIVE.check("y_bound", self.y_bound)
        randomizer = RANDOMIZER.check("randomizer", self.randomizer)
        epsilon, delta = self._checked_epsilon(), DELTA.check("delta", self.delta)
        if self.non_private:
            return NoPrivacy()
        return label_randomizer(randomizer, bound, epsilon, delta)

    def _staged(self, plan: Parallel, ends: list[int]) -> Parallel:
        """Return the plan of users who report in stages between these ends."""
        stages = len(ends) - 1
        return plan if stages == 1 else Parallel([plan.parts[0]] * stages)

    def noisy_labels(self, ledger: Any) -> Array:
        """Return every user's label, clipped and noised.

        Parameters
        ----------
        ledger : Ledger
            A ledger on the labels.

        Returns
        -------
        numpy.ndarray of shape (users,)
            Noisy labels, which are safe to publish.
        """
        mechanism, bound = ledger.plan.parts[0], self.y_bound
        reports = ledger.release_each(mechanism, lambda labels: np.clip(labels, -bound, bound))
        return self._labels_of(mechanism, reports)

    @staticmethod
    def _labels_of(mechanism: Release, reports: Any) -> Array:
        """Return the noisy labels of the users' reports."""
        if isinstance(mechanism, PureFromApproximate):
            return mechanism.chosen(reports)
        return np.asarray(reports)

    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on public features and private labels; see `PrivateRegressor.fit`."""
        X, y = validated_fit_data(self, X, y)
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        if y is None:
            X, y = split_pairs(X)
        self.ledger_ = self.open_ledger(y, plan, rng=rng, public=X, ledger=ledger)
        self.coef_ = self.run(self.ledger_, executor)
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    @renamed_arguments(level="confidence")
    def interval(self, confidence: float = 0.95) -> Array:
        """Return confidence intervals of the coefficients: noise and sampling, at no further cost.

        They are those of least squares on all features and the noisy labels, so they hold for every
        coefficient, whatever was selected; ``coef_`` need not lie inside.  What they cover are the
        coefficients that predict labels clipped to ``y_bound`` best.  Where users report in stages,
        the labels are those of the first stage, about a third of the users: the clipped residuals
        of later stages would pull intervals towards the fit.

        Parameters
        ----------
        confidence : float
            Probability that the interval of a coefficient covers it, in (0, 1), where users are
            many.

        Returns
        -------
        numpy.ndarray of shape (features, 2)
            Lower and upper ends; to nearest.

        Raises
        ------
        ParameterError
            If fewer than four users for each feature report labels, or the public features are
            gone: pickling leaves the ledger out.

        References
        ----------
        White (1980).
        """
        check_is_fitted(self)
        if not hasattr(self, "ledger_"):
            allowed = "called before pickling, which leaves out the ledger and its features"
            raise ParameterError("interval", "a copy without features", allowed)
        self._warn_if_not_private("intervals are")
        reports = self._labels_of(self.plan_.parts[0], self.transcript_[0].output)
        link = link_of(getattr(self, "link", "identity"))
        return coefficient_intervals((self.ledger_.public, reports), link, self.coef_, confidence)

    def _noise_summary(self) -> str:
        mechanism, reports = self.plan_.parts[0], np.asarray(self.transcript_[0].output)
        variance = noise_variance(mechanism, self.y_bound)
        if variance == math.inf:
            return f"labels released by {mechanism!r}"
        share = min(1.0, variance / float(np.mean(np.square(reports))))
        noise = f"noise of deviation {math.sqrt(variance):.4g}: {share:.0%} of the labels' square"
        return noise if len(self.plan_.parts) == 1 else f"{noise}, less in later stages"

    def predict(self, X: Any) -> Array:
        """Return predictions for X (records, features)."""
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        self._warn_if_not_private("predictions are")
        return row_products(X, self.coef_)

    @abstractmethod
    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, computed from noisy labels and public features only."""


def coefficient_intervals(data: Any, link: Link, start: Array, confidence: float) -> Array:
    """Return (lower, upper) of all coefficients of least squares on (features, noisy labels).

    Features are public, so all of this is computed from what was released.  The residuals hold the
    noise of the labels and that of the model.  Labels are those of the first users.
    """
    users, features = len(data[1]), data[0].shape[1]
    if users < USERS_PER_FEATURE * features:
        size = f"{users} users and {features} features"
        raise ParameterError("X", size, f"at least {USERS_PER_FEATURE} users for each feature")
    # Gauss-Newton steps: least squares on the model's tangent at theta.
    theta = start
    for _ in range(NEWTON_STEPS if link.low < link.high else 1):
        bread, pull = _gram_and_pull(data, link, theta, weighted=False)
        theta = theta + np.linalg.lstsq(bread, pull, rcond=None)[0]
    bread, _ = _gram_and_pull(data, link, theta, weighted=False)
    meat, _ = _gram_and_pull(data, link, theta, weighted=True)
    inverse = np.linalg.pinv(bread, hermitian=True)
    # The residuals of least squares are a little shorter than the errors, which this makes up for.
    variance = np.diag(inverse @ meat @ inverse) * users / (users - features)
    return normal_interval(theta, np.sqrt(np.maximum(variance, 0.0)), confidence)


def _gram_and_pull(data: Any, link: Link, theta: Array, *, weighted: bool) -> tuple[Array, Array]:
    """Return the matrix and the vector of `GaussNewtonBlock`, summed over all users."""
    pieces = (take_rows(data, block_rows) for block_rows in row_blocks(data, stop=len(data[1])))
    total = ordered_sum(GaussNewtonBlock(link, theta, weighted), pieces)
    return total[:-1], total[-1]


@final
@dataclass(frozen=True, slots=True)
class GaussNewtonBlock:
    """The sum of ``w j j^T`` over a block of users, and below it the sum of ``r j``.

    j is the gradient of the prediction, r the residual, and w is 1, or r^2 where ``weighted``.
    """

    link: Link
    theta: Array
    weighted: bool

    def __call__(self, block: tuple[Any, Array]) -> Array:
        """Return an array of shape (features + 1, features)."""
        rows, labels = block
        x = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        inner = x @ self.theta
        residual = labels - self.link.function(inner)
        slopes = x * self.link.derivative(inner)[:, None]
        weighted = slopes * (residual**2)[:, None] if self.weighted else slopes
        return np.vstack([slopes.T @ weighted, residual @ slopes])
