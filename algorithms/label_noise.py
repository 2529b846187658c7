"""Private labels beside public features: each user's label is clipped and noised, once.

What is made of the noisy labels afterwards costs nothing more.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from accountant.calibration import calibrate
from accountant.domains import DELTA, POSITIVE, POSITIVE_DELTA, OneOf
from accountant.ledger import Ledger
from accountant.numerics import Array
from accountant.parallel import Parallel
from algorithms.estimators import PrivateRegressor, checked, checked_shape, noise_source
from mechanisms import Mechanism
from mechanisms.binary_label import BinaryLabel
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace
from mechanisms.pure_from_approximate import PureFromApproximate

NOISE = OneOf(("gaussian", "laplace", "bounded", "pure"))


class LabelRegressor(PrivateRegressor, ABC):
    """A regression on noisy labels of bounded size and public features."""

    epsilon: float
    delta: float
    label_bound: float
    neighbours: ClassVar[str] = "label-replace"
    transcript_: Any
    noise: str = "gaussian"

    def plan(self, shape: tuple[int, ...]) -> Parallel:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        checked_shape(shape)
        return Parallel([self.mechanism()])

    def mechanism(self) -> Mechanism:
        """What noises a label; neighbours' labels are anywhere within the bound."""
        bound, noise = (
            POSITIVE.check("label_bound", self.label_bound),
            NOISE.check("noise", self.noise),
        )
        epsilon, delta = POSITIVE.check("epsilon", self.epsilon), DELTA.check("delta", self.delta)
        if noise == "laplace":
            return calibrate(Laplace, sensitivity=2 * bound, arithmetic="exact", epsilon=epsilon)
        if noise == "bounded":
            return calibrate(BinaryLabel, bound=bound, larger="clip", epsilon=epsilon)
        POSITIVE_DELTA.check("delta", delta)
        if noise == "gaussian":
            return calibrate(
                Gaussian, sensitivity=2 * bound, arithmetic="exact", epsilon=epsilon, delta=delta
            )
        # about 5 ln(1 / inner epsilon) candidates, an inner epsilon of about an eighth
        candidates = max(7, math.ceil(5 * math.log(8 / epsilon)))
        any_noise = Gaussian(1.0)
        pure = calibrate(
            PureFromApproximate, inner=any_noise, candidates=candidates, epsilon=epsilon
        )
        # a label is at most the bound away from the reference value 0
        inner = calibrate(
            Gaussian, sensitivity=bound, arithmetic="exact", epsilon=pure.odds / 2, delta=delta
        )
        return PureFromApproximate(inner, pure.odds, candidates)

    def noisy_labels(self, ledger: Any) -> Array:
        """Every user's label, clipped and noised."""
        mechanism, bound = ledger.plan.parts[0], self.label_bound
        reports = ledger.release_each(mechanism, lambda labels: np.clip(labels, -bound, bound))
        if isinstance(mechanism, PureFromApproximate):
            return mechanism.chosen(reports)
        return np.asarray(reports)

    def fit(self, X: Any, y: Any) -> Any:
        """Fit on public X (users, features), dense or sparse, and private y (users,)."""
        X, y = checked(self, X, y, dtype=np.float64, y_numeric=True, accept_sparse="csr")
        plan, rng = self.plan(X.shape), noise_source(self.random_state)
        self.plan_ = plan
        self.ledger_ = Ledger(y, plan, rng=rng, public=X)
        self.coef_ = self.run(self.ledger_)
        self.transcript_ = self.ledger_.transcript
        return self

    def _noise(self) -> str:
        mechanism, reports = self.plan_.parts[0], np.asarray(self.transcript_[0].output)
        if not isinstance(mechanism, (Gaussian, Laplace)):
            return f"labels released by {mechanism!r}"
        variance = mechanism.scale**2 * (2 if isinstance(mechanism, Laplace) else 1)
        share = min(1.0, variance / float(np.mean(np.square(reports))))
        return f"noise of deviation {math.sqrt(variance):.4g}: {share:.0%} of the labels' square"

    @abstractmethod
    def run(self, ledger: Any) -> Array:
        """Return the coefficients, seen through the gate alone."""

    def __sklearn_tags__(self) -> Any:
        """Features may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def product(X: Any, vector: Array) -> Array:
    """``X @ vector`` as a plain array, of dense and of sparse features."""
    result: Array = np.asarray(X @ vector)
    return result
