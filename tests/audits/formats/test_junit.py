"""JUnit: a case a row, and a failure for what is wrong."""

import xml.etree.ElementTree as Xml

from audits.claims.findings import Outcome
from audits.formats.junit import to_junit
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


def test_of_ones_own_function_nothing_is_expected():
    (suite,) = Xml.fromstring(to_junit(result(row("f", True, kind="target"))).encode())
    assert suite.find(".//failure").get("message") == "falsified"
    assert "expected" not in suite.find(".//failure").text
