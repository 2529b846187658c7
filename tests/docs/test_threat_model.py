"""The threat model names every law of the gate, and no other; reports of faults have their page."""

import re
from pathlib import Path

from tests.laws.registry import GATE_MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"


def test_every_law_of_the_gate_is_a_line_of_the_page():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    named = [found for line in lines for found in re.findall(r"`(test_\w+)`", line)]
    assert sorted(named) == sorted(law.__name__ for law in GATE_MUTANTS)


def test_the_page_for_reports_names_what_counts_and_no_address():
    text = (ROOT / "SECURITY.md").read_text()
    for promise in ("bound below the truth", "spend above a budget", "private value in a message"):
        assert promise in text
    assert "private vulnerability report of the repository's host" in text
    assert not re.search(r"://|@|www\.", text)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / link).is_file()
    for page in (ROOT / "README.md", PAGE):
        assert "SECURITY.md)" in page.read_text()
