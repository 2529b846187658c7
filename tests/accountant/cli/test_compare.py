"""``dp-attest account``: the table, JSON, the picture, and errors that teach."""

import json
import subprocess
import sys

import pytest

from accountant.__main__ import main

PLAN = """
[[release]]
kind = "Laplace"
scale = 20.0
count = 64
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return str(path)


def test_it_prints_every_accountant_and_the_certificate(plan, capsys):
    assert main([plan, "--delta", "1e-6"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "epsilon at delta 1e-06"
    names = [line.split()[0] for line in lines[2:9]]
    assert names == ["Basic", "Advanced", "ZCDP", "RDP", "GDP", "PLD", "Tight"]
    assert "<- least" in lines[8]
    assert lines[9].startswith("Tight: the true epsilon is in [1.70036092")


def test_explain_names_the_engines_and_which_of_them_answered(plan, capsys):
    assert main(["compare", plan, "--delta", "1e-6", "--explain"]) == 0
    out = capsys.readouterr().out
    lines = out[out.index("direction") :].splitlines()
    assert lines[0].split() == ["direction", "engine", "planned", "ms", "lower", "upper"]
    answered = [line for line in lines if line.startswith("only") and "1.7003" in line]
    assert answered
    assert all("smoothed contour" in line for line in answered)
    assert float(answered[-1].split()[3]) > 0  # what it was to cost, in milliseconds
    assert main(["compare", plan, "--epsilon", "1", "--explain"]) == 2


def test_with_epsilon_it_tells_delta(plan, capsys):
    assert main([plan, "--epsilon", "1.7003609253711630"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("delta at epsilon 1.70037")
    assert "1.000001e-06" in out  # rounded up


def test_json_alone_is_on_stdout(plan, capsys):
    assert main([plan, "--delta", "1e-6", "--json", "-"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["schema"] == 1
    assert document["asked"] == "epsilon"
    tight = document["rows"][-1]
    assert tight["accountant"] == "Tight"
    assert tight["epsilon"] == pytest.approx(1.7003609253711630, rel=1e-8)
    assert "<- least" in captured.err


def test_json_plans_are_read_back(plan, tmp_path, capsys):
    out = tmp_path / "found.json"
    assert main([plan, "--delta", "0", "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    again = tmp_path / "again.json"
    again.write_text(json.dumps({"schema": 1, "plan": document["plan"]}))
    capsys.readouterr()
    assert main([str(again), "--delta", "0"]) == 0
    assert "3.2" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_figure_is_drawn(tmp_path, kind):
    pytest.importorskip("matplotlib")
    plan, out = tmp_path / "plan.toml", tmp_path / f"cost.{kind}"
    # curves of a Gaussian are quicker than those of the plan above
    plan.write_text('[[release]]\nkind = "Gaussian"\nscale = 5.0\n')
    assert main([str(plan), "--delta", "1e-6", "--plot", str(out)]) == 0
    start = out.read_bytes()[:5]
    assert start == (b"\x89PNG\r" if kind == "png" else b"<?xml")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["PLAN"], ": give --delta or --epsilon: "),
        (["PLAN", "--delta", "1e-6", "--epsilon", "1"], "one of the two"),
        (["PLAN", "--delta", "2"], "--delta must be a number in [0, 1)"),
        (["PLAN", "--delta", "nan"], "--delta must be a number in [0, 1)"),
        (["PLAN", "--delta", "few"], "--delta must be a number in [0, 1)"),
        (["PLAN", "--epsilon", "-1"], "--epsilon must be a number in"),
        (["absent.toml", "--delta", "1e-6"], "a file that can be read (No such file"),
        (["plan.yaml", "--delta", "1e-6"], "a .toml or .json file"),
        (["PLAN", "--delta", "1e-6", "--json", "/nowhere/x"], "a file in a folder that exists"),
        (["PLAN", "--delta", "1e-6", "--plot", "x.bmp"], "a .png, .svg or .pdf file"),
        (["PLAN", "--delta"], "requires an argument"),
        (["PLAN", "--dleta", "3"], "No such option"),
    ],
    ids=range(12),
)
def test_bad_usage_is_one_line_and_exit_2(plan, arguments, words, capsys):
    assert main([plan if one == "PLAN" else one for one in arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err.replace("\n", " ")
    assert captured.err.startswith("dp-attest account: ")


def test_a_bad_plan_file_says_where(tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(PLAN.replace("20.0", "nan"))
    assert main([str(path), "--delta", "1e-6"]) == 2
    assert f"{path}, line 4, column 1: release[1].scale must be" in capsys.readouterr().err


def test_help_teaches_and_loads_no_numpy():
    code = "import sys, accountant.__main__ as m; m.main(['--help']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[[release]]" in done.stdout
    assert "Examples: dp-attest account" in done.stdout
