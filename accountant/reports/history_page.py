"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from accountant.book.history import Line, Status
from accountant.formatting import format_remaining, format_upper
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import csv_address, render
from accountant.reports.ledger_figures import HistoryFigures
from accountant.reports.ledger_totals import GroupShare


def history_page(status: Status, lines: Iterable[Line], book: str, command_line: str = "") -> str:
    """Return the page as HTML.

    The lines are read once and few are kept, so they may be a stream.  ``book`` is the name of the
    ledger, ``command_line`` the command that makes the page again.
    """
    history = HistoryFigures(status, lines)
    shares = history.totals.shares(status)
    return render(
        "history.html", status=status, history=history, shares=shares, book=book,
        command_line=command_line, left=format_remaining(status.budget.epsilon, status.epsilon),
        percent=lambda epsilon: format_upper(100 * epsilon / status.budget.epsilon, 3) + " %",
        to_come=_to_come(status, history), saved=csv_address(_total_rows(shares)),
        meaning=explanation(status.budget.epsilon, status.budget.delta, status.relation),
    )  # fmt: skip


def _to_come(status: Status, history: HistoryFigures) -> list[tuple[str, str]]:
    """Return what will happen to the budget: a time, empty where it has none, and words."""
    runs = [
        ("", f"{one.to_come:,} of {one.planned:,} releases of {one.name}: paid for, not made yet")
        for one in history.totals.unfinished_runs
    ]
    if status.closed:
        return []
    ends = [(status.expires, "the budget expires: nothing is spent from then on")]
    return [*runs, *((when, words) for when, words in ends if when)]


def _total_rows(shares: dict[str, list[GroupShare]]) -> Iterator[list[object]]:
    yield ["by", "name", "releases", "first", "last", "epsilon"]
    for grouping, some in shares.items():
        for one in some:
            group = one.group
            yield [grouping, group.name, group.releases, group.first, group.last, one.epsilon]
