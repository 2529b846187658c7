"""Lower bounds as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from accountant.reports.html_document import render
from audits.minimax.checks.enumeration import Check
from audits.minimax.performance.answers import ProblemReport
from audits.report.bounds import (
    ALGORITHM_HEAD,
    CHECK_HEAD,
    algorithm_cells,
    bound_facts,
    check_cells,
    closest_checks,
)
from audits.report.words import format_number


def to_html(answers: Sequence[ProblemReport], checks: Sequence[Check], repeat_command: str) -> str:
    """The page; every word that came from outside is escaped."""
    return render(
        "bounds.html",
        "audits.report",
        answers=answers,
        repeat_command=repeat_command,
        checks=checks,
        shown=[check_cells(check) for check in closest_checks(checks)],
        number=format_number,
        facts=bound_facts,
        algorithm_rows=lambda answer: map(algorithm_cells, answer.gaps),
        algorithm_head=ALGORITHM_HEAD,
        check_head=CHECK_HEAD,
    )
