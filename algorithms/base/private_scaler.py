"""A scikit-learn transformer that scales columns by bounds which one noisy histogram finds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from accountant.domains import POSITIVE_DELTA
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.adjacency import RECORD_RELATIONS, REPLACE, check_relation
from algorithms.base.column_bounds import DECLARED, BoundsSearch, ColumnBounds
from algorithms.base.estimators import PrivateEstimator
from algorithms.base.fit_data import checked_shape, generator_of, validated_data
from algorithms.base.noisy_gradient_rounds import calibrated_gaussian
from mechanisms.gaussian import Gaussian


@dataclass(eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Columns over scales that are found privately, clipped to [-1, 1]; (epsilon, delta)-DP.

    It takes the place of ``MaxAbsScaler`` where bounds are known only roughly.  The magnitudes of
    all columns are counted by powers of two, with noise, in one release.  The scale of a column is
    the power of two that hardly a magnitude is above; a column whose counts do not show in the
    noise keeps its declared bound.  0 stays 0, and so sparse data stay sparse.

    In front of a private estimator both draw on one budget: give them the same ``ledger``, as in
    the example.  `PrivateLinearRegression`, `PrivateLogisticRegression`, `PrivateLasso` and
    `PrivateLogisticLasso` do all of this themselves with ``bounds="private"``.

    Parameters
    ----------
    epsilon : float
        Target epsilon of the histogram, positive, in nats.
    delta : float
        Target delta, in (0, 1).
    x_bound : float or array_like of shape (features,)
        The public bound of the magnitudes in all columns, or in each: the outer end of the
        histogram.  To find the scales below one that is 2^1000 times too large takes about twice
        the records.
    relation : {"replace-one", "add-remove"} or Adjacency
        Neighbours; "add-remove" takes the number of records as public: a record is replaced by one
        that adds nothing to any count.
    random_state : int, numpy.random.Generator or None
        Seed of the noise; None draws from the operating system's entropy.

    Attributes
    ----------
    column_bounds_ : ColumnBounds
        ``scales`` and ``limits`` of the columns, and ``clipped_shares``: noisy shares of the
        records beyond the limits, with the deviations ``share_errors``.
    n_features_in_ : int
        The number of columns.
    plan_, ledger_, transcript_
        What was released, and through which ledger.

    See Also
    --------
    BoundsScaler : Bounds that are public, and cost nothing.

    References
    ----------
    Karwa & Vadhan (2018) for a noisy histogram in place of bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from accountant import Budget
    >>> from algorithms import PrivateLogisticLasso, PrivateScaler
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 3)) * [0.001, 20.0, 3000.0]
    >>> scaler = PrivateScaler(epsilon=0.25, delta=1e-6, x_bound=1e9, random_state=0)
    >>> scaler.fit(X).column_bounds_.scales.tolist()
    [0.001953125, 32.0, 4096.0]
    >>> budget = Budget(1.5, 1e-6)
    >>> model = make_pipeline(scaler, PrivateLogisticLasso(1.0, 1e-6, random_state=0))
    >>> payment = {"privatescaler__ledger": budget, "privatelogisticlasso__ledger": budget}
    >>> model.fit(X, X[:, 0] > 0, **payment).score(X, X[:, 0] > 0) > 0.9
    True
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    x_bound: Any = 1e300
    relation: str = REPLACE
    random_state: Any = None

    def plan(self, shape: tuple[int, ...]) -> Gaussian:
        """Return the one release of a fit on ``shape = (records, features)``; needs no data."""
        search = self._search(checked_shape(shape)[1])
        budget = self._checked_epsilon(), POSITIVE_DELTA.check("delta", self.delta)
        counts = search.mechanism(1.0)
        return calibrated_gaussian(*budget, 1, counts.sensitivity, counts.dimension)

    def run(self, ledger: Any) -> ColumnBounds:
        """Return the bounds, computed from released counts only."""
        return self._search(ledger.shape[1]).release(ledger, ledger.plan)

    def fit(self, X: Any, y: Any = None, ledger: Any = None) -> Self:
        """Find the scales of the columns.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Data.
        y : object
            Ignored.
        ledger : Budget, Filter, Book, tuple or None
            What the fit draws on, see `PrivateEstimator`; None charges nothing.

        Returns
        -------
        self
            The scaler.
        """
        del y
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr")
        plan, rng = self.plan(X.shape), generator_of(self.random_state)
        self.ledger_ = self.open_ledger((X,), plan, rng=rng, ledger=ledger)
        self.column_bounds_, self._payer = self.run(self.ledger_), ledger
        self.transcript_ = self.ledger_.transcript
        return self

    def transform(self, X: Any) -> Any:
        """Return columns over their scales, within [-1, 1]; a missing number becomes 0.

        Parameters
        ----------
        X : array_like or sparse array of shape (records, features)
            Data.

        Returns
        -------
        numpy.ndarray or sparse array of shape (records, features)
            Numbers.  Scales are powers of two, so that what is not clipped is divided exactly.
        """
        check_is_fitted(self)
        X = validated_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        return self.column_bounds_.scaled(X)

    def inverse_transform(self, X: Any) -> Array:
        """Return scaled columns in their own units.

        Parameters
        ----------
        X : array_like of shape (records, features)
            Scaled data.

        Returns
        -------
        numpy.ndarray of shape (records, features)
            Numbers; what was clipped is at its limit.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=np.float64, ensure_all_finite=False)
        return np.asarray(X * self.column_bounds_.scales)

    def is_paid_by(self, ledger: Any) -> bool:
        """Return whether the fit drew on what another fit now draws on too.

        Parameters
        ----------
        ledger : Budget, Filter, Book, tuple or None
            The ``ledger`` of the other fit.

        Returns
        -------
        bool
            False for None, which counts no sum of fits.
        """
        payer = getattr(self, "_payer", None)
        return payer is not None and (payer is ledger or payer == ledger)

    def _search(self, features: int) -> BoundsSearch:
        """Return the search of the scales: what it may know before any record."""
        try:
            bounds = np.broadcast_to(np.asarray(self.x_bound, dtype=np.float64), (features,))
        except (TypeError, ValueError):
            allowed = f"one number, or one for each of {features} columns"
            raise ParameterError("x_bound", self.x_bound, allowed) from None
        declared = tuple(DECLARED.check("x_bound", bound) for bound in bounds.tolist())
        relation = check_relation("relation", self.relation, RECORD_RELATIONS)
        return BoundsSearch(declared, relation, features * (1.0,))

    def _noise_summary(self) -> str:
        return f"noise of deviation {self.plan_.scale:.4g} records on the counts of magnitudes"

    def __getstate__(self) -> Any:
        """Return everything but the ledgers."""
        return {name: value for name, value in super().__getstate__().items() if name != "_payer"}

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow sparse data."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags
