"""The report as one self-contained HTML page, without scripts or requests."""

from __future__ import annotations

from accountant.reports.html_document import render
from audits.report.figure import profile_figure
from audits.report.intervals import VERDICTS, epsilon_axis, interval_bar, verdict_shape
from audits.report.power import power_of
from audits.report.summary import confidence_sentence, power_sentence, verdict_sentence
from audits.report.words import (
    bound_percent,
    error_sentence,
    format_bound,
    format_number,
    format_percent,
)
from audits.results.facts import CLOSING, PROFILE_HEAD, profile_rows, title_of
from audits.results.result_file import Result
from audits.results.short_names import short_name

HEAD = ("subject", "claimed epsilon", "delta", "exact", "at least", "interval", "verdict")


def to_html(result: Result) -> str:
    """The result as a page; every word that came from outside is escaped."""
    rows, kinds = result.rows, dict.fromkeys(row.kind for row in result.rows)
    wrong = [row for row in rows if not row.as_expected]
    title = "Violations" if all(row.own for row in wrong) else "Not as expected"
    tables = [(title, "bad", wrong)] if wrong else []
    # The tables below have the rows that are not in the first one.
    tables += [
        (title_of(kind), "", rows_of_kind)
        for kind in kinds
        if (rows_of_kind := [row for row in rows if row.kind == kind and row.as_expected])
    ]
    shown, power = set(map(verdict_shape, rows)), power_of(result)
    return render(
        "findings.html", "audits.report", result=result, tables=tables, head=HEAD, closing=CLOSING,
        wrong=wrong, known=[row for row in rows if not row.own], sure=error_sentence(rows),
        verdict=verdict_sentence(rows), seen=power_sentence(result, power),
        joint=confidence_sentence(rows), joint_percent=bound_percent(rows), name=short_name,
        power=power, axis=epsilon_axis(rows), interval=interval_bar, shape=verdict_shape,
        shapes={name: sentence for name, sentence in VERDICTS.items() if name in shown},
        profile_figure=profile_figure, profile_head=PROFILE_HEAD, profile_rows=profile_rows,
        number=format_number, bound=format_bound, percent=format_percent,
    )  # fmt: skip
