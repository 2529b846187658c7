"""`dp-attest audit run` as a person and as a program meet it."""

import contextlib
import io
import json
import os
import re
import stat
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor

import pytest

import audits.runner.cases
from audits.__main__ import main
from audits.claims.findings import Outcome
from audits.results.rows import Settings
from audits.runner.cases import cases
from audits.runner.execution import run_all, select_cases
from mechanisms import registry
from tests.child_processes import interrupt, interruptible
from tests.laws.common import INSTANCES

ONE = "RandomizedResponse(k=10"
QUICK = [ONE, "half_the_noise", "peek", "--runs", "20000", "--seed", "7", "--jobs", "1"]
KEYS = ["subject", "kind", "claim", "exact_epsilon", "epsilon_lower", "confidence", "runs",
        "outcome", "expected", "witness", "seconds"]  # fmt: skip


def audits_process(*words, **options):
    command = [sys.executable, "-m", "audits", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=400, **options
    )


def test_json_on_stdout_is_json_alone(capfd):
    assert main([*QUICK, "--json", "-"]) == 0
    shown = capfd.readouterr()
    document = json.loads(shown.out)
    assert document["schema"] == 1
    assert document["seed"] == 7
    assert [list(row) for row in document["findings"]] == [KEYS] * 3
    outcomes = [row["outcome"] for row in document["findings"]]
    assert outcomes == ["survived", "falsified", "falsified"]
    assert all(row["outcome"] == row["expected"] for row in document["findings"])
    assert "claimed" in shown.err


def test_a_person_gets_a_table_and_no_noise_on_stderr(capfd):
    assert main(QUICK) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert "3 of 3 as expected" in shown.out
    assert "--seed 7" in shown.out
    assert "private" not in shown.out.lower().replace("privatelasso", "")


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
    capsys.readouterr()


def test_every_instance_specimen_and_algorithm_is_a_case():
    from audits.zoo.catalogue import ZOO

    subjects = [case.subject for case in cases()]
    assert len(set(subjects)) == len(subjects)
    assert set(map(repr, INSTANCES)) | {one.name for one in ZOO} < set(subjects)
    assert [case.subject for case in cases() if case.kind == "algorithm"] == [
        audits.runner.cases.HOUSING
    ]
    assert len(ZOO) >= 8


# a row of each kind and verdict: pure and approximate, exact and loose, and every way to convict
ONE_OF_EACH = (
    "Laplace", "Gaussian", "RandomizedResponse", "AboveThreshold", "PureFromApproximate",
    "low bits of Laplace(scale=1.0, sensitivity=1.0, arithmetic=EXACT)",
    "low bits of Laplace(scale=1.0, sensitivity=1.0, arithmetic=IDEALISED)",
    "half_the_noise", "gaussian_as_pure", "peek", "gossip", audits.runner.cases.HOUSING,
)  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[ONE_OF_EACH, pytest.param((), marks=pytest.mark.slow)],
    ids=["one of each", "all"],
)
def everything(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    paths = [str(folder / name) for name in ("all.json", "all.html")]
    words = [*request.param, "--seed", "7", "--json", paths[0], "--out", paths[1]]
    if request.param:
        shown = run_with_few_losses([*words, "--runs", "20000", "--jobs", "1"])
    else:
        # two processes whose linear algebra has threads too would wait for each other
        done = audits_process(*words, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        shown = done.stdout
    return shown, *paths, len(select_cases(request.param))


def run_with_few_losses(words):
    """What a run shows whose algorithm on real data is fitted a few times, not three hundred.

    The curve of its accountant has few points: each takes a third of a second.
    """
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(shown):
        patch.setattr("audits.runner.cases.LOSS_SAMPLES", 3)
        patch.setattr("audits.runner.cases.LOSS_POINTS", 3)
        assert main(words) == 0
    return shown.getvalue()


def test_the_whole_run_is_as_expected(everything):
    shown, path, _, number = everything
    with open(path) as file:
        rows = json.load(file)["findings"]
    assert len(rows) == number
    # no number of runs shows a violation of its bound, as it is far above the truth
    loosest = [row for row in rows if row["subject"].startswith("PureFromApproximate")]
    assert [row["outcome"] for row in loosest] == ["inconclusive"] * len(loosest)
    if number > len(ONE_OF_EACH):  # 200,000 runs, not 20,000, see half the noise of all others
        decided = [row for row in rows if row not in loosest]
        assert all(row["outcome"] == row["expected"] for row in decided)
    fallen = [row["outcome"] == "falsified" for row in rows]
    assert fallen == [row["expected"] == "falsified" for row in rows]
    honest = [row for row in rows if row["kind"] == "mechanism"]
    loose = {repr(one) for one in INSTANCES if one.loss_is_upper_bound}
    assert all(row["epsilon_lower"] <= row["claim"]["epsilon"] + 0.05 for row in honest)
    assert all(
        row["exact_epsilon"] == pytest.approx(row["claim"]["epsilon"], abs=2e-5)
        for row in honest if row["subject"] not in loose
    )  # fmt: skip
    for row in honest:
        assert row["exact_epsilon"] <= row["claim"]["epsilon"] + 2e-5
    for words in (
        "test R2",
        "scikit-learn",
        "privacy losses",
        "largest loss",
        "accountant's delta",
    ):
        assert words in shown


def test_the_page_is_one_file_that_asks_nobody(everything):
    with open(everything[2]) as file:
        page = file.read()
    assert "<script" not in page
    assert "http:" not in page
    assert "https:" not in page
    assert "PrivateLasso on California housing" in page
    assert page.count("<tr>") > everything[3]


def test_help_teaches_and_list_lists(capsys, monkeypatch):
    assert main(["run", "--help"]) == 0
    taught = capsys.readouterr().out
    for words in ("--runs", "--confidence", "--seed", "--jobs", "--json", "--out", "--strict",
                  "--force", "Examples:", "Exit status:", "list"):  # fmt: skip
        assert words in taught
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "half_the_noise" in listed
    assert "PrivateLasso" in listed


USAGE = [
    (["Laplase"], "NAME must be"), (["--runs", "5"], "--runs must be"),
    (["--runs", "many"], "--runs must be a whole number from 10"),
    (["--runs", "1e5"], "got 100000.0"), (["--confidence", "high"], "got 'high'"),
    (["--json", ""], "--json must be"), (["--out", "-"], "--out must be"), ([""], "NAME must be"),
    (["--json", "/tmp/same", "--out", "/tmp/same"], "another file"),
    (["--confidence", "1.5"], "--confidence must be"),
    (["--confidence", "nan"], "--confidence must be"), (["--seed", "-1"], "--seed must be"),
    (["--jobs", "0"], "--jobs must be"), (["--wrong"], "--wrong"),
    (["--json", "/nonexistent/x.json"], "--json must be"), (["--json", "/"], "--json must be"),
    (["--out", "/nonexistent/x.html"], "--out must be"),
    (["--json", "/proc/x"], "--json must be"), (["--junit", "/nonexistent/x"], "--junit must be"),
    (["--resume"], "--resume must be given together with --json"), (["--resume", "--json", "-"],
    "--resume must be"), (["--dask", "tcp://127.0.0.1:9"], "--dask must be the address of"),
    (["papers", "nobody"], "NAME must be"), (["papers", "--runs", "x"], "--runs must be"),
    (["power", "--claim", "1", "--truth", "1"], "--truth must be above"),
    (["power", "--delta", "1"], "--delta must be"), (["power", "nobody"], "NAME must be"),
    (["zoo", "nobody"], "NAME must be"), (["zoo", "--repeats", "0"], "--repeats must be"),
    (["replay", "/nonexistent.json"], "RESULT.json must be"),
    (["replay", "pyproject.toml"], "RESULT.json must be"),
    (["libraries", "--jobs", "0"], "--jobs must be"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), USAGE, ids=repr)
def test_bad_usage_is_one_line_and_exit_2_before_anything_runs(words, message, capsys, monkeypatch):
    monkeypatch.setattr("audits.runner.execution.run_all", lambda *a: pytest.fail("it ran"))
    monkeypatch.setattr("audits.cli.resume.SCHEDULER_TIMEOUT", "200ms")
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_a_misspelt_name_gets_a_hint(capsys):
    assert main(["Laplase"]) == 2
    said = capsys.readouterr().err
    assert "did you mean 'Laplace'?" in said
    assert len(said) < 200  # not a list of all names


def test_a_false_claim_exits_1(capsys, monkeypatch):
    case = next(case for case in cases() if case.subject == "half_the_noise")
    lying = audits.runner.cases.AuditCase(
        case.subject, "mechanism", case.about, Outcome.SURVIVED, case.check
    )
    monkeypatch.setattr("audits.runner.execution.cases", lambda: [lying])

    def relabelled(settings, rng):
        import dataclasses

        return dataclasses.replace(case.check(settings, rng), expected=Outcome.SURVIVED)

    object.__setattr__(lying, "check", relabelled)
    assert main(["half", "--seed", "1", "--runs", "20000"]) == 1
    shown = capsys.readouterr().out
    assert "0 of 1 as expected." in shown
    assert re.search(r"1 violation: half_the_noise leaks ε ≥ 1\.\d+, claimed 1\.\n", shown)
    assert "wrong is at most one in a million" in shown


def test_too_few_runs_are_inconclusive_under_strict(capsys):
    few = [ONE, "--runs", "20", "--seed", "1"]
    assert main(few) == 0
    assert "too few runs to see half of the noise of RandomizedResponse; 1,100 would" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main([*few, "--strict"]) == 3
    capsys.readouterr()


def test_an_interrupt_exits_130_and_leaves_no_file(tmp_path):
    target = tmp_path / "report.json"
    words = ["half_the_noise", "--runs", "100000000000", "--json", str(target)]
    with interruptible([sys.executable, "-c", SLOW_LAST, *words]) as process:
        process.stdout.readline()  # it says when the guess test begins
        out, err = interrupt(process)
    assert process.returncode == 130
    assert err == "interrupted: no rows were saved\n"
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path, capsys):
    words = ["DiscreteLaplace(", ONE, "--seed", "7", "--runs", "20000"]
    whole, part = tmp_path / "whole.json", tmp_path / "r.json"
    assert main([*words, "--json", str(whole)]) == 0
    done = json.loads(whole.read_text())
    # as Ctrl-C after two rows leaves it
    cut = {**done, **{name: done[name][:2] for name in ("findings", "details", "provenance")}}
    left = tmp_path / "r.json.part"
    left.write_text(json.dumps(cut))
    resume = [*words, "--json", str(part), "--resume"]
    assert main([*resume, "--confidence", "0.9"]) == 2
    assert "of the same request, which was: dp-attest audit" in capsys.readouterr().err
    assert not part.exists()
    assert main(resume) == 0
    assert not left.exists()
    now = json.loads(part.read_text())
    assert now["findings"][:2] == done["findings"][:2]  # not run again: their times are the same
    for one in (done, now):
        one["findings"] = [{**row, "seconds": 0} for row in one["findings"]]
        assert one.pop("date")[:2] == "20"
    assert now == done
    assert main(resume) == 2
    assert "--resume must be a file to read" in capsys.readouterr().err


def test_a_row_that_was_done_is_in_the_part(tmp_path, monkeypatch, capsys):
    import audits.runner.execution

    target, real = tmp_path / "r.json", audits.runner.execution.run_all

    def stopped(todo, settings, jobs, done, *more):
        real(todo[:1], settings, jobs, done, *more)
        raise KeyboardInterrupt

    monkeypatch.setattr("audits.runner.execution.run_all", stopped)
    assert main([*QUICK, "--json", str(target)]) == 130
    part = tmp_path / "r.json.part"
    assert capsys.readouterr().err == (
        f"interrupted: 1 of 3 rows are in {part}; continue with --resume\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["r.json.part"]
    monkeypatch.undo()
    assert main([*QUICK, "--json", str(target), "--resume"]) == 0
    assert main([*QUICK, "--json", str(tmp_path / "whole.json")]) == 0
    assert without_seconds(target) == without_seconds(tmp_path / "whole.json")
    capsys.readouterr()


def test_rows_that_were_done_are_kept_when_another_one_is_being_reported():
    seen = []

    def interrupted(row):
        seen.append(row.subject)
        if len(seen) == 1:
            raise KeyboardInterrupt

    class Finished(Executor):
        """Computes when asked, so that every row is done before the first is reported."""

        def submit(self, work, /, *arguments):
            future = Future()
            future.set_result(work(*arguments))
            return future

    todo = select_cases([ONE, "half_the_noise", "peek"])
    with pytest.raises(KeyboardInterrupt):
        run_all(todo, Settings(20_000, 0.95, 7), 1, interrupted, Finished())
    assert set(seen) == {case.subject for case in todo}


def test_ctrl_c_leaves_what_is_done_and_the_rest_is_resumed(tmp_path, capsys):
    words = ["peek", "gossip", "half_the_noise", "--seed", "7", "--jobs", "1"]
    target, whole = tmp_path / "r.json", tmp_path / "whole.json"
    # the two replays are done at once, the guess test of so many runs never
    slow = [*words, "--runs", "3000000000", "--json", str(target)]
    command = [sys.executable, "-c", SLOW_LAST, *slow]
    with interruptible(command) as process:
        process.stdout.readline()  # it says when the guess test begins
        _, err = interrupt(process)
    assert process.returncode == 130
    assert err == f"interrupted: 2 of 3 rows are in {target}.part; continue with --resume\n"
    left = json.loads((tmp_path / "r.json.part").read_text())
    assert [row["subject"] for row in left["findings"]] == ["peek", "gossip"]
    # with fewer samples, or it would take hours: the rows of replays do not depend on them
    left["request"]["samples"] = 20_000
    (tmp_path / "r.json.part").write_text(json.dumps(left))
    quick = [*words, "--runs", "20000", "--json"]
    assert main([*quick, str(target), "--resume"]) == 0
    assert main([*quick, str(whole)]) == 0
    capsys.readouterr()
    assert without_seconds(target) == without_seconds(whole)


SLOW_LAST = """
import audits.runner.execution, audits.results.rows, dataclasses
from audits.__main__ import PROGRAM, main
from accountant.cli.exit_status import exit_process

every = audits.runner.execution.cases()
def announced(case):
    def check(settings, rng):
        print("begun", flush=True)
        return case.check(settings, rng)
    return dataclasses.replace(case, check=check)

last = [announced(one) for one in every if one.subject == "half_the_noise"]
chosen = [one for one in every if one.subject in ("peek", "gossip")] + last
audits.runner.execution.cases = lambda: chosen
exit_process(PROGRAM, main())
"""


def rows_of(executor=None, jobs=1):
    todo = select_cases([ONE, "half_the_noise", "peek"])
    done = []
    rows = run_all(todo, Settings(20_000, 0.95, 7), jobs, done.append, executor)
    assert sorted(map(repr, done)) == sorted(map(repr, rows))
    return [(row.subject, row.epsilon_lower, row.outcome, row.witness) for row in rows]


def test_other_processes_give_the_same_rows():
    with ProcessPoolExecutor(2) as pool:
        assert rows_of(pool) == rows_of(jobs=2) == rows_of()


def test_a_cluster_gives_the_same_rows(tmp_path, capsys):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        here, there = tmp_path / "here.json", tmp_path / "there.json"
        assert main([*QUICK, "--json", str(here)]) == 0
        asked = ["--dask", cluster.scheduler_address, "--json", str(there)]
        assert main([*QUICK, *asked]) == 0
        with distributed.Client(cluster) as client, client.get_executor() as executor:
            assert rows_of(executor) == rows_of()
    assert without_seconds(here) == without_seconds(there)
    capsys.readouterr()


def test_replay_says_whether_the_same_bytes_come_out(tmp_path, capsys):
    path = tmp_path / "r.json"
    assert main([*QUICK, "--json", str(path)]) == 0
    capsys.readouterr()
    assert main(["replay", str(path)]) == 0
    assert "identical but for times: 3 rows, seed 7" in capsys.readouterr().out
    document = json.loads(path.read_text())
    document["findings"][0]["epsilon_lower"] += 1e-15
    path.write_text(json.dumps(document))
    assert main(["replay", str(path)]) == 1
    assert "1 differences" in capsys.readouterr().out


BROKEN = [
    lambda d: d.update(schema=2), lambda d: d.pop("request"), lambda d: d.pop("details"),
    lambda d: d["request"].update(samples="many"), lambda d: d["request"].update(samples=3),
    lambda d: d["request"].update(seed=-1), lambda d: d["request"].update(command="rm"),
    lambda d: d["request"].update(names=[3]), lambda d: d["request"].update(extra=1),
    lambda d: d["request"].update(confidence=2.0), lambda d: d["findings"].pop(),
    lambda d: d["findings"][0].update(outcome="private"), lambda d: d.update(details=[1, 2, 3]),
    lambda d: d["request"].update(command="target", names=["os:system"]),
]  # fmt: skip


@pytest.mark.parametrize("spoil", BROKEN)
def test_a_result_that_is_none_is_refused_in_one_line(spoil, tmp_path, capsys, monkeypatch):
    path = tmp_path / "r.json"
    assert main([*QUICK, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    spoil(document)
    path.write_text(json.dumps(document))
    capsys.readouterr()
    monkeypatch.setattr("audits.runner.execution.run_all", lambda *a: pytest.fail("it ran"))
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\x00", "[" * 100_000, "1e999"])
def test_a_file_that_is_no_result_is_refused(text, tmp_path, capsys):
    path = tmp_path / "r.json"
    path.write_text(text)
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_zoo_is_scored(tmp_path, capsys):
    path = tmp_path / "zoo.json"
    assert main(["zoo", "half_the_noise", "--runs", "5000", "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "as expected" in shown
    assert "Known to survive" in shown
    scores = json.loads(path.read_text())["scores"]
    assert all(row["outcome"] == row["expected"] == "falsified" for row in scores)


def test_help_is_quick_and_says_every_command():
    # the start of the interpreter and of typer, and nothing of ours that is heavy
    commands = ("papers", "libraries", "target", "replay", "power", "zoo")
    code = (
        "import sys; from audits.__main__ import main; print(main(['--help']));"
        f"said = [main([command, '--help']) for command in {commands}];"
        "heavy = {'numpy', 'scipy', 'rich.progress', 'sklearn', 'distributed'} & set(sys.modules);"
        "sys.exit(repr(heavy or said) if heavy or any(said) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    general = done.stdout.partition("\n0\n")[0]
    assert all(command in general for command in commands)


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path, capsys):
    target, link, pipe = (tmp_path / name for name in ("target.json", "link.json", "pipe"))
    target.write_text("old")
    link.symlink_to(target)
    assert main([*QUICK, "--json", str(link)]) == 2
    assert target.read_text() == "old"
    assert main([*QUICK, "--json", str(link), "--force"]) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["schema"] == 1
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert main([*QUICK, "--out", str(pipe)]) == 0
    assert os.read(reader, 15) == b"<!doctype html>"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    capsys.readouterr()


def test_names_choose_by_part():
    half = [case.subject for case in select_cases(["half"])]
    assert {"half_the_noise", "half_the_sensitivity"} <= set(half)
    assert all("half" in subject for subject in half)
    assert [case.subject for case in select_cases(["half_the_noise"])] == ["half_the_noise"]
    assert len(select_cases([])) == len(cases())


def test_the_help_names_every_command(capsys):
    from audits.__main__ import COMMANDS

    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:")[2].splitlines()
    assert {line.split()[0] for line in lines if line} == set(COMMANDS)


def test_three_names_are_three_rows(tmp_path, capsys):
    names, path = ["Laplace", "Gaussian", "Staircase"], tmp_path / "r.json"
    page = tmp_path / "r.html"
    words = [*names, "--runs", "2000", "--seed", "1", "--jobs", "1", "--json", str(path)]
    assert main([*words, "--out", str(page)]) == 0
    subjects = [row["subject"] for row in json.loads(path.read_text())["findings"]]
    assert sorted(subject.split("(")[0] for subject in subjects) == sorted(names)
    assert page.read_text().count("<tr class=more>") == 3
    firsts = {repr(cls.instances()[0]) for cls in registry() if cls.__name__ in names}
    assert set(subjects) == firsts
    capsys.readouterr()


def test_the_words_of_the_low_bits_choose_every_such_row():
    bits = [case.subject for case in cases() if case.kind == "bits"]
    assert [case.subject for case in select_cases(["low bits"])] == bits
    laplace = [case.subject for case in select_cases(["laplace"])]
    assert laplace == [case.subject for case in cases() if "laplace" in case.subject.lower()]


def test_a_result_of_more_rows_a_name_is_replayed_whole(tmp_path, capsys):
    path = tmp_path / "r.json"
    chosen = ["RandomizedResponse(k=10", "DiscreteLaplace(", "--runs", "2000", "--seed", "1"]
    assert main([*chosen, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    # as it was asked for when a name meant every subject that contains it
    document["request"]["names"] = ["RandomizedResponse(k=10", "DiscreteLaplace"]
    path.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["replay", str(path)]) == 0
    assert f"identical but for times: {len(document['findings'])} rows" in capsys.readouterr().out
