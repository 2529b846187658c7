"""What the commands of a ledger share: options, opening the book, and printing its status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.exit_status import CommandFailed

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
PinFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Compare the end of the log with the one that FILE holds, and note the new end there.",
    ),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sign, and check, with the key in FILE: the Ed25519 private key of a person, or the "
        "secret of the book. The passphrase of a private key is asked for, or taken from the "
        f"variable {PASSPHRASE_VARIABLE}.",
    ),
]
AcceptUnsigned = Annotated[
    bool,
    typer.Option(
        "--accept-unsigned",
        help="Sign from now on, with the secret of --key, a book that was begun without one; "
        "verify it first.",
    ),
]
ClockTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|trusted",
        help="Confirm that the clock is right up to the day or time TIME (UTC), or 'trusted': "
        "always.",
    ),
]
NewBook = Annotated[
    bool, typer.Option("--new", help="Make the book BOOK, which may not be there yet.")
]
Reason = Annotated[str, typer.Option(metavar="WORDS", help="Say why; the text stays in the log.")]
ReasonOfSet = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS",
        help="Say why; the text stays in the log. Needed where --set changes a book that is there.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON to standard output.")]


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


def print_statuses(statuses: list[Status], as_json: bool = False) -> None:
    """Print where data sets stand, and the terms that changed since they were opened."""
    from accountant.book.export import history_json

    for status in statuses:
        if as_json:
            sys.stdout.writelines(history_json(status, []))
        else:
            print("\n".join(map(wrapped, str(status).splitlines())))


def print_json(document: dict[str, Any]) -> None:
    """Print plain values as one JSON document."""
    from json import dumps

    print(dumps(document, indent=2))


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
