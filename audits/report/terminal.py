"""The report as terminal tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accountant.formatting import escape_control
from audits.claims.findings import Outcome
from audits.report.power import power_of
from audits.report.summary import (
    closest_sentences,
    confidence_sentence,
    first_rows,
    needs_summary,
    power_sentence,
    verdict_sentence,
)
from audits.report.words import (
    bound_percent,
    claim_text,
    error_sentence,
    format_bound,
    format_number,
)
from audits.results.facts import CLOSING, PROFILE_HEAD, profile_rows, title_of
from audits.results.result_file import Result
from audits.results.rows import ReportRow
from audits.results.short_names import short_name


def print_report(result: Result, console: Console) -> None:
    """Print the verdict, what the runs could have seen, a summary, and tables by kind."""
    rows = result.rows
    _print_verdict(result, console)
    priority_rows = first_rows(rows) if needs_summary(rows) else []
    if needs_summary(rows):
        for sentence in closest_sentences(rows):
            console.print(Text(sentence))
        console.print()
        console.print(_counts(rows))
        console.print()
    tables = [("Look at these first", priority_rows)]
    for kind in dict.fromkeys(row.kind for row in rows):
        rows_of_kind = [row for row in rows if row.kind == kind and row not in priority_rows]
        # what is wrong stands above what is not
        tables.append((title_of(kind), sorted(rows_of_kind, key=lambda row: row.as_expected)))
    for title, rows_of_kind in tables:
        if rows_of_kind:
            console.print(_table(title, rows_of_kind))
            console.print()
    for row in rows:
        if row.facts:
            _print_facts(row, console)
    for row in rows:
        for note in row.notes:
            console.print(literal_text(f"note on {row.subject}: {note}"), style="yellow")
    for library, reason in result.absent.items():
        console.print(literal_text(f"not audited: {library}, {reason}"), style="yellow")
    console.print(CLOSING, style="dim")


def _print_verdict(result: Result, console: Console) -> None:
    """The first lines of a report."""
    rows, seed = result.rows, result.request.seed
    style = "bold"
    if not all(row.as_expected for row in rows):
        style = "bold red"
    elif not rows or not all(row.decisive for row in rows):
        style = "bold yellow"
    console.print(Text(verdict_sentence(rows), style))
    if power := power_sentence(result, power_of(result)):
        console.print(Text(power))
    # of one's own code nothing is expected
    if foreign_rows := [row for row in rows if not row.own]:
        expected_count = sum(row.as_expected for row in foreign_rows)
        console.print(Text(f"{expected_count} of {len(foreign_rows)} as expected."))
    if rows:
        console.print(Text(confidence_sentence(rows)))
    console.print(Text(f"{error_sentence(rows)} Repeat with --seed {seed}."))
    console.print()


def _counts(rows: Sequence[ReportRow]) -> Table:
    """How many rows of each kind fell and survived."""
    table = borderless_table("Counts")
    table.add_column("kind", overflow="fold")
    for name in ("audits", *(outcome.name for outcome in Outcome), "as expected"):
        table.add_column(name.lower(), justify="right", no_wrap=True)
    for kind in dict.fromkeys(row.kind for row in rows):
        rows_of_kind = [row for row in rows if row.kind == kind]
        outcome_counts = [
            str(sum(row.outcome is outcome for row in rows_of_kind)) for outcome in Outcome
        ]
        right = "-" if rows_of_kind[0].own else str(sum(row.as_expected for row in rows_of_kind))
        name = title_of(kind).partition(":")[0].partition(" (")[0]
        table.add_row(literal_text(name), str(len(rows_of_kind)), *outcome_counts, right)
    return table


def literal_text(value: object) -> Text:
    """Text that rich shows literally: no markup, no escapes."""
    return Text(escape_control(value))


def borderless_table(title: str, *, head: bool = True) -> Table:
    """A table without borders."""
    return Table(
        title=literal_text(title),
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=head,
        pad_edge=False,
        collapse_padding=True,
        show_edge=False,
    )


def _table(title: str, rows: Sequence[ReportRow]) -> Table:
    table = borderless_table(f"{title} ({bound_percent(rows)})")
    # evidence stands under its subject: in a column of its own it is too narrow to read
    below = {
        "specimen": "what caught it",
        "paper": "why",
        "library": "seen",
        "target": "seen",
        "scores": "seen",
    }
    kinds = {row.kind for row in rows}
    shown = {below[kind] for kind in kinds if kind in below}
    table.add_column(", ".join(["subject", *sorted(shown)[:1]]), overflow="fold")
    exact = "provable" if kinds == {"paper"} else "exact"
    for name in ("claimed", exact, "at least", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        wrong = not row.as_expected
        colour = "bold red" if wrong else "green" if row.decisive else "yellow"
        subject = literal_text(short_name(row.subject))
        if not row.decisive:
            subject.append("\n").append(literal_text(row.why_inconclusive))
        if row.kind in below:
            subject.append("\n").append(literal_text(row.evidence)).append("\n")
        table.add_row(
            subject,
            claim_text(row.claim),
            format_number(row.exact_epsilon, ".4f"),
            format_bound(row.verdict_lower),
            Text(row.outcome.name, colour),
        )
    return table


def _print_facts(row: ReportRow, console: Console) -> None:
    table = borderless_table(row.subject, head=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in row.facts:
        table.add_row(literal_text(name), literal_text(value))
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
