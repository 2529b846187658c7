"""BoundsScaler: scikit-learn's contract, public bounds, names, and what is refused."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import MinMaxScaler

from accountant import ParameterError
from algorithms import BoundsScaler
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks

X = np.random.default_rng(0).uniform([0, 20], [120, 200], (50, 2))


@passes_scikit_learn_checks(BoundsScaler(-3.0, 5.0), BoundsScaler(0, 1, feature_range=(0, 1)))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 1.0), (2.0, 7.0)])
def test_it_is_the_scaler_by_the_bounds_of_data_where_these_are_public(ends):
    low, high = X.min(axis=0), X.max(axis=0)
    ours = BoundsScaler(low, high, feature_range=ends).fit(X)
    theirs = MinMaxScaler(ends).fit(X)
    assert ours.transform(X) == pytest.approx(theirs.transform(X), abs=1e-12)
    assert ours.inverse_transform(ours.transform(X)) == pytest.approx(X)


def test_values_beyond_the_bounds_are_clipped_and_missing_ones_stay():
    made = BoundsScaler([0, 20], [120, 200]).fit(X)
    far = [[-math.inf, 1e308], [math.nan, 110.0]]
    assert np.array_equal(made.transform(far), [[-1, 1], [math.nan, 0]], equal_nan=True)
    wide = BoundsScaler(-8e307, 8e307).fit(X)
    assert wide.transform([[8e307, -1e308]]).tolist() == [[1.0, -1.0]]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_keep_their_names(library):
    frame = library.DataFrame({"age": X[:, 0], "weight": X[:, 1]})
    made = BoundsScaler(0, [120, 200]).set_output(transform=library.__name__).fit(frame)
    assert made.get_feature_names_out().tolist() == ["age", "weight"]
    assert list(made.transform(frame).columns) == ["age", "weight"]


def test_what_is_fitted_does_not_depend_on_values():
    fitted = [vars(BoundsScaler(0, 1).fit(data)) for data in (X, X * math.nan, -X)]
    assert fitted[0] == fitted[1] == fitted[2]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"low": 1.0, "high": 1.0}, "low must be"), ({"low": math.nan, "high": 1.0}, "low must be"),
        ({"low": 0.0, "high": math.inf}, "high must be"), ({"low": [0] * 3, "high": 1}, "low must"),
        ({"low": "none", "high": 1.0}, "low must be"),
        ({"low": 0, "high": 1, "feature_range": (1, 1)}, "feature_range must be"),
        ({"low": 0, "high": 1, "feature_range": 3}, "feature_range must be"),
    ],
)  # fmt: skip
def test_bad_bounds_are_refused(settings, words):
    with pytest.raises(ParameterError, match=words):
        BoundsScaler(**settings).fit(X)
