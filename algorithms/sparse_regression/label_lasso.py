"""The Lasso on noisy labels: the rate of hard thresholding, without a sparsity to declare.

References: Bickel, Ritov & Tsybakov (2009); Belloni & Chernozhukov (2013) for the refit.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from accountant.domains import NON_NEGATIVE
from accountant.errors import ParameterError
from accountant.ledger.chunks import Chunks
from accountant.numerics import Array
from algorithms.base.non_private import NoPrivacy
from algorithms.base.number_noise import noise_variance
from algorithms.base.renamed_parameters import renamed_parameters
from algorithms.sparse_regression.label_stages import LabelStages, stage_ends
from algorithms.sparse_regression.links import IDENTITY
from algorithms.sparse_regression.noisy_labels import LabelRegressor
from algorithms.sparse_regression.support_pursuit import NormalEquations, PublicRows

# The penalty over the universal sigma sqrt(2 ln p / n).  A smaller penalty selects more columns,
# of which the refit drops some.
SHARE_OF_UNIVERSAL = 0.7
LASSO_PASSES = 2_000  # most passes of the Lasso's coordinate descent over the columns


@renamed_parameters(label_bound="y_bound", noise="randomizer")
@dataclass(eq=False, repr=False)
class LabelLasso(LabelRegressor):
    """The Lasso of scikit-learn on public features and noisy labels, and least squares after it.

    Every user reports once; later users report what the labels of earlier ones do not explain, with
    less noise, unless ``penalty`` is given or ``refit`` is False.
    The Lasso chooses columns, with a penalty of ``.7 sqrt(2 ln p (noise_bound^2 + tau^2) / n)`` for
    noise of deviation tau and features of about unit size.  Least squares on them leaves out those
    that noise alone would explain; there is no intercept.

    Parameters
    ----------
    epsilon : float
        Target epsilon of each label, positive, in nats; infinity with ``non_private=True``.
    delta : float
        Target delta, in [0, 1); positive for Gaussian noise.
    y_bound : float
        Largest absolute label; larger ones are clipped.
    noise_bound : float
        Bound of the noise that the labels already have, in their units.
    randomizer : {"auto", "gaussian", "laplace", "staircase", "bounded", "piecewise", "pure"}
        The mechanism of a label, as in `LabelIHT`; "auto" takes that of least variance at epsilon
        and delta.
    penalty : float or None
        The penalty of the Lasso; None takes the one above.
    refit : bool
        Whether least squares on the columns found replaces the Lasso's coefficients.
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
    Bickel, Ritov & Tsybakov (2009), for a penalty of order ``sigma sqrt(ln p / n)``; Belloni &
    Chernozhukov (2013), for least squares after the Lasso.

    Examples
    --------
    >>> import numpy as np
    >>> from algorithms import LabelLasso
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (5000, 5))
    >>> model = LabelLasso(
    ...     epsilon=2.0, delta=1e-6, y_bound=1.0, noise_bound=0.1, random_state=0
    ... )
    >>> model.fit(X, 0.8 * X[:, 3]).coef_.round(1).tolist()
    [0.0, 0.0, 0.0, 0.8, 0.0]
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    y_bound: float
    noise_bound: float
    randomizer: str = "auto"
    penalty: float | None = None
    refit: bool = True
    non_private: bool = False
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Any:
        """Return what a fit on ``shape = (users, features)`` will release; needs no data."""
        plan = super().plan(shape)
        NON_NEGATIVE.check("noise_bound", self.noise_bound)
        if self.penalty is not None:
            NON_NEGATIVE.check("penalty", self.penalty)
        if not isinstance(self.refit, bool):
            raise ParameterError("refit", self.refit, "True or False")
        return self._staged(plan, self._stage_ends(shape[0]))

    def run(self, ledger: Any, executor: Executor | None = None) -> Array:
        """Return coefficients on the columns that scikit-learn's Lasso finds on noisy labels."""
        X = ledger.public
        if isinstance(X, Chunks):
            raise ParameterError("X", X, "in memory, or a memory map: the Lasso reads by columns")
        features, ends = X.shape[1], self._stage_ends(X.shape[0])

        def fit(data: tuple[Any, ...], clip: float) -> NormalEquations:
            columns = np.flatnonzero(self._lasso(data, ledger.plan.parts[0], clip))
            rows = PublicRows(IDENTITY, data, executor)
            return rows.equations(columns, np.zeros(features)).significant(features)

        if len(ends) > 2:
            equations = LabelStages(ledger, IDENTITY, self.y_bound, ends).run(fit)
        else:
            data = (X, self.noisy_labels(ledger))
            if not self.refit:
                return self._lasso(data, ledger.plan.parts[0], self.y_bound)
            equations = fit(data, self.y_bound)
        theta = np.zeros(features)
        theta[equations.columns] = equations.solution()
        return theta

    def _lasso(self, data: tuple[Any, ...], mechanism: Any, clip: float) -> Array:
        """Return the Lasso's coefficients; labels of weight 1 were clipped to ``clip``."""
        X, labels = data[:2]
        self.penalty_ = self._penalty(mechanism, data, clip)
        lasso = Lasso(alpha=self.penalty_, fit_intercept=False, max_iter=LASSO_PASSES)
        weights = {} if len(data) == 2 else {"sample_weight": data[2]}
        with warnings.catch_warnings():  # coefficients near the optimum select columns well enough
            warnings.simplefilter("ignore", ConvergenceWarning)
            coefficients: Array = lasso.fit(X, labels, **weights).coef_
        return coefficients

    def _penalty(self, mechanism: Any, data: tuple[Any, ...], clip: float) -> float:
        """Return the penalty that was given, or `SHARE_OF_UNIVERSAL` times the universal one."""
        if self.penalty is not None:
            return self.penalty
        (X, labels), features = data[:2], data[0].shape[1]
        weights = data[2] if len(data) > 2 else np.ones(X.shape[0])
        variance = 0.0
        if not isinstance(mechanism, NoPrivacy):
            # A mechanism that was made pure has no formula of its variance, so the variance of the
            # released labels is used.
            variance = noise_variance(mechanism, self.y_bound) * (clip / self.y_bound) ** 2
            if clip == self.y_bound:
                variance = min(variance, float(labels[weights > 0].var()))
        variance += self.noise_bound**2
        # With weights w the slopes have variance v / sum w, where v is the variance at weight 1.
        universal = math.sqrt(2 * math.log(max(features, 2)) * variance / float(weights.sum()))
        return SHARE_OF_UNIVERSAL * universal

    def _stage_ends(self, users: int) -> list[int]:
        """Return where stages of labels begin and end: one for the Lasso itself."""
        staged = self.refit and self.penalty is None and self.randomizer != "pure"
        return stage_ends(users) if staged and not self.non_private else [0, users]
