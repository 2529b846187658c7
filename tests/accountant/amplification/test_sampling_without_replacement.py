"""Sampling without replacement is its formula."""

import math

import pytest

from accountant import PureLoss, SampledWithoutReplacement


def test_sampling_without_replacement_is_its_formula():
    # a bit in a sample of m of n, released exactly but for a flip: enumerate who is in the sample
    part, m, n = PureLoss(1.0), 2, 10
    node = SampledWithoutReplacement(part, m, n)
    for epsilon in (0.0, 0.1, 0.2):
        inner = math.log1p(math.expm1(epsilon) / (m / n))
        assert node.profile(epsilon) == pytest.approx(m / n * float(part.profile(inner)))
    assert node.pure == pytest.approx(math.log1p(0.2 * math.expm1(1.0)))
