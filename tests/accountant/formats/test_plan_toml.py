"""TOML that is no plan: an error at its place."""

import pytest

from accountant.formats.plan_toml import PlanSyntaxError, file_from_toml

PLAN = '[budget]\nepsilon = 1.0\ndelta = 1e-6\n[[release]]\nkind = "Gaussian"\nscale = 20.0\n'


def test_a_number_of_five_thousand_digits_is_a_plan_error_at_its_place():
    with pytest.raises(PlanSyntaxError, match="line 6, column 9") as wrong:
        file_from_toml(PLAN.replace("20.0", "9" * 5000))
    assert len(str(wrong.value)) < 200
