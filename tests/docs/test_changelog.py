"""A measured figure of the changelog stands beside what measures it; what it names is there."""

import re

import pytest

from tests.docs.blocks import DIGITS, ROOT, UNIT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
# a time, a memory, a share, a ratio, or any decimal: an epsilon too is of some command or test
MEASURED = re.compile(
    rf"{DIGITS}{UNIT}|(?<![\w.])\d*\.\d+(?!\w|\.\d)"
    r"|\b(?i:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand) times\b"
    r"|\b(?:twice|half|third|tenth|quarter) (?:of )?the (?:processor )?time\b"
)
CODE = re.compile(r"`[^`]*`")  # numbers in it are settings
COMMAND = re.compile(r"`(?:python -m|dp-attest) [\w.]+[^`]*`|`make \w+[^`]*`")
FILE = re.compile(r"(?:docs|tests|benchmarks|experiments)/[\w/]+\.(?:md|py|txt)")


def entries(text):
    """The items of the lists, each in one line."""
    items = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    return [" ".join(item.partition("\n\n")[0].split()) for item in items]


def without_source(text):
    """The entries that have a measured figure and name no command, test or page."""
    return [
        entry
        for entry in entries(text)
        if MEASURED.search(CODE.sub(" ", entry))
        and not (COMMAND.search(entry) or FILE.search(entry))
    ]


def test_every_measured_figure_names_what_measures_it():
    assert len(entries(CHANGELOG)) > 50
    assert without_source(CHANGELOG) == []


@pytest.mark.parametrize(
    "entry",
    ["`Parallel` of a million equal parts answers in 2 s (17 s before).",
     "Exact `PrivUnit` is 2 to 30 times slower.",
     "Importing takes 18 % less.",
     "`PLD` of 1,000 samples takes half the time.",
     "R² on housing data at epsilon 1: .67 (.22 before).",
     "The mean error fell from .041\n  to .018.",
     "It allows δ 0.119 at ε 0 where it has 0.393.",
     "A budget of 25 was spent at 29.49.",
     "Up to 9 % less noise fits.",
     "Five times as many fit."],
)  # fmt: skip
def test_a_figure_without_its_source_is_found(entry):
    assert len(without_source(f"- {entry}\n")) == 1
    assert without_source(f"- {entry} Measured by `python -m benchmarks.bench_top_k`.\n") == []


def test_files_that_it_names_are_there():
    missing = [name for name in FILE.findall(CHANGELOG) if not (ROOT / name).is_file()]
    assert missing == []


def test_public_names_of_the_release_are_in_the_code():
    _, found, holds = CHANGELOG.partition("### What 0.1.0 holds")
    assert found
    folders = ("accountant", "mechanisms", "algorithms", "audits")
    stubs = "".join((ROOT / name / "__init__.pyi").read_text("utf-8") for name in folders)
    names = set(re.findall(r"`([A-Z]+[a-z]\w+)[`(]", holds))
    inside = {"Adjacency", "Key", "NoSignalWarning", "PrivacyEngine", "Schema", "TightAccountant"}
    assert names - inside - set(re.findall(r"as (\w+)", stubs)) == set()
