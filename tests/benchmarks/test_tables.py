"""Epsilons in the tables that benches write: recomputed, and the same wherever a plan stands."""

import re
from pathlib import Path

import pytest

from accountant import Tight
from benchmarks import bench_proofs, bench_sampling_schemes
from benchmarks.bench_proofs import plans
from mechanisms.base.marked_table import table_between

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "records/bench"
PAGES = [DOCS / "accounting.md", *sorted(RECORDS.glob("*.txt"))]
# a cell of a table, with or without its first bar, or the line of a scheme
PRINTED = re.compile(
    r"^(?:\| )?(?P<plan>[^|\n]+?)(?: \||: epsilon) "
    r"(?:at most )?(?P<epsilon>\d[\d.]*) (?:\||at delta)",
    re.MULTILINE,
)
ROUNDING = 1e-9  # of epsilon: an upper end is printed to ten digits
WIDTH = 1e-6  # of epsilon: that of `Tight`, within which another engine may answer


# a second each; other plans and cases of the accountant run their lines
SLOW = {
    "1,000 replace-one Poisson, noise 1, rate .01",
    "random allocation, noise 1, 4 of 1,000 (a bound)",
}


def printed_epsilons(text):
    """By the plan of a row, every epsilon that a page prints for it."""
    epsilons = {}
    for row in PRINTED.finditer(text):
        epsilons.setdefault(row["plan"], []).append(float(row["epsilon"]))
    return epsilons


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_plan_has_the_same_epsilon_on_every_page(slow):
    printed = printed_epsilons("\n".join(page.read_text("utf-8") for page in PAGES))
    wrong, times_printed = {}, []
    for name, plan, delta in plans(quick=False):
        times_printed.append(len(printed[name]))
        agree = printed[name] == pytest.approx(printed[name][:1] * len(printed[name]), rel=ROUNDING)
        epsilon_upper = printed[name][0]
        if (name in SLOW) == slow:
            epsilon_upper = Tight().certify(plan, delta).upper
        if not (agree and printed[name][0] == pytest.approx(epsilon_upper, rel=WIDTH)):
            wrong[name] = (epsilon_upper, printed[name])
    assert wrong == {}
    assert {name for name, _, _ in plans(quick=False)} >= SLOW
    # proofs stand in a table and in the output of their bench, schemes in two of each
    assert min(times_printed) >= 2
    assert sum(times >= 4 for times in times_printed) >= 13


@pytest.mark.parametrize("bench", [bench_proofs, bench_sampling_schemes])
def test_a_table_says_what_its_bench_printed(bench):
    name = bench.__name__.rpartition(".")[2]
    printed = (RECORDS / f"{name}.txt").read_text("utf-8").splitlines()
    rows = table_between(bench.PAGE.read_text("utf-8"), bench.MARKS).splitlines()[2:]
    assert len(rows) >= 15
    for row in rows:
        cells = row.removeprefix("| ").removesuffix(" |").split(" | ")
        (line,) = (one for one in printed if one.startswith((f"{cells[0]} |", f"{cells[0]}: ")))
        assert [cell for cell in cells if cell not in line] == []


def test_another_epsilon_is_found():
    rows = (
        "| a plan | 0.5400505455 | 4e-07 |\n"
        "a plan | at most 0.5400505678 | 6e-07\n"
        "a plan: epsilon at most 0.54005 at delta 1e-06, width 4e-07"
    )
    (epsilons,) = printed_epsilons(rows).values()
    assert epsilons == [0.5400505455, 0.5400505678, 0.54005]
    assert epsilons[1:] != pytest.approx(epsilons[:1] * 2, rel=ROUNDING)
