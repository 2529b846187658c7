"""What a fit reads of odd private numbers: a public number in place of each, and no message."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator

from accountant import Chunks, ParameterError
from algorithms.base.fit_data import filled, validated_fit_data

LARGEST = np.finfo(float).max
WIDE = np.array([[np.longdouble("1e400")], [np.longdouble("-1e400")], [np.longdouble(0.5)]])


def test_a_number_beyond_all_floats_counts_as_the_largest_float():
    expected = [[LARGEST], [-LARGEST], [0.5]]
    sparse = csr_matrix((3, 1), dtype=np.longdouble)
    sparse.data, sparse.indices = WIDE.ravel(), np.zeros(3, dtype=np.int32)
    sparse.indptr = np.arange(4, dtype=np.int32)
    for numbers in (filled(WIDE), filled(sparse).toarray()):
        assert numbers.dtype == float
        assert numbers.tolist() == expected
    X, y = validated_fit_data(BaseEstimator(), WIDE, WIDE[:, 0])
    assert X.tolist() == expected
    assert y.tolist() == [LARGEST, -LARGEST, 0.5]


@pytest.mark.parametrize("odd", [None, np.nan, "no number"])
def test_chunks_of_lists_are_filled_as_arrays_are(odd):
    rows, targets = [[1.0, odd], [2.0, 3.0]], [odd, 4.0]
    pairs, _ = validated_fit_data(
        BaseEstimator(), Chunks(lambda: [(rows, targets)], shape=(2, 2)), None
    )
    X, y = pairs[:]
    assert X.tolist() == [[1.0, 0.0], [2.0, 3.0]]
    assert y.tolist() == [0.0, 4.0]


@pytest.mark.parametrize(
    "column", [pd.period_range("2026", periods=2), pd.interval_range(0, 2), pd.to_timedelta([1, 2])]
)
def test_a_column_of_times_or_intervals_is_refused_and_not_read_as_zeros(column):
    with pytest.raises(ParameterError, match="encode text first"):
        filled(pd.DataFrame({"number": [1.0, 2.0], "other": column}))
