"""``python -m accountant ledger close|raise|expire|quota``: terms that change, with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.ledger_options import (
    BookName,
    DatasetName,
    JsonFlag,
    KeyFile,
    PinFile,
    open_book,
    print_json,
    print_statuses,
)

if TYPE_CHECKING:
    from accountant.book.status import Quotas

Reason = Annotated[str, typer.Option(metavar="WORDS", help="Why; it stays in the log.")]


def close(
    book: BookName,
    name: DatasetName,
    reason: Reason,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Close a data set for good: nothing more is spent, and stored answers stay readable.

    Example: python -m accountant ledger close book.db survey --reason "the study ended"
    """
    with open_book(book, pin, key=key) as opened_book:
        print_statuses([opened_book.close_dataset(name, reason)], json)


def raise_(
    book: BookName,
    name: DatasetName,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The new budget's epsilon.")],
    reason: Reason,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Its delta; by default as it was.")
    ] = None,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Give a data set another budget, which must hold what was spent.

    Example: python -m accountant ledger raise book.db survey --epsilon 2 --reason "second wave"
    """
    from accountant.accountants.budget import Budget
    from accountant.cli.exit_status import parse_number
    from accountant.domains import DELTA, POSITIVE

    e = POSITIVE.check("--epsilon", parse_number(epsilon))
    d = None if delta is None else DELTA.check("--delta", parse_number(delta))
    with open_book(book, pin, key=key) as opened_book:
        budget = Budget(e, opened_book.status(name).budget.delta if d is None else d)
        print_statuses([opened_book.raise_budget(name, budget, reason)], json)


def expire(
    book: BookName,
    name: DatasetName,
    when: Annotated[str, typer.Option(metavar="TIME", help="Nothing is spent from TIME (UTC) on.")],
    reason: Reason,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Set the time from which on a data set refuses to spend; a later call can move it.

    Example: python -m accountant ledger expire book.db survey --when 2027-01-01 --reason consent
    """
    with open_book(book, pin, key=key) as opened_book:
        print_statuses([opened_book.expire(name, when, reason)], json)


def quota(
    book: BookName,
    name: DatasetName,
    author: Annotated[str | None, typer.Option(metavar="WHO", help="Only what WHO spent.")] = None,
    set_: Annotated[
        str | None, typer.Option("--set", metavar="WHO=E", help="The epsilon that WHO may spend.")
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="WORDS", help="Why, with --set.")] = None,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Say what each author spent of a data set and may spend, after setting one of the quotas.

    Example: python -m accountant ledger quota book.db survey --set ada=0.25 --reason "pilot"
    """
    from accountant.cli.exit_status import parse_number
    from accountant.errors import ParameterError

    whose, _, epsilon = ("", "", "") if set_ is None else set_.rpartition("=")
    if set_ is not None and not whose:
        raise ParameterError("--set", set_, "WHO=E, such as ada=0.25")
    if (set_ is None) != (reason is None):
        raise ParameterError("--reason", reason, "given with --set, and only with it")
    with open_book(book, pin, key=key) as opened_book:
        if set_ is not None and reason is not None:
            opened_book.set_quota(name, whose, parse_number(epsilon), reason)  # type: ignore[arg-type]  # checked there
        quotas = opened_book.quotas(name)
        selected_quotas = [
            author_quota for author_quota in quotas if author in (None, author_quota.author)
        ]
        _print_quotas(name, type(quotas)(selected_quotas), json)


def _print_quotas(name: str, quotas: Quotas, as_json: bool) -> None:
    """Print the authors, one a line: numbers first, so that lines begin alike."""
    if as_json:
        print_json({"dataset": name, "quotas": quotas.to_records()})
        return
    from accountant.formatting import escape_control, format_lower, format_upper

    print(f"{'epsilon':>12}{'quota':>12}{'left':>12}  author")
    for author_quota in quotas:
        quota = "" if author_quota.quota is None else f"{author_quota.quota:g}"
        remaining = "" if author_quota.left is None else format_lower(author_quota.left)
        name = escape_control(author_quota.author)
        print(f"{format_upper(author_quota.epsilon):>12}{quota:>12}{remaining:>12}  {name}")


def buckets(book: BookName, name: DatasetName, json: JsonFlag = False, pin: PinFile = None) -> None:
    """Say what the people of each bucket of a data set spent.

    Example: python -m accountant ledger buckets book.db survey
    """
    from accountant.formatting import escape_control, format_lower, format_upper

    with open_book(book, pin) as opened_book:
        table = opened_book.buckets(name)
    if json:
        print_json({"dataset": name, "buckets": table.to_records()})
        return
    print(f"{'epsilon':>12}{'left':>12}  bucket")
    for bucket in table:
        print(
            f"{format_upper(bucket.epsilon):>12}{format_lower(bucket.left):>12}  "
            f"{escape_control(bucket.name)}"
        )


COMMANDS: dict[str, Callable[..., None]] = {
    "close": close,
    "raise": raise_,
    "expire": expire,
    "quota": quota,
    "buckets": buckets,
}
