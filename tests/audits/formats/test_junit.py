"""JUnit: a case a row, and a failure for what is wrong."""

import xml.etree.ElementTree as Xml

from audits.claims.findings import Outcome
from audits.formats.junit import to_junit
from audits.results.project_code import Place
from audits.results.rows import Compared
from tests.audits.results.report_rows import result, row


def test_junit_has_a_case_a_row_and_fails_what_is_wrong():
    results = result(row("a"), row("b", wrong=True), absent={"opendp": "not installed"})
    (suite,) = Xml.fromstring(to_junit(results).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    cases = list(suite.iter("testcase"))
    assert [case.get("name") for case in cases] == ["a", "b", "opendp"]
    assert [len(case.findall("failure")) for case in cases] == [0, 1, 0]
    assert "falsified, expected survived" in cases[1].find("failure").get("message")
    assert cases[2].find("skipped").get("message") == "not installed"
    assert {one.get("name"): one.get("value") for one in suite.iter("property")}["seed"] == "7"


def test_an_undecided_row_says_why():
    why = row("few", outcome=Outcome.INCONCLUSIVE, unseen=("output: Handle",))
    (suite,) = Xml.fromstring(to_junit(result(why)).encode())
    assert suite.get("failures") == "0"
    assert "inconclusive: not looked into: output: Handle" in suite.find(".//system-out").text


def test_a_violation_that_a_baseline_knows_is_skipped_and_a_place_is_named():
    kept = row("f", True, kind="target", compared=Compared("unchanged", "2026-01-02"),
               places=(Place("pack/noise.py", 12),))  # fmt: skip
    (suite,) = Xml.fromstring(to_junit(result(kept, row("g", True, kind="target"))).encode())
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")
    known, new = suite.iter("testcase")
    assert (known.get("file"), known.get("line")) == ("pack/noise.py", "12")
    assert known.find("skipped").get("message") == "falsified, known from the baseline"
    assert "kept from the audit of 2026-01-02" in known.find("system-out").text
    assert new.find("failure") is not None
    assert "file" not in new.attrib


def test_of_ones_own_function_nothing_is_expected():
    (suite,) = Xml.fromstring(to_junit(result(row("f", True, kind="target"))).encode())
    assert suite.find(".//failure").get("message") == "falsified"
    assert "expected" not in suite.find(".//failure").text
