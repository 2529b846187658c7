"""`write_plan` and `read_plan`: the same plan back, by hand and by the command line."""

import pytest

from accountant import Budget, ParameterError, PoissonSampled, PureLoss, read_plan, write_plan
from accountant.formats.plan_toml import read_file
from mechanisms import Gaussian, Laplace

PLANS = [
    Laplace(3.0),
    12 * Laplace(60.0) + Gaussian(3.0),
    5 * (Laplace(3.0) + Laplace(4.0)) + Laplace(3.0),
    100 * PoissonSampled(Gaussian(1.0), 0.01),
    PureLoss(0.5),
]


@pytest.mark.parametrize("suffix", ["toml", "json"])
@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_a_written_plan_is_read_back(plan, suffix, tmp_path):
    path = tmp_path / f"plan.{suffix}"
    write_plan(plan, path, Budget(1.0, 1e-6))
    assert list(read_plan(path).losses()) == list(plan.losses())
    assert read_file(path).budget == Budget(1.0, 1e-6)
    write_plan(plan, str(path))
    assert read_file(path).budget is None


def test_other_files_and_plans_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="the suffix of name"):
        write_plan(PLANS[0], tmp_path / "plan.yaml")
    with pytest.raises(ParameterError):
        write_plan("Laplace", tmp_path / "plan.toml")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ParameterError, match="a file that can be read"):
        read_plan(tmp_path / "absent.toml")
