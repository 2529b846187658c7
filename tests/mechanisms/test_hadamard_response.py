"""Rows of Sylvester's matrix."""

import numpy as np

from mechanisms.hadamard_response import has_odd_parity


def test_rows_of_sylvester():
    matrix = np.ones((1, 1))
    for _ in range(4):
        matrix = np.kron([[1, 1], [1, -1]], matrix)
    rows, columns = np.indices(matrix.shape)
    assert np.array_equal(has_odd_parity(rows & columns), matrix < 0)
