"""When two values of recorded runs are the same."""

import numpy as np
import pytest

from audits.recorded_runs.comparisons import same_value


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
