"""Multinomial logistic regression on randomised labels, by the likelihood of the reports.

References: Patrini et al. (2017), Section 4, for the likelihood through a known label noise.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from accountant.domains import NON_NEGATIVE
from accountant.numerics import Array
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Parallel
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape, generator_of
from algorithms.base.non_private import NoPrivacy
from algorithms.base.row_blocks import equal_slices
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_randomizers import CLASSES, RANDOMIZER, randomizer_of
from algorithms.label_privacy.label_sgd import (
    BLOCK_COEFFICIENTS,
    FULL_TRANSCRIPT_NUMBERS,
    checked_labels,
    label_query,
)
from mechanisms.hemisphere import HemisphereL2

MOST_STEPS = 300  # iterations of the quasi-Newton search (L-BFGS)
BLOCK_NUMBERS = 1 << 22  # scores and features in memory at a time


@dataclass(eq=False, repr=False)
class LabelLikelihood(PrivateEstimator):
    """The coefficients under which the randomised labels are most probable, with a penalty.

    ``ridge / 2`` times the squared length of all coefficients is added to minus the logarithm of
    the likelihood of all reports.  Labels are randomised once, with ``epsilon``.
    """

    neighbours: ClassVar[str] = Adjacency.LABEL_REPLACE
    delta = 0.0

    _: KW_ONLY
    epsilon: float
    k: int
    ridge: float
    randomizer: str = "auto"
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        users, _ = checked_shape(shape)
        NON_NEGATIVE.check("ridge", self.ridge)
        k, epsilon = CLASSES.check("k", self.k), self._checked_epsilon()
        RANDOMIZER.check("randomizer", self.randomizer)
        if self.non_private:
            return Parallel([NoPrivacy()] * len(self._user_blocks(users)))
        mechanism = randomizer_of(self.randomizer, k, epsilon)
        return Parallel([mechanism] * len(self._user_blocks(users)))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, computed from released values and public rows only."""
        X, mechanism = ledger.public, ledger.plan.parts[0]
        query = label_query
        if isinstance(mechanism, HemisphereL2):
            query = GradientSpan.regular_simplex(self.k).label_corners
        blocks = self._user_blocks(X.shape[0])
        reports = ledger.release_blocks(mechanism, query, blocks, executor)
        probable = np.concatenate([probable_labels(mechanism, self.k, r) for r in reports])
        ratio = math.inf if self.non_private else mechanism.loss.pure
        return most_likely(X, probable, -ratio, self.ridge)

    def fit(
        self, X: Any, y: Any = None, executor: Executor | None = None, ledger: Any = None
    ) -> Self:
        """Fit on public features and private labels ``0 .. k - 1``."""
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        labels = checked_labels(y, self.k)
        self.plan_ = plan
        self._warn_if_not_private("coefficients are")
        transcript = "full" if labels.size * self.k <= FULL_TRANSCRIPT_NUMBERS else "digest"
        self.ledger_ = self.open_ledger(
            labels, plan, rng=rng, public=X, transcript=transcript, ledger=ledger
        )
        self.coef_ = self.run(self.ledger_, executor)
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise_summary(self) -> str:
        return f"labels by {self.plan_.parts[0]!r}"

    def _user_blocks(self, users: int) -> list[slice]:
        """Return blocks of users who report at once."""
        return equal_slices(0, users, max(1, BLOCK_COEFFICIENTS // self.k))


def probable_labels(mechanism: Any, classes: int, reports: Any) -> NDArray[np.bool_]:
    """Return for every report which labels make it more probable, by the same factor for all.

    The factor is ``e^epsilon``: unary encoding, subset selection and k-ary response support some
    labels, and Duchi's vector lies in the hemisphere of some labels' corners.
    """
    if isinstance(mechanism, NoPrivacy):
        return np.asarray(np.asarray(reports)[:, None] == np.arange(classes))
    if isinstance(mechanism, HemisphereL2):
        # Coefficient k is 1 / K + <report, corner k> times a positive constant.
        return GradientSpan.regular_simplex(classes).coefficients(reports) > 1 / classes
    # A coefficient is (1[supported] - q) / (p - q).
    probable: NDArray[np.bool_] = mechanism.coefficients(reports) > 0
    return probable


def most_likely(X: Any, probable: NDArray[np.bool_], log_ratio: float, penalty: float) -> Array:
    """Return coefficients (classes, features) of the most likely logistic model of the reports.

    The report of a row with label probabilities ``p = softmax(scores)`` has the likelihood
    ``sum_k p_k a_k``, where ``a_k`` is 1 for the probable labels and ``e^log_ratio`` for others.
    """
    from scipy.optimize import minimize

    (users, features), classes = X.shape, probable.shape[1]
    blocks = equal_slices(0, users, max(1, BLOCK_NUMBERS // (features + classes)))

    def loss_and_slope(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(classes, features)
        value, slope = penalty / 2 * float(flat @ flat), penalty * theta
        for block_rows in blocks:
            rows, scores = X[block_rows], np.asarray(X[block_rows] @ theta.T)
            # With lse the logarithm of the sum of exponentials,
            #     -ln sum_k p_k a_k = lse(scores) - lse(scores + ln a).
            # Its slope in the scores is the prior p less the posterior, p given the report.
            prior, before = _softmax(scores)
            posterior, after = _softmax(np.where(probable[block_rows], scores, scores + log_ratio))
            value += float((before - after).sum())
            slope = slope + (prior - posterior).T @ rows
        return value / users, np.asarray(slope).ravel() / users

    start = np.zeros(classes * features)
    # With noisy labels a coarser search is used: it takes half the time, and its error is smaller
    # than that of the noise.
    ends = {"ftol": 0.0, "gtol": 1e-10} if math.isinf(log_ratio) else {}
    options: Any = {"maxiter": MOST_STEPS, **ends}
    solution = minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options=options)
    theta: Array = solution.x.reshape(classes, features)
    return theta


def _softmax(scores: Array) -> tuple[Array, Array]:
    """Return softmax and logarithm of the sum of exponentials, by rows."""
    top = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - top)
    total = powers.sum(axis=1, keepdims=True)
    return powers / total, (top + np.log(total))[:, 0]
