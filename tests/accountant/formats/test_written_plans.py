"""`write_plan` and `read_plan`: the same plan back, by hand and by the command line."""

import pytest

from accountant import (
    Budget,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Wanted,
    read_plan,
    write_plan,
)
from accountant.formats.plan_file import PlanFile
from accountant.formats.plan_toml import file_from_toml, read_file
from accountant.formats.toml_writer import file_to_toml
from mechanisms import Gaussian, Laplace

PLANS = [
    Laplace(3.0),
    12 * Laplace(60.0) + Gaussian(3.0),
    5 * (Laplace(3.0) + Laplace(4.0)) + Laplace(3.0),
    100 * PoissonSampled(Gaussian(1.0), 0.01),
    PureLoss(0.5),
    3 * (10 * Gaussian(3.0)),
    2 * (3 * (4 * Laplace(3.0))) + 5 * (6 * PureLoss(0.5)),
]


def violation() -> str:
    """A plan whose file holds other releases."""
    for plan in PLANS:
        file = file_from_toml(file_to_toml(PlanFile.of(plan)))
        if list(file.plan.losses()) != list(plan.losses()):
            return f"{plan} is written as {file.plan}"
    return ""


def test_a_file_holds_the_releases_of_its_plan():
    assert violation() == ""


def test_a_repeated_request_keeps_its_name_and_both_counts():
    file = PlanFile((Wanted(10 * Laplace(3.0), count=3, name="ages"),))
    again = file_from_toml(file_to_toml(file))
    assert again.plan == 3 * (10 * Laplace(3.0))
    assert again.releases[0].name == "ages"


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
