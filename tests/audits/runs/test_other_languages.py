"""Broken and honest programs in JavaScript, C, R, awk, the shell and SQL, and the helpers."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from audits import Command, audit, audit_bits, audit_command, audit_timing

PROGRAMS = Path(__file__).parent / "programs"
EXAMPLES = Path(__file__).parents[3] / "examples" / "programs"
SURE = 1 - 1e-6  # an honest program is falsified once in a million
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="no nodejs: apt-get install nodejs"
)
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: apt-get install gcc")
needs_r = pytest.mark.skipif(
    shutil.which("Rscript") is None, reason="no Rscript: apt-get install r-base-core"
)


@pytest.fixture
def built(tmp_path):
    """Compile a C program, and return its path."""

    def build(source):
        path = tmp_path / source.stem
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", path, source, "-lm"], check=True)
        return str(path)

    return build


def outcome(release, pair=(3, 4), runs=4000):
    return audit(release, pair, 1.0, runs=runs, confidence=SURE, rng=1).outcome.name


@needs_node
@pytest.mark.parametrize("name", ["half_noise", "token"])
def test_broken_noise_in_javascript(name):
    with Command(["node", str(PROGRAMS / f"{name}.mjs")]) as release:
        assert outcome(release, runs=3000) == "FALSIFIED"


@needs_node
def test_time_that_depends_on_the_value_in_javascript():
    with Command(["node", str(PROGRAMS / "slow.mjs")]) as release:
        found = audit_timing(release, (0, 1), pairs=60, confidence=SURE, rng=1)
    assert found.outcome.name == "FALSIFIED"
    assert found.value_p < 5e-7


@needs_gcc
def test_a_kept_digit_in_c(built):
    with Command(built(PROGRAMS / "kept_digit.c")) as release:
        found = audit(release, (3, 4), 1.0, runs=2000, confidence=SURE, rng=1)
    assert found.outcome.name == "FALSIFIED"
    assert "modulo" in found.witness
    assert found.notes == ()  # it draws from the seeds of its requests


@needs_gcc
def test_low_bits_in_c(built):
    with Command(built(PROGRAMS / "float_noise.c")) as release:
        assert outcome(release, (0.0, 1.0)) == "SURVIVED"
        found = audit_bits(release, (0.0, 1.0), 1.0, runs=2000, confidence=SURE, rng=1)
    assert found.outcome.name == "FALSIFIED"


@needs_gcc
def test_a_crash_in_c_is_an_outcome(built):
    found = audit_command(built(PROGRAMS / "crash.c"), (0, 1), 1.0, 300, SURE, rng=1, once=True)
    assert found.outcome.name == "FALSIFIED"


@pytest.mark.parametrize("command", [["sh", "status.sh"], ["awk", "-f", "uniform.awk"]])
def test_broken_scripts_that_run_once(command):
    words = [*command[:-1], str(PROGRAMS / command[-1])]
    assert audit_command(words, (0, 1), 1.0, 300, SURE, rng=1, once=True).outcome.name == (
        "FALSIFIED"
    )


@pytest.mark.slow
def test_an_honest_script_that_runs_once():
    words = ["awk", "-f", str(PROGRAMS / "geometric.awk")]
    found = audit_command(words, (3, 4), 1.0, 2000, SURE, rng=1, once=True)
    assert found.outcome.name == "SURVIVED"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "expected"), [("rounded", "FALSIFIED"), ("geometric", "SURVIVED")]
)
def test_queries(name, expected, tmp_path):
    sqlite3.connect(tmp_path / "empty.db").close()
    query = (PROGRAMS / f"{name}.sql").read_text()
    with Command.sql(f"sqlite:///{tmp_path}/empty.db", query) as release:
        assert outcome(release) == expected


@pytest.mark.parametrize(
    "suffix",
    [pytest.param("mjs", marks=needs_node), "py", pytest.param("c", marks=needs_gcc),
     pytest.param("R", marks=needs_r)],
)  # fmt: skip
def test_the_helpers_of_the_examples_serve_an_honest_count(suffix, built, monkeypatch):
    monkeypatch.chdir(EXAMPLES)  # where R finds its helper
    source = EXAMPLES / f"noisy_count.{suffix}"
    words = {
        "mjs": ["node", str(source)], "py": [sys.executable, str(source)],
        "R": ["Rscript", str(source)], "c": [source],
    }[suffix]  # fmt: skip
    words = [built(source)] if suffix == "c" else words
    with Command(words) as release:
        found = audit(release, (3, 4), 1.0, runs=4000, confidence=SURE, rng=1)
        mean = float(np.mean(release(1000, np.random.default_rng(1), 1000)))
    assert found.outcome.name == "SURVIVED"
    assert found.epsilon_lower > 0.5  # it does count, and its noise is no larger than it says
    # the standard deviation of the mean of 1,000 is 0.043: off by 5 of them once in a million
    assert mean == pytest.approx(1000, abs=0.22)


HELPER_OF_VALUES = {
    "py": 'from serve import serve\nserve(lambda value, rng: 1 / 0 if value == [] else value)',
    "mjs": 'import { serve } from "./serve.mjs";\n'
    'await serve((value) => { if (value.length === 0) throw new Error("none"); return value; });',
    "R": 'source("serve.R")\nserve(function(v) if (length(v) == 0) stop("none") else v)',
}  # fmt: skip


@pytest.mark.parametrize(
    "suffix",
    [pytest.param("mjs", marks=needs_node), "py", pytest.param("R", marks=needs_r)],
)
def test_helpers_return_values_to_the_last_bit_and_failures(suffix, tmp_path, monkeypatch):
    helper = next(EXAMPLES.glob(f"serve.{suffix}"))
    shutil.copy(helper, tmp_path)
    (tmp_path / f"main.{suffix}").write_text(HELPER_OF_VALUES[suffix])
    monkeypatch.chdir(tmp_path)
    interpreter = {"py": sys.executable, "mjs": "node", "R": "Rscript"}[suffix]
    numbers = [0.1, 1 / 3, 1e-300, -123456789.123456789]
    with Command([interpreter, f"main.{suffix}"]) as release:
        rng = np.random.default_rng(0)
        assert release(numbers, rng, 2).tolist() == [numbers, numbers]
        (failed,) = release([], rng, 1)
    assert failed.kind in {"ZeroDivisionError", "Error", "error"}
