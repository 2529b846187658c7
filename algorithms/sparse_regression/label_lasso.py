"""The Lasso on noisy labels: as fast a rate as hard thresholding, and no sparsity to state."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import Any

from sklearn.linear_model import Lasso

from accountant.domains import NON_NEGATIVE
from accountant.errors import ParameterError
from accountant.ledger.chunks import Chunks
from accountant.numerics import Array
from algorithms.sparse_regression.noisy_labels import LabelRegressor


class LabelLasso(LabelRegressor):
    """scikit-learn's Lasso of public features on clipped labels with Gaussian noise.

    Its penalty is ``2 sqrt((noise_bound^2 + tau^2) 2 ln p / n)`` for noise of deviation tau and
    features of about unit size; there is no intercept.

    After ``fit``: ``coef_``, ``penalty_``, ``plan_``, ``ledger_``, ``transcript_``.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        label_bound: float,
        noise_bound: float,
        non_private: bool = False,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.label_bound = label_bound
        self.noise_bound = noise_bound
        self.non_private = non_private
        self.random_state = random_state

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return the coefficients, seen through the gate alone; scikit-learn's Lasso runs here."""
        del executor
        X = ledger.public
        if isinstance(X, Chunks):
            raise ParameterError("X", X, "in memory, or a memory map: the Lasso reads by columns")
        tau = getattr(ledger.plan.parts[0], "scale", 0.0)  # nothing was added without privacy
        users, features = X.shape
        variance = NON_NEGATIVE.check("noise_bound", self.noise_bound) ** 2 + tau * tau
        self.penalty_ = 2 * math.sqrt(variance * 2 * math.log(max(features, 2)) / users)
        lasso = Lasso(alpha=self.penalty_, fit_intercept=False)
        found: Array = lasso.fit(X, self.noisy_labels(ledger)).coef_
        return found
