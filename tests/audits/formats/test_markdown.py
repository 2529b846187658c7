"""Markdown: the verdict first, a line for each row, and no word that is markup."""

import html
import re
from dataclasses import replace

import pytest

from accountant.formatting import escape_control
from audits.claims.findings import Outcome
from audits.formats.markdown import MAX_ROWS, to_markdown
from audits.results.project_code import Place
from audits.results.rows import Compared
from tests.audits.results.report_rows import result, row

HOSTILE = [
    "<script>alert(1)</script>", "[red](https://x)", "![x](y)", "a|b", "**bold**", "_a_", "`code`",
    "a\nb", "# head", "@someone", "#12", "https://x", "www.x.y", "~~no~~", "\\", "\x1b[31m",
    "<!-- -->", "&lt;", "</details>", "$x$", "\ud800", "| --- |",
]  # fmt: skip


def cells_of(text):
    """The cells of all tables, as a reader sees them."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    return [[html.unescape(cell.strip()) for cell in line.split("|")[1:-1]] for line in lines]


def test_the_verdict_is_first_and_what_is_wrong_is_above_the_rest():
    place = (Place("pack/noise.py", 12),)
    wrong = row("noise:half", True, kind="target", places=place, verdict_lower=1.98765)
    few = row("few", outcome=Outcome.INCONCLUSIVE, noise="Laplace noise", needed_runs=690)
    text = to_markdown(result(row("fine"), wrong, few))
    paragraphs = text.split("\n\n")
    assert paragraphs[0] == "## dp-attest audit"
    assert paragraphs[1].startswith("**1 violation: noise:half leaks ε ≥ 1.987, claimed 1. 1 of 3")
    assert text.index("### Look at these first") < text.index("<details>")
    table = cells_of(text)
    assert table[2] == [
        "**FALSIFIED**", "noise:half", "1", "1.0000", "1.9876", "pack/noise.py:12; noise:half"
    ]  # fmt: skip
    assert table[3][0] == "INCONCLUSIVE"
    assert table[3][-1] == "too few runs to see half of Laplace noise; 690 would"
    assert [cells[1] for cells in table if cells[0] == "SURVIVED"] == ["fine"]
    assert "Repeat with `dp-attest audit run --seed 7 --runs 100`." in text
    assert "no proof of privacy" in text


def test_a_report_of_one_row_is_open_and_nothing_is_folded_away():
    text = to_markdown(result(row("fine")))
    assert "<details open>" in text
    assert "Look at these first" not in text
    assert to_markdown(result()).count("\n\n") >= 2
    assert "Nothing was audited." in to_markdown(result())


def test_what_was_kept_says_from_when():
    kept = row("f", True, kind="target", compared=Compared("unchanged", "2026-01-02 03:04"))
    text = to_markdown(result(kept, row("g", compared=Compared("new", reason="it is new"))))
    assert "1 of 2 rows kept from the baseline. Kept from 2026-01-02 03:04, unchanged: f." in text
    assert "Known from the baseline, so that it fails nothing: f." in text
    assert "Audited now, as it is new: g." in text
    assert "**FALSIFIED**" not in text
    assert "unchanged since 2026-01-02 03:04" in text


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
def test_hostile_words_stay_words(words):
    rows = [
        row(words, True, kind="target", witness=words, evidence=words, notes=(words,)),
        row(f"2{words}", kind=words, places=(Place(words, 1, words),)),
        row(f"3{words}", outcome=Outcome.INCONCLUSIVE, unseen=(words,)),
    ]
    text = to_markdown(result(*rows, names=[words], absent={words: words}))
    seen = [cell for cells in cells_of(text) for cell in cells]
    assert escape_control(words) in seen
    body = text.partition("Repeat with")[0]
    plain = re.sub(r"&#\d+;", "", body)
    for tag in re.findall(r"<[^>]*>", plain):
        assert tag in {"<details>", "<details open>", "</details>", "<summary>", "</summary>"}
    assert plain.count("</details>") == plain.count("<details")
    assert not re.search(r"\]\(|@|://|www\.|`|~|\$|[\x00-\x09\x0b-\x1f\ud800]", plain)


def test_a_long_report_is_cut_with_its_number():
    text = to_markdown(result(*(row(f"r{k}") for k in range(MAX_ROWS + 5))))
    assert "and 5 more" in text
    long_name = row("x" * 5000, True, kind="target", evidence="y" * 5000)
    assert len(to_markdown(result(replace(long_name, kind="mechanism")))) < 9000
