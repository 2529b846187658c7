"""``--json`` of plan, fit and explain: what the table says, as plain values."""

import json
from pathlib import Path

import pytest

from accountant import Tight, read_plan
from accountant.__main__ import main

OPEN = """
[budget]
epsilon = 0.75
delta = 1e-6

[[release]]
name = "ages"
kind = "Laplace"
sensitivity = 2.0
count = 12
error = "deviation"
weight = 1.0

[[release]]
kind = "Gaussian"
scale = 60.0
"""
CLOSED = OPEN.replace("weight = 1.0", "scale = 40.0")


@pytest.fixture
def files(tmp_path):
    paths = {"open": tmp_path / "open.toml", "closed": tmp_path / "closed.toml"}
    for name, text in (("open", OPEN), ("closed", CLOSED)):
        paths[name].write_text(text)
    return {name: str(path) for name, path in paths.items()}


def answer(capsys, *words, status=0):
    assert main([*words, "--json", "-"]) == status
    captured = capsys.readouterr()
    assert captured.err  # the table goes there
    return json.loads(captured.out)


def test_a_plan_in_numbers(files, capsys):
    found = answer(capsys, "plan", files["closed"], "--group", "3")
    cost = Tight().epsilon(read_plan(files["closed"]), 1e-6)
    assert found["epsilon"] == cost <= 0.75
    assert found["fits"] is True
    assert found["groups"]["size"] == 3
    assert found["groups"]["epsilon"] > 2 * cost
    assert [row["release"] for row in found["releases"]] == ["ages", "Gaussian"]
    assert found["releases"][0]["noise"] == 40.0
    assert [row["release"] for row in found["more"]] == ["ages", "Gaussian"]
    tight = answer(capsys, "plan", files["closed"], "--epsilon", "0.1", status=1)
    assert tight["fits"] is False
    assert "more" not in tight


def test_a_fit_in_numbers(files, capsys):
    found = answer(capsys, "fit", files["open"])
    assert 0.749 < found["epsilon"] <= 0.75
    assert found["releases"][0]["decided_by"] == "weight 1"
    Path(files["open"]).write_text(OPEN[: OPEN.rindex("[[release]]")])
    needed = ("--need", "ages=0.5", "--records", "1000")
    found = answer(capsys, "fit", files["open"], *needed)
    assert found["records"]["records"] > 1000


def test_an_explanation_in_numbers(files, capsys, tmp_path):
    found = answer(capsys, "explain", files["closed"])
    assert found["delta"] == 1e-6
    assert "at most" in found["explanation"]
    target = tmp_path / "why.json"
    assert main(["explain", files["closed"], "--json", str(target)]) == 0
    assert json.loads(target.read_text()) == found
    assert capsys.readouterr().out.strip() == found["explanation"]


@pytest.mark.parametrize("command", ["plan", "fit", "explain"])
def test_a_file_that_cannot_be_written_is_refused_first(command, files, capsys, tmp_path):
    assert main([command, files["closed"], "--json", str(tmp_path / "no" / "x.json")]) == 2
    captured = capsys.readouterr()
    assert "--json" in captured.err
    assert captured.out == ""
