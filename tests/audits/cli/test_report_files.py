"""Files of reports and baselines as a person and a pipeline meet them on the command line."""

import inspect
import json
import xml.etree.ElementTree as Xml

import numpy as np
import pytest

import audits.runner.execution
from audits.__main__ import COMMANDS, main
from audits.cli.options import FILES
from audits.formats.report_format import ReportFormat

ONE = "RandomizedResponse(k=10"
QUICK = [ONE, "half_the_noise", "--runs", "2000", "--jobs", "1"]
# commands whose answers are no findings: lists, powers, bounds, comparisons, pages
NO_FINDINGS = {"list", "power", "bounds", "canaries", "replay", "index"}


def outcome_of(words, capsys):
    """The exit status of a command, and all that it shows, in one line."""
    status = main(list(map(str, words)))
    shown = capsys.readouterr()
    return status, " ".join((shown.out + shown.err).split())


@pytest.fixture
def never_run(monkeypatch):
    """Calling it lets every audit that begins fail the test."""

    def forbid():
        def began(todo, *more):
            assert todo == []
            return []

        monkeypatch.setattr(audits.runner.execution, "run_all", began)

    return forbid


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - NO_FINDINGS))
def test_every_command_that_prints_findings_writes_every_format(command):
    taken = set(inspect.signature(COMMANDS[command]).parameters)
    assert {f"--{name}" for name in FILES} == {each.option for each in ReportFormat}
    assert {*FILES, "force"} <= taken


def test_every_format_is_written_and_says_the_same(tmp_path, capsys):
    files = {name: tmp_path / f"report.{name}" for name in FILES}
    words = [*QUICK, *(word for name in FILES for word in (f"--{name}", files[name]))]
    assert outcome_of(words, capsys)[0] == 0
    texts = {name: path.read_text() for name, path in files.items()}
    for name in set(FILES) - {"sarif"}:  # where nothing needs a look, SARIF has no result
        assert "half_the_noise" in texts[name].replace("&#95;", "_"), name
    assert json.loads(texts["sarif"])["runs"][0]["properties"]["audited"] == 2
    rows = json.loads(texts["json"])
    places = [row["places"][0]["path"] for row in rows["provenance"]]
    assert places == ["mechanisms/randomized_response.py", "audits/zoo/broken/noise.py"]


@pytest.mark.parametrize("name", FILES[1:])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(name, capsys, never_run):
    never_run()
    assert outcome_of([*QUICK, f"--{name}", "/nonexistent/x"], capsys)[0] == 2
    status, said = outcome_of([*QUICK, f"--{name}", "-"], capsys)
    assert (status, f"--{name} must be a file" in said) == (2, True)


def test_rows_that_have_not_changed_are_kept_and_not_run(tmp_path, capsys, never_run):
    first, second, third = (tmp_path / f"{k}.json" for k in range(3))
    assert outcome_of([*QUICK, "--json", first], capsys)[0] == 0
    never_run()
    status, said = outcome_of([*QUICK, "--baseline", first, "--json", second], capsys)
    before, after = (json.loads(path.read_text()) for path in (first, second))
    assert status == 0
    assert f"2 of 2 rows kept from the baseline. Kept from {before['date']}, unchanged: " in said
    for part in ("findings", "details", "seed", "request", "digests"):
        assert after[part] == before[part]
    # a row stays of the day on which it was computed, through any number of reports
    assert outcome_of([*QUICK, "--baseline", second, "--json", third], capsys)[0] == 0
    baselines = [row["baseline"] for row in json.loads(third.read_text())["provenance"]]
    assert {each["date"] for each in baselines} == {before["date"]}


def test_only_new_rows_run_and_a_kept_report_can_be_replayed(tmp_path, capsys, monkeypatch):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    assert outcome_of([*QUICK[1:], "--json", first], capsys)[0] == 0
    began, real = [], audits.runner.execution.run_all

    def run_all(todo, *more):
        began.extend(case.subject for case in todo)
        return real(todo, *more)

    monkeypatch.setattr(audits.runner.execution, "run_all", run_all)
    status, said = outcome_of([*QUICK, "--baseline", first, "--json", second], capsys)
    assert status == 0
    assert [name.partition("(")[0] for name in began] == ["RandomizedResponse"]
    assert "1 of 2 rows kept" in said
    assert "Audited now, as it is not in the baseline: RandomizedResponse(k=10" in said
    assert outcome_of(["replay", second], capsys)[0] == 0


def test_an_interrupted_audit_beside_a_baseline_goes_on(tmp_path, capsys, monkeypatch):
    first, path, whole = tmp_path / "1.json", tmp_path / "r.json", tmp_path / "whole.json"
    assert outcome_of([*QUICK[1:], "--json", first], capsys)[0] == 0
    words = ["peek", *QUICK, "--baseline", first, "--json"]
    real = audits.runner.execution.run_all

    def stopped(todo, settings, jobs, done, *more):
        real(todo[:1], settings, jobs, done, *more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(audits.runner.execution, "run_all", stopped)
        assert outcome_of([*words, path], capsys)[0] == 130
    part = json.loads((tmp_path / "r.json.part").read_text())
    assert len(part["findings"]) == 1
    assert outcome_of([*words, path, "--resume"], capsys)[0] == 0
    assert outcome_of([*words, whole], capsys)[0] == 0
    rows = [json.loads(each.read_text()) for each in (path, whole)]
    for each in rows:
        for row in each["findings"]:
            row["seconds"] = 0
    for name in ("findings", "details", "digests", "provenance"):
        assert rows[0][name] == rows[1][name], name
    states = [each["baseline"]["state"] for each in rows[0]["provenance"]]
    assert sorted(states) == ["new", "new", "unchanged"]
    # rows of before and after a change of the code are of no known code
    part["digests"]["code"] = "0" * 64
    (tmp_path / "r.json.part").write_text(json.dumps(part))
    assert outcome_of([*words, path, "--resume", "--force"], capsys)[0] == 0
    said = outcome_of(["peek", *QUICK, "--baseline", path], capsys)[1]
    assert "kept" not in said
    assert "the baseline does not say of what code it is" in said


OTHER = [["--runs", "2001"], ["--confidence", "0.9"], ["--seed", "12345"]]


@pytest.mark.parametrize("other", OTHER, ids=str)
def test_other_settings_run_everything_again(other, tmp_path, capsys, monkeypatch):
    path = tmp_path / "r.json"
    assert outcome_of([*QUICK, "--seed", "1", "--json", path], capsys)[0] == 0
    began = []
    monkeypatch.setattr(audits.runner.execution, "run_all", lambda todo, *more: began.extend(todo))
    outcome_of([*QUICK, "--seed", "1", *other, "--baseline", path], capsys)
    assert len(began) == 2


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 1}'])
def test_a_baseline_that_is_none_is_refused(text, tmp_path, capsys, never_run):
    never_run()
    path = tmp_path / "r.json"
    path.write_text(text)
    status, said = outcome_of([*QUICK, "--baseline", path], capsys)
    assert (status, "--baseline must be a result of schema 1" in said) == (2, True)
    status, said = outcome_of([*QUICK, "--baseline", tmp_path / "none"], capsys)
    assert (status, "--baseline must be a file to read" in said) == (2, True)


HELPER = "SCALE = {}\n"
RELEASES = """
import numpy as np
from helper import SCALE

def half(value, rng, size):
    return value + rng.laplace(scale=SCALE / 2, size=size)

def honest(value, rng, size):
    return value + rng.laplace(scale=SCALE, size=size)

def shows_mean(data, rng):
    return (np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0)) / len(data)
"""
TARGET = ["--epsilon", "1", "--pair", "0", "1", "--runs", "2000", "--allow-import"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "releases_of_a_report.py").write_text(RELEASES)
    (tmp_path / "helper.py").write_text(HELPER.format(1.0))
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def target(name, *more):
    return ["target", f"releases_of_a_report:{name}", *TARGET, *more]


# it starts processes of a function, which takes a second each
def test_a_known_violation_fails_again_when_a_module_that_it_imports_changes(
    folder, capsys, monkeypatch
):
    assert outcome_of(target("half", "--json", "main.json"), capsys)[0] == 1
    files = ["--sarif", "r.sarif", "--junit", "r.xml", "--json", "r.json"]
    again = target("half", "--baseline", "main.json", *files)
    with monkeypatch.context() as patch:
        patch.setattr(audits.runner.execution, "run_all", lambda todo, *more: [])
        status, said = outcome_of([*again, "--strict"], capsys)
    assert status == 0
    assert said.startswith("1 violation: releases_of_a_report:half leaks")
    assert "Known from the baseline, so that it fails nothing: releases_of_a_report:half" in said
    (one,) = json.loads((folder / "r.sarif").read_text())["runs"][0]["results"]
    assert (one["baselineState"], one["level"]) == ("unchanged", "error")
    assert one["locations"][0]["physicalLocation"]["region"]["startLine"] == 5
    (suite,) = Xml.parse(folder / "r.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    (folder / "helper.py").write_text(HELPER.format(0.9))
    status, said = outcome_of([*again, "--force"], capsys)
    assert (status, "Audited now, as its code changed: " in said) == (1, True)
    # the report of now is of the code of now
    (folder / "helper.py").write_text(HELPER.format(1.0))
    assert outcome_of(target("half", "--baseline", "r.json"), capsys)[0] == 1


def test_code_that_changes_while_it_is_audited_is_never_kept(folder, capsys, monkeypatch):
    real = audits.runner.execution.run_all

    def edited(*arguments):
        rows = real(*arguments)
        (folder / "helper.py").write_text(HELPER.format(0.4))
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(audits.runner.execution, "run_all", edited)
        assert outcome_of(target("honest", "--json", "r.json"), capsys)[0] == 0
    (folder / "helper.py").write_text(HELPER.format(1.0))
    status, said = outcome_of(target("honest", "--baseline", "r.json"), capsys)
    assert status == 0
    assert "kept" not in said
    assert "the baseline does not say of what code it is" in said


def test_a_recorded_run_is_written_with_the_line_of_its_finding(folder, capsys):
    np.save("a.npy", np.ones(5))
    np.save("b.npy", np.ones(4))
    files = [word for name in FILES for word in (f"--{name}", f"r.{name}")]
    words = ["record", "releases_of_a_report:shows_mean", "--pair", "a.npy", "b.npy"]
    status, said = outcome_of([*words, "--epsilon", "1", "--allow-import", *files], capsys)
    assert status == 1
    assert "input: the number that noise is multiplied by" in said
    (one,) = json.loads((folder / "r.sarif").read_text())["runs"][0]["results"]
    physical = one["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "releases_of_a_report.py"
    assert physical["region"]["startLine"] == 12
    assert json.loads((folder / "r.json").read_text())["outcome"] == "FALSIFIED"
    assert "releases_of_a_report.py:12" in (folder / "r.markdown").read_text().replace("&#95;", "_")
    assert "releases_of_a_report:shows_mean breaks its claim" in (folder / "r.out").read_text()
    (suite,) = Xml.parse(folder / "r.junit").getroot()
    assert suite.find("testcase").get("line") == "12"


def test_the_scores_of_the_auditor_are_written_in_every_format(tmp_path, capsys):
    files = [str(word) for name in FILES for word in (f"--{name}", tmp_path / name)]
    words = ["zoo", "half_the_noise", "half_the_sensitivity", "--runs", "2000"]
    assert outcome_of([*words, *files], capsys)[0] == 0
    for name in set(FILES) - {"sarif"}:
        assert "half_the_noise" in (tmp_path / name).read_text().replace("&#95;", "_"), name
    assert len(json.loads((tmp_path / "json").read_text())["scores"]) == 2
    assert json.loads((tmp_path / "sarif").read_text())["runs"][0]["results"] == []


def test_scores_are_kept_while_their_files_are_the_same(folder, capsys):
    np.save("in.npy", np.arange(40.0) + 100)
    np.save("out.npy", np.arange(40.0))
    words = ["scores", "in.npy", "out.npy", "--epsilon", "1", "--delta", "1e-5"]
    assert outcome_of([*words, "--json", "r.json", "--sarif", "r.sarif"], capsys)[0] == 1
    assert json.loads((folder / "r.sarif").read_text())["runs"][0]["results"]
    status, said = outcome_of([*words, "--baseline", "r.json"], capsys)
    assert (status, "1 of 1 row kept" in said) == (0, True)
    np.save("out.npy", np.arange(40.0) + 1)
    status, said = outcome_of([*words, "--baseline", "r.json"], capsys)
    assert (status, "as its settings changed" in said) == (1, True)
