"""The list of slow cases: how it is chosen, and that it names cases that exist."""

import json
import re
from pathlib import Path

import pytest

from tests.selection.__main__ import LIST, OTHERS, slow_cases
from tests.selection.line_coverage import read_lines

ROOT = Path(__file__).parents[2]


def test_listed_cases_exist():
    for case in LIST.read_text().splitlines():
        if not case.startswith("#"):
            file, name = case.partition("[")[0].split("::")[:2]  # of a method its class
            assert re.search(rf"^(def|class) {name}\(", (ROOT / file).read_text(), re.M), case


@pytest.mark.parametrize("file", ["test_false_claims", "test_false_files"])
def test_no_case_of_a_law_that_runs_each_is_listed(file):
    """What their cases judge is seen in no line: `STAY` names them."""
    assert f"tests/laws/{file}.py" not in LIST.read_text()


def test_a_case_is_slow_where_enough_others_run_its_lines():
    lines = {"shared": 1, "rare": 2}
    cases = {
        f"test[{number}]": (0.1 + number, False, {lines["shared"]}) for number in range(OTHERS + 2)
    }
    cases["alone"] = 9.0, False, {lines["shared"], lines["rare"]}
    cases["quick"] = 0.01, False, {lines["shared"]}
    cases["starts processes"] = 9.0, True, {lines["shared"]}
    cases["tests/guarantees/test_everyday.py::case"] = 9.0, False, {lines["shared"]}
    # The cases that must stay run the line too, so all others may leave, but for the cheapest.
    assert slow_cases(cases) == [f"test[{number}]" for number in range(1, OTHERS + 2)]


@pytest.mark.parametrize(("seconds", "staying"), [(0.1, OTHERS), (1.0, 1)])
def test_of_equal_cases_so_many_stay(seconds, staying):
    cases = {f"case {number}": (seconds + number / 1e3, False, {1, 2}) for number in range(6)}
    cases |= {f"case {number}[quick]": (0.01, False, set()) for number in range(6)}
    assert slow_cases(cases) == [f"case {number}" for number in range(staying, 6)]


def test_lines_of_two_workers_are_the_same_lines(tmp_path):
    runs = [
        {"lines": ["a.py:1", "b.py:2"], "tests": {"first": [0.5, False, [0, 1]]}},
        {"lines": ["b.py:2"], "tests": {"second": [0.25, True, [0]]}},
    ]
    files = [tmp_path / f"lines.gw{number}.json" for number in range(2)]
    for file, run in zip(files, runs, strict=True):
        file.write_text(json.dumps(run))
    cases = read_lines(files)
    assert cases["second"][:2] == (0.25, True)
    assert cases["second"][2] < cases["first"][2]
