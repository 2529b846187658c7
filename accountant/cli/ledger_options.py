"""What the commands of a ledger share: options, opening the book, and printing its status."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.exit_status import CommandFailed
from accountant.cli.vocabulary import STANDARD_STREAM, option

if TYPE_CHECKING:
    from accountant.book.book import Book
    from accountant.book.chain.roles import Roles
    from accountant.book.status import Status

# Exit statuses: the book was changed or damaged; bad input, or a refusal to spend; other processes
# locked the book for too long.
CORRUPT, USAGE, BUSY = 1, 2, 3
PASSPHRASE_VARIABLE = "DP_ATTEST_PASSPHRASE"
COLUMNS = 80  # width of a terminal that every table fits

BookName = Annotated[
    str,
    typer.Argument(
        metavar="BOOK", help="The book: a file, or a URL (sqlite:///FILE or postgresql://...)."
    ),
]
DatasetName = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of the data set in the book.")
]
ClaimName = Annotated[
    str, typer.Argument(metavar="CLAIM", help="The name of the claim in the book.")
]
PinFile = Annotated[str | None, option("pin")]
KeyFile = Annotated[str | None, option("key")]
AcceptUnsigned = Annotated[bool, option("accept-unsigned")]
ClockTime = Annotated[str | None, option("clock")]
NewBook = Annotated[bool, option("new")]
Reason = Annotated[str, option("reason")]
ReasonOfSet = Annotated[
    str | None,
    option(
        "reason",
        "Say why; the text stays in the log. Needed where --set changes a book that is there.",
    ),
]


@contextmanager
def open_book(
    book: str,
    pin: str | None,
    new: bool = False,
    key: str | None = None,
    accept_restored: str | None = None,
    clock: str | None = None,
    roles: Roles | None = None,
    accept_unsigned: bool = False,
) -> Iterator[Book]:
    """Open the book, or make a new one; an error is one line on stderr and an exit status."""
    from accountant.book.book import Book
    from accountant.book.databases.database_names import book_url
    from accountant.errors import (
        BudgetExceeded,
        DatasetClosed,
        LedgerBusy,
        LedgerClockAhead,
        LedgerCorrupt,
        LedgerNewer,
        RoleRefused,
    )

    ask = partial(ask_passphrase, str(key))
    try:
        if new:
            book_of_command = Book.create(
                book_url(book), pin=pin, key=key, passphrase=ask, clock=clock, roles=roles
            )
        else:
            book_of_command = Book.open(
                book_url(book), pin=pin, key=key, passphrase=ask,
                accept_restored=accept_restored, accept_unsigned=accept_unsigned, clock=clock,
            )  # fmt: skip
        with book_of_command as opened_book:
            yield opened_book
    except (LedgerCorrupt, LedgerBusy) as error:
        status = CORRUPT if isinstance(error, LedgerCorrupt) else BUSY
        raise CommandFailed(str(error), status) from None
    except (BudgetExceeded, DatasetClosed, LedgerClockAhead, LedgerNewer, RoleRefused) as error:
        raise CommandFailed(str(error), USAGE) from None


def ask_passphrase(key: str) -> str:
    """Return the passphrase of a private key: of a variable, or typed in a terminal, not shown."""
    import getpass
    import warnings

    from accountant.errors import ParameterError

    if stated := os.environ.get(PASSPHRASE_VARIABLE):
        return stated
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)  # where it would be shown
        try:
            return getpass.getpass(f"passphrase of {key}: ")
        except (getpass.GetPassWarning, EOFError, OSError):
            allowed = f"used in a terminal, or with its passphrase in {PASSPHRASE_VARIABLE}"
            raise ParameterError("--key", key, allowed) from None


def check_reason_goes_with_set(stated: str | None, reason: str | None) -> None:
    """Raise `ParameterError` if one of --set and --reason is given alone."""
    from accountant.errors import ParameterError

    if (stated is None) != (reason is None):
        raise ParameterError("--reason", reason, "given with --set, and only with it")


def print_statuses(statuses: list[Status], json: str | None = None) -> None:
    """Print where data sets stand, and the terms that changed since they were opened.

    ``json`` is the file of one status; where that is standard output, nothing else goes there.
    """
    from accountant.book.export import history_json
    from accountant.files import write_text

    if json != STANDARD_STREAM:
        for status in statuses:
            print("\n".join(map(wrapped, str(status).splitlines())))
    for status in statuses:
        write_text(json, history_json(status, []))


def writes_to_stdout(json: str | None, document: dict[str, Any]) -> bool:
    """Write plain values as the JSON document of --json; return whether standard output has it."""
    from json import dumps

    from accountant.files import write_text

    write_text(json, dumps(document, indent=2) + "\n")
    return json == STANDARD_STREAM


def wrapped(text: str) -> str:
    """Return the text in lines that a terminal shows whole, control characters escaped."""
    from textwrap import fill

    from accountant.formatting import escape_control

    return fill(
        escape_control(text),
        COLUMNS,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
