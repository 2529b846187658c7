"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from accountant.book.history import Line
from accountant.book.status import Status
from accountant.formatting import format_remaining, format_upper
from accountant.ledger.totals import Spending
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
    # the spending of a window or a bucket is not a share of one total
    divisible = status.window is None and status.buckets is None
    shares = history.totals.shares(status) if divisible else {}
    spending = Spending("epsilon", status.epsilon, status.budget.epsilon)
    # a window may also spend what earlier windows did not spend
    if status.most > status.budget.epsilon:
        spending = Spending(status.counts, status.total, status.limit)
    return render(
        "history.html",
        status=status,
        history=history,
        shares=shares,
        book=book,
        command_line=command_line,
        used=spending,
        left=format_remaining(spending.limit, spending.amount),
        percent=lambda part, total: format_upper(100 * part / total, 3) + " %",
        to_come=_to_come(status, history),
        saved=csv_address(_total_rows(shares)),
        meaning=explanation(status.most, status.budget.delta, status.relation),
    )


def _to_come(status: Status, history: HistoryFigures) -> list[tuple[str, str]]:
    """Return what will happen to the budget: a time, empty where it has none, and words."""
    runs = [
        ("", f"{run.to_come:,} of {run.planned:,} releases of {run.name}: paid for, not made yet")
        for run in history.totals.unfinished_runs
    ]
    if status.closed:
        return []
    if status.runs is not None and status.runs[0] < status.runs[1]:
        runs_made, paid = status.runs
        runs.append(("", f"{paid - runs_made:,} of {paid:,} runs of the plan that was set aside"))
    dated = [("", "") if status.window is None else _next_window(status.window)]
    dated.append((status.expires or "", "the budget expires: nothing is spent from then on"))
    return [*runs, *sorted(event for event in dated if event[0])]


def _next_window(label: str) -> tuple[str, str]:
    """Return when a later window begins, by the time of the log, and what that means."""
    if len(label) == len("2026-11"):
        year, month = divmod(12 * int(label[:4]) + int(label[5:]), 12)
        return f"{year:04}-{month + 1:02}-01T00:00:00", "the next month has a budget of its own"
    tomorrow = date.fromisoformat(label) + timedelta(days=1)
    return f"{tomorrow}T00:00:00", "what was spent on the oldest of the 30 days no longer counts"


def _total_rows(shares: dict[str, list[GroupShare]]) -> Iterator[list[object]]:
    yield ["by", "name", "releases", "first", "last", "epsilon"]
    for grouping, group_shares in shares.items():
        for share in group_shares:
            group = share.group
            yield [grouping, group.name, group.releases, group.first, group.last, share.epsilon]
