"""Every figure of the sparse-regression paper, tiny: files, columns, and what must hold."""

import csv
import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "experiments"
REAL = {3: "covtype/covtype.npz", 4: "rcv1_subset/rcv1_subset.npz"}
NUMBERS = ("mean", "standard_error", "minimum_of_10", "epsilon", "true_epsilon")


def script(number, *options):
    command = [sys.executable, "-W", "error", str(SCRIPTS / f"figure{number}.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """(folder, what it printed, rows) of a figure's quick run, made once."""

    @cache
    def made(number):
        if number in REAL and not (ROOT.parent / "shared" / "data" / REAL[number]).is_file():
            pytest.skip(f"no {REAL[number]}")
        folder = tmp_path_factory.mktemp(f"figure{number}")
        done = script(number, "--quick", "--out", str(folder))
        assert done.returncode == 0, done.stderr
        with (folder / f"figure{number}.csv").open() as file:
            return folder, done.stdout, list(csv.DictReader(file))

    return made


def curve(rows, method, field=None, value=None):
    """Mean errors by users of the first panel's first curve, or of the one asked for."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    field, value = field or rows[0]["panel"], value or rows[0]["value"]
    return [
        float(row["mean"]) for row in rows
        if (row["panel"], row["value"], row["method"]) == (field, value, names[method])
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(1, 7))
def test_a_figure_is_drawn_and_told(drawn, number):
    folder, said, rows = drawn(number)
    assert (folder / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")
    assert {row["panel"] for row in rows} == {"features", "sparsity", "epsilon"}
    for row in rows:
        assert row["figure"] == f"figure{number}"
        assert int(row["users"]) > 0
        assert int(row["seeds"]) == 2
        assert all(math.isfinite(float(row[name])) for name in NUMBERS)
        assert float(row["minimum_of_10"]) <= float(row["mean"]) * (1 + 1e-5)
    assert re.search(rf"figure{number} slopes, .*: n\^\(.* ± .*p\^.*s\*\^.*ε\^", said)
    assert re.search(r"PNG and CSV in .*, [\d.]+ s", said)


@pytest.mark.parametrize("number", range(1, 7))
def test_errors_of_honest_runs_fall_with_users(drawn, number):
    few, *_, many = curve(drawn(number)[2], 0)
    assert many < 0.8 * few


@pytest.mark.parametrize("number", [1, 5])
def test_the_printed_bound_leaves_a_bias(drawn, number):
    honest, printed = curve(drawn(number)[2], 0)[-1], curve(drawn(number)[2], 1)[-1]
    assert printed > 2 * honest


@pytest.mark.parametrize("number", [2, 6])
def test_the_printed_noise_is_accurate_and_not_private(drawn, number):
    assert curve(drawn(number)[2], 1)[0] < 0.5 * curve(drawn(number)[2], 0)[0]
    for row in drawn(number)[2]:
        if row["method"].startswith("printed noise"):
            assert float(row["true_epsilon"]) > 8 * float(row["epsilon"])


def test_the_printed_step_of_the_link_does_not_converge(drawn):
    rows = [row for row in drawn(5)[2] if row["method"].endswith("printed step 0.2")]
    assert min(float(row["mean"]) for row in rows) > 2 * curve(drawn(5)[2], 0, "epsilon", "4.0")[-1]


@pytest.mark.parametrize("number", [3, 4])
def test_gaps_fall_with_epsilon(drawn, number):
    assert (
        curve(drawn(number)[2], 0, "epsilon", "2.0")[-1]
        < curve(drawn(number)[2], 0, "epsilon", "0.5")[-1]
    )


@pytest.mark.parametrize("number", [3, 4])
def test_missing_data_are_named(number, tmp_path):
    done = script(number, "--quick", "--data", str(tmp_path), "--out", str(tmp_path))
    assert done.returncode == 1
    assert f"no data at {tmp_path}" in done.stderr
    assert "--data PATH" in done.stderr
    assert not list(tmp_path.iterdir())


def test_bad_seeds_are_refused(tmp_path):
    done = script(1, "--quick", "--seeds", "0", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "--seeds is 0" in done.stderr
