"""Every bench runs in its quick form and prints ratios; the runner keeps what it printed."""

import importlib
import importlib.util
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import bench_top_k

ROOT = Path(__file__).parents[2]
RATIO = re.compile(r"(?<![\w.,])([\d.]+(?:e[+-]?\d+)?|inf|nan) x [A-Za-z]")
# seconds even in their quick form: they start processes, load other libraries, or draw much
HEAVY = {
    "bench_accounting", "bench_dask", "bench_dask_frames", "bench_estimators", "bench_first_fit",
    "bench_frames", "bench_frank_wolfe", "bench_honest", "bench_label_sgd", "bench_lasso",
    "bench_ledger", "bench_long_log", "bench_one_run", "bench_planning", "bench_postgres",
    "bench_power", "bench_proofs", "bench_quantiles", "bench_regression",
    "bench_sampled_gaussians", "bench_sampling_schemes", "bench_schedules", "bench_training",
}  # fmt: skip
ratios_needed = {"bench_start": 3, "bench_audit": 5, "bench_mechanisms": 15, "bench_lasso": 3}


def ratios(text):
    return [float(word) for word in RATIO.findall(text)]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in HEAVY else ()) for n in program.NAMES],
)
def test_a_bench_prints_its_ratios(name, monkeypatch, capfd):
    if name in HEAVY:
        command = [sys.executable, "-m", f"benchmarks.{name}", "--quick"]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        said = ran.stdout
    else:  # in this process, which has loaded most of what it measures
        monkeypatch.setattr(sys, "argv", [name, "--quick"])
        importlib.import_module(f"benchmarks.{name}").main()
        said = capfd.readouterr().out
    if said.startswith("left out: no PostgreSQL"):
        pytest.skip("no PostgreSQL")
    found = ratios(said)
    assert len(found) >= ratios_needed.get(name, 2), said
    assert all(math.isfinite(one) and one >= 0 for one in found), said
    assert max(found) > 0, said


@pytest.mark.parametrize("name", sorted(HEAVY))
def test_a_heavy_bench_can_be_loaded(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    assert callable(importlib.import_module(f"benchmarks.{name}").main)


def test_no_script_shadows_a_module():
    """A script's folder is searched first when it is started by its path."""
    folder = ROOT / "benchmarks"
    scripts = {path.stem for path in folder.glob("*.py") if "__main__" in path.read_text()}
    assert {name for name in scripts if not name.startswith("bench_")} == {"__main__"}
    for name in {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}:
        assert importlib.util.find_spec(name) is None, name


def stand_ins(monkeypatch, said):
    """Benches that are one statement each."""
    run = program.run

    def stand_in(command):
        return run([sys.executable, "-c", said[command[2].removeprefix("benchmarks.")]])

    monkeypatch.setattr(program, "NAMES", [*said])
    monkeypatch.setattr(program, "run", stand_in)


def written(monkeypatch, page, *names):
    """The exit status of the benches, and the page that they wrote."""
    monkeypatch.setattr(sys, "argv", ["benchmarks", *names, "--write", str(page)])
    return program.main(), page.read_text()


def test_a_failing_bench_stops_no_other_and_is_named(tmp_path, monkeypatch, capfd):
    said = {"bench_a": "raise SystemExit(3)", "bench_b": "print('2.5 x its peer')"}
    stand_ins(monkeypatch, said)
    status, text = written(monkeypatch, tmp_path / "page.md")
    assert status == 1
    assert capfd.readouterr().err == "failed: bench_a\n"
    assert "failed with exit status 3" in text
    assert "$ .venv/bin/python -m benchmarks.bench_b\n2.5 x its peer\n" in text
    for row in ("date | 20", "commit | ", "machine | ", "versions | Python", "load | "):
        assert text.count(f"| {row}") == len(said)  # each section has its own
    assert str(ROOT) not in text


def test_one_section_is_replaced_and_remarks_stay(tmp_path, monkeypatch):
    said = {f"bench_{name}": f"print('{name} 1 x its peer')" for name in "abc"}
    stand_ins(monkeypatch, said)
    page = tmp_path / "page.md"
    for name in ("bench_c", "bench_a"):  # a section that is new goes where its name belongs
        _, text = written(monkeypatch, page, name)
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["bench_a", "bench_c"]
    end = program.marks("bench_a")[1]
    page.write_text(text.replace(end, f"{end}\n\nA remark written by hand."))
    said["bench_a"] = "print('a 7 x its peer')"
    before = page.read_text()
    _, text = written(monkeypatch, page, "bench_a")
    assert "A remark written by hand." in text
    assert "a 7 x its peer" in text
    assert "a 1 x its peer" not in text
    section_c = program.marks("bench_c")[0]
    assert text.partition(section_c)[2] == before.partition(section_c)[2]


def test_a_bench_with_peers_runs_where_they_are(tmp_path, monkeypatch):
    stand_ins(monkeypatch, {"bench_a": "raise SystemExit(3)"})
    python = tmp_path / ".venv-bench" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/asked"\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(program, "WITH_PEERS", {"bench_a"})
    monkeypatch.setattr(program, "PEERS", tmp_path / ".venv-bench")
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--write", "page.md"])
    assert program.main() == 1
    asked = (python.parent / "asked").read_text()
    assert asked == "-m benchmarks bench_a --write page.md\n"


def test_bench_top_k_fails_without_its_peers_and_names_a_wrong_one(monkeypatch, capsys):
    codes = np.random.default_rng(0).geometric(0.2, 3000) % 40

    def absent(*_):
        raise ImportError

    def too_little_noise(codes, counts, epsilon, seed):
        top = np.argsort(-counts, kind="stable")[: bench_top_k.K]
        return top, counts[top] + np.random.default_rng(seed).laplace(size=top.size) / 10

    monkeypatch.setattr(bench_top_k, "column", lambda *_: codes)
    monkeypatch.setattr(bench_top_k, "COLUMNS", ("made up",))
    methods = {"ours": bench_top_k.ours, "a peer": too_little_noise, "another": absent}
    monkeypatch.setattr(bench_top_k, "METHODS", methods)
    monkeypatch.setattr(bench_top_k, "keys", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["bench_top_k", "--seeds", "20"])
    with pytest.raises(SystemExit) as ended:
        bench_top_k.main()
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "a peer is wrong: less noise than epsilon 0.1 needs" in said
    assert "left out, for they are not installed: another" in said
    assert ratios(said) == []  # neither has a ratio
    methods["a peer"] = methods["another"] = bench_top_k.ours
    bench_top_k.main()
    said = capsys.readouterr().out
    assert "wrong" not in said
    assert len(ratios(said)) >= 8


def test_an_unknown_bench_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "bench_none"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 2
    assert "no such bench: bench_none" in capsys.readouterr().err


def test_the_page_holds_every_bench_to_its_end():
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == program.NAMES
    for name in program.NAMES:
        first, last = program.marks(name)
        section = text.partition(first)[2].partition(last)[0]
        assert re.search(r"\| date \| 20\d\d-.*\n\| commit \| [0-9a-f]{12}", section), name
        (said,) = re.findall(r"```\n(.*?)```", section, re.DOTALL)
        assert re.match(rf"\$ .venv(-bench)?/bin/python -m benchmarks.{name}( --\w+ \w+)?\n", said)
        assert "failed with exit status" not in said
        assert "left out" in said or ratios(said), name
