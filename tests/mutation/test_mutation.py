"""The search for mutants that no test finds: what is changed, and who finds it."""

import json
import re
import subprocess
import sys

import libcst as cst
import pytest

from tests.mutation import report, sampling
from tests.mutation.covering import LinesOfTests, in_order
from tests.mutation.running import ROOT
from tests.selection.__main__ import LIST as SLOW_CASES

SOURCE = '''
"""Words of the module: 1 < 2."""
from math import inf

Pair = tuple[int, int]
LIMIT: float = 2.0

@cache(size=3)
def doubled(x: "int", y=4):
    """Words."""
    if x < 0:
        raise ValueError("below", x + 1)
    message = "x is {x}"
    return [
        2 * x,
        y,
    ]
'''


def test_what_is_changed_and_where_tests_see_it():
    _, found = sampling.candidates(SOURCE)
    assert sorted(found) == [6, 9, 11, 13, 15]
    assert {one.lines for line in (6, 9) for one in found[line]} == {None}  # at import
    assert {one.lines for one in found[11]} == {range(11, 13)}
    assert {one.lines for one in found[15]} == {range(14, 18)}
    assert {one.function for one in found[15]} == {"doubled"}


def test_the_name_in_a_check_stays():
    _, found = sampling.candidates('def f(x):\n    return REAL.check("x", x)\n')
    codes = {cst.Module([]).code_for_node(one.mutated) for one in found[2]}
    assert codes == {'REAL.check("x", None)', 'REAL.check("x", )'}


def test_a_sample_repeats_and_has_one_mutant_a_line():
    drawn, again = (
        sampling.mutants_of("a.py", SOURCE, sampling.candidates(SOURCE), 4) for _ in range(2)
    )
    assert drawn == again
    assert len({one.line for one in drawn}) == 4
    assert all(one.was != one.becomes for one in drawn)


def test_every_room_that_carries_privacy_is_drawn_from():
    drawn = set(sampling.modules(ROOT))
    assert drawn >= {
        "accountant/amplification/sampled_gaussian/sampled_gaussian_tail.py",
        "accountant/book/chain/entries.py", "accountant/verifier/plan.py",
        "algorithms/frames/rows.py", "audits/attacks/front.py", "audits/claims/claims.py",
        "mechanisms/families/additive.py", "mechanisms/laplace.py",
    }  # fmt: skip
    assert not drawn & {"accountant/cli/plan.py", "audits/zoo/broken/noise.py"}


def test_the_tests_of_a_line_are_those_that_run_it(tmp_path):
    runs = {
        "gw0": {"lines": ["a.py:1", "a.py:7"], "tests": {"first": [0.5, False, [0, 1]]}},
        "gw1": {"lines": ["a.py:7", "b.py:7"], "tests": {"second": [2.0, True, [0]]}},
    }
    for worker, run in runs.items():
        (tmp_path / f"lines.{worker}.json").write_text(json.dumps(run))
    lines_of_tests = LinesOfTests(tmp_path)
    assert lines_of_tests.tests_of("a.py", range(1, 3)) == {"first": 0.5}
    assert lines_of_tests.tests_of("a.py", range(7, 8)) == {"first": 0.5, "second": 2.0}
    assert lines_of_tests.tests_of("a.py", None) == {"first": 0.5, "second": 2.0}
    assert lines_of_tests.tests_of("b.py", None) == {}  # no passing test runs it


def test_lines_that_no_test_runs_may_be_those_of_a_child_process(tmp_path):
    beside = "tests/audits/runner/test_target.py::test"
    elsewhere = "tests/laws/test_values.py::test"
    tests = {beside: [0.5, True, []], elsewhere: [0.5, True, []],
             "tests/audits/runner/test_scores.py::test": [0.5, False, [0]]}  # fmt: skip
    (tmp_path / "lines.gw0.json").write_text(json.dumps({"lines": ["b.py:1"], "tests": tests}))
    lines_of_tests = LinesOfTests(tmp_path)
    assert lines_of_tests.tests_of("audits/runner/target_sampler.py", range(4)) == {beside: 0.5}
    assert lines_of_tests.tests_of("audits/zoo/broken/noise.py", None) == {}
    at_import = lines_of_tests.tests_of("audits/runner/limits.py", None)
    assert at_import == {name: 0.5 for name in tests if name != elsewhere}


def test_a_case_that_is_not_run_where_a_mutant_is_tried_takes_no_time_from_others(tmp_path):
    slow = next(line for line in SLOW_CASES.read_text().splitlines() if "::" in line)
    tests = {slow: [0.5, False, [0]], "quick": [0.5, False, [0]]}
    (tmp_path / "lines.gw0.json").write_text(json.dumps({"lines": ["a.py:1"], "tests": tests}))
    assert LinesOfTests(tmp_path).tests_of("a.py", None) == {"quick": 0.5}


def test_one_case_of_every_test_comes_first():
    seconds = {"a[1]": 1.0, "a[2]": 2.0, "b": 9.0, "c": 50.0}
    assert list(in_order(seconds, 20.0)) == ["a[1]", "b", "a[2]"]


@pytest.mark.parametrize("name", report.judged(), ids=lambda name: ":".join(name[:2]))
def test_what_is_judged_is_still_there(name):
    path, _, was, _ = name
    assert was in re.sub(r"\s+", " ", (ROOT / path).read_text())
    verdict, why = report.judged()[name]
    assert verdict in {"equivalent", "harmless"}
    assert why


def test_the_page_gets_score_interval_seed_and_commit(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.START}\nold\n{report.END}\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    outcomes = ["fell"] * 17 + ["survived"] * 2 + ["equivalent"]
    report.write([(None, outcome, "") for outcome in outcomes], seed=7)
    text = re.sub(r"\s+", " ", page.read_text())
    # of 17 of 19: Clopper and Pearson (1934), from R's binom.test(17, 19)
    assert "the tests find 17, 89.5% (95% interval 66.9% to 98.7%)" in text
    assert "with the fresh seed 7 at commit" in text
    assert report.commits_since(page.read_text()) == 0
    assert "old" not in text


def test_the_score_of_the_page_is_of_this_program():
    commits = report.commits_since(report.PAGE.read_text())
    if commits is None:
        pytest.skip("a clone without history: the age of the score is not known")
    assert commits <= report.MOST_COMMITS, f"{commits} commits later: run `make mutants`"


def test_a_commit_that_is_not_in_the_history_is_too_old(monkeypatch):
    page = f"{report.START} by seed 7 at\ncommit 0123456789ab. {report.END}"
    answers = {"rev-list": "", "rev-parse": "false"}
    monkeypatch.setattr(report, "git", lambda word, *_: answers[word])
    assert report.commits_since(page) == float("inf")
    assert report.commits_since(f"{report.START} {report.END}") == float("inf")
    for unknown in ("true", ""):  # a shallow clone, and no repository
        answers["rev-parse"] = unknown
        assert report.commits_since(page) is None
    answers["rev-list"] = "301"
    assert report.commits_since(page) == 301


PATH = "audits/statistics/single_run.py"
LINE = "if coins == 0 or alpha <= 0:"
FALLS = "return 0.0", "return 1.0"
EQUIVALENT = LINE, LINE.replace("<=", "<")
CODE = """
import json, sys
from pathlib import Path
from tests.mutation.running import copied_tree, import_libraries
from tests.mutation.trial import failures

asked = json.loads(sys.argv[2])
import_libraries(["numpy", "pytest", "hypothesis", "scipy.stats"])
tree = copied_tree(Path(sys.argv[1]), asked["copied"])
print(json.dumps([
    failures(tree, asked["path"], source, asked["tests"]) for source in asked["sources"]
]))
"""


def changed(was, becomes):
    """The file with the mutant that the tool makes, found by its lines."""
    source = (ROOT / PATH).read_text()
    module, found = sampling.candidates(source)
    sources = [
        module.deep_replace(one.node, one.mutated).code for line in found.values() for one in line
    ]
    return next(s for s in sources if sampling.differing_lines(source, s) == (was, becomes))


PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")


@pytest.mark.slow  # it runs tests three times
def test_a_mutant_falls_and_an_equivalent_one_does_not(tmp_path):
    file = "tests/audits/statistics/test_single_run.py"
    asked = {
        "path": PATH,
        "copied": ["dp_attest", *PACKAGES, "tests", "pyproject.toml"],
        "tests": {f"{file}::test_no_coins_and_no_error_left": 1.0},
        "sources": [(ROOT / PATH).read_text(), changed(*EQUIVALENT), changed(*FALLS)],
    }
    words = [sys.executable, "-c", CODE, str(tmp_path / "tree"), json.dumps(asked)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    right, equivalent, falls = json.loads(done.stdout)
    assert (right, equivalent) == ({}, {})
    assert next(iter(falls)).startswith(file)
    assert (tmp_path / "tree" / PATH).read_bytes() == (ROOT / PATH).read_bytes()
