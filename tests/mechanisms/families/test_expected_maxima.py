"""What mechanisms say of their errors, against sums, quadrature and draws."""

import math

import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mechanisms import (
    Laplace,
    TruncatedLaplace,
)
from mechanisms.families.expected_maxima import expected_max_abs_gaussian, expected_max_exponential


@pytest.mark.parametrize("count", [1, 2, 30, 10_000])
def test_greatest_of_many(count):
    def above(t):
        return -math.expm1(count * math.log1p(-min(2 * norm.sf(t), 1 - 1e-16)))

    exact, _ = quad(above, 0, 12, limit=400, epsabs=1e-12)
    assert expected_max_abs_gaussian(count) == pytest.approx(exact, rel=1e-9)
    assert expected_max_exponential(count) == pytest.approx(
        math.fsum(1 / k for k in range(1, count + 1)), rel=1e-12
    )
    assert Laplace(2.0, arithmetic="idealised").expected_maximum(
        count
    ) == 2.0 * expected_max_exponential(count)
    for arithmetic in ("exact", "idealised"):
        cut = TruncatedLaplace(2.0, 1.0, arithmetic=arithmetic)
        assert cut.expected_maximum(count) <= cut.drawn_scale * cut.drawn_reach
    assert cut.expected_maximum(count) <= 2.0


def test_the_expected_greatest_of_many_exponentials_is_no_less_than_the_harmonic_number():
    for count in (100, 101, 150, 300, 1000):
        harmonic = math.fsum(1 / k for k in range(1, count + 1))
        found = Laplace(1.0, arithmetic="idealised").expected_maximum(count)
        assert harmonic * (1 - 1e-15) <= found <= harmonic * (1 + 1e-14)
