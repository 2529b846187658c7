"""The Lasso on noisy labels: the rate of hard thresholding, without a sparsity to declare.

References: Bickel, Ritov & Tsybakov (2009) for a penalty of order ``sigma sqrt(ln p / n)``.
"""

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
    """The Lasso of scikit-learn on public features and clipped labels with Gaussian noise.

    Its penalty is ``2 sqrt((noise_bound^2 + tau^2) 2 ln p / n)`` for noise of deviation tau and
    features of about unit size; there is no intercept.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each label, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in (0, 1).
    label_bound : float
        Largest absolute label; larger ones are clipped.
    noise_bound : float
        Bound of the noise that the labels already have, in their units.
    non_private : bool
        Fit without noise, for comparison; needs ``epsilon=inf``.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    coef_ : numpy.ndarray of shape (features,)
        Coefficients.
    penalty_ : float
        The penalty of the Lasso.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    References
    ----------
    Bickel, Ritov & Tsybakov (2009), for a penalty of order ``sigma sqrt(ln p / n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LabelLasso
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (5000, 5))
    >>> model = LabelLasso(
    ...     epsilon=2.0, delta=1e-6, label_bound=1.0, noise_bound=0.1, random_state=0
    ... )
    >>> model.fit(X, 0.8 * X[:, 3]).coef_.round(1).tolist()
    [0.0, 0.0, 0.0, 0.5, 0.0]
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
        """Return the coefficients of scikit-learn's Lasso on noisy labels."""
        del executor
        X = ledger.public
        if isinstance(X, Chunks):
            raise ParameterError("X", X, "in memory, or a memory map: the Lasso reads by columns")
        tau = getattr(ledger.plan.parts[0], "scale", 0.0)  # 0 if non_private
        users, features = X.shape
        variance = NON_NEGATIVE.check("noise_bound", self.noise_bound) ** 2 + tau * tau
        self.penalty_ = 2 * math.sqrt(variance * 2 * math.log(max(features, 2)) / users)
        lasso = Lasso(alpha=self.penalty_, fit_intercept=False)
        found: Array = lasso.fit(X, self.noisy_labels(ledger)).coef_
        return found
