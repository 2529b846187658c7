"""Functions of balls that all theorems share, against floats, and the budget of a check."""

import cmath
import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb, ctx
from scipy.special import ndtr

from accountant.verifier.balls import (
    Budget,
    exact,
    exponential_sums,
    floor_below,
    nodes_on_line,
    normal_tail,
    share_within_one,
    spend,
)
from accountant.verifier.document import NoProof


@pytest.fixture(autouse=True)
def budget(monkeypatch):
    monkeypatch.setattr(Budget, "remaining", 1e9)
    with ctx.workprec(128):
        yield


def test_a_fraction_is_in_its_ball():
    for value in (Fraction(1, 3), Fraction(-7, 2), Fraction(0), Fraction(10**40, 3)):
        ball = exact(value)
        assert (ball * value.denominator).contains(arb(value.numerator))
        assert float(ball.rad()) <= abs(float(value)) * 2.0**-120
    assert exact(arb(2, 1)).rad() >= 1


@pytest.mark.parametrize("bits", [64, 128])
def test_the_whole_number_below_a_ball_is_surely_at_most_it(bits):
    with ctx.workprec(bits):
        for value in (-2.5, -2.0, -0.25, 0.0, 0.75, 1.0, 7.999, 2.0**40 + 0.5):
            assert floor_below(arb(value)) == math.floor(value)
            for radius in (1e-6, 0.25, 3.0):
                found = floor_below(arb(value, radius))
                assert math.floor(value - 1.0001 * radius) <= found <= value - radius
        with pytest.raises(NoProof, match="not known"):
            floor_below(arb(0.5, math.inf))
        with pytest.raises(NoProof, match="not known"):
            floor_below(arb(math.nan))


def test_a_share_is_between_nothing_and_all():
    for share, nearest in ((-0.5, 0.0), (0.0, 0.0), (0.375, 0.375), (1.0, 1.0), (1.5, 1.0)):
        assert share_within_one(arb(share)) == nearest


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 0.25, 1.0, 5.0, 18.0])
def test_the_tail_of_a_normal(x):
    assert float(normal_tail(arb(x))) == pytest.approx(ndtr(-x), rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 12, 100])
def test_sums_of_exponentials_are_those_of_each_node(count):
    rng = np.random.default_rng(count)
    weights, losses = rng.uniform(-1, 1, 5), rng.uniform(-2, 2, 5)
    found = exponential_sums([arb(w) for w in weights], [arb(x) for x in losses], 0.375, count)
    nodes = nodes_on_line(0.25, 0.375, count)
    assert len(found) == len(nodes) == count
    for j in range(count):
        value = sum(w * cmath.exp(0.375j * j * x) for w, x in zip(weights, losses, strict=True))
        assert complex(found[j]) == pytest.approx(value, abs=1e-12)
        assert complex(nodes[j]) == 0.25 + 0.375j * j
    assert exponential_sums([], [], 0.5, 2) == [0, 0]


def test_a_budget_is_spent_by_products_of_their_length():
    Budget.remaining = 100.0
    spend(60)
    assert Budget.remaining == 40
    with ctx.workprec(64):  # short numbers take as long as those of 128 bits
        spend(10)
    assert Budget.remaining == 30
    with ctx.workprec(512):
        spend(3)
    assert Budget.remaining == 30 - 3 * 8
    for products in (6, 0.5):
        with pytest.raises(NoProof, match="too long"):
            spend(products)
