"""``python -m accountant ledger``: open, look at, check and export the budgets of a book."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accountant.cli import ledger_history, ledger_open, ledger_terms
from accountant.cli.ledger_history import Author, Run, Since, Until, place_of
from accountant.cli.ledger_options import (
    BookName,
    DatasetName,
    JsonFlag,
    KeyFile,
    PinFile,
    open_book,
    print_all_as_json,
    print_json,
    print_people,
    print_statuses,
)

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


app.command("open")(ledger_open.open_)


@app.command()
def status(
    book: BookName, name: str | None = None, json: JsonFlag = False, pin: PinFile = None
) -> None:
    """Say what was spent of every budget, or of the data set --name, and its terms.

    Example: python -m accountant ledger status book.db
    """
    with open_book(book, pin) as opened_book:
        names = opened_book.names if name is None else [name]
        statuses = [opened_book.status(dataset) for dataset in names]
        if json and name is None:
            print_all_as_json(statuses, opened_book.people())
            return
        print_statuses(statuses, json)
        if not json:
            print_people(opened_book.people(), names)


@app.command()
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


@app.command()
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


@app.command()
def head(book: BookName, json: JsonFlag = False, pin: PinFile = None, key: KeyFile = None) -> None:
    """Print the end of a book's log, to note elsewhere: `verify --head` finds what was rewritten.

    Example: python -m accountant ledger head book.db --key /mnt/elsewhere/book.key
    """
    with open_book(book, pin, key=key) as opened_book:
        if json:
            print_json({"head": opened_book.head})
        else:
            print(opened_book.head)


@app.command()
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
    check_writable({"--out": None if out == "-" else out})
    if out != "-" and Path(out).exists() and not force:
        raise ParameterError("--out", out, "a file that is not there yet, or --force")
    if relation is not None:
        relation = check_relation("--relation", relation)
    with open_book(book, pin) as opened_book:
        status = opened_book.status(name)
        lines = opened_book.iter_history(
            name, since=place_of(since), author=author, run=run, until=place_of(until)
        )
        if not registry:
            is_json = kind == "json"
            write_text(
                out, exports.history_json(status, lines) if is_json else exports.history_csv(lines)
            )
            return
        rows = exports.registry_rows(status, lines, relation, post_processing)
    write_text(out, exports.registry_json(rows) if kind == "json" else exports.registry_csv(rows))


for _name, _command in {"history": ledger_history.history, **ledger_terms.COMMANDS}.items():
    app.command(_name)(_command)
