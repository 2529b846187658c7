"""The base class of Frank-Wolfe over a set that the user gives: the fit, and its error bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import generator_of, validated_data
from algorithms.frank_wolfe.constants import utility_bound


class SetEstimator(PrivateEstimator, ABC):
    """Coefficients in a convex set, found in ``rounds_`` private steps."""

    average: bool
    random_state: Any

    def utility_bound(self, shape: tuple[int, ...], gap: float) -> float:
        """Return a bound of the expected excess of the mean loss over its minimum.

        Parameters
        ----------
        shape : tuple of int
            (records, features).
        gap : float
            Excess loss of the starting point.

        Returns
        -------
        float
            An upper bound, in units of the loss.
        """
        plan: Any = self.plan(shape)
        curvature, noise_per_scale = self._curvature_and_noise(shape[1])
        noise = 0.0 if self.non_private else plan.part.scale * noise_per_scale
        return utility_bound(curvature, plan.count, noise, gap, self.average)

    def fit(self, X: Any, y: Any, ledger: Any = None) -> Self:
        """Fit on features and targets; nothing is released if the input is bad.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Features.
        y : array_like of shape (records,)
            Targets.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = validated_data(self, X, y, dtype=np.float64, y_numeric=True, accept_sparse="csr")
        plan: Any = self.plan(X.shape)
        rng = generator_of(self.random_state)
        self.ledger_ = self.open_ledger((X, y), plan, rng=rng, ledger=ledger)
        self.coef_, self.rounds_ = self.run(self.ledger_), plan.count
        self._warn_if_not_private("coefficients are")
        self.transcript_ = self.ledger_.transcript
        return self

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow sparse features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _curvature_and_noise(self, features: int) -> tuple[float, float]:
        """Return the curvature constant, and the expected loss of a step over the noise scale."""
