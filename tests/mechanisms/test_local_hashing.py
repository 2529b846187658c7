"""Hashes into a prime: no overflow."""

import numpy as np
import pytest

from mechanisms import LocalHashing
from mechanisms.local_hashing import least_prime_from


def test_primes():
    assert [least_prime_from(n) for n in (2, 3, 4, 14, 24, 90, 100_000)] == [
        2,
        3,
        5,
        17,
        29,
        97,
        100_003,
    ]
    assert least_prime_from(2**31 - 1) == 2**31 - 1


def test_hashes_do_not_overflow():
    oracle = LocalHashing(2**31 - 1, 7, 0.9)
    most = 2**31 - 2
    report = np.array([most, most, (most * most + most) % (2**31 - 1) % 7])
    assert oracle.supports(report, np.array(most))
    assert oracle.is_report(oracle.release([most] * 100, 1)).all()


def test_variances_of_hashing_are_those_of_wang_et_al_for_many_labels():
    # 4 e^eps / (e^eps - 1)^2 for hashes that collide once in `buckets`, at e^eps + 1 of them
    made = LocalHashing(100_003, 4, 3 / 6)
    assert made.coefficient_variances[1] == pytest.approx(3.0, rel=1e-3)
