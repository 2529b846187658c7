"""Pure from approximate privacy: its bound, its law, and what it takes."""

import numpy as np
import pytest

from accountant import Ledger, ParameterError, PrivateValueError
from mechanisms import Gaussian, Laplace, PureFromApproximate


def test_a_vector_does_not_pass_as_one_number_through_public_samples():
    made = PureFromApproximate(Gaussian(2.0), 0.2, 12)
    assert made.value_axes == 0
    with pytest.raises(PrivateValueError, match="a single one, with 0 axes"):
        Ledger(np.ones((10, 50)), made, rng=0).release(made, lambda data: data.sum(0))
    with pytest.raises(ParameterError, match="a mechanism of numbers"):
        PureFromApproximate(Gaussian(2.0, 1.0, "exact", 3), 0.2, 12)
    exact_inner = PureFromApproximate(Laplace(5.0, 1.0, "exact"), 0.2, 12)
    assert exact_inner.arithmetic.name == "IDEALISED"
