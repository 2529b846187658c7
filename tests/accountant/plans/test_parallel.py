"""Parallel plans: by index and by value, reversed, and shown."""

import pytest

from accountant import Parallel, Repeat, Tight
from mechanisms import Laplace


def test_a_parallel_of_many_equal_parts_is_reversed_at_once():
    one = Laplace(1.0)
    plan = Parallel([one] * 1_000_000)
    turned = plan.reversed
    assert turned.parts[0] is turned.parts[-1]
    assert Tight().epsilon(Repeat(plan, 1), 0.0) == pytest.approx(1.0)
