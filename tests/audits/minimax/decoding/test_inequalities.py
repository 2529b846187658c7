"""The inequalities check what they are given."""

import math

import pytest

from accountant.errors import ParameterError
from audits.minimax import (
    SignedBasis,
    chi_squared_divergence,
    distance_information,
    enumerate_checks,
    fano_information,
    le_cam_divergence,
)
from audits.minimax.families.paired_shares import PairedShares


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
