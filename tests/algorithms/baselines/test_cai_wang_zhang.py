"""Published baselines: constants, budgets, sensitivity."""

import pytest

from accountant import ParameterError, Tight
from algorithms import ThresholdedMean


def test_published_constants_that_break_the_claim_are_refused():
    with pytest.raises(ParameterError, match="small enough for the published constants"):
        ThresholdedMean(20.0, 1e-3, 100, 1.0, form="published").plan((200, 200))
    made = ThresholdedMean(1.0, 1e-5, 10, 1.0, form="published")
    assert Tight().epsilon(made.plan((200, 200)), 1e-5) <= 1.0
