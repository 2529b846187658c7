"""What a value may be."""

import numpy as np
import pytest

from accountant import PrivateValueError
from mechanisms import Laplace


def test_a_mask_is_no_way_to_hide_a_value():
    with pytest.raises(PrivateValueError, match="without a mask"):
        Laplace(1.0).release(np.ma.array([1.0, 2.0], mask=[True, False]), 1)
