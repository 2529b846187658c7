"""The report as one self-contained HTML page, without scripts or requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.reports.html_document import render
from accountant.reports.svg_figures import Figure
from audits.report.figure import power_figure, profile_figure
from audits.report.intervals import VERDICTS, epsilon_axis, interval_bar, verdict_shape
from audits.report.words import error_sentence, format_number, format_percent
from audits.results.facts import CLOSING, PROFILE_HEAD, profile_rows, title_of
from audits.results.result_file import Result
from audits.results.rows import FAMILY_ERROR

HEAD = ("subject", "claimed epsilon", "delta", "exact", "at least", "interval", "verdict")
# true epsilons of the power curve, where 1 is claimed
TRUE_EPSILONS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
POWER = 0.95


@final
@dataclass(frozen=True, slots=True)
class Power:
    """The smallest violation that so many runs detect: of `TRUE_EPSILONS`, and the whole curve."""

    runs: int
    least: float | None
    figure: Figure


def to_html(result: Result) -> str:
    """The result as a page; every word that came from outside is escaped."""
    rows, kinds = result.rows, dict.fromkeys(row.kind for row in result.rows)
    wrong = [row for row in rows if not row.as_expected]
    tables = [("Not as expected", "bad", wrong)] if wrong else []
    # every row once
    tables += [
        (title_of(kind), "", some)
        for kind in kinds
        if (some := [row for row in rows if row.kind == kind and row.as_expected])
    ]
    shown = set(map(verdict_shape, rows))
    guessed = [row for row in rows if row.kind != "scores"]  # one run: its bounds are its own
    return render(
        "findings.html", "audits.report", result=result, tables=tables, head=HEAD, closing=CLOSING,
        wrong=wrong, sure=error_sentence(rows), share=POWER,
        power=_power(result) if guessed else None,
        axis=epsilon_axis(rows), interval=interval_bar, shape=verdict_shape,
        shapes={name: words for name, words in VERDICTS.items() if name in shown},
        profile_figure=profile_figure, profile_head=PROFILE_HEAD, profile_rows=profile_rows,
        number=format_number, percent=format_percent,
    )  # fmt: skip


def _power(result: Result) -> Power:
    """What this many runs could have seen, at the confidence of the verdicts."""
    from audits.known_densities.outcome_models import laplace
    from audits.known_densities.sample_size import runs_needed

    alpha, runs = FAMILY_ERROR / len(result.rows), result.request.samples
    found = [runs_needed(laplace(truth), 1.0, 0.0, alpha, POWER) for truth in TRUE_EPSILONS]
    guess = [(truth, one.guess) for truth, one in zip(TRUE_EPSILONS, found, strict=True)]
    limit = [(truth, one.limit) for truth, one in zip(TRUE_EPSILONS, found, strict=True)]
    least = next((truth for truth, one in guess if one <= runs), None)
    return Power(runs, least, power_figure(guess, limit, runs, "1"))
