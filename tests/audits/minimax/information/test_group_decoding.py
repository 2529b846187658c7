"""Right decodes are rounded up where logarithms cancel."""

import math

import mpmath
import numpy as np

from audits.minimax.information.group_decoding import group_delta, most_right_at_distance


def test_right_decodes_are_rounded_up_where_logarithms_cancel():
    rng = np.random.default_rng(1)
    with mpmath.workdps(60):
        for _ in range(200):
            bits, records = int(10 ** rng.uniform(2, 8)), int(10 ** rng.uniform(0, 6))
            epsilon = (bits * math.log(2) + float(rng.uniform(-5, 5))) / records
            exact = 1 / (
                1 + mpmath.exp(bits * mpmath.log(2) - records * mpmath.mpf(epsilon))
                - mpmath.exp(-records * mpmath.mpf(epsilon))
            )  # fmt: skip
            assert most_right_at_distance(bits * math.log(2), records, epsilon) >= exact
            delta = math.exp(-rng.uniform(300, 700))
            epsilon = -math.log(delta) * float(rng.uniform(0.99, 1.0)) / records
            grown = mpmath.expm1(records * mpmath.mpf(epsilon)) / mpmath.expm1(epsilon)
            assert group_delta(records, epsilon, delta) >= min(1, delta * grown)
