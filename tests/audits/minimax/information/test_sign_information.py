"""What a sign of small mean tells, to every digit."""

import mpmath
import numpy as np
import pytest

from accountant import ParameterError
from audits.minimax.families.sign_means import user_information
from audits.minimax.information.sign_index import WholeBelow, index_of_signs, signs_of
from audits.minimax.information.sign_information import sign_information


def test_what_a_sign_of_small_mean_tells_is_right_to_every_digit():
    with mpmath.workdps(50):
        for mean in np.geomspace(1e-9, 0.999, 60):
            m = mpmath.mpf(float(mean))
            exact = ((1 + m) * mpmath.log(1 + m) + (1 - m) * mpmath.log(1 - m)) / 2
            found = float(sign_information(np.array(float(mean))))
            assert abs(found - exact) <= 1e-12 * exact


def test_the_information_in_a_vector_of_signs_is_rounded_up():
    # Its terms cancel just above the mean 0.01; there it was up to 128 units too low.
    with mpmath.workdps(50):
        for mean in np.linspace(0.0101, 0.02, 100):
            m = mpmath.mpf(float(mean))
            exact = ((1 + m) * mpmath.log(1 + m) + (1 - m) * mpmath.log(1 - m)) / 2
            bound = user_information(dimension=1, shift=float(mean), epsilon=50.0)
            assert exact <= bound <= exact * (1 + 1e-11)


def test_an_index_is_the_number_whose_bits_are_the_signs():
    for dimension in (1, 3, 8, 9):
        domain = WholeBelow(dimension)
        for which in range(min(2**dimension, 20)):
            signs = signs_of(domain.check(which), dimension)
            assert [int(bit) for bit in f"{which:0{dimension}b}"] == ((signs + 1) / 2).tolist()
            assert index_of_signs(signs, dimension) == which
        assert domain.check(np.int64(2**dimension - 1)) == 2**dimension - 1
        for wrong in (-1, 2**dimension, True, 0.0, "0", None):
            with pytest.raises(ParameterError, match=rf"from 0 to 2\^{dimension} - 1"):
                domain.check(wrong)
