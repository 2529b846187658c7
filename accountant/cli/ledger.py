"""``python -m accountant ledger``: open, look at, check and export the budgets of a book."""

from __future__ import annotations

import sys
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli import ledger_terms
from accountant.cli.ledger_options import (
    BookName,
    DatasetName,
    JsonFlag,
    KeyFile,
    PinFile,
    open_book,
    print_people,
    print_statuses,
    wrapped,
)

if TYPE_CHECKING:
    from accountant.book.history import Line

LINES_AT_ONCE = 1000
app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="""Budgets of data sets in a book that every process can spend from.

BOOK is a file, or a URL: sqlite:///FILE or postgresql://USER@HOST/DATABASE. With --pin FILE the
end of the log is compared with what FILE says, and noted there. A book that was opened with --key
FILE is signed, and opens no further data set without it.

Exit status: 0 done, 1 the book is corrupt, 2 bad usage or input, 3 the book is busy, 130
interrupted.""",
)  # fmt: skip


@app.command("open")
def open_(
    book: BookName,
    name: DatasetName,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The budget's epsilon.")],
    delta: Annotated[str, typer.Option(metavar="D", help="Its delta; 0 is pure.")] = "0",
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="What adds up: pure, pure-or-rdp, zcdp, rdp or gdp; by default pure at delta 0, "
            "else pure-or-rdp, which admits the most.",
        ),
    ] = None,
    order: Annotated[
        str | None, typer.Option(metavar="A", help="The Rényi order of rdp and pure-or-rdp.")
    ] = None,
    users: Annotated[
        str | None, typer.Option(metavar="N", help="Each of N users has this budget.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Who is protected; 'one row' by default.")
    ] = None,
    idealised: Annotated[
        bool,
        typer.Option(
            "--idealised", help="Also take noise of floats, whose last digits can reveal the data."
        ),
    ] = False,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Nothing is spent from TIME (UTC) on.")
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whom the data are about: budgets of one name add up."),
    ] = None,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Open a data set with its budget; the book is made if there is none.

    Example: python -m accountant ledger open book.db survey --epsilon 1 --unit "one person"
    """
    from accountant.accountants.budget import Budget
    from accountant.book.dataset_opening import DatasetTerms, checked_name
    from accountant.cli.exit_status import parse_number
    from accountant.domains import DELTA, POSITIVE

    budget = Budget(
        POSITIVE.check("--epsilon", parse_number(epsilon)),
        DELTA.check("--delta", parse_number(delta)),
    )
    a, n = (
        None if order is None else parse_number(order),
        None if users is None else parse_number(users),
    )
    checked_name("name", name)
    terms = DatasetTerms(budget, notion, a, n, unit, idealised, expires, people)  # type: ignore[arg-type]  # checked next
    terms.checked_facts()  # before a book is made
    with open_book(book, pin, create=True, key=key) as found:
        found.dataset(
            name, budget, notion, order=a, users=n, unit=unit, idealised=idealised or None,  # type: ignore[arg-type]  # checked before
            expires=expires, people=people,
        )  # fmt: skip
        print_statuses([found.status(name)])


@app.command()
def status(
    book: BookName, name: str | None = None, json: JsonFlag = False, pin: PinFile = None
) -> None:
    """Say what was spent of every budget, or of the data set --name, and its terms.

    Example: python -m accountant ledger status book.db
    """
    with open_book(book, pin) as found:
        names = found.names if name is None else [name]
        print_statuses([found.status(one) for one in names], json)
        if not json:
            print_people(found.people(), names)


@app.command()
def history(
    book: BookName,
    name: DatasetName,
    json: JsonFlag = False,
    since: Annotated[
        str | None, typer.Option(metavar="N|TIME", help="After entry N, or from TIME (UTC) on.")
    ] = None,
    last: Annotated[str | None, typer.Option(metavar="N", help="Only the last N.")] = None,
    author: Annotated[str | None, typer.Option(metavar="WHO", help="Only what WHO spent.")] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Only a plan's run.")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="N|TIME", help="Up to entry N, or up to TIME (UTC).")
    ] = None,
    pin: PinFile = None,
) -> None:
    """Print every spend of a data set, and the changes of its terms: when, by whom, for what.

    Example: python -m accountant ledger history book.db survey --last 20
    """
    from accountant.book.export import history_json
    from accountant.cli.exit_status import parse_number

    start, end, most = (None if one is None else parse_number(one) for one in (since, until, last))
    if isinstance(start, float):
        start = since
    if isinstance(end, float):
        end = until
    with open_book(book, pin) as found:
        lines = found.iter_history(
            name, since=start, last=most, author=author, run=run, until=end  # type: ignore[arg-type]  # checked there
        )  # fmt: skip
        if json:
            sys.stdout.writelines(history_json(found.status(name), lines))
        else:
            while page := list(islice(lines, LINES_AT_ONCE)):
                sys.stdout.writelines(map(_words_of_line, page, _displayed_epsilons(page)))


def _words_of_line(line: Line, epsilon: str) -> str:
    from accountant.formatting import escape_control

    trusted = [f"undeclared {line.undeclared}" * bool(line.undeclared)]
    trusted.append(f"executor {line.executor}" * bool(line.executor))
    label = " ".join(filter(None, [line.run, line.label, "seeded" * line.seeded, *trusted]))
    words = (
        f"{line.seq}  {line.time[:19]}  {line.author}  {line.outcome}  epsilon {epsilon}  "
        f"{line.what}  {label}"
    )
    if sys.stdout.isatty():
        return f"{wrapped(words.rstrip())}\n"
    return f"{escape_control(words.rstrip())}\n"


def _displayed_epsilons(lines: list[Line]) -> list[str]:
    """Return each line's epsilon in its displayed form.

    Totals only rise while the terms stay: lines between two that are displayed alike are displayed
    like them.
    """
    from accountant.formatting import format_upper

    shown = [""] * len(lines)
    starts = [0, *(k for k, one in enumerate(lines) if one.kind == "terms"), len(lines)]
    ranges = [(first, end - 1) for first, end in pairwise(starts) if first < end]
    while ranges:
        first, last = ranges.pop()
        for one in {first, last}:
            shown[one] = shown[one] or format_upper(lines[one].epsilon)
        if shown[first] == shown[last]:
            shown[first:last] = [shown[first]] * (last - first)
        elif last - first > 1:
            middle = (first + last) // 2
            ranges += [(first, middle), (middle, last)]
    return shown


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

    whole, file = read_plan(plan), read_file(plan)
    with open_book(book, pin) as found:
        counts = [(one.label, found.remaining(name, one.plan(one.scale))) for one in file.releases]
        times = found.remaining(name, whole)
    if json:
        from json import dumps

        lines = [{"release": label, "count": count} for label, count in counts]
        print(dumps({"dataset": name, "lines": lines, "whole": times}, indent=2))
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
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Check every hash, total, answer, index and page of a book, and print the end of its log.

    Example: python -m accountant ledger verify book.db --pin /mnt/elsewhere/book.pin
    """
    with open_book(book, pin, key=key) as found:
        checked = found.verify(head)
    print(f"{checked.entries} entries, none changed; the log ends at\n{checked.head}")


@app.command()
def head(book: BookName, pin: PinFile = None, key: KeyFile = None) -> None:
    """Print the end of a book's log, to note elsewhere: `verify --head` finds what was rewritten.

    Example: python -m accountant ledger head book.db --key /mnt/elsewhere/book.key
    """
    with open_book(book, pin, key=key) as found:
        print(found.head)


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
    pin: PinFile = None,
) -> None:
    """Write the history of a data set, or its entry in a public registry, to a file.

    Example: python -m accountant ledger export book.db survey --registry --out survey.csv
    """
    from accountant.book import export as made
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
    with open_book(book, pin) as found:
        status, lines = found.status(name), found.iter_history(name)
        if not registry:
            is_json = kind == "json"
            write_text(
                out, made.history_json(status, lines) if is_json else made.history_csv(lines)
            )
            return
        rows = made.registry_rows(status, lines, relation, post_processing)
    write_text(out, made.registry_json(rows) if kind == "json" else made.registry_csv(rows))


for _name, _command in ledger_terms.COMMANDS.items():
    app.command(_name)(_command)
