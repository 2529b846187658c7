"""Unary encoding: its second moment, and reports packed into bits."""

import math
import tracemalloc

import numpy as np
import pytest

from accountant import ParameterError
from mechanisms import UnaryEncoding
from tests.laws.common import FALSE_ALARM_RATE
from tests.mechanisms.families.fits import fit

SECOND_MOMENTS = [(10, 1.0, 38.826944), (100, 0.5, 1569.079236)]


@pytest.mark.parametrize(("k", "epsilon", "second"), SECOND_MOMENTS)
def test_the_second_moment_of_unary_encoding(k, epsilon, second):
    # V = 2 + 4 k e^eps / (e^eps - 1)^2, and one coefficient of the k has mean 1, all others 0
    own, others = UnaryEncoding.optimised(k, epsilon).coefficient_variances
    assert own + (k - 1) * others + 1 == pytest.approx(second, rel=1e-8)
    e = math.exp(epsilon)
    assert own == pytest.approx(1 / math.tanh(epsilon / 2) ** 2, rel=1e-12)
    assert others == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-12)


@pytest.mark.parametrize("k", [2, 7, 8, 9, 13, 64, 100])
def test_packed_bits_are_the_bits(k):
    oracle, labels = UnaryEncoding(k, 0.5, 0.2), np.arange(1000) % k
    packed, reports = oracle.packed(labels, 3), oracle.release(labels, 3)
    assert packed.shape == (1000, -(-k // 8))
    assert np.array_equal(packed, np.packbits(reports, axis=-1))
    assert np.array_equal(oracle.decode_packed(packed), oracle.decode(reports))
    assert oracle.packed(1, 3).shape == packed.shape[1:]
    assert oracle.packed([], 3).shape == (0, packed.shape[1])


def test_packed_bits_follow_the_density():
    oracle = UnaryEncoding(5, 0.6, 0.3)
    reports = np.unpackbits(oracle.packed(np.full(1_000_000, 4), 5), axis=-1, count=5)
    assert fit(oracle, 4, reports) > FALSE_ALARM_RATE


def test_packed_reports_that_are_none():
    oracle = UnaryEncoding(9, 0.6, 0.3)
    packed = oracle.packed([1, 2], 0)
    for bad in (packed[0], packed[:0], packed.astype(int), packed[:, :1]):
        with pytest.raises(ParameterError, match="packed must be"):
            oracle.decode_packed(bad)


def test_packed_bits_never_have_a_byte_each():
    oracle, labels = UnaryEncoding(100, 0.5, 0.2), np.zeros(1_000_000, dtype=np.intp)
    tracemalloc.start()
    packed = oracle.packed(labels, 1)
    oracle.decode_packed(packed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < packed.nbytes + 20_000_000  # a hundred million bits
