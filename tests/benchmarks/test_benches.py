"""Every bench runs in its quick form and prints ratios; the runner keeps records and their page."""

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
from benchmarks import bench_top_k, page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RATIO = re.compile(r"(?<![\w.,])([\d.]+(?:e[+-]?\d+)?|inf|nan) x [A-Za-z]")
# seconds even in their quick form: they start processes, load other libraries, or draw much
HEAVY = {
    "bench_accounting", "bench_dask", "bench_dask_frames", "bench_estimators", "bench_evidence",
    "bench_frames", "bench_frank_wolfe", "bench_honest", "bench_label_sgd", "bench_lasso",
    "bench_ledger", "bench_long_log", "bench_one_run", "bench_planning", "bench_postgres",
    "bench_power", "bench_proofs", "bench_quantiles", "bench_regression",
    "bench_sampled_gaussians", "bench_sampling_schemes", "bench_schedules", "bench_training",
}  # fmt: skip
# the rows of `bench_quantiles` on the page are all beside another library
PEERS_OF_QUANTILES = "opendp", "diffprivlib"
ratios_needed = {"bench_start": 3, "bench_audit": 5, "bench_mechanisms": 15, "bench_lasso": 3}


def ratios(text):
    return [float(word) for word in RATIO.findall(text)]


def rows_of(name):
    """The rows that a bench has on the page."""
    return [row for rows in page.AREAS.values() for row in rows if row.bench == name]


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
    if name == "bench_quantiles" and not all(map(importlib.util.find_spec, PEERS_OF_QUANTILES)):
        pytest.skip("its rows are beside opendp and diffprivlib, which are not installed")
    assert any(row.answered(said) for row in rows_of(name)), said


@pytest.mark.parametrize("name", sorted(HEAVY))
def test_a_heavy_bench_can_be_loaded(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    assert callable(importlib.import_module(f"benchmarks.{name}").main)


def test_no_script_shadows_a_module():
    """A script's folder is searched first when it is started by its path."""
    folder = ROOT / "benchmarks"
    scripts = {path.stem for path in folder.glob("*.py") if "__main__" in path.read_text()}
    assert {name for name in scripts if not name.startswith("bench_")} == {
        "__main__",
        "tumult_frames",
    }
    for name in {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}:
        assert importlib.util.find_spec(name) is None, name


def stand_ins(monkeypatch, said):
    """Benches that are one statement each."""
    run = program.run

    def stand_in(command):
        return run([sys.executable, "-c", said[command[2].removeprefix("benchmarks.")]])

    monkeypatch.setattr(program, "NAMES", [*said])
    monkeypatch.setattr(program, "run", stand_in)


def written(monkeypatch, docs, *names):
    """The exit status of the benches; what they wrote, by the names of the files."""
    monkeypatch.setattr(sys, "argv", ["benchmarks", *names, "--write", str(docs)])
    return program.main(), {path.stem: path.read_text() for path in docs.rglob("*.*")}


def test_a_failing_bench_stops_no_other_and_is_named(tmp_path, monkeypatch, capfd):
    said = {"bench_start": "raise SystemExit(3)", "bench_b": "print('2.5 x its peer')"}
    stand_ins(monkeypatch, said)
    status, files = written(monkeypatch, tmp_path)
    assert status == 1
    assert capfd.readouterr().err == "failed: bench_start\n"
    assert "failed with exit status 3" in files["bench_start"]
    assert "| failed | [bench_start](records/bench/bench_start.txt) |" in files["benchmarks"]
    assert "$ .venv/bin/python -m benchmarks.bench_b\n2.5 x its peer\n" in files["bench_b"]
    for name in said:  # each has its own
        assert list(page.facts_of(files[name])) == [
            "date",
            "commit",
            "machine",
            "versions",
            "load",
        ]
    assert str(ROOT) not in "".join(files.values())


def test_one_record_and_its_rows_are_replaced_and_others_stay(tmp_path, monkeypatch):
    said = dict.fromkeys(("bench_proofs", "bench_start"), "print('2.5 x import numpy')")
    stand_ins(monkeypatch, said)
    _, before = written(monkeypatch, tmp_path)
    said["bench_start"] = "print('7.5 x import numpy')"
    _, after = written(monkeypatch, tmp_path, "bench_start")
    assert after["bench_proofs"] == before["bench_proofs"]
    changed = [
        line
        for line in after["benchmarks"].splitlines()
        if line not in before["benchmarks"].splitlines()
    ]
    assert all("(records/bench/bench_start.txt)" in line for line in changed)
    assert "| 7.5 times its time |" in changed[0]
    # the patterns of its rows find nothing
    assert (
        "| not measured | [bench_proofs](records/bench/bench_proofs.txt) |" in after["benchmarks"]
    )


def test_the_table_of_another_page_is_replaced_and_what_stands_around_it_stays(
    tmp_path, monkeypatch
):
    marks = "Before.\n\n<!-- written: bench_proofs -->\n{}<!-- end -->\n\n<!-- end -->\nAfter.\n"
    name = page.TABLES["bench_proofs"].page
    (tmp_path / name).write_text(marks.format("old\n"))
    row = " | ".join(["a plan", "1", *"abcdefg", "PROVED"])
    said = {"bench_proofs": f"print({row!r}); print('2 x Tight')"}
    stand_ins(monkeypatch, said)
    written(monkeypatch, tmp_path, "bench_proofs")
    record = (tmp_path / page.RECORDS / "bench_proofs.txt").read_text()
    table = page.TABLES["bench_proofs"].made("bench_proofs", record)
    assert (tmp_path / name).read_text() == marks.format(table)
    lines = table.splitlines()
    assert lines[2:4] == [f"| {row} |", ""]
    facts = page.facts_of(record)
    said_below = " ".join(lines[4:])
    assert "`make bench ARGS=bench_proofs`" in said_below
    assert facts["date"] in said_below
    assert facts["commit"] in said_below
    assert facts["load"].partition(" (")[0] in said_below


def test_a_bench_with_peers_runs_where_they_are(tmp_path, monkeypatch):
    stand_ins(monkeypatch, {"bench_a": "raise SystemExit(3)"})
    python = tmp_path / ".venv-bench" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/asked"\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(program, "WITH_PEERS", {"bench_a"})
    monkeypatch.setattr(program, "PEERS", tmp_path / ".venv-bench")
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--write", "docs"])
    assert program.main() == 1
    asked = (python.parent / "asked").read_text()
    assert asked == "-m benchmarks bench_a --write docs\n"


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


RECORDS = {path.stem: path.read_text("utf-8") for path in (DOCS / page.RECORDS).glob("*")}


def test_every_bench_has_a_record_to_its_end_and_a_row():
    # a record of other options has a name of its own, such as bench_power-vectors
    assert {name.partition("-")[0] for name in RECORDS} == set(program.NAMES)
    assert set(program.NAMES) <= set(RECORDS)
    for name in program.NAMES:
        assert rows_of(name), name


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_record_says_when_where_and_by_which_command(name):
    record, bench = RECORDS[name], name.partition("-")[0]
    facts = page.facts_of(record)
    assert list(facts) == ["date", "commit", "machine", "versions", "load"]
    assert re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", facts["date"])
    assert re.fullmatch(r"(shortly before )?[0-9a-f]{12}", facts["commit"])
    command = (
        rf'\$ .venv(-bench)?/bin/python (-m benchmarks.{bench}( --\w+ \w+)?|-c ".*{bench}.*")\n'
    )
    assert re.match(command, record.partition("\n\n")[2])
    assert "failed with exit status" not in record
    assert "left out" in record or ratios(record) or name == "bench_frames-coverage"


def test_the_page_is_made_from_the_records():
    text = (DOCS / "benchmarks.md").read_text("utf-8")
    assert text == page.page_of(program.records_in(DOCS))
    assert "| failed |" not in text
    assert "| not measured |" not in text
    assert len(text.split()) <= 2000


@pytest.mark.parametrize("name", program.NAMES)
def test_each_number_of_a_row_stands_in_the_record(name):
    record = RECORDS[name]
    for row in rows_of(name):
        shown = " ".join([row.question, row.peer, row.answered(record)])
        for number in re.findall(r"\d[\d,.]*(?:e[-+]\d+)?", shown):
            assert re.search(rf"(?<![\d.]){re.escape(number.rstrip(','))}(?![\d])", record), number


def test_a_row_shows_the_middle_and_both_ends():
    row = page.Row("bench_a", "How long?", "a peer", "{} times", rf"{page.NUMBER} x Tight")
    cases = [f"{ratio} x Tight\n" for ratio in ("1.28e+03", "12.5", "0.5", "7")]
    assert row.answered("".join(cases)) == "7 (0.5 to 1.28e+03) times"
    assert row.answered("".join(cases[:2])) == "12.5 to 1.28e+03 times"
    assert row.answered(cases[0]) == "1.28e+03 times"
    assert row.answered("nothing") is None
