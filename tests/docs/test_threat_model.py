"""The page of the threat model names every law of the gate, and no other."""

import re
from pathlib import Path

from tests.laws.registry import GATE_MUTANTS

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"


def test_every_law_of_the_gate_is_a_line_of_the_page():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    named = [found for line in lines for found in re.findall(r"`(test_\w+)`", line)]
    assert sorted(named) == sorted(law.__name__ for law in GATE_MUTANTS)
