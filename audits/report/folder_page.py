"""An index of a folder: its plans, ledgers, claims and audits, with what each says first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from accountant.accountants.budget import Budget
from accountant.accountants.tight import Tight
from accountant.book.book import Book
from accountant.book.databases.database_names import book_url
from accountant.book.evidence import Evidence
from accountant.book.status import Status
from accountant.errors import BudgetExceeded, LedgerBusy, LedgerCorrupt, ParameterError
from accountant.formats.plan_file import PlanFile
from accountant.formats.plan_toml import read_file
from accountant.reports.html_document import render
from accountant.reports.plan_lines import lines_of_file, plan_of
from audits.claims.findings import Outcome
from audits.report.summary import verdict_sentence
from audits.results.result_file import Result, read_result

SQLITE_HEADER = b"SQLite format 3\x00"  # the first bytes of every SQLite file, such as a ledger
MAX_FILES = 10_000  # of a folder; more are refused
SKIPPED = ("site-packages", "node_modules")  # folders whose name begins with a dot are too


@final
@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of the folder: its path from the index, and its page where one lies next to it."""

    path: str
    page: str | None


@final
@dataclass(frozen=True, slots=True)
class IndexedPlan:
    """A plan file: what it costs at its budget's delta; the budget is None if it names none."""

    file: IndexedFile
    releases: int  # their number
    epsilon: float | None  # None without a budget, as no delta is known
    budget: Budget | None

    @property
    def fits(self) -> bool | None:
        """Return whether the plan fits its budget; None if there is none."""
        if self.epsilon is None or self.budget is None:
            return None
        return self.epsilon <= self.budget.epsilon


@final
@dataclass(frozen=True, slots=True)
class IndexedAudit:
    """An audit's result: its verdict in a sentence, and whether every row is as expected."""

    file: IndexedFile
    result: Result
    verdict: str
    is_good: bool


@final
@dataclass(slots=True)
class FolderIndex:
    """What a folder holds; ``unread`` has the files that were not read, and why."""

    plans: list[IndexedPlan] = field(default_factory=list)
    ledgers: list[tuple[IndexedFile, Status]] = field(default_factory=list)
    claims: list[tuple[IndexedFile, Evidence]] = field(default_factory=list)
    audits: list[IndexedAudit] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


def index_of(folder: Path, on_file: Callable[[str], None] = lambda name: None) -> FolderIndex:
    """Return the index of a folder and the folders in it.

    Plans are .toml and .json files with releases, ledgers are SQLite files, audits are JSON files
    that ``dp-attest audit --json`` wrote.  Other files are passed over; ``on_file`` is called with
    the name of each that is read.
    """
    index = FolderIndex()
    for path in _files(folder):
        on_file(path.name)
        page = path.with_suffix(".html")
        shown = str(page.relative_to(folder)) if page.is_file() else None
        file = IndexedFile(str(path.relative_to(folder)), shown)
        try:
            if path.suffix in (".toml", ".json"):
                _add_document(index, file, path)
            elif path.is_file():
                with path.open("rb") as start:
                    is_sqlite = start.read(len(SQLITE_HEADER)) == SQLITE_HEADER
                if is_sqlite:
                    with Book.open(book_url(str(path))) as book:
                        index.ledgers += [(file, book.status(name)) for name in book.names]
                        index.claims += [(file, book.evidence(name)) for name in book.claims]
        except (ParameterError, BudgetExceeded, LedgerBusy, LedgerCorrupt, OSError) as error:
            index.unread.append((file.path, str(error).replace(str(path), path.name)))
    return index


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of the folders in it, in order; hidden ones are left out."""
    count = 0
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(x for x in folders if not x.startswith(".") and x not in SKIPPED)
        for name in sorted(names):
            count += 1
            if count > MAX_FILES:
                raise ParameterError(
                    "FOLDER", str(folder), f"a folder of at most {MAX_FILES} files"
                )
            if not name.startswith("."):
                yield Path(directory, name)


def _add_document(index: FolderIndex, file: IndexedFile, path: Path) -> None:
    """Add a plan or a result; a document that is neither is passed over."""
    if path.suffix == ".toml":
        if "[[release]]" in path.read_text(encoding="utf-8", errors="replace"):
            index.plans.append(_plan(file, read_file(path)))
        return
    try:
        keys = json.loads(path.read_bytes())
    except ValueError:
        return
    if isinstance(keys, dict) and "findings" in keys:
        result = read_result(str(path), file.path)
        is_good = all(row.as_expected for row in result.rows)
        index.audits.append(IndexedAudit(file, result, verdict_sentence(result.rows), is_good))
    elif isinstance(keys, dict) and ("release" in keys or "plan" in keys):
        index.plans.append(_plan(file, read_file(path)))


def _plan(file: IndexedFile, plan_file: PlanFile) -> IndexedPlan:
    """The entry of a plan; its cost is computed if the file states a budget."""
    if plan_file.budget is None:
        return IndexedPlan(file, sum(release.count for release in plan_file.releases), None, None)
    lines = lines_of_file(plan_file, plan_file.budget)
    epsilon = Tight().epsilon(plan_of(lines), plan_file.budget.delta)
    return IndexedPlan(file, sum(line.count for line in lines), epsilon, plan_file.budget)


def folder_page(index: FolderIndex, name: str, repeat_command: str) -> str:
    """Return the index as HTML; every word that came from outside is escaped."""
    fallen = Outcome.FALSIFIED
    return render(
        "folder.html",
        "audits.report",
        index=index,
        name=name,
        repeat_command=repeat_command,
        falsified=lambda result: sum(row.outcome is fallen for row in result.rows),
        percent=lambda status: min(100 * status.epsilon / status.budget.epsilon, 100.0),
    )
