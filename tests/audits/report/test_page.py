"""Reports: self-contained, escaped, whole, and the same story in every form."""

import io
import json
import math
import re
import xml.etree.ElementTree as Xml
from html.parser import HTMLParser

import pytest
from rich.console import Console

from audits.claims.findings import Outcome
from audits.report.junit import to_junit
from audits.report.page import to_html
from audits.report.terminal import print_report
from audits.report.words import escape_control, format_number
from audits.results.result_file import Request, Result, read_result, to_json, without_times
from audits.results.rows import ProfileCurve, ReportRow

HOSTILE = [
    "<script>alert(1)</script>", "[red]not markup[/red]", "\x1b[31mred\x1b[0m", "a\nb\r\tc",
    "right\u202eleft", "\u00a0nbsp", "=cmd()", "\x00", "\ud800", "]]>", "&lt;", "'\"><img src=x>",
    "\\[", "[/]", "\ufffe",
]  # fmt: skip
CURVE = ProfileCurve(
    (0.0, 0.5, 1.0),
    (0.6, 0.3, 0.0),
    (0.6, 0.3, 0.0),
    (0.6, 0.3, 0.0),
    (0.5, 0.2, 0.0),
    (0.7, 0.4, 0.1),
)


def row(subject="x", wrong=False, **more):
    given = {
        "kind": "mechanism", "claim": (1.0, 0.0), "exact_epsilon": 1.0, "epsilon_lower": 0.9,
        "confidence": 0.95, "runs": 100, "outcome": Outcome.FALSIFIED if wrong else
        Outcome.SURVIVED, "expected": Outcome.SURVIVED, "witness": f"saw {subject}",
        "evidence": subject, "seconds": 0.25, "decisive": True, "verdict_lower": 0.8,
        "guesses": (7, 9, 80), "curve": CURVE, **more,
    }  # fmt: skip
    return ReportRow(subject, **given)


def result(*rows, names=(), absent=None):
    request = Request("run", tuple(names), 100, 0.95, 7)
    return Result(request, list(rows), {"python": "3"}, absent or {})


class Checked(HTMLParser):
    """Collects tags and what could ask for something."""

    def __init__(self):
        super().__init__()
        self.tags, self.asks = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.asks += [(k, v) for k, v in attrs if k in {"src", "href", "srcset", "action", "data"}]
        self.asks += [(k, v) for k, v in attrs if k.startswith("on")]


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
def test_hostile_names_are_escaped_everywhere(words):
    facts = ((words, words),)
    told = result(
        row(words), row(f"2{words}", wrong=True), row(f"3{words}", kind="specimen"),
        row(f"4{words}", facts=facts), row(f"5{words}", kind=words),
        names=[words], absent={words: words},
    )  # fmt: skip
    page = Checked()
    html = to_html(told)
    page.feed(html)
    assert not page.asks
    assert not {"script", "img", "link", "iframe", "object", "embed"} & set(page.tags)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", html)
    suite = Xml.fromstring(to_junit(told).encode())[0]
    names = [case.get("name") for case in suite.iter("testcase")]
    assert names[0] == escape_control(words)
    screen = Console(record=True, width=400, file=io.StringIO())
    print_report(told, screen)
    text = screen.export_text()
    assert escape_control(words) in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", text)
    assert json.loads(to_json(told))["findings"][0]["subject"] == words


def test_plain_words_stay_what_they_are():
    assert escape_control("Laplace(scale=1.0) é ε — ü") == "Laplace(scale=1.0) é ε — ü"
    assert escape_control("a\nb\x1b[0m\u202e") == "a\\nb\\x1b[0m\\u202e"
    assert format_number(None) == format_number(math.nan) == "-"
    assert format_number(1.25) == "1.25"


def test_the_page_asks_nobody_and_needs_no_script():
    html = to_html(result(row(), row("y", facts=(("a", "b"),)), row("z", epsilon_lower=None)))
    for words in ("http", "url(", "@import", "<script", "javascript:"):
        assert words not in html
    for words in ("prefers-color-scheme", "--seed 7", "python 3", "What so many runs can see",
                  "7 of 9 guesses right", "claimed", "exact", "samples and band"):  # fmt: skip
        assert words in html
    assert html.count("<details>") == 3


def test_junit_has_a_case_a_row_and_fails_what_is_wrong():
    told = result(row("a"), row("b", wrong=True), absent={"opendp": "not installed"})
    (suite,) = Xml.fromstring(to_junit(told).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    cases = list(suite.iter("testcase"))
    assert [case.get("name") for case in cases] == ["a", "b", "opendp"]
    assert [len(case.findall("failure")) for case in cases] == [0, 1, 0]
    assert "falsified, expected survived" in cases[1].find("failure").get("message")
    assert cases[2].find("skipped").get("message") == "not installed"
    assert {one.get("name"): one.get("value") for one in suite.iter("property")}["seed"] == "7"


def test_a_result_comes_back_as_it_was(tmp_path):
    nothing = row("n", claim=(math.nan, math.nan), exact_epsilon=None, epsilon_lower=None,
                  guesses=None, curve=None, verdict_lower=None, facts=(("a", "b"),))  # fmt: skip
    told = result(row("a"), nothing, row("c", wrong=True), absent={"x": "y"}, names=["a", "b c"])
    path = tmp_path / "r.json"
    path.write_text(to_json(told))
    back = read_result(str(path), "FILE")
    assert to_json(back) == to_json(told)
    assert without_times(back) == without_times(told)
    assert back.rows[0] == told.rows[0]
    assert back.request == told.request
    assert back.request.repeat_command == "python -m audits a 'b c' --seed 7 --samples 100"


def test_no_report_says_private():
    told = result(row("a"), row("b", wrong=True, kind="target"), row("c", kind="library"))
    for text in (to_html(told), to_junit(told), to_json(told)):
        assert "private" not in text.lower()
