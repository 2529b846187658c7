"""Minimax lower bounds as terminal tables, as JSON, and as one self-contained HTML page.

A bound says that no private algorithm has a smaller risk on some family of data.  The report sets
the risk of the algorithms of this project on that family next to it, and checks the inequalities
that the bounds rest on against channels that can be enumerated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from accountant.reports.html_document import render
from audits.minimax.checks.enumeration import Check
from audits.minimax.performance.answers import ProblemReport, setting_text, size_text
from audits.minimax.performance.gap import RiskGap
from audits.report.terminal import borderless_table, facts_table, literal_text
from audits.report.words import format_number

ALGORITHM_HEAD = ("algorithm", "risk", "s.e.", "over the bound", "theorem", "no noise")
CHECK_HEAD = ("inequality", "closest case", "exact", "bound", "exact / bound")
ALL_HEAD = ("problem", "bound", "published", "algorithm", "over the bound")
NO_CONSTRUCTION = "no finite family: the proof draws its data at random"


def print_bounds(
    answers: Sequence[ProblemReport], checks: Sequence[Check], console: Console
) -> None:
    """Print one problem in full, or a table of several; then the checks."""
    if len(answers) == 1:
        _print_problem(answers[0], console)
    else:
        table = borderless_table(
            "Lower bounds, and the algorithms of this project on their families"
        )
        for name in ALL_HEAD:
            is_text = name in {"problem", "algorithm"}
            table.add_column(
                name, justify="left" if is_text else "right", no_wrap=name == "problem"
            )
        for answer in answers:
            for cells in summary_rows(answer):
                table.add_row(*map(literal_text, cells))
        console.print(table)
        console.print("bounds PROBLEM shows setting, construction and theorem.", style="dim")
    table = borderless_table("Every inequality against channels that can be enumerated")
    for name in CHECK_HEAD:
        table.add_column(name, overflow="fold")
    for check in closest_checks(checks):
        table.add_row(*map(literal_text, check_cells(check)))
    console.print()
    console.print(table)
    console.print(f"{sum(check.holds for check in checks)} of {len(checks)} checks hold")


def _print_problem(answer: ProblemReport, console: Console) -> None:
    """Print the facts of one problem, and a table of the project's algorithms on it."""
    console.print(facts_table(answer.problem, bound_facts(answer)))
    if answer.gaps:
        table = borderless_table("Algorithms of this project on the hard family")
        for column, name in enumerate(ALGORITHM_HEAD):
            table.add_column(name, justify="right" if column else "left")
        for gap in answer.gaps:
            table.add_row(*map(literal_text, algorithm_cells(gap)))
        console.print()
        console.print(table)


def bound_facts(answer: ProblemReport) -> Iterable[tuple[str, str]]:
    """The facts of a bound as (name, value) lines."""
    bound = answer.bound
    yield "setting", setting_text(answer.setting)
    yield "bound", f"{format_number(bound.value)}: {bound.statement}"
    yield "published", format_number(bound.published)
    yield "construction", construction_text(answer)
    yield "optimised over", bound.optimised_over
    yield "valid for", bound.valid_for
    if answer.users is not None:
        yield "users", f"fewer than {answer.users:,} cannot reach {answer.error:g}"


def construction_text(answer: ProblemReport) -> str:
    """The hard family in words."""
    family = answer.bound.construction
    if family is None:
        return NO_CONSTRUCTION
    shown = repr(family)
    kind = shown if len(shown) < 120 else type(family).__name__
    return f"{kind}: {size_text(family.points)} points, {family.separation:.4g} apart"


def summary_rows(answer: ProblemReport) -> Iterable[list[str]]:
    """One line for each algorithm of a problem, or one without; see `ALL_HEAD`."""
    start = [
        answer.problem,
        format_number(answer.bound.value),
        format_number(answer.bound.published),
    ]
    if not answer.gaps:
        yield [*start, "-", "-"]
    for gap in answer.gaps:
        yield [*start, gap.algorithm, format_number(gap.ratio, ".3g")]


def algorithm_cells(gap: RiskGap) -> list[str]:
    """The cells of one algorithm's row, under `ALGORITHM_HEAD`."""
    risk, error = gap.risk
    ratio = format_number(gap.ratio, ".3g")
    return [
        gap.algorithm,
        format_number(risk),
        format_number(error, ".2g"),
        ratio,
        format_number(gap.theorem_bound),
        format_number(gap.noiseless_risk[0]),
    ]


def check_cells(check: Check) -> list[str]:
    """The cells of one check's row, under `CHECK_HEAD`."""
    tight = f"{check.tightness:.3f}" if check.holds else "VIOLATED"
    return [check.claim, check.case, format_number(check.exact), format_number(check.bound), tight]


def closest_checks(checks: Sequence[Check]) -> list[Check]:
    """The check of each claim that is nearest to its bound, and all that fail."""
    best: dict[str, Check] = {}
    for check in checks:
        if check.claim not in best or check.tightness > best[check.claim].tightness:
            best[check.claim] = check
    return [check for check in checks if not check.holds or best[check.claim] is check]


def as_document(
    answers: Sequence[ProblemReport], checks: Sequence[Check], seed: int
) -> dict[str, Any]:
    """The answers and checks as a JSON-ready dictionary, schema 1."""
    return {
        "schema": 1,
        "seed": seed,
        "bounds": [_bound_document(answer) for answer in answers],
        "checks": [
            {
                "claim": check.claim,
                "case": check.case,
                "exact": check.exact,
                "bound": check.bound,
                "holds": check.holds,
            }
            for check in checks
        ],
    }


def _bound_document(answer: ProblemReport) -> dict[str, Any]:
    bound, family = answer.bound, answer.bound.construction
    kind = None
    if family is not None:
        # The number of points may have more digits than JSON readers accept.
        kind = {
            "kind": type(family).__name__,
            "points": size_text(family.points),
            "separation": float(family.separation),
        }
    return {
        "problem": answer.problem, "setting": answer.setting, "value": bound.value,
        "published": bound.published, "statement": bound.statement, "valid_for": bound.valid_for,
        "optimised_over": bound.optimised_over, "construction": kind, "error": answer.error,
        "users": answer.users, "algorithms": [_algorithm_document(gap) for gap in answer.gaps],
    }  # fmt: skip


def _algorithm_document(gap: RiskGap) -> dict[str, Any]:
    risk, error = gap.risk
    free, free_error = gap.noiseless_risk
    document = {
        "name": gap.algorithm,
        "runs": len(gap.losses),
        "risk": risk,
        "standard_error": error,
        "free": free,
        "free_standard_error": free_error,
        "promise": gap.theorem_bound,
        "ratio": gap.ratio,
    }
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in document.items()
    }


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
