"""The report as terminal tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accountant.formatting import escape_control, format_lower, format_short
from audits.claims.findings import Outcome
from audits.report.words import error_sentence, format_number, format_percent
from audits.results.facts import CLOSING, PROFILE_HEAD, profile_rows, title_of
from audits.results.result_file import Result
from audits.results.rows import ReportRow

ABOVE_CLAIM = (
    'A bound "at least" may exceed a true claim: it holds for its row alone, at the confidence in '
    "the title. A verdict needs more confidence."
)


def print_report(result: Result, console: Console) -> None:
    """Print tables by kind, the algorithms' facts, and a closing verdict."""
    rows, seed = result.rows, result.request.seed
    for kind in dict.fromkeys(row.kind for row in rows):
        console.print(_table(title_of(kind), [row for row in rows if row.kind == kind]))
        console.print()
    for row in rows:
        if row.facts:
            _print_facts(row, console)
    for row in rows:
        for note in row.notes:
            console.print(literal_text(f"note on {row.subject}: {note}"), style="yellow")
    for library, why in result.absent.items():
        console.print(literal_text(f"not audited: {library}, {why}"), style="yellow")
    right = sum(row.as_expected for row in rows)
    weak = [row for row in rows if not row.decisive]
    line = Text(f"{right} of {len(rows)} as expected", "green" if right == len(rows) else "red")
    line.append(f", {len(weak)} inconclusive" if weak else "", "default")
    console.print(line.append(".", "default"))
    for why in dict.fromkeys(row.why_inconclusive for row in weak):
        names = ", ".join(row.subject for row in weak if row.why_inconclusive == why)
        console.print(literal_text(f"inconclusive, {why}: {names}."), style="yellow")
    for sentence in _unexpected(rows):
        console.print(Text(sentence, "bold red"))
    if any(row.outcome is not Outcome.FALSIFIED and _above_claim(row) for row in rows):
        console.print(ABOVE_CLAIM)
    console.print(f"{error_sentence(rows)} Repeat with --seed {seed}.")
    console.print(CLOSING, style="dim")


def _unexpected(rows: Sequence[ReportRow]) -> Iterator[str]:
    """Sentences about rows that are not as expected: violated claims, and faults not found."""
    wrong = [row for row in rows if not row.as_expected]
    false = [row for row in wrong if row.outcome is Outcome.FALSIFIED]
    missed = [row for row in wrong if row.outcome is not Outcome.FALSIFIED]
    if false:
        plural = "s" if len(false) > 1 else ""
        yield f"{len(false)} violation{plural}: {'; '.join(map(_violation, false))}."
    if missed:
        names = ", ".join(escape_control(row.subject) for row in missed)
        yield f"{len(missed)} known fault{'s' if len(missed) > 1 else ''} not found: {names}."


def _violation(row: ReportRow) -> str:
    """The epsilon that a row leaks at the confidence of its verdict, else that its claim fails."""
    subject, (epsilon, delta), lower = escape_control(row.subject), row.claim, row.verdict_lower
    claimed = f"{epsilon:.4g}" + (f" at δ = {format_short(delta)}" if delta > 0 else "")
    if lower is not None and lower > epsilon:
        return f"{subject} leaks ε ≥ {format_lower(lower)}, claimed {claimed}"
    return f"{subject} breaks its claim" + ("" if math.isnan(epsilon) else f", ε = {claimed}")


def _above_claim(row: ReportRow) -> bool:
    """True if the bound of a row, at the confidence of its title, exceeds the claim."""
    return row.epsilon_lower is not None and row.epsilon_lower > row.claim[0]


def literal_text(words: object) -> Text:
    """Text that rich shows literally: no markup, no escapes."""
    return Text(escape_control(words))


def borderless_table(title: str, *, head: bool = True) -> Table:
    """A table without borders."""
    return Table(
        title=literal_text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD,
        show_header=head, pad_edge=False, collapse_padding=True, show_edge=False,
    )  # fmt: skip


def _table(title: str, rows: Sequence[ReportRow]) -> Table:
    table = borderless_table(f"{title} ({format_percent(rows[0].confidence)})")
    kind = rows[0].kind
    # evidence stands under its subject: in a column of its own it is too narrow to read
    below = {"specimen": "what caught it", "paper": "why", "library": "seen", "target": "seen",
             "scores": "seen"}  # fmt: skip
    table.add_column(f"subject, {below[kind]}" if kind in below else "subject", overflow="fold")
    exact = "provable" if kind == "paper" else "exact"
    for name in ("claimed", exact, "at least", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        colour = "bold red" if not row.as_expected else "green" if row.decisive else "yellow"
        epsilon, delta = row.claim
        claimed = format_number(epsilon) + (f", {format_short(delta)}" if delta > 0 else "")
        exact, lower = (
            format_number(row.exact_epsilon, ".4f"),
            format_number(row.epsilon_lower, ".4f"),
        )
        word = row.outcome.name
        subject = literal_text(row.subject)
        if kind in below:
            subject.append("\n").append(literal_text(row.evidence)).append("\n")
        table.add_row(subject, claimed, exact, lower, Text(word, colour))
    return table


def _print_facts(row: ReportRow, console: Console) -> None:
    table = borderless_table(row.subject, head=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for what, value in row.facts:
        table.add_row(literal_text(what), literal_text(value))
    console.print(table)
    console.print()
    if row.curve is None or not row.curve.mean:
        return
    curve = borderless_table("delta(epsilon): the samples, and the accountant's upper bound")
    for head in PROFILE_HEAD:
        curve.add_column(head, justify="right")
    for cells in profile_rows(row.curve):
        curve.add_row(*map(literal_text, cells))
    console.print(curve)
    console.print()
