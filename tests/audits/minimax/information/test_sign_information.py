"""What a sign of small mean tells, to every digit."""

import mpmath
import numpy as np

from audits.minimax.information.sign_information import sign_information


def test_what_a_sign_of_small_mean_tells_is_right_to_every_digit():
    with mpmath.workdps(50):
        for mean in np.geomspace(1e-9, 0.999, 60):
            m = mpmath.mpf(float(mean))
            exact = ((1 + m) * mpmath.log(1 + m) + (1 - m) * mpmath.log(1 - m)) / 2
            found = float(sign_information(np.array(float(mean))))
            assert abs(found - exact) <= 1e-12 * exact
