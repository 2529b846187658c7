"""The table of a comparison: one row for each accountant."""

import json

import pytest

from accountant import (
    BoundedRangeLoss,
    Comparison,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    Tight,
    ZCDPLoss,
    compare,
    compare_deltas,
)
from accountant.reports.comparison import Row


def test_comparison_prints_a_row_an_accountant():
    comparison = compare(49 * BoundedRangeLoss(0.053808), 1e-6)
    assert [row.accountant for row in comparison] == [
        "Basic", "Advanced", "ZCDP", "RDP", "GDP", "PLD", "Tight"
    ]  # fmt: skip
    assert comparison.best.accountant == "Tight"
    words = str(comparison)
    assert "0.83247873" in words
    assert words.count("least") == 1


def test_least_is_the_least_of_the_rows():
    plan = 30 * LaplaceLoss(0.1) + 5 * BoundedRangeLoss(0.3)
    rows = [row.epsilon for row in compare(plan, 1e-6)]
    # a profile that is known point by point costs Tight a few millionths
    assert Tight().epsilon(plan, 1e-6) == pytest.approx(min(rows), rel=1e-6)
    assert Tight().epsilon(49 * BoundedRangeLoss(0.053808), 1e-6) < 0.8325


def test_the_printed_numbers_are_upper_bounds():
    rows = (Row("Tight", 4.154399500728, 1e-6, 0.0),)
    assert "4.15439951" in str(Comparison(PureLoss(1.0), "epsilon", rows))
    rows = (Row("Tight", 1.0, 1.0000000001e-6, 0.0),)
    assert "1.000001e-06" in str(Comparison(PureLoss(1.0), "delta", rows))


def test_what_was_asked_is_shown_rounded_up():
    # An epsilon at 1/30,000 holds at a larger delta, but need not at 3.33333e-05.
    comparison = compare(PureLoss(1.0), delta=1 / 30_000)
    assert "at delta 3.33334e-05 by" in repr(comparison)
    assert str(comparison).startswith("epsilon at delta 3.33334e-05\n")


def test_a_row_without_a_bound_formats_as_a_number_and_says_why():
    plan = ZCDPLoss(0.1) + GaussianLoss(0.5)
    for comparison, text, none in (
        (compare(plan, 1e-6), "inf", "epsilon"),
        (compare_deltas(plan, 1.0), "1.0000", "delta"),
    ):
        unbounded = comparison.rows[4]
        assert unbounded.accountant == "GDP"
        assert not unbounded.has_bound
        assert f"{unbounded.value(comparison.asked):.4f}" == text
        assert "cannot bound ZCDPLoss" in str(comparison)
        assert comparison.best.has_bound
        assert json.loads(comparison.to_json())["rows"][4][none] is None
