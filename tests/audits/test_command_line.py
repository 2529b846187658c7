"""`python -m audits` as a person and as a program meet it."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

import audits.cases
from audits.__main__ import main
from audits.cases import cases
from audits.finding import Outcome
from audits.running import chosen
from tests.laws.common import INSTANCES

ONE = "RandomizedResponse(k=10"
QUICK = [ONE, "half_the_noise", "peek", "--samples", "20000", "--seed", "7", "--jobs", "1"]
KEYS = ["subject", "kind", "claim", "exact_epsilon", "epsilon_lower", "confidence", "runs",
        "outcome", "expected", "witness", "seconds"]  # fmt: skip


def audits_process(*words, **options):
    command = [sys.executable, "-m", "audits", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, **options
    )


def test_json_on_stdout_is_json_alone():
    done = audits_process(*QUICK, "--json", "-")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["seed"] == 7
    assert [list(row) for row in document["findings"]] == [KEYS] * 3
    outcomes = [row["outcome"] for row in document["findings"]]
    assert outcomes == ["survived", "falsified", "falsified"]
    assert all(row["outcome"] == row["expected"] for row in document["findings"])
    assert "claimed" in done.stderr


def test_a_person_gets_a_table_and_no_noise_on_stderr():
    done = audits_process(*QUICK)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "3 of 3 as expected" in done.stdout
    assert "--seed 7" in done.stdout
    assert "private" not in done.stdout.lower().replace("privatelasso", "")


def without_seconds(path):
    rows = json.loads(path.read_text())["findings"]
    return [{key: row[key] for key in KEYS if key != "seconds"} for row in rows]


def test_same_seed_same_rows_whatever_the_jobs_and_the_company(tmp_path, capsys):
    one, two, three = (tmp_path / f"{n}.json" for n in range(3))
    assert main([*QUICK, "--json", str(one)]) == 0
    assert main([*QUICK[:-1], "2", "--json", str(two)]) == 0
    assert without_seconds(one) == without_seconds(two)
    assert main([ONE, *QUICK[3:], "--json", str(three)]) == 0
    assert without_seconds(three) == without_seconds(one)[:1]
    assert stat.S_IMODE(one.stat().st_mode) == 0o644
    capsys.readouterr()


def test_every_instance_specimen_and_algorithm_is_a_case():
    from audits.zoo import ZOO

    subjects = [case.subject for case in cases()]
    assert len(set(subjects)) == len(subjects)
    assert set(map(repr, INSTANCES)) | {one.name for one in ZOO} < set(subjects)
    assert [case.subject for case in cases() if case.kind == "algorithm"] == [audits.cases.HOUSING]
    assert len(ZOO) >= 8


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    paths = [str(folder / name) for name in ("all.json", "all.html")]
    done = audits_process("--seed", "7", "--json", paths[0], "--html", paths[1])
    assert done.returncode == 0, done.stderr
    return done, *paths


def test_the_whole_run_is_as_expected(everything):
    done, path, _ = everything
    with open(path) as file:
        rows = json.load(file)["findings"]
    assert len(rows) == len(cases())
    assert all(row["outcome"] == row["expected"] for row in rows)
    honest = [row for row in rows if row["kind"] == "mechanism"]
    loose = {repr(one) for one in INSTANCES if one.loose}
    assert all(row["epsilon_lower"] <= row["claim"]["epsilon"] + 0.05 for row in honest)
    assert all(
        row["exact_epsilon"] == pytest.approx(row["claim"]["epsilon"], abs=2e-5)
        for row in honest if row["subject"] not in loose
    )  # fmt: skip
    for row in honest:
        assert row["exact_epsilon"] <= row["claim"]["epsilon"] + 2e-5
    for words in ("test R2", "scikit-learn", "privacy losses", "greatest", "accountant's delta"):
        assert words in done.stdout


def test_the_page_is_one_file_that_asks_nobody(everything):
    with open(everything[2]) as file:
        page = file.read()
    assert "<script" not in page
    assert "http" not in page
    assert "PrivateLasso on California housing" in page
    assert page.count("<tr>") > len(cases())


def test_help_teaches_and_list_lists():
    done = audits_process("--help")
    assert done.returncode == 0
    for words in ("--samples", "--confidence", "--seed", "--jobs", "--json", "--html", "--strict",
                  "Examples:", "Exit status:", "list"):  # fmt: skip
        assert words in done.stdout
    listed = audits_process("list", env={**os.environ, "COLUMNS": "200"})
    assert listed.returncode == 0
    assert "half_the_noise" in listed.stdout
    assert "PrivateLasso" in listed.stdout


USAGE = [
    (["Laplase"], "NAME must be"), (["--samples", "5"], "--samples must be"),
    (["--samples", "many"], "--samples must be a whole number from 10"),
    (["--samples", "1e5"], "got 100000.0"), (["--confidence", "high"], "got 'high'"),
    (["--json", ""], "--json must be"), (["--html", "-"], "--html must be"), ([""], "NAME must be"),
    (["--json", "/tmp/same", "--html", "/tmp/same"], "another file"),
    (["--confidence", "1.5"], "--confidence must be"),
    (["--confidence", "nan"], "--confidence must be"), (["--seed", "-1"], "--seed must be"),
    (["--jobs", "0"], "--jobs must be"), (["--wrong"], "--wrong"),
    (["--json", "/nonexistent/x.json"], "--json must be"), (["--json", "/"], "--json must be"),
    (["--html", "/nonexistent/x.html"], "--html must be"),
    (["--json", "/proc/x"], "--json must be"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), USAGE, ids=repr)
def test_bad_usage_is_one_line_and_exit_2_before_anything_runs(words, message, capsys, monkeypatch):
    monkeypatch.setattr("audits.running.run_all", lambda *a: pytest.fail("it ran"))
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_a_misspelt_name_gets_a_hint(capsys):
    assert main(["Laplase"]) == 2
    assert "did you mean 'Laplace'?" in capsys.readouterr().err


def test_a_false_claim_exits_1(capsys, monkeypatch):
    case = next(case for case in cases() if case.subject == "half_the_noise")
    lying = audits.cases.Case(case.subject, "mechanism", case.about, Outcome.SURVIVED, case.check)
    monkeypatch.setattr("audits.running.cases", lambda: [lying])

    def relabelled(settings, rng):
        import dataclasses

        return dataclasses.replace(case.check(settings, rng), expected=Outcome.SURVIVED)

    object.__setattr__(lying, "check", relabelled)
    assert main(["half", "--seed", "1", "--samples", "20000"]) == 1
    assert "1 not: half_the_noise" in capsys.readouterr().out


def test_too_few_runs_are_inconclusive_under_strict(capsys):
    few = [ONE, "--samples", "20", "--seed", "1"]
    assert main(few) == 0
    assert "too few runs to decide" in capsys.readouterr().out
    assert main([*few, "--strict"]) == 3
    capsys.readouterr()


def test_an_interrupt_exits_130_and_leaves_no_file(tmp_path):
    target = tmp_path / "report.json"
    command = [sys.executable, "-m", "audits", "Laplace(", "--samples", "100000000000",
               "--json", str(target)]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == "interrupted: nothing was written\n"
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path, capsys):
    target, link, pipe = (tmp_path / name for name in ("target.json", "link.json", "pipe"))
    target.write_text("old")
    link.symlink_to(target)
    assert main([*QUICK, "--json", str(link)]) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["schema"] == 1
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert main([*QUICK, "--html", str(pipe)]) == 0
    assert os.read(reader, 15) == b"<!doctype html>"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    capsys.readouterr()


def test_names_choose_by_part():
    assert [case.subject for case in chosen(["half"])] == ["half_the_noise", "half_the_sensitivity"]
    assert len(chosen([])) == len(cases())
