"""The inequalities check what they are given."""

import math
from fractions import Fraction

import pytest

from accountant.errors import ParameterError
from audits.minimax import (
    SignedBasis,
    chi_squared_divergence,
    distance_information,
    enumerate_checks,
    fano_information,
    le_cam_divergence,
    private_fano,
    private_le_cam,
)
from audits.minimax.families.paired_shares import PairedShares
from audits.minimax.information.bernoulli_kl import most_right_given_information


@pytest.mark.parametrize("wrong", [True, math.nan, math.inf, -1, "1", None])
def test_the_inequalities_check_what_they_are_given(wrong):
    family = SignedBasis(4, 0.5)
    for inequality, last in (
        (fano_information, 0.5),
        (le_cam_divergence, 0.5),
        (chi_squared_divergence, 0.5),
    ):
        with pytest.raises(ParameterError):
            inequality(family, wrong, last)
        with pytest.raises(ParameterError):
            inequality(family, 5, wrong)
    for given in ((wrong, 0.5, 0.2), (5, wrong, 0.2), (5, 0.5, wrong)):
        with pytest.raises(ParameterError):
            distance_information(*given)
    with pytest.raises(ParameterError):
        PairedShares(4, 0.5).most_right(5, wrong)
    with pytest.raises(ParameterError):
        enumerate_checks(largest_p=wrong)
    with pytest.raises(ParameterError):
        enumerate_checks(largest_p=2, users=wrong)


@pytest.mark.parametrize("points", [1, 10, 20_000])
def test_errors_of_a_decode_are_rounded_down(points):
    for k in range(1, 30):
        family = SignedBasis(points, k / 40)
        nats = Fraction(le_cam_divergence(family, k, 0.1).sharp)
        assert (1 - Fraction(private_le_cam(family, k, 0.1).sharp)) ** 2 >= nats / 2
        information = fano_information(family, k, 0.1).sharp
        right = most_right_given_information(information, family.points)
        assert Fraction(private_fano(family, k, 0.1).sharp) <= 1 - Fraction(right)
