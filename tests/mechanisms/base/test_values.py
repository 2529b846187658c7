"""What a value may be."""

import numpy as np
import pytest

from accountant import PrivateValueError
from mechanisms import Laplace
from mechanisms.base.values import Integers, Reals


def test_a_mask_is_no_way_to_hide_a_value():
    with pytest.raises(PrivateValueError, match="without a mask"):
        Laplace(1.0).release(np.ma.array([1.0, 2.0], mask=[True, False]), 1)


@pytest.mark.parametrize("kind", [Reals, Integers])
@pytest.mark.parametrize("dimension", [None, 1, 5])
def test_an_example_is_a_value(kind, dimension):
    values = kind(1, 1, dimension)
    example = values.example(np.random.default_rng(0))
    assert values.check(example) is not None


def test_a_refusal_says_what_is_declared():
    with pytest.raises(PrivateValueError, match=r"must be vectors \("):
        Reals(1.0, axes=1).check(3.0)
    with pytest.raises(PrivateValueError, match="vectors of at most 2 coordinates"):
        Reals(1.0, axes=1, dimension=2).check([1.0, 2.0, 3.0])
    with pytest.raises(PrivateValueError, match="whole numbers of an integer type"):
        Integers(1).check([2.0, 3.0])
