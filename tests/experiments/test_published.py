"""The page of published epsilons: made from the facts, and true of them."""

import math
import re
from pathlib import Path

import pytest

from accountant import GaussianLoss, Tight, ZCDPLoss
from accountant.verifier import verify
from experiments.published import published, recomputed, records, verdict_on

PAGE = Path(__file__).parents[2] / "docs" / "published.md"
ROWS = [(record, row) for record in records() for row in record["rows"]]


@pytest.mark.slow
def test_the_page_is_made_from_the_facts():
    assert PAGE.read_text(encoding="utf-8") == "\n".join(published(None)) + "\n"


def test_the_page_has_every_record_and_every_row():
    page = PAGE.read_text(encoding="utf-8")
    assert re.findall("^## (.*)", page, re.MULTILINE) == [record["name"] for record in records()]
    shown = [line.split(" | ")[0][2:] for line in page.splitlines() if line.startswith("| ")]
    assert [what for what in shown if what not in ("what", "---")] == [
        row["what"] for _, row in ROWS
    ]
    assert page.count("PROVED, ") == len(ROWS)


def test_every_stated_number_stands_in_the_words_of_its_record():
    for record, row in ROWS:
        if "stated" in row and "less variance" not in row["what"]:
            assert row["stated"] in record["says"], row["what"]


def test_every_record_has_a_source_and_says_what_is_unknown():
    for record in records():
        assert set(record) == {"name", "source", "says", "follows", "unknown", "rows"}
        assert all(record[name].strip() for name in ("source", "says", "follows", "unknown"))


@pytest.mark.parametrize("number", [0, 4, 13, 20])
def test_the_interval_of_a_row_is_proved_and_shown(number):
    _, row = ROWS[number]
    checked = recomputed(row)
    assert verify(checked.document).word == "PROVED"
    line = next(x for x in PAGE.read_text().splitlines() if x.startswith(f"| {row['what']} |"))
    assert checked.verdict.digest[:12] in line
    ends = [float(x) for x in line.split(" | ")[3].split(" to ")]
    assert ends[0] <= checked.verdict.lower
    assert ends[-1] >= checked.verdict.upper


def test_the_faults_that_the_page_names_are_there():
    """By formulas of their own, without the plans of the facts."""

    def simple(rho, delta):
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))

    assert pytest.approx(15.29) == 4.96 + 7.70 + 2.63
    assert simple(4.96, 1e-10) == pytest.approx(26.34, abs=0.01)
    assert simple(7.70, 1e-10) == pytest.approx(34.33, abs=0.01)
    assert simple(2.5562, 1e-10) > 17.8  # and 17.14 is stated
    assert Tight().epsilon(ZCDPLoss((542 / 339) ** 2), 1e-10) == pytest.approx(17.14, abs=0.005)
    assert Tight().certify(GaussianLoss(math.sqrt(2 * 0.0728)), 1e-5).lower > 1.475  # 1.453
    assert pytest.approx(0.042 / 2) == 0.0023 + 0.0047 + 0.014


def test_how_a_stated_number_stands_to_an_interval():
    row = {"what": "", "plan": {"kind": "ZCDPLoss", "rho": 2.56}, "delta": 1e-10}
    checked = recomputed(row)  # 16.4793 to 17.1584
    for stated, words in (
        ("16.47", "does not follow: below the interval"),
        ("16.48", "is not shown"),
        ("17.15", "is not shown"),
        ("17.16", "is valid"),
        ("17.2", "is valid"),
        ("17.158", "fits, as a rounded number"),
        ("17.3", "is valid, and larger than it must be"),
    ):
        assert verdict_on(row | {"stated": stated}, checked) == words, stated
    assert verdict_on(row, checked) == "-"
