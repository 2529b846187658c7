"""The README and every page of docs: their examples run, and the table of mechanisms is current."""

import doctest
from pathlib import Path

import pytest

from mechanisms.base.docs_table import (
    TABLE_HEAD,
    TABLE_MARKS,
    declarations,
    write_table,
)
from mechanisms.base.exactness_table import (
    COST_HEAD,
    COST_MARKS,
    exact_forms,
    write_cost,
)
from mechanisms.base.marked_table import table_between

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
               if ">>> " in path.read_text(encoding="utf-8"))  # fmt: skip


def test_the_pages_that_promise_examples_have_them():
    names = {path.name for path in PAGES}
    promised = {"README.md", "accounting.md", "algorithms.md", "audits.md", "budget.md",
                "lower-bounds.md", "mechanisms.md"}  # fmt: skip
    assert promised <= names


# two statements of training, each of 36 intervals: tests/accountant/training has smaller ones
SLOW_PAGES = {"training.md"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, marks=pytest.mark.slow if path.name in SLOW_PAGES else ())
        for path in PAGES
    ],
    ids=lambda path: path.name,
)
def test_the_examples_run(page, tmp_path, monkeypatch):
    # files that an example writes
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 2
    assert found.failed == 0


def test_the_table_of_mechanisms_is_not_stale():
    # rows of mechanisms that were just dropped in may be missing until `make table`
    rows = table_between((ROOT / "docs" / "mechanisms.md").read_text(), TABLE_MARKS).splitlines()[
        2:
    ]
    known = tuple("| " + " | ".join(row) + " | " for _, row in declarations())
    assert len(rows) > 20
    assert [row for row in rows if not row.startswith(known)] == []
    # what follows are the two times
    assert all(row.count(" µs | ") == 1 and row.endswith(" ns |") for row in rows)


def test_make_table_writes_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("mechanisms.base.docs_table.TIMED_BATCH", 10)
    copy = tmp_path / "mechanisms.md"
    copy.write_text(f"before\n{TABLE_MARKS[0]}| stale |\n{TABLE_MARKS[1]}\nafter\n")
    write_table(str(copy))
    text = copy.read_text()
    assert text.startswith(f"before\n{TABLE_MARKS[0]}| " + " | ".join(TABLE_HEAD))
    assert text.endswith(f" ns |\n{TABLE_MARKS[1]}\nafter\n")
    rows = table_between(text, TABLE_MARKS).splitlines()[2:]
    known = ["| " + " | ".join(row) + " | " for _, row in declarations()]
    assert len(rows) == len(known) > 20
    assert all(row.startswith(start) for row, start in zip(rows, known, strict=True))
    assert "stale" not in text


def test_the_cost_of_exactness_is_not_stale():
    rows = table_between((ROOT / "docs" / "mechanisms.md").read_text(), COST_MARKS).splitlines()[2:]
    known = tuple("| " + " | ".join(row) + " | " for row, *_ in exact_forms())
    assert len(rows) > 15
    assert [row for row in rows if not row.startswith(known)] == []


def test_make_table_writes_the_cost(tmp_path, monkeypatch):
    monkeypatch.setattr("mechanisms.base.exactness_table.BATCH", 10)
    copy = tmp_path / "mechanisms.md"
    copy.write_text(f"before\n{COST_MARKS[0]}| stale |\n{COST_MARKS[1]}\nafter\n")
    write_cost(str(copy))
    text = copy.read_text()
    assert text.startswith(f"before\n{COST_MARKS[0]}| " + " | ".join(COST_HEAD))
    assert "stale" not in text
    rows = table_between(text, COST_MARKS).splitlines()[2:]
    # a grid costs no epsilon: the noise pays for it
    cells = [row.strip("| ").split(" | ") for row in rows]
    both = [row for row in cells if row[2] != "-"]
    assert len(both) > 5
    assert all(row[1] == row[2] for row in both)


def test_the_table_is_kept_in_one_place():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [page.name for page in pages if TABLE_MARKS[0] in page.read_text()] == ["mechanisms.md"]
