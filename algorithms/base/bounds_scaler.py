"""A scikit-learn transformer that scales columns from public bounds, without a look at the data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from accountant.errors import ParameterError
from accountant.numerics import Array


@dataclass(eq=False, repr=False)
class BoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns clipped to public bounds, and scaled from them to ``feature_range``.

    It takes the place of ``MinMaxScaler`` or ``StandardScaler`` in front of a private estimator.
    Those learn from the records, and what they learn is not private.  Here the bounds are given, by
    what is known of a column before any record is seen: an age is between 0 and 120.

    Parameters
    ----------
    low, high : float or array_like of shape (features,)
        The public bounds of all columns, or of each: finite, low below high.
    feature_range : tuple of float
        What the bounds become: ``(-1, 1)``, or such as ``(0, 1)``.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : numpy.ndarray of shape (features,)
        Their names, where a frame was given.

    See Also
    --------
    sklearn.preprocessing.MinMaxScaler : The same with the bounds of the data.

    References
    ----------
    Dwork & Roth (2014), section 3.3, for bounds that are known before the data.

    Examples
    --------
    >>> from algorithms import BoundsScaler
    >>> scaler = BoundsScaler(low=[0.0, 20.0], high=[120.0, 200.0]).fit([[30.0, 75.0]])
    >>> scaler.transform([[60.0, 65.0], [130.0, 20.0]]).tolist()
    [[0.0, -0.5], [1.0, -1.0]]
    >>> scaler.inverse_transform([[0.0, -0.5]]).tolist()
    [[60.0, 65.0]]
    """

    fit_reads_no_data: ClassVar[bool] = True

    low: Any
    high: Any
    _: KW_ONLY
    feature_range: tuple[float, float] = (-1.0, 1.0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the number and the names of the columns; no value is looked at.

        Parameters
        ----------
        X : array_like of shape (records, features)
            Data.
        y : object
            Ignored.

        Returns
        -------
        self
            The scaler.

        Raises
        ------
        ParameterError
            If the bounds are not finite, not in order, or not one for each column.
        """
        del y
        validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        self._bounds()
        self._range()
        return self

    def transform(self, X: Any) -> Array:
        """Return columns clipped to their bounds and scaled; NaN, a missing value, stays NaN.

        Parameters
        ----------
        X : array_like of shape (records, features)
            Data.

        Returns
        -------
        numpy.ndarray of shape (records, features)
            Numbers within ``feature_range``, rounded to nearest.  With ``(-1, 1)`` an estimator
            that takes NaN for 0 takes it for the middle of the bounds.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        (low, high), (start, stop) = self._bounds(), self._range()
        relative = (np.clip(X, low, high) - low) / (high - low)
        return np.asarray(np.clip(start + relative * (stop - start), start, stop))

    def inverse_transform(self, X: Any) -> Array:
        """Return scaled columns in their own units.

        Parameters
        ----------
        X : array_like of shape (records, features)
            Scaled data.

        Returns
        -------
        numpy.ndarray of shape (records, features)
            Numbers; what was clipped is at its bound.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=np.float64, ensure_all_finite=False)
        (low, high), (start, stop) = self._bounds(), self._range()
        return np.asarray(low + (X - start) / (stop - start) * (high - low))

    def _bounds(self) -> tuple[Array, Array]:
        """Return the bounds of every column, checked: each finite, and low below high."""
        low, high = (self._checked(name) for name in ("low", "high"))
        if not np.all(low < high):
            raise ParameterError("low", self.low, f"below high={self.high!r} in every column")
        return low, high

    def _checked(self, name: str) -> Array:
        """Return the parameter of this name as one number for each column."""
        allowed = f"finite: one number, or one for each of {self.n_features_in_} columns"
        try:
            numbers = np.asarray(getattr(self, name), dtype=np.float64)
            bounds = np.broadcast_to(numbers, (self.n_features_in_,))
        except (TypeError, ValueError):
            raise ParameterError(name, getattr(self, name), allowed) from None
        # Bounds are at most half of the largest float, so that their distance is finite.
        if not np.all(np.abs(bounds) <= np.finfo(np.float64).max / 2):
            raise ParameterError(name, getattr(self, name), allowed)
        return bounds

    def _range(self) -> tuple[float, float]:
        """Return the ends of ``feature_range``."""
        try:
            start, stop = map(float, self.feature_range)
        except (TypeError, ValueError):
            start = stop = 0.0
        if not (start < stop and np.isfinite([start, stop]).all()):
            raise ParameterError("feature_range", self.feature_range, "two finite rising numbers")
        return start, stop

    def __sklearn_tags__(self) -> Any:
        """Return tags that allow missing values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
