"""The report as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from audits.cases import Row
from audits.report.story import PROFILE_HEAD, TITLES, facts, profile_rows


def show(rows: Sequence[Row], seed: int, console: Console) -> None:
    """Print tables by kind, the algorithms' stories, and one closing line."""
    for kind, title in TITLES.items():
        some = [row for row in rows if row.kind == kind]
        if some:
            console.print(_table(title, some))
            console.print()
    for row in rows:
        if row.detail is not None:
            _story(row, console)
    wrong = [row for row in rows if not row.as_expected]
    weak = sum(not row.decisive for row in rows)
    good = f"[green]{len(rows) - len(wrong)} of {len(rows)} as expected[/]"
    console.print(
        good + (f", [red]{len(wrong)} not: {escape(_names(wrong))}[/]" if wrong else "")
        + (f", {weak} with too few runs to decide" if weak else "")
        + f"; verdicts hold together at 1 - 1e-6; repeat with --seed {seed}"
    )  # fmt: skip
    console.print("An audit falsifies or fails to; SURVIVED proves nothing.", style="dim")


def _table(title: str, rows: Sequence[Row]) -> Table:
    table = _plain(f"{title} ({100 * rows[0].confidence:.6g} %)")
    table.add_column("subject", overflow="fold", min_width=20)
    for name in ("claimed", "exact", "at least", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    broken = rows[0].kind == "specimen"
    if broken:
        table.add_column("caught by", overflow="fold")
    for row in rows:
        colour = "green" if row.as_expected else "bold red"
        claimed = f"{row.claim[0]:.4g}" + (f", {row.claim[1]:g}" if row.claim[1] else "")
        exact, lower = (
            "-" if x is None else f"{x:.4f}" for x in (row.exact_epsilon, row.epsilon_lower)
        )
        word = row.outcome.name if row.decisive else f"{row.outcome.name}?"
        cells = [escape(row.subject), claimed, exact, lower, f"[{colour}]{word}[/]"]
        table.add_row(*cells, *([escape(row.evidence)] if broken else []))
    return table


def _plain(title: str, *, head: bool = True) -> Table:
    return Table(
        title=escape(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD,
        show_header=head, pad_edge=False, collapse_padding=True, show_edge=False,
    )  # fmt: skip


def _story(row: Row, console: Console) -> None:
    table = _plain(row.subject, head=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for what, value in facts(row):
        table.add_row(what, escape(value))
    console.print(table)
    console.print()
    curve = _plain("delta(epsilon) of the samples beside what was paid")
    for head in PROFILE_HEAD:
        curve.add_column(head, justify="right")
    for cells in profile_rows(row):
        curve.add_row(*map(escape, cells))
    console.print(curve)
    console.print()


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(row.subject for row in rows)
