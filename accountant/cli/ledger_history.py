"""``python -m accountant ledger history|export``: every spend, on a terminal or in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.ledger_options import BookName, DatasetName, JsonFlag, PinFile, open_book

if TYPE_CHECKING:
    from accountant.book.history import Line

LINES_AT_ONCE = 1000  # entries of the log that are read and written together

Since = Annotated[
    str | None, typer.Option(metavar="N|TIME", help="After entry N, or from TIME (UTC) on.")
]
Until = Annotated[
    str | None, typer.Option(metavar="N|TIME", help="Up to entry N, or up to TIME (UTC).")
]
Author = Annotated[str | None, typer.Option(metavar="WHO", help="Only what WHO spent.")]
Run = Annotated[str | None, typer.Option(metavar="RUN", help="Only a plan's run.")]


def history(
    book: BookName,
    name: DatasetName,
    json: JsonFlag = False,
    since: Since = None,
    last: Annotated[str | None, typer.Option(metavar="N", help="Only the last N.")] = None,
    author: Author = None,
    run: Run = None,
    until: Until = None,
    pin: PinFile = None,
) -> None:
    """Print every spend of a data set, and the changes of its terms: when, by whom, for what.

    Example: python -m accountant ledger history book.db survey --last 20
    """
    from accountant.book.export import history_json
    from accountant.cli.exit_status import parse_number

    line_limit = None if last is None else parse_number(last)
    with open_book(book, pin) as opened_book:
        lines = opened_book.iter_history(
            name,
            since=_place_of(since),
            last=line_limit,
            author=author,
            run=run,
            until=_place_of(until),
        )
        if json:
            sys.stdout.writelines(history_json(opened_book.status(name), lines))
        else:
            text_of = _table_of if sys.stdout.isatty() else _line_an_entry
            while page := list(islice(lines, LINES_AT_ONCE)):
                sys.stdout.writelines(text_of(page, _displayed_epsilons(page)))


def export(
    book: BookName,
    name: DatasetName,
    out: Annotated[str, typer.Option(metavar="FILE|-", help=".json or .csv; - is JSON on stdout.")],
    registry: Annotated[
        bool, typer.Option("--registry", help="What registries of deployments ask for.")
    ] = False,
    relation: Annotated[
        str | None, typer.Option(metavar="R", help="Who neighbours are, such as add-remove.")
    ] = None,
    post_processing: Annotated[
        str, typer.Option(metavar="WORDS", help="What is done to the answers.")
    ] = "not stated",
    force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
    since: Since = None,
    author: Author = None,
    run: Run = None,
    until: Until = None,
    pin: PinFile = None,
) -> None:
    """Write the history of a data set, or its entry in a public registry, to a file.

    Example: python -m accountant ledger export book.db survey --registry --out survey.csv
    """
    from accountant.book import export as exports
    from accountant.domains import OneOf
    from accountant.errors import ParameterError
    from accountant.files import check_writable, write_text
    from accountant.plans.adjacency import check_relation

    kind = "json" if out == "-" else Path(out).suffix[1:].lower()
    OneOf(("json", "csv")).check("the suffix of --out", kind)
    is_json = kind == "json"
    check_writable({"--out": None if out == "-" else out})
    if out != "-" and Path(out).exists() and not force:
        raise ParameterError("--out", out, "a file that is not there yet, or --force")
    if relation is not None:
        relation = check_relation("--relation", relation)
    with open_book(book, pin) as opened_book:
        status = opened_book.status(name)
        lines = opened_book.iter_history(
            name, since=_place_of(since), author=author, run=run, until=_place_of(until)
        )
        if not registry:
            text = exports.history_json(status, lines) if is_json else exports.history_csv(lines)
            write_text(out, text)
            return
        rows = exports.registry_rows(status, lines, relation, post_processing)
    write_text(out, exports.registry_json(rows) if is_json else exports.registry_csv(rows))


def _place_of(stated: str | None) -> str | int | None:
    """Return the number of an entry, or the text of a time."""
    from accountant.cli.exit_status import parse_number

    number = None if stated is None else parse_number(stated)
    return number if isinstance(number, int) else stated


def _table_of(lines: list[Line], epsilons: list[str]) -> Iterator[str]:
    """Yield the lines as a table as wide as a terminal; the details are below each line."""
    from textwrap import wrap

    from accountant.cli.ledger_options import COLUMNS
    from accountant.formatting import escape_control

    yield f"{'entry':>6}  {'time (UTC)':<16}  {'epsilon':>9}  {'outcome':<9}  author\n"
    for line, epsilon in zip(lines, epsilons, strict=True):
        when = line.time[:16].replace("T", " ")
        row = (
            f"{line.seq:>6}  {when}  {epsilon:>9}  {line.outcome:<9}  {escape_control(line.author)}"
        )
        yield f"{row if len(row) <= COLUMNS else row[: COLUMNS - 1] + '…'}\n"
        details = escape_control(" ".join(filter(None, [line.what, _notes(line)])))
        for wrapped_line in wrap(details, COLUMNS - 8, break_on_hyphens=False):
            yield f"{'':8}{wrapped_line}\n"


def _line_an_entry(lines: list[Line], epsilons: list[str]) -> Iterator[str]:
    """Yield one line an entry, for programs that read them."""
    from accountant.formatting import escape_control

    for line, epsilon in zip(lines, epsilons, strict=True):
        text = f"{line.seq}  {line.time[:19]}  {line.author}  {line.outcome}  epsilon {epsilon}"
        yield f"{escape_control(f'{text}  {line.what}  {_notes(line)}'.rstrip())}\n"


def _notes(line: Line) -> str:
    """Return the run, label and buckets of a line, what is trusted, and the digest of its proof."""
    notes = [
        line.run,
        line.label,
        ", ".join(line.buckets),
        "seeded" * line.seeded,
        f"undeclared {line.undeclared}" * bool(line.undeclared),
        f"executor {line.executor}" * bool(line.executor),
        f"proof {line.proof}" * bool(line.proof),
    ]
    return " ".join(filter(None, notes))


def _displayed_epsilons(lines: list[Line]) -> list[str]:
    """Return each line's epsilon in its displayed form.

    Totals only rise while the terms stay: lines between two that are displayed alike are displayed
    like them.
    """
    from accountant.formatting import format_upper

    shown = [""] * len(lines)
    starts = [0, *(k for k, line in enumerate(lines) if line.kind == "terms"), len(lines)]
    ranges = [(low, end - 1) for low, end in pairwise(starts) if low < end]
    while ranges:
        low, high = ranges.pop()
        for index in {low, high}:
            shown[index] = shown[index] or format_upper(lines[index].epsilon)
        if shown[low] == shown[high]:
            shown[low:high] = [shown[low]] * (high - low)
        elif high - low > 1:
            middle = (low + high) // 2
            ranges += [(low, middle), (middle, high)]
    return shown
