"""The report of audits as text and tables in a terminal.

A report has one row for each audited subject, such as a mechanism, a check of a library, a claim
of a paper, or the user's own code.  The room `formats` writes the same result into files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accountant.formatting import escape_control
from audits.claims.findings import Outcome
from audits.report.power import power_of
from audits.report.summary import (
    baseline_sentence,
    closest_sentences,
    confidence_sentence,
    first_rows,
    needs_summary,
    not_tested_sentence,
    power_sentence,
    verdict_sentence,
)
from audits.report.words import (
    CLOSING,
    PROFILE_HEAD,
    bound_percent,
    claim_text,
    error_sentence,
    format_bound,
    format_number,
    profile_rows,
    title_of,
)
from audits.results.result_file import Result
from audits.results.rows import ReportRow
from audits.results.short_names import short_name


def print_report(result: Result, console: Console) -> None:
    """Print the verdict, then a summary if there are many rows, tables by kind, and notes."""
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
        # Rows that are not as expected stand above the others.
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
    if untested := not_tested_sentence(rows):
        console.print(Text(untested), style="yellow")
    console.print(CLOSING, style="dim")


def _print_verdict(result: Result, console: Console) -> None:
    """Print the first lines of a report: the verdict, what audits could see, their confidence."""
    rows, seed = result.rows, result.request.seed
    style = "bold"
    if any(row.fails for row in rows):
        style = "bold red"
    elif (
        not rows
        or any(not row.as_expected for row in rows)
        or not all(row.decisive for row in rows)
    ):
        style = "bold yellow"
    console.print(Text(verdict_sentence(rows), style))
    if beside := baseline_sentence(rows):
        console.print(Text(beside))
    if power := power_sentence(result, power_of(result)):
        console.print(Text(power))
    # Of the user's own code no outcome is expected in advance.
    if foreign_rows := [row for row in rows if not row.own]:
        expected_count = sum(row.as_expected for row in foreign_rows)
        console.print(Text(f"{expected_count} of {len(foreign_rows)} as expected."))
    if rows:
        console.print(Text(confidence_sentence(rows)))
    console.print(Text(f"{error_sentence(rows)} Repeat with --seed {seed}."))
    console.print()


def _counts(rows: Sequence[ReportRow]) -> Table:
    """The table that counts the audits of each kind, and their outcomes.

    A kind is named by its title, without what follows a colon or stands in parentheses.
    """
    table = borderless_table("Counts")
    table.add_column("kind", overflow="fold")
    for name in ("audits", *(outcome.name for outcome in Outcome), "as expected"):
        table.add_column(name.lower(), justify="right", no_wrap=True)
    for kind in dict.fromkeys(row.kind for row in rows):
        rows_of_kind = [row for row in rows if row.kind == kind]
        outcome_counts = [
            str(sum(row.outcome is outcome for row in rows_of_kind)) for outcome in Outcome
        ]
        as_expected_cell = (
            "-" if rows_of_kind[0].own else str(sum(row.as_expected for row in rows_of_kind))
        )
        name = title_of(kind).partition(":")[0].partition(" (")[0]
        table.add_row(literal_text(name), str(len(rows_of_kind)), *outcome_counts, as_expected_cell)
    return table


def literal_text(value: object) -> Text:
    """Text that the library rich shows as it is: no markup, and control characters escaped."""
    return Text(escape_control(value))


def borderless_table(title: str, *, head: bool = True) -> Table:
    """A table with a title and no borders, with or without the row of column heads."""
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


def facts_table(title: str, facts: Iterable[tuple[str, str]]) -> Table:
    """A table of (name, value) facts, one a line."""
    table = borderless_table(title, head=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        table.add_row(*map(literal_text, fact))
    return table


def _table(title: str, rows: Sequence[ReportRow]) -> Table:
    """The table of some rows: the subject, its claim, the bounds on epsilon, and the verdict."""
    table = borderless_table(f"{title} ({bound_percent(rows)})")
    # The evidence stands under its subject, since a column of its own would be too narrow to read.
    # For each kind of row this is what the head of the column calls the evidence.
    evidence_heads = {
        "specimen": "what caught it",
        "paper": "why",
        "library": "seen",
        "target": "seen",
        "scores": "seen",
    }
    kinds = {row.kind for row in rows}
    shown_heads = {evidence_heads[kind] for kind in kinds if kind in evidence_heads}
    # A table of several kinds has room for one of their words.
    table.add_column(", ".join(["subject", *sorted(shown_heads)[:1]]), overflow="fold")
    exact_head = "provable" if kinds == {"paper"} else "exact"
    for name in ("claimed", exact_head, "at least", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        wrong = not row.as_expected
        colour = "bold red" if wrong else "green" if row.decisive else "yellow"
        subject = literal_text(short_name(row.subject)).append(" (kept)" if row.kept else "")
        if not row.decisive:
            subject.append("\n").append(literal_text(row.why_inconclusive))
        if row.kind in evidence_heads:
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
    """Print the facts of one row, and its curve delta(epsilon) if samples gave one."""
    console.print(facts_table(row.subject, row.facts))
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
