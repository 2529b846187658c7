"""A row is kept only if nothing of it has changed: a false keep would be a false all-clear."""

import dataclasses
import json
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.claims.findings import Outcome
from audits.results.project_code import Place
from audits.results.result_file import Request, Result, read_result, to_json
from audits.results.rows import AuditCase, Compared
from audits.runner import baseline as module
from audits.runner.baseline import compared, difference, digests_of, installed_packages, kept_rows
from tests.audits.results.report_rows import row

OPTIONS = {"epsilon": "1", "delta": "0", "pair": ["0", "1"], "bits": False, "allow-import": True}
TARGET = Request("target", ("releases:count",), 1000, 0.95, 7, options=OPTIONS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "releases.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("SCALE = 1.0\n")
    return tmp_path


def case(subject, kind="target"):
    return AuditCase(subject, kind, "", Outcome.SURVIVED, lambda settings, rng: row(subject))


def report(request, *rows, date="2026-01-02 03:04:05+00:00"):
    return Result(request, list(rows), {}, date=date, digests=digests_of(request))


def test_the_same_request_of_the_same_code_has_the_same_digests(folder):
    digests = digests_of(TARGET)
    assert digests == digests_of(TARGET)
    assert digests.unknown == ""
    # the seed and the consent are no settings of a row
    other = replace(TARGET, seed=8, curves=True)
    assert digests_of(other) == digests
    assert difference(report(TARGET), digests, TARGET) == ""
    assert difference(report(TARGET), digests, other) == "another seed was named"


CHANGED = [
    {"command": "record"}, {"names": ("releases:mean",)}, {"samples": 1001}, {"confidence": 0.9},
    *({"options": {**OPTIONS, name: value}} for name, value in [
        ("epsilon", "1.0001"), ("delta", "1e-9"), ("pair", ["0", "2"]), ("pair", ["1", "0"]),
        ("bits", True), ("early", True), ("epsilon", None),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("changed", CHANGED, ids=repr)
def test_another_claim_pair_or_number_of_runs_is_another_row(folder, changed):
    other = replace(TARGET, **changed)
    assert "its settings changed" in difference(report(TARGET), digests_of(other), other)


def test_what_a_file_of_the_pair_holds_is_a_setting(folder):
    for name in ("a.json", "b.json"):
        (folder / name).write_text("[1]")
    request = replace(TARGET, options={**OPTIONS, "pair": ["a.json", "b.json"]})
    before = report(request)
    (folder / "b.json").write_text("[2]")
    assert difference(before, digests_of(request), request) == "its settings changed"
    (folder / "b.json").write_text("[1]")
    assert difference(before, digests_of(request), request) == ""
    scores = Request("scores", ("a.json", "b.json"), 9, 0.95, 7, options={"plan": None})
    before = report(scores)
    (folder / "a.json").write_text("[3]")
    assert difference(before, digests_of(scores), scores) == "its settings changed"


@pytest.mark.parametrize("changed", ["releases.py", "helper.py"])
def test_code_that_changed_is_run_again(folder, changed):
    before = report(TARGET)
    text = (folder / changed).read_text()
    (folder / changed).write_text(text + "# words\n")
    assert difference(before, digests_of(TARGET), TARGET) == "its code changed"
    (folder / changed).write_text(text)
    (folder / "unrelated.py").write_text("x = 1")
    assert difference(before, digests_of(TARGET), TARGET) == ""


def test_code_of_the_auditor_is_code_of_every_row(folder, monkeypatch):
    requests = (TARGET, Request("run", (), 10, 0.95, 7), Request("papers", (), 10, 0.95, 7))
    before = list(map(report, requests))
    monkeypatch.setattr(module, "code_digest", lambda: "another version of dp-attest")
    for earlier, request in zip(before, requests, strict=True):
        assert difference(earlier, digests_of(request), request) == "its code changed"


def test_the_embedded_data_are_code_of_a_run(folder, monkeypatch):
    request = Request("run", (), 10, 0.95, 7)
    before = report(request)
    (folder / "data").write_text("x")
    monkeypatch.setattr(module, "data_file", lambda: folder / "data")
    assert difference(before, digests_of(request), request) == "its code changed"


def test_an_installed_package_that_changed_is_seen(folder, monkeypatch):
    packages = folder / "site"
    (packages / "thing-1.0.dist-info").mkdir(parents=True)
    record = packages / "thing-1.0.dist-info" / "RECORD"
    record.write_text("thing.py,sha256=abc,10\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    before = report(TARGET)
    changed = "an installed package or Python changed"
    # another version, the same version of other files, a package more, one less
    record.write_text("thing.py,sha256=abd,10\n")
    assert difference(before, digests_of(TARGET), TARGET) == changed
    record.write_text("thing.py,sha256=abc,10\n")
    assert difference(before, digests_of(TARGET), TARGET) == ""
    record.parent.rename(packages / "thing-1.1.dist-info")
    assert difference(before, digests_of(TARGET), TARGET) == changed
    (packages / "thing-1.1.dist-info").rename(record.parent)
    (packages / "other-1.0.egg-info").write_text("")
    assert difference(before, digests_of(TARGET), TARGET) == changed
    assert any(line.startswith("other-1.0") for line in installed_packages())


UNKNOWN = [
    {"names": ()}, {"names": ("node release.mjs",)}, {"names": ("a:b", "c:d")},
    {"options": {**OPTIONS, "command": "node release.mjs"}}, {"options": {**OPTIONS, "sql": "x"}},
]  # fmt: skip


@pytest.mark.parametrize("unknown", UNKNOWN, ids=repr)
def test_what_is_not_known_to_be_the_same_is_run_again(folder, unknown):
    request = replace(TARGET, **unknown)
    assert difference(report(request), digests_of(request), request) == "what it runs is not known"


def test_code_that_reads_files_is_run_again_and_the_line_is_named(folder):
    (folder / "helper.py").write_text("SCALE = float(open('scale').read())\n")
    said = difference(report(TARGET), digests_of(TARGET), TARGET)
    assert said.startswith("its code may read what no digest stands for: helper.py:1 uses ")


def test_a_report_without_digests_keeps_nothing(folder):
    older = replace(report(TARGET), digests=None)
    unsure = replace(report(TARGET), digests=replace(digests_of(TARGET), unknown="a reason"))
    for earlier in (older, unsure):
        said = difference(earlier, digests_of(TARGET), TARGET)
        assert said == "the baseline does not say of what code it is"


def test_a_digest_that_differs_in_one_letter_keeps_nothing(folder):
    digests = digests_of(TARGET)
    for field in dataclasses.fields(digests):
        text = getattr(digests, field.name)
        other = replace(digests, **{field.name: text[:-1] + chr(ord(text[-1:] or "a") ^ 1)})
        assert difference(replace(report(TARGET), digests=other), digests, TARGET) != ""
        assert digests.difference(None) != ""


def test_rows_are_kept_by_their_subject_and_kind_with_the_day_that_they_are_of(folder):
    rows = (
        row("a", kind="target"),
        row("b", True, kind="target", compared=Compared("unchanged", "an earlier day")),
        row("c", kind="target", compared=Compared("updated", reason="x")), row("d", kind="bits"),
    )  # fmt: skip
    earlier = report(TARGET, *rows)
    kept = kept_rows(earlier, [case(name) for name in "abcde"])
    assert set(kept) == {"a", "b", "c"}
    assert kept["a"].compared == kept["c"].compared == Compared("unchanged", earlier.date)
    assert kept["b"].compared == Compared("unchanged", "an earlier day")
    assert replace(kept["a"], compared=None) == rows[0]
    assert (kept["b"].as_expected, kept["b"].fails, rows[1].fails) == (False, False, False)
    assert compared(row("e"), earlier, "x").compared.state == "new"
    assert compared(row("a"), earlier, "x").compared == Compared("updated", reason="x")


def test_digests_and_comparisons_come_back_from_a_file(folder):
    made = report(
        TARGET,
        row("a", kind="target", places=(Place("a.py", 3, "x"),)),
        row("b", compared=Compared("new")),
    )
    (folder / "r.json").write_text(to_json(made))
    back = read_result("r.json", "FILE")
    assert back.digests == made.digests
    assert back.rows == made.rows
    spoiled = json.loads(to_json(made))
    spoiled["digests"]["more"] = "x"
    (folder / "r.json").write_text(json.dumps(spoiled))
    with pytest.raises(ValueError, match="FILE must be a result"):
        read_result("r.json", "FILE")


WORDS = st.text("ab01.", max_size=3)
REQUESTS = st.builds(
    Request,
    st.sampled_from(["target", "scores"]),
    st.tuples(st.sampled_from(["releases:count", "releases:mean"])),
    st.integers(10, 12),
    st.sampled_from([0.9, 0.95]),
    st.integers(0, 2),
    options=st.fixed_dictionaries(
        {"epsilon": WORDS, "pair": st.lists(WORDS, min_size=2, max_size=2), "bits": st.booleans()}
    ),
)


@given(REQUESTS, REQUESTS)
@settings(max_examples=300, deadline=None)
def test_only_equal_requests_keep_rows(first, second):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "installed_packages", list)
        patch.setattr(module, "code_digest", str)
        patch.setattr(module, "ProjectCode", lambda name: Known)
        is_kept = difference(report(first), digests_of(second), second) == ""
    assert is_kept is (first == second)


class Known:
    digest, reads = "", ()
