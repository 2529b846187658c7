"""faults.json says what the pages of faults and errata say, and its commands are real."""

import json
import re
from pathlib import Path

from audits.libraries import available_cases
from experiments.catalogue import FIGURES
from experiments.faults import faults, library_faults, number, paper_errata

DOCS = Path(__file__).parents[2] / "docs"
KEPT = json.loads((DOCS / "faults.json").read_text(encoding="utf-8"))


def test_the_file_is_made_from_the_pages():
    assert "\n".join(faults(None)) + "\n" == (DOCS / "faults.json").read_text(encoding="utf-8")


def test_every_fault_of_the_page_is_there_with_its_command():
    page = (DOCS / "faults.md").read_text(encoding="utf-8")
    counts = map(int, re.findall(r"^\| [\w-]+ [\d.]+ \| (\d+) \|", page, re.MULTILINE))
    assert len(KEPT["faults"]) == sum(counts) == page.count("\n## ")
    for fault in KEPT["faults"]:
        subject = f"{fault['library']}: {fault['name']}"
        assert fault["command"] == f"dp-attest audit libraries '{subject}'"
        assert f"## {fault['library']} {fault['version']}: {fault['name']}\n" in page
        bound, claimed = fault["epsilon_at_least"], fault["claimed_epsilon"]
        assert bound is None or bound > claimed
    subjects = [case.subject for case in available_cases(["numpy"])[0]]
    assert {f"numpy: {one['name']}" for one in KEPT["faults"] if one["library"] == "numpy"} <= {
        *subjects
    }


def test_every_erratum_of_the_page_is_there_and_measured_ones_have_a_command():
    page = (DOCS / "errata.md").read_text(encoding="utf-8")
    codes = re.findall(r'<a id="\w+"></a>(\w+)', page)
    assert [one["code"] for one in KEPT["errata"]] == codes
    commands = {one["code"]: one["command"] for one in KEPT["errata"]}
    assert commands["E1"] == "python -m experiments sparse-regression-claims"
    assert commands["E22"] == "python -m experiments frank-wolfe-claims"
    assert commands["E8"] is commands["E11e"] is None  # theory only
    for command in filter(None, commands.values()):
        assert command.rpartition(" ")[2] in FIGURES


def test_what_is_not_stated_is_null():
    section = "# x\n\n## a 1.0: b: c\n\n- found: d\n  e\n- reported: no\n- command: `f`\n"
    [fault] = library_faults(section)
    assert (fault["library"], fault["version"], fault["name"]) == ("a", "1.0", "b: c")
    assert fault["found"] == "d e"
    assert fault["claimed_epsilon"] is fault["epsilon_at_least"] is None
    assert list(paper_errata("# no sections\n")) == []
    assert number(re.compile(r"x (\d)"), "y 3") is None
