"""`dp-attest audit target --command` and `--sql`: programs and queries on the command line."""

import json
import os
import re
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from audits.__main__ import main
from tests.audits.runner.test_target_sampler import answers_of
from tests.child_processes import interrupt, interruptible

HELPER = (Path(__file__).parents[3] / "examples" / "programs" / "serve.py").read_text()
CODE = """
import os, sys, time
from serve import serve

def half(value, rng):
    return value + rng.gauss(0, 0.5)

def honest(value, rng):
    return value + rng.gauss(0, 20)

def stalls(value, rng):
    with open("calls", "a") as file:
        file.write(".")
    if os.path.getsize("calls") > 1500 and not os.path.exists("go"):
        time.sleep(600)
    return half(value, rng)

def hangs(value, rng):
    open("started", "w").write(str(os.getpid()))
    time.sleep(600)

serve(globals()[sys.argv[1]])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "serve.py").write_text(HELPER)
    (tmp_path / "theirs.py").write_text(CODE)
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "count.sql").write_text("SELECT :value + random() % 2 -- a count")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    return tmp_path


def words(name, *more):
    command = f"{sys.executable} theirs.py {name}"
    return ["target", "--command", command, "--epsilon", "1", "--delta", "1e-5", "--pair", "0",
            "1", "--runs", "2000", "--seed", "1", *more]  # fmt: skip


def test_a_program_is_audited_reported_and_run_again(folder, capsys):
    reports = ["--json", "r.json", "--out", "r.html", "--junit", "r.xml"]
    assert main(words("half", "--timing", *reports)) == 1
    capsys.readouterr()
    written = json.loads((folder / "r.json").read_text())
    half, timed = written["findings"]
    name = f"{sys.executable} theirs.py half"
    assert [half["subject"], timed["subject"]] == [name, f"timing of {name}"]
    assert [half["outcome"], timed["outcome"]] == ["falsified", "survived"]
    assert half["epsilon_lower"] > 1
    assert timed["runs"] == 100
    assert written["code"].startswith("SHA-256 ")
    assert written["code"].endswith(" of theirs.py")
    details = written["details"][0]
    fixed = {
        "kind": "arguments never varied",
        "sentence": "its command line, environment and files",
    }
    assert fixed in details["not_tested"]
    assert details["notes"] == []  # it draws from the seeds of its requests
    assert all(name in (folder / file).read_text() for file in ("r.html", "r.xml"))
    assert main(["replay", "r.json"]) == 2
    assert "--allow-import must be given" in capsys.readouterr().err
    assert main(["replay", "r.json", "--allow-import"]) == 0


def test_a_program_that_runs_once_and_stops_early(folder, capsys):
    answer = """read r; case $r in *'"value": 1'*) exit 3;; esac; echo '{"outputs": [0]}'"""
    (folder / "once.sh").write_text(answer)
    command = ["target", "--command", "sh once.sh", "--once", "--early", "--epsilon", "1",
               "--pair", "0", "1", "--runs", "500", "--json", "-"]  # fmt: skip
    assert main(command) == 1
    (row,) = json.loads(capsys.readouterr().out)["findings"]
    assert row["outcome"] == "falsified"
    assert row["runs"] < 300


@pytest.mark.parametrize("query", ["count.sql", "SELECT :value + random() % 2"])
def test_a_query_is_audited(query, folder, capsys):
    command = ["target", query, "--sql", "sqlite:///empty.db", "--epsilon", "1", "--pair", "0",
               "9", "--runs", "300", "--json", "-"]  # fmt: skip
    assert main(command) == 1
    written = json.loads(capsys.readouterr().out)
    assert written["findings"][0]["subject"] == query
    assert f"target '{query}'".replace("'count.sql'", "count.sql") in written["command"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "PKG.MODULE:FUNCTION must be given"),
        (["mine:f"], "--allow-import must be given"),
        (["mine:f", "--allow-import", "--once"], "--once must be left out without a --command"),
        (["mine:f", "--allow-import", "--timeout", "3"], "--timeout must be left out"),
        (["mine:f", "--command", "x"], "--command must be given alone"),
        (["--command", "x", "--sql", "sqlite:///x"], "--command must be given alone"),
        (["--sql", "sqlite:///x"], "--command must be given alone"),
        (["none.sql", "--sql", "sqlite:///x"], "QUERY must be a file to read"),
        (["SELECT 1", "--sql", "x"], "--sql must be a URL"),
        (["SELECT 1", "--sql", "postgresql://me:secret@h/d"], "--sql must be without a password"),
        (["--command", ""], "--command must be a program and its arguments"),
        (["--command", "'x"], "--command must be"),
        (["--command", "x", "--timeout", "0"], "--timeout must be"),
        (["--command", "x", "--dask", "here"], "--dask must be left out"),
    ],
)
def test_what_is_no_request_is_refused_before_anything_runs(more, message, folder, capsys):
    assert main(["target", *more, "--epsilon", "1", "--pair", "0", "1"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert "secret" not in err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/no/such/program", "--command must be a program that can be started"),
        ("sh -c 'echo Error: no table >&2; exit 4'", r"exit status 4 (Error: no table), got"),
        ("sleep 60 --timeout 0.2", "within the timeout of 0.2 s"),
    ],
)
def test_a_program_that_cannot_be_audited_is_one_line_and_exit_2(command, message, folder, capsys):
    command, _, timeout = command.partition(" --timeout ")
    more = ["--timeout", timeout] if timeout else []
    given = ["--command", command, *more, "--epsilon", "1", "--pair", "0", "1"]
    assert main(["target", *given, "--runs", "100"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_an_interrupt_takes_the_program_along(folder):
    with interruptible([sys.executable, "-m", "audits", *words("hangs")]) as process:
        started = folder / "started"
        while not (started.exists() and started.read_text()) and process.poll() is None:
            time.sleep(0.05)
        interrupt(process)
    assert process.returncode == 130
    # the supervisor ends the program when it sees that the auditor is gone
    program = Path(f"/proc/{started.read_text()}")
    for _ in range(1000):
        if not program.exists():
            break
        time.sleep(0.01)
    assert not program.exists()


def test_an_interrupted_program_goes_on_from_what_was_drawn(folder, capsys):
    command = words("stalls", "--json", "r.json", "--timeout")
    assert main([*command, "2"]) == 2
    assert "within the timeout of 2 s" in (err := capsys.readouterr().err)
    assert "continue with --resume" in err
    drawn, _ = (folder / "calls").stat().st_size, (folder / "go").touch()
    assert main([*command, "2", "--resume"]) == 1
    assert (folder / "calls").stat().st_size - drawn < 1600  # of 2,000 and a few more
    assert re.search(r"stalls leaks ε ≥ [\d.]+", " ".join(capsys.readouterr().out.split()))


def test_a_process_of_the_auditor_answers_for_a_program(folder):
    program = {"command": [sys.executable, "theirs.py", "half"], "once": False, "timeout": 20.0}
    first, second, facts, notes, times = answers_of(
        [program, "2", "5"], [0, 8, 4], [1, 8, 4], [], [20], [3, 5, 2, 0]
    )
    np.testing.assert_allclose(second - first, 3.0)  # one seed, another value
    assert facts["takes_size"] is True
    assert facts["code"].endswith(" of theirs.py")
    assert notes == {"notes": []}
    assert times.shape == (2, 5, 2)
    assert (times[0] > 0).all()
