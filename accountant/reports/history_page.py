"""The page of a ledger: what was spent of a data set's budget, when, by whom, and what is left."""

from __future__ import annotations

from collections.abc import Sequence

from accountant.book.history import Line, Status
from accountant.formatting import format_remaining
from accountant.planning.interpretation import explanation
from accountant.reports.html_document import render
from accountant.reports.ledger_figures import releases_by_kind, spending_figure

MAX_SHOWN_LINES = 1000  # the last lines; more make a page that no browser scrolls


def history_page(status: Status, lines: Sequence[Line], book: str, command_line: str = "") -> str:
    """Return the page as HTML.

    ``book`` is the name of the ledger, ``command_line`` the command that makes the page again.
    """
    return render(
        "history.html", status=status, lines=lines, book=book, command_line=command_line,
        left=format_remaining(status.limit, status.total),
        meaning=explanation(status.budget.epsilon, status.budget.delta, status.relation),
        spending=spending_figure(status, lines) if lines else None,
        kinds=releases_by_kind(status, lines), max_lines=MAX_SHOWN_LINES,
    )  # fmt: skip
