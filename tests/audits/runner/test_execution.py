"""Every command that audits: jobs, a cluster, an interruption, a worker that fails."""

import dataclasses
import json
import textwrap

import numpy as np
import pytest

import audits.runner.execution
from accountant import PureLoss
from audits import Outcome, audit
from audits.__main__ import main
from audits.results.rows import Settings
from audits.runner.cases import cases, guess_test_row
from audits.runner.execution import WorkerFailed, run_all
from mechanisms import Laplace

CODE = """
import sys
import numpy as np

def honest(value, rng, size):
    return value + rng.laplace(size=size)

def one_at_a_time(value, rng):
    return value + rng.laplace()

def leaves(value, rng, size):
    sys.exit(7)
"""
WORDS = {
    "run": ["run", "half_the_noise", "peek", "--runs", "20000", "--seed", "7"],
    "papers": ["papers", "gradient reports", "label noise", "--runs", "20000", "--seed", "7"],
    "libraries": ["libraries", "numpy", "--runs", "5000", "--seed", "7"],
    "zoo": ["zoo", "half_the_noise", "noisy_max", "--runs", "3000", "--repeats", "2"],
    "target": ["target", "mine:honest", "--epsilon", "1", "--pair", "a.npy", "b.npy", "--bits",
               "--allow-import", "--runs", "4000", "--seed", "7"],
}  # fmt: skip
EVERY = pytest.mark.parametrize("command", WORDS)
HERE = pytest.mark.parametrize("command", [name for name in WORDS if name != "target"])


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(textwrap.dedent(CODE))
    np.save(tmp_path / "a.npy", 0.0)
    np.save(tmp_path / "b.npy", 1.0)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def cluster():
    """Two workers in threads, sent all bytes; a test of `cli/test_run.py` has processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=":0",
    ) as local:
        yield local.scheduler_address


def document(path):
    found = json.loads(path.read_text())
    key = "scores" if "scores" in found else "findings"
    found[key] = [{**row, "seconds": 0.0} for row in found[key]]
    found.pop("date", None)
    return found


def done(command, *more, path, status=None):
    code = main([*WORDS[command], "--json", str(path), *more])
    assert code in ({0, 1} if status is None else {status})
    return document(path) if path.exists() else None


@EVERY
def test_jobs_change_no_row(command, tmp_path, capsys):
    one = done(command, "--jobs", "1", path=tmp_path / "1.json")
    assert done(command, "--jobs", "5", path=tmp_path / "5.json") == one
    assert len(one.get("scores", one.get("findings"))) >= 2
    capsys.readouterr()


@HERE
def test_a_cluster_changes_no_row(command, cluster, tmp_path, capsys):
    here = done(command, path=tmp_path / "here.json")
    there = done(command, "--dask", cluster, path=tmp_path / "there.json")
    for found, why in ((here, ""), (there, "the code of a cluster is not known")):
        assert found.get("digests", {}).pop("unknown", why) == why
    assert there == here
    capsys.readouterr()


def test_a_target_stays_on_this_machine(tmp_path, capsys):
    assert done("target", "--dask", "tcp://127.0.0.1:9", path=tmp_path / "r", status=2) is None
    assert "--dask must be left out: a target stays on this machine" in capsys.readouterr().err


def interrupted_after_first(monkeypatch):
    """Interrupts every run once its first case is done; what runs them all without that."""
    real = audits.runner.execution.run_all

    def stopped(todo, *more):
        real(todo[:1], *more)
        raise KeyboardInterrupt

    monkeypatch.setattr("audits.runner.execution.run_all", stopped)
    return real


@EVERY
def test_an_interruption_leaves_what_is_done(command, tmp_path, monkeypatch, capsys):
    path, real = tmp_path / "r.json", interrupted_after_first(monkeypatch)
    assert done(command, path=path, status=130) is None
    assert f"rows are in {path}.part; continue with --resume" in capsys.readouterr().err
    left = document(tmp_path / "r.json.part")
    assert len(left.get("scores", left.get("findings"))) == 1
    ran = []

    def rest(todo, *more):
        ran.extend(case.subject for case in todo)
        return real(todo, *more)

    monkeypatch.setattr("audits.runner.execution.run_all", rest)
    now = done(command, "--resume", path=path)
    assert not (tmp_path / "r.json.part").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    whole = done(command, path=tmp_path / "whole.json")
    assert now == whole
    assert len(ran) == len(whole.get("scores", whole.get("findings"))) - 1
    assert done(command, "--resume", path=path, status=2) == now  # there is no part any more
    capsys.readouterr()


@pytest.mark.parametrize("command", ["papers", "zoo"])
def test_a_part_of_another_request_is_refused(command, tmp_path, monkeypatch, capsys):
    path = tmp_path / "r.json"
    interrupted_after_first(monkeypatch)
    assert done(command, path=path, status=130) is None
    monkeypatch.undo()
    other = ["--confidence", "0.9", "--resume"]
    assert done(command, *other, path=path, status=2) is None
    assert f"which was: dp-attest audit {command}" in capsys.readouterr().err


BROKEN = [
    lambda d: d.pop("request"), lambda d: d.pop("scores"), lambda d: d["scores"][0].pop("name"),
    lambda d: d["scores"][0].update(outcome="private"), lambda d: d.update(schema=2),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_scores_that_are_none_are_refused(place, tmp_path, capsys):
    path, part = tmp_path / "r.json", tmp_path / "r.json.part"
    found = done("zoo", path=path)
    BROKEN[place](found)
    part.write_text(json.dumps(found))
    assert done("zoo", "--resume", path=path, status=2) is not None
    assert capsys.readouterr().err.count("\n") == 1


def failing(settings, rng):
    raise RuntimeError("no luck")


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_worker_that_raises_is_named_and_the_others_are_kept(jobs, tmp_path, monkeypatch, capsys):
    few = [case for case in cases() if case.subject in {"peek", "half_the_noise"}]
    every = [
        dataclasses.replace(case, check=failing, kind="last")
        if case.subject == "half_the_noise" else dataclasses.replace(case, kind="algorithm")
        for case in few
    ]  # fmt: skip
    monkeypatch.setattr("audits.runner.execution.cases", lambda: every)
    path = tmp_path / "r.json"
    assert done("run", "--jobs", jobs, path=path, status=2) is None
    err = capsys.readouterr().err
    assert "half_the_noise must be audited without an error" in err
    assert "RuntimeError: no luck" in err
    if jobs == "1":
        assert f"1 of 2 rows are in {path}.part; continue with --resume" in err
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    if jobs == "1":
        assert done("run", "--resume", path=path)["findings"][0]["subject"] == "half_the_noise"
        capsys.readouterr()


def test_an_executor_whose_worker_raises_is_named():
    todo = [case for case in cases() if case.subject == "peek"]
    todo[0] = dataclasses.replace(todo[0], check=failing)
    with pytest.raises(WorkerFailed, match=r"peek must be audited without an error, got .*no luck"):
        run_all(todo, Settings(100, 0.95, 0), 1, lambda row: None)


def test_a_target_that_leaves_in_a_thread_is_contained(tmp_path, capsys):
    words = [word.replace("mine:honest", "mine:leaves") for word in WORDS["target"]]
    assert main([*words, "--jobs", "3"]) == 2
    assert "SystemExit: 7" in capsys.readouterr().err


def test_threads_that_no_row_needs_work_on_the_runs_of_one(monkeypatch, tmp_path, capsys):
    seen = []
    real = Settings.workers

    def recorded(self):
        if self.seed == 977:  # threads that an earlier test left may still be at work
            seen.append(self.jobs)
        return real(self)

    monkeypatch.setattr(Settings, "workers", recorded)
    words = ["half_the_noise", "--runs", "20000", "--seed", "977", "--json"]
    paths = [tmp_path / f"{n}.json" for n in (1, 6)]
    for path, jobs in zip(paths, ("1", "6"), strict=True):
        assert main([*words, str(path), "--jobs", jobs]) == 0
    assert seen == [1, 6]
    assert document(paths[0]) == document(paths[1])
    capsys.readouterr()


@dataclasses.dataclass
class Case:
    """A case that says its name."""

    subject: str
    kind: str = "mechanism"

    def run(self, settings):
        return f"row of {self.subject}"


def test_rows_are_returned_in_the_order_of_the_cases():
    reported, todo = [], [Case("b", "algorithm"), Case("a"), Case("c", "algorithm")]
    settings = Settings(samples=10, confidence=0.95, seed=1)
    rows = run_all(todo, settings, 2, reported.append)
    assert rows == ["row of b", "row of a", "row of c"]
    assert sorted(reported) == sorted(rows)


def test_the_row_of_a_guess_test_has_what_was_found():
    finding = dataclasses.replace(audit(Laplace(1.0), runs=400, rng=1), seconds=1.23456789)
    row = guess_test_row(
        "S", "K", PureLoss(1.0), finding, Outcome.SURVIVED, exact=0.5, confidence_of_verdict=0.9
    )
    assert (row.subject, row.kind, row.expected) == ("S", "K", Outcome.SURVIVED)
    assert (row.claim, row.exact_epsilon) == ((1.0, finding.delta), 0.5)
    for name in ("epsilon_lower", "confidence", "runs", "witness", "unseen", "notes"):
        assert getattr(row, name) == getattr(finding, name)
    assert row.seconds == 1.234568
    guesses = finding.guesses
    assert row.guesses == (guesses.correct, guesses.made, guesses.runs)
    assert row.verdict_lower == guesses.epsilon_lower(finding.delta, 0.9)
    assert f"{guesses.share:.1%} right, the claim allows 73.1%" in row.evidence
