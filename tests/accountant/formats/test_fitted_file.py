"""Noise that was found is written into the plan file, and nothing else of the file changes."""

import json

import pytest

from accountant import Budget, ParameterError, allocate, read_plan
from accountant.__main__ import main
from accountant.formats.plan_toml import PlanSyntaxError, file_from_toml, read_file

COMMENTED = """\
# the plan of the year
[budget]
epsilon = 1.0   # as the board decided
delta = 1e-6

# how old they are
[[release]]
name = "ages"
kind = "Laplace"
sensitivity = 2.0
count = 12
weight = 1.0    # it matters most

[[release]]
kind = "PoissonSampled"
rate = 0.1
part = { kind = "Gaussian" }  # sampled by night
target = 30.0

[[release]]
kind = "Gaussian"
scale = 60.0
"""
INLINE = 'budget = { epsilon = 1 }\nrelease = [{ kind = "Laplace", weight = 2.0, count = 3 }]'


def fitted(tmp_path, text, *options, suffix=".toml", source=".toml"):
    asked, out = tmp_path / f"asked{source}", tmp_path / f"out{suffix}"
    asked.write_text(text)
    words = ["fit", str(asked), "--out", str(out), "--force", *options]
    assert main(words) == 0
    return out


def test_comments_weights_and_targets_stay(tmp_path):
    out = fitted(tmp_path, COMMENTED)
    found = allocate(file_from_toml(COMMENTED).releases, Budget(1.0, 1e-6))
    ages, sampled = found.scales[:2]
    assert out.read_text() == COMMENTED.replace(
        "weight = 1.0    # it matters most\n",
        f"weight = 1.0    # it matters most\nfitted = {ages!r}\n",
    ).replace("target = 30.0\n", f"target = 30.0\nfitted = {sampled!r}\n")
    assert read_plan(out) == found.plan
    # found again, in the same file and at another budget
    again = fitted(tmp_path, out.read_text(), "--epsilon", "0.5")
    assert "epsilon = 0.5   # as the board decided" in again.read_text()
    assert again.read_text().count("fitted") == 2
    assert read_plan(again) == allocate(found.releases, Budget(0.5, 1e-6)).plan


@pytest.mark.parametrize("text", [INLINE, COMMENTED.replace("\n", "\r\n")])
def test_every_form_of_a_file_says_the_same_after_a_fit(tmp_path, text):
    toml = fitted(tmp_path, text)
    plan, whole = read_plan(toml), read_file(toml, again=True)
    assert whole.releases == file_from_toml(text).releases
    found = fitted(tmp_path, text, suffix=".json")
    assert read_plan(found) == plan
    assert read_file(found, again=True) == whole
    back = fitted(tmp_path, found.read_text(), source=".json")
    assert read_plan(back) == plan
    assert read_file(back, again=True) == whole


def test_a_budget_of_the_command_line_is_written_where_there_was_none(tmp_path):
    text = COMMENTED[COMMENTED.index("# how old") :]
    out = fitted(tmp_path, text, "--epsilon", "1", "--delta", "1e-6")
    assert out.read_text().startswith(text[:40])
    assert read_file(out).budget == Budget(1.0, 1e-6)
    more = fitted(tmp_path, COMMENTED.replace("delta = 1e-6\n", ""), "--delta", "1e-7")
    assert read_file(more).budget == Budget(1.0, 1e-7)


def test_more_records_are_another_plan(tmp_path):
    stated = INLINE.replace("weight", "sensitivity = 1, weight")
    out = fitted(tmp_path, stated, "--more", "4")
    assert "sensitivity = 0.25" in out.read_text()
    assert "fitted" not in out.read_text()


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("scale = 60.0", "scale = 60.0\nfitted = 3.0", 23),
        ("weight = 1.0 ", "weight = 1.0\nfitted = -1 ", 13),
        ("weight = 1.0 ", "weight = 1.0\nfitted = true ", 13),
    ],
)
def test_wrong_noise_is_refused_in_its_line(old, new, line):
    with pytest.raises(PlanSyntaxError) as caught:
        file_from_toml(COMMENTED.replace(old, new))
    assert caught.value.line == line
    assert isinstance(caught.value, ParameterError)


def test_the_table_of_a_fit_in_numbers(tmp_path, capsys):
    fitted(tmp_path, INLINE, "--json", "-")
    shown = json.loads(capsys.readouterr().out)
    assert shown["releases"][0]["decided_by"] == "weight 2"
