"""When two values of recorded runs are the same."""

import math

import numpy as np
import pytest

from audits.recorded_runs.comparisons import same_value
from audits.recorded_runs.records import differing_rows


@pytest.mark.parametrize(
    ("first_value", "second_value", "expected"),
    [
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.3001, False),
        (np.nan, np.nan, True),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), False),
        (np.array([[1.0, 2.0]]), np.array([1.0, 2.0]), False),
        (np.inf, np.inf, True),
        (np.inf, 1.0, False),
        ({"a": [1, 2]}, {"a": [1, 2]}, True),
        ({"a": [1, 2]}, {"a": [1, 3]}, False),
    ],
)
def test_floats_are_the_same_up_to_round_off_and_arrays_only_of_one_shape(
    first_value, second_value, expected
):
    assert same_value(first_value, second_value) is expected


NAN = math.nan
FLOATS = np.array([[1.0, NAN], [2.0, 3.0], [4.0, 5.0]])


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        (FLOATS, FLOATS.copy(), []),
        (FLOATS, FLOATS[:2], []),
        (FLOATS, FLOATS[1:], [0, 1]),
        (FLOATS, np.where(FLOATS == 3.0, NAN, FLOATS), [1]),
        (FLOATS, np.nan_to_num(FLOATS, nan=7.0), [0]),
        (FLOATS, np.where(FLOATS == 3.0, math.nextafter(3.0, 4.0), FLOATS), [1]),
        (FLOATS[:, 1], np.array([NAN, 3.0, 6.0]), [2]),
        (FLOATS.reshape(3, 1, 2), FLOATS, [0, 1, 2]),
        (FLOATS, FLOATS.reshape(3, 1, 2), [0, 1, 2]),
        (FLOATS, FLOATS[:, :1], [0, 1, 2]),
        (FLOATS.reshape(3, 1, 2), FLOATS.reshape(3, 1, 2) + np.eye(3, 2)[:, None], [0, 1]),
        (np.arange(3), np.array([0, 5, 2]), [1]),
        (["a", "b"], ["a", "c"], [1]),
        ((FLOATS, ["a", "b", "c"]), (FLOATS, ["x", "b", "y"]), [0, 2]),
    ],
)
def test_the_rows_that_differ_are_those_with_another_value(one, other, rows):
    assert differing_rows(one, other) == differing_rows(other, one) == rows
