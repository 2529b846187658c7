"""``python -m accountant ledger``: open, look at, check and export the budgets of a book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from accountant.cli import ledger_history, ledger_terms
from accountant.cli.ledger_options import (
    BookName,
    DatasetName,
    JsonFlag,
    KeyFile,
    PinFile,
    open_book,
    print_json,
    print_statuses,
    wrapped,
)


def status(
    book: BookName, name: str | None = None, json: JsonFlag = False, pin: PinFile = None
) -> None:
    """Say what was spent of every budget, or of the data set --name, and its terms.

    Example: python -m accountant ledger status book.db
    """
    from accountant.book.export import SCHEMA, status_facts
    from accountant.formatting import format_upper

    with open_book(book, pin) as opened_book:
        names = opened_book.names if name is None else [name]
        statuses = [opened_book.status(dataset) for dataset in names]
        # This reads every data set, so it is not asked for with the facts of one.
        people = None if json and name is not None else opened_book.people()
    if json and people is not None:
        datasets = [status_facts(status) for status in statuses]
        print_json({"schema": SCHEMA, "datasets": datasets, "people": people.to_records()})
        return
    print_statuses(statuses, json)
    for group in people or ():
        if len(group.datasets) > 1 and not set(names).isdisjoint(group.datasets):
            message = (
                f"{group.name}: spent epsilon {format_upper(group.spent)} of "
                f"{format_upper(group.epsilon)} at delta {format_upper(group.delta)} in "
                f"{', '.join(group.datasets)}, about the same people"
            )
            print(wrapped(message))


def remaining(
    book: BookName,
    name: DatasetName,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, .toml or .json.")],
    json: JsonFlag = False,
    pin: PinFile = None,
) -> None:
    """Say how many more times each line of a plan, and all of it, fits what is left.

    Example: python -m accountant ledger remaining book.db survey plan.toml
    """
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.formatting import escape_control

    whole_plan, file = read_plan(plan), read_file(plan)
    with open_book(book, pin) as opened_book:
        counts = [
            (release.label, opened_book.remaining(name, release.plan(release.scale)))
            for release in file.releases
        ]
        times = opened_book.remaining(name, whole_plan)
    if json:
        lines = [{"release": label, "count": count} for label, count in counts]
        print_json({"dataset": name, "lines": lines, "whole": times})
        return
    for label, count in counts:
        print(escape_control(f"{count:,} more of {label} would fit"))
    print(f"the whole plan would fit {times:,} more times")


def verify(
    book: BookName,
    head: Annotated[
        str | None, typer.Option(metavar="HEAD", help="An end of the log that `head` printed.")
    ] = None,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Check every hash, total, answer, index and page of a book, and print the end of its log.

    Example: python -m accountant ledger verify book.db --pin /mnt/elsewhere/book.pin
    """
    with open_book(book, pin, key=key) as opened_book:
        checked = opened_book.verify(head)
    if json:
        print_json({"entries": checked.entries, "head": checked.head})
        return
    print(f"{checked.entries} entries, none changed; the log ends at\n{checked.head}")


def head(book: BookName, json: JsonFlag = False, pin: PinFile = None, key: KeyFile = None) -> None:
    """Print the end of a book's log, to note elsewhere: `verify --head` finds what was rewritten.

    Example: python -m accountant ledger head book.db --key /mnt/elsewhere/book.key
    """
    with open_book(book, pin, key=key) as opened_book:
        if json:
            print_json({"head": opened_book.head})
        else:
            print(opened_book.head)


COMMANDS: dict[str, Callable[..., None]] = {
    "open": ledger_terms.open_,
    "status": status,
    "remaining": remaining,
    "verify": verify,
    "head": head,
    "export": ledger_history.export,
    "history": ledger_history.history,
    "close": ledger_terms.close,
    "raise": ledger_terms.raise_,
    "expire": ledger_terms.expire,
    "quota": ledger_terms.quota,
    "buckets": ledger_terms.buckets,
}
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Budgets of data sets in a book that every process can spend from.

BOOK is a file, or a URL: sqlite:///FILE or postgresql://USER@HOST/DATABASE. With --pin FILE the
end of the log is compared with what FILE says, and noted there. A book that was opened with --key
FILE is signed, and opens no further data set without it.

Exit status: 0 done, 1 the book is corrupt, 2 bad usage or input, 3 the book is busy, 130
interrupted.""",
)
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
