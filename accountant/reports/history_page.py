"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left."""

from __future__ import annotations

from collections.abc import Iterable

from accountant.book.history import Line, Status
from accountant.formatting import format_remaining
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import render
from accountant.reports.ledger_figures import HistoryFigures


def history_page(status: Status, lines: Iterable[Line], book: str, command_line: str = "") -> str:
    """Return the page as HTML.

    The lines are read once and few are kept, so they may be a stream.  ``book`` is the name of the
    ledger, ``command_line`` the command that makes the page again.
    """
    return render(
        "history.html", status=status, history=HistoryFigures(status, lines), book=book,
        command_line=command_line, left=format_remaining(status.limit, status.total),
        meaning=explanation(status.most, status.budget.delta, status.relation),
    )  # fmt: skip
