"""What a sign of small mean tells, to every digit."""

import mpmath
import numpy as np

from audits.minimax.families.sign_means import user_information
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
