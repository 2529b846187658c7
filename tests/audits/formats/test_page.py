"""Reports: self-contained, escaped, whole, and the same story in every form."""

import io
import json
import math
import re
import xml.etree.ElementTree as Xml
from dataclasses import replace

import pytest
from rich.console import Console

from accountant.formatting import escape_control
from audits.formats.html import to_html
from audits.formats.junit import to_junit
from audits.report.terminal import print_report
from audits.report.words import format_number
from audits.results.project_code import Place
from audits.results.result_file import to_json
from audits.results.rows import Compared
from tests.audits.results.report_rows import result, row
from tests.html_checks import Checked

HOSTILE = [
    "<script>alert(1)</script>", "[red]not markup[/red]", "\x1b[31mred\x1b[0m", "a\nb\r\tc",
    "right\u202eleft", "\u00a0nbsp", "=cmd()", "\x00", "\ud800", "]]>", "&lt;", "'\"><img src=x>",
    "\\[", "[/]", "\ufffe",
]  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
def test_hostile_names_are_escaped_everywhere(words):
    facts = ((words, words),)
    results = result(
        row(words), row(f"2{words}", wrong=True), row(f"3{words}", kind="specimen"),
        row(f"4{words}", facts=facts), row(f"5{words}", kind=words),
        names=[words], absent={words: words},
    )  # fmt: skip
    html = to_html(results)
    page = Checked(html)
    assert not page.asks
    assert not {"script", "img", "iframe", "object", "embed"} & set(page.tags)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", html)
    suite = Xml.fromstring(to_junit(results).encode())[0]
    names = [case.get("name") for case in suite.iter("testcase")]
    assert names[0] == escape_control(words)
    screen = Console(record=True, width=400, file=io.StringIO())
    print_report(results, screen)
    text = screen.export_text()
    assert escape_control(words) in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", text)
    assert json.loads(to_json(results))["findings"][0]["subject"] == words


def test_plain_words_stay_what_they_are():
    assert escape_control("Laplace(scale=1.0) é ε — ü") == "Laplace(scale=1.0) é ε — ü"
    assert escape_control("a\nb\x1b[0m\u202e") == "a\\nb\\x1b[0m\\u202e"
    assert format_number(None) == format_number(math.nan) == "-"
    assert format_number(1.25) == "1.25"


def test_the_page_asks_nobody_and_needs_no_script():
    html = to_html(result(row(), row("y", facts=(("a", "b"),)), row("z", epsilon_lower=None)))
    for words in ("http:", "https:", "url(", "@import", "<script", "javascript:"):
        assert words not in html
    for words in ("prefers-color-scheme", "--seed 7", "python 3", "runs detect",
                  "7 of 9 guesses right", "claimed", "exact", "samples and band"):  # fmt: skip
        assert words in html
    assert html.count("<details>") == 3


def test_no_report_says_private():
    results = result(row("a"), row("b", wrong=True, kind="target"), row("c", kind="library"))
    for text in (to_html(results), to_junit(results), to_json(results)):
        assert "private" not in text.lower()


def test_the_page_says_when_of_what_code_and_how_to_repeat_it():
    made = replace(result(row()), date="2026-01-02 03:04:05+00:00", code="SHA-256 abc of x")
    html = to_html(made)
    for words in ("<td>2026-01-02 03:04:05+00:00", "<td>SHA-256 abc of x", "<code>dp-attest audit",
                  "code { user-select: all"):  # fmt: skip
        assert words in html
    assert "<th>date" not in to_html(result(row()))
    assert {"date": made.date, "code": made.code}.items() <= json.loads(to_json(made)).items()


def test_the_page_says_what_was_kept_and_where_the_code_is():
    kept = row("f", True, kind="target", compared=Compared("unchanged", "2026-01-02"),
               places=(Place("pack/noise.py", 12, "a sentence"),))  # fmt: skip
    html = to_html(result(kept))
    assert "1 of 1 row kept from the baseline." in html
    assert "Kept from the audit of 2026-01-02" in html
    assert "<code>pack/noise.py:12</code>: a sentence" in html
    assert '<p class="verdict">' in html
    assert '<p class="verdict bad">' in to_html(result(replace(kept, compared=None)))


def test_the_page_begins_with_the_verdict_and_its_bounds():
    own = row("f", True, kind="target", epsilon_lower=2.0, verdict_lower=1.98765)
    html = to_html(result(own))
    words = Checked(html).words
    first = [one.strip() for one in words if one.strip()]
    assert first[first.index("dp-attest audit", 1) + 1] == (
        "1 violation: f leaks ε ≥ 1.987, claimed 1."
    )
    assert "No violation of epsilon 1 up to 3" in html
    assert re.search(r"Violations: \d+ \(99.9999 %\)", html)
    assert "expected" not in html
    assert ">1.987</span>" in html
    assert "at 95 %, this row says that epsilon is at least\n2.0000" in html
    known = to_html(
        result(row("low bits of Laplace(scale=1.0, sensitivity=1.0, arithmetic=EXACT)"))
    )
    assert "<strong>low bits of Laplace(scale=1.0)</strong>" in known
    assert "<p>low bits of Laplace(scale=1.0, sensitivity=1.0, arithmetic=EXACT)</p>" in known
