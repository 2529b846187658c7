"""python -m experiments: names, options, seeds, and what it refuses."""

import re
from pathlib import Path

import numpy as np
import pytest

from experiments import __main__ as program
from experiments.catalogue import FIGURES, function_of, nearest
from experiments.charts import Options, over_seeds, power_law

ROOT = Path(__file__).parents[2]
SMALL = "private-labels-moments"


def test_the_list_has_every_name(capsys):
    assert program.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_name_has_a_function(name):
    assert callable(function_of(name))


def test_files_have_names_of_their_own():
    files = [figure.file for figure in FIGURES.values() if figure.file]
    assert len(set(files)) == len(files)
    assert {path.stem for path in (ROOT / "docs" / "figures").glob("*.csv")} == set(files)


def test_every_command_in_the_docs_exists():
    named = set()
    for page in (ROOT / "docs").glob("**/*.md"):
        for line in page.read_text().splitlines():
            if "python -m experiments" in line and "$" not in line:
                named |= set(re.findall(r"python -m experiments ([a-z][\w-]*)", line))
    assert named
    assert named <= set(FIGURES)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("sparse-regresion-1", "sparse-regression-1"),
        ("label_risk", "private-labels-risk"),
        ("figure4", "sparse-regression-4"),
        ("frank-wolfe-claim", "frank-wolfe-claims"),
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(word, meant, capsys):
    assert nearest(word)[0] == meant
    assert program.main([word]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert meant in said.err
    assert "--list" in said.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seeds", "0"], "--seeds must be"),
        (["--seeds", "few"], "--seeds must be"),
        (["--seed", "-1"], "--seed must be"),
        (["--unnormalised"], "--unnormalised must be given to sparse-regression-1"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(options, words, capsys, tmp_path):
    out = tmp_path / "none"
    assert program.main([SMALL, *options, "--out", str(out)]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_without_a_name_the_help_is_shown(capsys):
    assert program.main([]) == 2
    said = capsys.readouterr()
    assert "--list" in said.err
    assert said.out == ""


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.data])
def test_missing_data_are_named(name, tmp_path, capsys):
    assert program.main([name, "--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"--data must be a folder with {FIGURES[name].data[0]}" in said
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert program.main([SMALL, "--quick", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def squares(seed):
    """What each seed gives."""
    return {"square": seed**2}


def test_seeds_keep_their_order_in_processes_and_without():
    assert list(over_seeds(squares, range(3, 8))["square"]) == [9, 16, 25, 36, 49]
    assert list(over_seeds(squares, range(3, 5))["square"]) == [9, 16]


def test_the_first_seed_moves_the_runs():
    def rows(seeds):
        chart = function_of("sparse-regression-2")(Options(True, seeds, Path()))
        return [float(row[5]) for row in chart.table[1]]

    first, second, both = rows([0]), rows([1]), rows([0, 1])
    means = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    assert means == pytest.approx(both, rel=1e-4)
    assert first != second


def test_powers_are_found():
    x = [1.0, 10.0, 100.0]
    runs = np.array([[3 * v**-0.5] * 4 for v in x])
    assert power_law(x, runs) == "-0.500 ± 0.000"
