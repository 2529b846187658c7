"""The best staircases beat Laplace noise."""

import math
import re

import numpy as np
import pytest

from accountant import ParameterError
from mechanisms import Staircase
from mechanisms.staircase import SHARE


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_best_staircase_beats_laplace_noise(epsilon):
    # Geng & Viswanath (2014), Theorem 3: least E|noise| is e^{eps/2} / (e^eps - 1)
    made = Staircase(1 / epsilon, 1.0, 1 / (1 + math.exp(epsilon / 2)))
    edges = np.unique(np.concatenate([np.arange(400), np.arange(400) + made.upper]))
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    error = 2 * (np.exp(made.terms(middle, 0.0)) * width * middle).sum()
    assert error == pytest.approx(math.exp(epsilon / 2) / math.expm1(epsilon), rel=1e-9)
    assert error < 1 / epsilon
    assert made.loss.pure == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 12.0])
def test_the_share_of_least_variance(epsilon):
    def variance(upper):
        return Staircase(1 / epsilon, upper=upper, arithmetic="idealised").deviation ** 2

    found = Staircase(1 / epsilon, upper="least variance").upper
    least = variance(found)
    assert least <= min(map(variance, np.linspace(0.001, 0.999, 999)))
    assert least <= variance("best") < 2 / epsilon**2  # of Laplace noise
    # a best share stays one when the noise is scaled, and a given one is left
    for word in ("best", "least variance"):
        scaled = Staircase(1.0, upper=word).with_noise_factor(1 / epsilon)
        assert scaled.upper == Staircase(1 / epsilon, upper=word).upper
    assert Staircase(1.0, upper=0.2).with_noise_factor(3.0).upper == 0.2


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.2, math.nan, True, None, "worst"])
def test_the_shares_are_said_where_one_is_refused(wrong):
    with pytest.raises(ParameterError, match=re.escape(f"upper must be {SHARE}")):
        Staircase(1.0, upper=wrong)
    assert str(SHARE) == f"a number in [{SHARE.low:g}, {SHARE.high:g}]"
    assert Staircase(1.0, upper=SHARE.low).upper < Staircase(1.0, upper=SHARE.high).upper
