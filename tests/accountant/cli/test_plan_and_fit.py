"""``dp-attest account plan|fit|explain``, the files they read and write, and hostile files."""

import re
import subprocess
import sys
import time

import pytest

from accountant import Budget, allocate
from accountant.__main__ import main
from accountant.formats.plan_toml import (
    file_from_toml,
    read_file,
    read_plan,
)
from tests.accountant.example_files import WANTED
from tests.processor_time import standard

# of pure epsilon alone, which adds up at once
PURE = WANTED.replace("delta = 1e-6\n", "").replace('"Gaussian"', '"Laplace"')


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "wanted.toml"
    path.write_text(WANTED)
    return str(path)


@pytest.mark.parametrize(
    ("text", "delta", "part", "of_two"),
    [
        (PURE, 0.0, "Laplace", "1.9999"),
        pytest.param(WANTED, 1e-6, "Gaussian", "2.", marks=pytest.mark.slow),
    ],
    ids=["pure", "mixed"],
)
def test_fit_writes_what_plan_reads(tmp_path, capsys, text, delta, part, of_two):
    plan = str(tmp_path / "wanted.toml")
    (tmp_path / "wanted.toml").write_text(text)
    out, again = tmp_path / "fitted.toml", tmp_path / "fitted.json"
    assert main(["fit", plan, "--out", str(out)]) == 0
    assert main(["fit", str(out), "--out", str(again)]) == 0
    captured = capsys.readouterr()
    assert "decided by" in captured.out
    assert captured.err == f"wrote {out}\nwrote {again}\n"
    assert read_plan(str(out)) == read_plan(str(again))
    assert read_file(str(out)) == read_file(str(again))
    found = allocate(file_from_toml(text).releases, Budget(1.0, delta))
    assert read_plan(str(out)) == found.plan
    assert main(["plan", str(again), "--group", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[:5]]
    assert names == ["release", "ages", "top", "PoissonSampled", part]
    assert lines[5].startswith("epsilon 0.99999")
    assert lines[6].startswith(f"for groups of 2: epsilon {of_two}")
    assert lines[7] == "fits the budget; nothing is left"
    assert lines[8] == (
        "there is no room for one more of ages, or of top diagnosis, or of PoissonSampled, "
        f"or of {part}"
    )
    assert len(list(tmp_path.iterdir())) == 3


def test_plan_says_what_more_would_fit(tmp_path, capsys):
    path = tmp_path / "plan.toml"
    path.write_text('[budget]\nepsilon = 1\n[[release]]\nkind = "Laplace"\nscale = 10\ncount = 4\n')
    assert main(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"fits the budget; epsilon 0\.60* is left", out)
    assert out.endswith("\nthere is room for 6 more of Laplace\n")
    assert main(["plan", str(path), "--epsilon", "0.3"]) == 1
    assert "does not fit the budget" in capsys.readouterr().out


def test_fit_says_when_the_budget_does_not_suffice(plan, tmp_path, capsys):
    out = tmp_path / "never.toml"
    assert main(["fit", plan, "--epsilon", "0.1", "--out", str(out)]) == 1
    assert (
        "and 0.1 is left of the limit 0.1 (0 is spent; Budget(epsilon=0.1"
        in capsys.readouterr().err
    )
    assert not out.exists()


def test_more_records_need_less_noise(tmp_path, capsys):
    path = tmp_path / "mean.toml"
    path.write_text(
        '[budget]\nepsilon = 1\n[[release]]\nkind = "Laplace"\nsensitivity = 0.5\nweight = 1\n'
        'name = "mean"\n'
    )
    assert main(["fit", str(path), "--more", "4"]) == 0
    assert " 0.125 " in capsys.readouterr().out
    # error sqrt(2) 0.5 * 100 / n at n = 100: 0.05 needs 1415
    assert main(["fit", str(path), "--need", "mean=0.05", "--records", "100"]) == 0
    question = ["--need", "mean=0.05", "--records", "100"]
    assert "1,415 records suffice for an error of 0.04" in capsys.readouterr().out
    # --records is about the sensitivities of the file, before --more divides them.
    assert main(["fit", str(path), "--more", "4", *question]) == 0
    assert "1,415 records suffice for an error of 0.04" in capsys.readouterr().out


MEAN = """
[budget]
epsilon = 1
[[release]]
name = "mean"
kind = "Laplace"
sensitivity = 1.0
weight = 1
"""


def test_lower_bounds_come_from_installed_packages(tmp_path, capsys, monkeypatch):
    path = tmp_path / "mean.toml"
    path.write_text(MEAN)
    asked = []

    class Point:
        @staticmethod
        def load():
            return lambda problem, **given: asked.append((problem, given)) or 41

    need = ["fit", str(path), "--need", "mean=0.01", "--records", "1", "--bound"]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Point])
    assert main([*need, "private_mean,error=0.0001,dimension=1,model=central"]) == 0
    assert "142 records suffice" in (out := capsys.readouterr().out)
    assert "no private algorithm has it with fewer than 41" in out
    facts = {"error": 0.0001, "dimension": 1, "model": "central", "epsilon": 1.0, "delta": 0.0}
    assert asked == [("private_mean", facts)]
    assert main([*need, "private_mean,dimension=1"]) == 2
    assert "given with error=" in capsys.readouterr().err
    assert main([*need, "private_mean,error"]) == 2
    assert main([*need, "private_mean,error=1,error=2"]) == 2
    assert "with each key once" in capsys.readouterr().err
    assert main([*need, "private_mean,error=1,epsilon=9"]) == 2
    assert "the bound is for the budget" in capsys.readouterr().err
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    assert main([*need, "private_mean,error=1"]) == 2
    assert "no installed package has lower bounds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "PLAN"], "line 6, column 3: release[1] must be given its noise"),
        (["compare", "PLAN", "--delta", "1e-6"], "line 6, column 3: release[1] must be given"),
        (["explain", "PLAN"], "release[1] must be given its noise"),
        (["plan", "FIXED"], "--epsilon must be given, or a [budget] in the file"),
        (["fit", "FIXED", "--epsilon", "nan"], "--epsilon must be a number"),
        (["fit", "FIXED", "--epsilon", "1", "--delta", "2"], "--delta must be a number in [0, 1)"),
        (["explain", "FIXED"], "--delta must be given, or a [budget] in the file"),
        (["explain", "FIXED", "--delta", "1"], "--delta must be a number"),
        (["plan", "PLAN", "--group", "0"], "--group must be a whole number"),
        (["fit", "PLAN", "--out", "x.yaml"], "--out must be a .toml or .json file"),
        (["fit", "PLAN", "--out", "FIXED"], "a file that is not there yet, or --force given"),
        (["fit", "PLAN", "--out", "/nowhere/x.toml"], "a file in a folder that exists"),
        (["fit", "PLAN", "--more", "2"], "of a class that is given its sensitivity"),
        (["fit", "PLAN", "--need", "ages=1"], "given together, or neither"),
        (["fit", "PLAN", "--bound", "x,error=1"], "given with --need and --records"),
        (["fit", "PLAN", "--need", "x=1", "--records", "9"], "NAME=ERROR with a name of one of"),
        (["fit", "plan.yaml"], "a .toml or .json file (YAML is not read"),
        (["explain", "plan.yml"], "a .toml or .json file (YAML is not read"),
        (["fit"], "Missing argument"),
    ],
    ids=range(19),
)  # fmt: skip
def test_bad_usage_is_one_line_and_exit_2(plan, tmp_path, arguments, words, capsys):
    fixed = tmp_path / "fixed.toml"
    fixed.write_text('[[release]]\nkind = "Laplace"\nscale = 3.0\n')
    named = {"PLAN": plan, "FIXED": str(fixed)}
    assert main([named.get(one, one) for one in arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err.replace("\n", " ")
    assert captured.err.startswith("dp-attest account: ")
    assert fixed.read_text().startswith("[[release]]")


BOMBS = {
    "nested": "x = " + "[" * 100_000,
    "nested tables": "x = " + "{ a = " * 100_000,
    "closed nest": "x = " + "[" * 100_000 + "]" * 100_000,
    "dotted": ".".join(["a"] * 300_000) + " = 1",
    "dotted header": "[" + ".".join(["a"] * 300_000) + "]",
    "quoted dots": ".".join(["'a'"] * 100_000) + " = 1",
    "one long string": 'x = "' + "a" * 900_000,
    "escapes": 'x = "' + r"\"" * 400_000,
    "triple": 'x = """' + 'a""' * 200_000,
    "ten megabytes": "# " + "x" * 10_000_000,
    "unknown": 'weight = 1\n[[release]]\nkind = "Laplace"\nscale = 1',
    "duplicate": '[[release]]\nkind = "Laplace"\nkind = "Gaussian"\nscale = 1',
    "duplicate table": "[budget]\nepsilon = 1\n[budget]\nepsilon = 2",
    "not a number": '[[release]]\nkind = "Laplace"\nscale = nan',
    "infinite": '[[release]]\nkind = "Laplace"\nscale = inf',
    "byte order mark inside": '[[release]]\n\ufeffkind = "Laplace"\nscale = 1',
}


@pytest.mark.parametrize("name", BOMBS)
def test_row_37_hostile_files_end_with_status_2_line_and_column(name, tmp_path, capsys):
    path = tmp_path / "bomb.toml"
    path.write_text(BOMBS[name])
    main([str(tmp_path / "absent.toml"), "--delta", "0"])  # what is imported once
    capsys.readouterr()
    start = time.process_time()
    assert main(["plan", str(path), "--epsilon", "1"]) == 2
    # .7 s at most; a reader whose work is quadratic in these files takes hours
    assert standard(time.process_time() - start) < 10
    err = capsys.readouterr().err
    assert f"{path}, line " in err
    assert ", column " in err
    assert len(err) < 500


YAML = """
!!python/object/apply:os.system ["touch PWNED"]
a: &a ["x","x"]
b: &b [*a,*a]
"""


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".toml", ".json"])
def test_row_38_yaml_is_refused_and_nothing_runs(tmp_path, suffix, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"plan{suffix}"
    path.write_text(YAML)
    assert main(["plan", str(path), "--epsilon", "1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_help_is_light_and_lists_all():
    heavy = "[n for n in ('numpy', 'scipy', 'rich', 'psycopg') if n in sys.modules]"
    code = f"import sys, accountant.__main__ as m; m.main(['--help']); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    for command in ("plan", "fit", "compare", "explain", "page", "ledger"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("command", ["plan", "fit", "compare", "explain"])
def test_every_command_teaches(command, capsys):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Example" in out
    assert "Exit status: 0 " in out


PLAN = '[budget]\nepsilon = 1.0\ndelta = 1e-6\n[[release]]\nkind = "Gaussian"\nscale = 20.0\n'


@pytest.mark.parametrize(
    ("command", "option"),
    [("plan", "--epsilon"), ("fit", "--epsilon"),
     ("plan", "--delta"), ("explain", "--delta"), ("fit", "--delta")],
)  # fmt: skip
def test_an_empty_option_is_not_taken_for_an_absent_one(tmp_path, capsys, command, option):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    assert main([command, str(file), option, ""]) == 2
    assert re.search(f"{option} must be a number.*got ''\n$", capsys.readouterr().err)


def test_a_key_of_a_file_steers_no_terminal(tmp_path, capsys):
    file = tmp_path / "plan.json"
    file.write_text(
        '{"schema": 1, "release": [{"kind": "Gaussian", "scale": 3.0, "\\u001b[31m\\u202e\\n": 5}]}'
    )
    assert main(["plan", str(file), "--epsilon", "1"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.rstrip("\n").isprintable()
    assert r"\x1b[31m\u202e\n" in message


@pytest.mark.parametrize(
    "streams",
    [">&-", *(pytest.param(one, marks=pytest.mark.slow) for one in (">&- 2>&-", "2>&-"))],
)
def test_a_closed_stdout_is_no_traceback(tmp_path, streams):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    words = f'"{sys.executable}" -m accountant plan "{file}" {streams}'
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
