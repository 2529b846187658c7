"""``python -m accountant ledger history``: every spend, as a table or line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.ledger_options import BookName, DatasetName, JsonFlag, PinFile, open_book

if TYPE_CHECKING:
    from accountant.book.history import Line

LINES_AT_ONCE = 1000

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
            since=place_of(since),
            last=line_limit,
            author=author,
            run=run,  # type: ignore[arg-type]  # checked there
            until=place_of(until),
        )
        if json:
            sys.stdout.writelines(history_json(opened_book.status(name), lines))
        else:
            while page := list(islice(lines, LINES_AT_ONCE)):
                epsilons = _displayed_epsilons(page)
                if sys.stdout.isatty():
                    sys.stdout.writelines(_table_of(page, epsilons))
                else:  # one line an entry, for programs that read them
                    sys.stdout.writelines(map(_words_of_line, page, epsilons))


def place_of(stated: str | None) -> str | int | None:
    """Return the number of an entry, or the words of a time."""
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


def _words_of_line(line: Line, epsilon: str) -> str:
    from accountant.formatting import escape_control

    text = (
        f"{line.seq}  {line.time[:19]}  {line.author}  {line.outcome}  epsilon {epsilon}  "
        f"{line.what}  {_notes(line)}"
    )
    return f"{escape_control(text.rstrip())}\n"


def _notes(line: Line) -> str:
    """Return the run, label and buckets of a line, what is trusted, and the digest of its proof."""
    trusted = [f"undeclared {line.undeclared}" * bool(line.undeclared)]
    trusted.append(f"executor {line.executor}" * bool(line.executor))
    trusted.append(f"proof {line.proof}" * bool(line.proof))
    return " ".join(
        filter(
            None, [line.run, line.label, ", ".join(line.buckets), "seeded" * line.seeded, *trusted]
        )
    )


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
