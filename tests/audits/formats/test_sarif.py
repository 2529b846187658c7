"""SARIF: the shape of the official schema, and a result for what needs a look, at its line."""

import json
import math
from dataclasses import replace

import pytest

from audits.claims.findings import Outcome
from audits.formats.sarif import MAX_TEXT, RULES, to_sarif
from audits.results.project_code import Place
from audits.results.rows import Compared
from tests.audits.results.report_rows import result, row

# What the official schema of SARIF 2.1.0 says of the objects that we write: the properties that it
# requires, and the type of each that we use.  It allows none that it does not name.
TEXT, NUMBER, TRUTH = str, int, bool
SHAPE = {
    "log": ({"version", "runs"}, {"$schema": TEXT, "version": TEXT, "runs": ["run"]}),
    "run": (
        {"tool"},
        {"tool": "tool", "automationDetails": "details", "originalUriBaseIds": {"*": "artifact"},
         "invocations": ["invocation"], "results": ["result"], "properties": dict},
    ),
    "tool": ({"driver"}, {"driver": "driver"}),
    "driver": ({"name"}, {"name": TEXT, "version": TEXT, "rules": ["rule"]}),
    "rule": (
        {"id"},
        {"id": TEXT, "name": TEXT, "shortDescription": "words", "fullDescription": "words",
         "help": "words", "defaultConfiguration": "configuration", "properties": dict},
    ),
    "words": ({"text"}, {"text": TEXT, "markdown": TEXT}),
    "configuration": (set(), {"level": {"none", "note", "warning", "error"}}),
    "details": (set(), {"id": TEXT}),
    "invocation": (
        {"executionSuccessful"},
        {"executionSuccessful": TRUTH, "commandLine": TEXT, "endTimeUtc": TEXT},
    ),
    "result": (
        {"message"},
        {"ruleId": TEXT, "ruleIndex": NUMBER, "level": {"none", "note", "warning", "error"},
         "message": "message", "locations": ["location"], "partialFingerprints": {"*": TEXT},
         "baselineState": {"new", "unchanged", "updated", "absent"}, "properties": dict},
    ),
    "message": ({"text"}, {"text": TEXT}),  # it may have an id in place of its text
    "location": (set(), {"physicalLocation": "physical"}),
    "physical": ({"artifactLocation"}, {"artifactLocation": "artifact", "region": "region"}),
    "artifact": (set(), {"uri": TEXT, "uriBaseId": TEXT, "description": "message"}),
    "region": (set(), {"startLine": NUMBER}),
}  # fmt: skip


def check_shape(value, expected):
    """Compare a part of a document with what the schema says of it."""
    if isinstance(expected, str):
        required, properties = SHAPE[expected]
        assert isinstance(value, dict)
        assert required <= set(value) <= set(properties), expected
        for name, part in value.items():
            check_shape(part, properties[name])
    elif isinstance(expected, list):
        assert isinstance(value, list)
        for part in value:
            check_shape(part, expected[0])
    elif isinstance(expected, set):
        assert value in expected
    elif isinstance(expected, dict):
        for part in value.values():
            check_shape(part, expected["*"])
    else:
        assert type(value) is expected


def run_of(*rows, **more):
    """The run in the document of some rows, which has the shape of the schema."""
    document = json.loads(to_sarif(replace(result(*rows), **more)))
    check_shape(document, "log")
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one.get("locations", [{}]) != []
        for place in one.get("locations", ()):
            assert place["physicalLocation"]["region"]["startLine"] >= 1
    return run


FALSIFIED = row("mycode:f", True, kind="target", places=(Place("pack/my code.py", 12),),
                verdict_lower=1.9876)  # fmt: skip


def test_a_falsified_claim_is_an_error_at_the_line_of_the_function():
    run = run_of(row("mycode:g", kind="target"), FALSIFIED)
    (one,) = run["results"]
    assert (one["ruleId"], one["level"]) == ("falsified-claim", "error")
    said = one["message"]["text"]
    assert said == "mycode:f leaks ε ≥ 1.987, claimed 1. Seen: saw mycode:f."
    physical = one["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "pack/my%20code.py", "uriBaseId": "%SRCROOT%"}
    assert physical["region"] == {"startLine": 12}
    assert one["properties"]["epsilonLower"] == 1.9876
    assert "baselineState" not in one


def test_what_is_undecided_is_a_warning_or_a_note_that_says_what_to_do():
    weak = {"outcome": Outcome.INCONCLUSIVE, "noise": "Laplace noise", "needed_runs": 690}
    few = row("few", kind="target", **weak)
    part = row("part", outcome=Outcome.INCONCLUSIVE, unseen=("output[1]: Handle",))
    missed = row("missed", expected=Outcome.FALSIFIED)
    caught = row("caught", outcome=Outcome.FALSIFIED, expected=Outcome.FALSIFIED)
    run = run_of(few, part, missed, caught)
    fired = [(one["ruleId"], one["level"], one["message"]["text"]) for one in run["results"]]
    assert fired == [
        ("too-few-runs", "note",
         "few: too few runs to see half of Laplace noise; 690 would."),
        ("not-looked-into", "warning", "part: not looked into: output[1]: Handle."),
        ("known-fault-not-found", "error", "missed was not caught: saw missed."),
    ]  # fmt: skip
    assert run_of()["results"] == []


def test_every_rule_has_a_help_text_and_a_level():
    rules = run_of()["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for rule in rules:
        assert len(rule["help"]["text"]) > 80
        assert rule["name"].isidentifier()
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}


def test_each_place_of_a_recorded_run_is_a_result():
    places = (Place("a.py", 3, "input: x depends on the data"), Place("b.py", 9, "cost: 2"))
    run = run_of(row("m:f", True, kind="record", places=places, verdict_lower=None))
    said = [one["message"]["text"] for one in run["results"]]
    assert said == ["m:f: input: x depends on the data.", "m:f: cost: 2."]
    lines = [one["locations"][0]["physicalLocation"]["region"] for one in run["results"]]
    assert lines == [{"startLine": 3}, {"startLine": 9}]
    lost = row("m:f", kind="record", outcome=Outcome.INCONCLUSIVE, places=places, unseen=("x",))
    fired = [(one["level"], one["message"]["text"]) for one in run_of(lost)["results"]]
    assert fired == [("warning", words) for words in said]


def test_the_fingerprint_is_that_of_the_fault_not_of_its_line_or_its_numbers():
    def known_by(one):
        return run_of(one)["results"][0]["partialFingerprints"]["subject/v1"]

    moved = replace(FALSIFIED, places=(Place("pack/my code.py", 99),), witness="x", seconds=9.0)
    assert known_by(moved) == known_by(FALSIFIED)
    others = [replace(FALSIFIED, subject="mycode:h"), replace(FALSIFIED, kind="mechanism"),
              replace(FALSIFIED, places=(Place("other.py", 12),))]  # fmt: skip
    assert len({known_by(one) for one in [FALSIFIED, *others]}) == 4


@pytest.mark.parametrize("state", ["unchanged", "updated", "new"])
def test_what_a_baseline_says_is_the_state_of_a_result(state):
    (one,) = run_of(replace(FALSIFIED, compared=Compared(state, "a day")))["results"]
    assert (one["baselineState"], one["level"]) == (state, "error")


def test_a_report_says_when_and_how_and_stands_beside_those_of_other_functions():
    run = run_of(row(), date="2026-01-02 03:04:05+00:00")
    (call,) = run["invocations"]
    assert call["endTimeUtc"] == "2026-01-02T03:04:05Z"
    assert call["commandLine"].startswith("dp-attest audit")
    assert run["automationDetails"]["id"] == "dp-attest/run/"


@pytest.mark.parametrize(
    "words", ["[see](https://elsewhere)", "\x1b[31m", "\ud800", "\x00", "a\nb"]
)
def test_words_of_the_audited_code_are_no_link_and_no_control_characters(words):
    place = (Place(f"{words}.py", 1),)
    run = run_of(row(words, True, kind="target", witness=words, places=place))
    said = run["results"][0]["message"]["text"]
    assert "](" not in said
    assert not set("\x1b\x00\n\ud800") & set(said)
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"][
        "uri"
    ].isascii()


def test_a_number_that_json_has_no_word_for_is_left_out_and_a_long_witness_is_cut():
    odd = row("f", True, claim=(math.nan, math.inf), verdict_lower=None, witness="x" * 9999)
    (one,) = run_of(odd)["results"]
    assert set(one["properties"]) == {"runs", "outcome"}
    assert len(one["message"]["text"]) == MAX_TEXT
