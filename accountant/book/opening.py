"""Opens the log of a book, or makes it, and compares its end with the pins that hold it.

A *pin* is a file in another place with the number and the hash of the last entry.  A book that was
put back from a backup has fewer entries than its pins say, and is refused, unless the caller says
why it is to be spent from: an entry then says so, and the pins follow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime
from enum import Enum

from accountant.book.chain.entries import RESTORED, ROLES, START, checked_name
from accountant.book.chain.head_pin import HeadPin, OwnPin, own_pin
from accountant.book.chain.roles import Roles
from accountant.book.chain.signatures import key_of
from accountant.book.chain.signing_key import SigningKey
from accountant.book.clock import confirmed_until
from accountant.book.databases.database_names import (
    MAKE_ONE,
    URL,
    MissingBook,
    book_url,
    scheme_of,
)
from accountant.book.databases.storage import Storage
from accountant.book.log import LAST_ENTRIES, Log
from accountant.domains import BOOLEAN, Interval
from accountant.errors import LedgerCorrupt, ParameterError

WAIT = Interval(0.0, 86400.0)  # seconds that a writer may wait for another one
# found in the name of a file that is in fact a connection string, or a URL that lacks a slash
SERVER_WORDS = re.compile(r"(?i)pass\w*\s*=|^postgres\w*(\+\w+)?:")
# `Book.verify` checks all entries.  At the opening more than these would take longer.
ENTRIES_CHECKED_ON_OPEN = 1000  # entries that are checked when a book is opened


class Make(Enum):
    """Whether opening a book makes it: never, only where none is, or in both cases."""

    NEVER, NEW, IF_MISSING = range(3)


def open_log(
    url: str | os.PathLike[str],
    make: Make,
    pin: str | os.PathLike[str] | None = None,
    wait: float = 30.0,
    author: str | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
    ask: Callable[[], str] | None = None,
    clock: str | datetime | None = None,
    *,
    roles: Roles | None = None,
    accept_restored: str | None = None,
    accept_unsigned: bool = False,
) -> Log:
    """Open the log of a book, or make it with these roles, and check its last entries.

    ``ask`` returns the passphrase of the key; other arguments are those of `Book.open`.
    """
    accepts_unsigned = BOOLEAN.check("accept_unsigned", accept_unsigned)
    named_author = None if author is None else checked_name("author", author)
    if accept_restored is not None:
        checked_name("accept_restored", accept_restored)
    named_pin = None if pin is None else HeadPin(pin)
    signing_key = None if key is None else key_of(key, ask)
    if roles is not None:
        if not isinstance(roles, Roles):
            raise ParameterError("roles", roles, "Roles, with the public keys of curators")
        roles.refuse_unless_curator(signing_key)
    confirmed = confirmed_until(clock)
    # a book that was pinned is not made anew where it is missing
    has_pinned_head = named_pin is not None and named_pin.read() is not None
    try:
        storage = connect(url, wait, make is not Make.NEVER and not has_pinned_head)
    except MissingBook as missing:
        if not has_pinned_head:
            raise
        problem = "is empty, though entries of it are known"
        raise LedgerCorrupt(str(missing.value), problem) from None
    log = Log(storage, None if accept_restored else named_pin, named_author, wait, signing_key)
    log.signatures.accepts_unsigned = accepts_unsigned
    try:
        make_if_wanted(log, make, roles)
        check_last_entries(log)
        machine_pin = own_pin(str(log.first_facts.get("id", "")))
        if accept_restored is not None:
            accept_lost_entries(log, [named_pin, machine_pin], accept_restored)
        log.pins.named, log.pins.own = named_pin, machine_pin
        if log.is_new:
            log.pins.advance(log.last_seen_head)
    except BaseException:
        log.close()
        raise
    log.confirmed = confirmed
    return log


def connect(name: str | os.PathLike[str], wait: float, create: bool) -> Storage:
    """Return a connection to the database that a URL or a file's name names."""
    seconds = WAIT.check("wait", wait)
    url = book_url(name)
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from accountant.book.databases.sqlite import SQLite

        path = url.removeprefix("sqlite:///")
        if SERVER_WORDS.search(path):
            raise ParameterError("url", "words for a server, not shown", URL)
        return SQLite(path, seconds, create)
    if url.startswith(("postgresql://", "postgresql+psycopg://")):
        from accountant.book.databases.postgres import Postgres

        return Postgres(url, seconds)
    raise ParameterError("url", scheme_of(url), URL)


def make_if_wanted(log: Log, make: Make, roles: Roles | None) -> None:
    """Make the book where there is none; refuse where one is missing, or is there already."""
    with log.storage.reading():
        is_empty = log.storage.empty
        if not is_empty and isinstance(log.signing_key, SigningKey):
            log.signatures.fit(log.storage.ask(LAST_ENTRIES))
    if is_empty and make is Make.NEVER:
        allowed = f"{MAKE_ONE}; a login of a server sees only schemas that it may use"
        raise ParameterError("url", log.name, allowed)
    if is_empty:
        with log.writing(roles):
            pass
    if make is Make.NEW and not log.is_new:
        allowed = "of no book yet: Book.open, or `ledger open` without --new, opens this one"
        raise ParameterError("url", log.name, allowed)


def check_last_entries(log: Log) -> None:
    """Raise `LedgerCorrupt` if the last entries do not fit together."""
    with log.reading():
        log.first_facts = log.entry(1).facts
        first_checked = max(log.head.seq - ENTRIES_CHECKED_ON_OPEN, 0)
        start, roles = START, 0
        if first_checked:
            start = log.entry(first_checked).chain_head
            roles = log.entry(first_checked).roles_after
        for entry in log.entries_after(start):
            facts = entry.facts
            if facts.get("roles", 0) != roles:
                log.signatures.refuse_other_roles(roles, facts)
            if facts["kind"] == ROLES:
                roles = entry.seq
        log.signatures.refuse_lost_roles(log.head, log.first_facts)


def accept_lost_entries(log: Log, pins: list[HeadPin | OwnPin | None], reason: str) -> None:
    """Let the pins follow a book that was put back from a backup; an entry says so, and why."""
    pinned = [(pin, head) for pin in pins if pin is not None and (head := pin.read()) is not None]
    with log.writing():
        lost = []
        for pin, head in pinned:
            try:
                log.refuse_unless_there(head, log.head)
            except LedgerCorrupt:
                lost.append((pin, head))
        if not lost:
            allowed = "None: this book goes on from its pin, so it was not put back"
            raise ParameterError("accept_restored", reason, allowed)
        last_known = max(head for _, head in lost)
        log.append(RESTORED, {"reason": reason, "known": str(last_known)})
    for pin, head in lost:
        pin.advance(log.last_seen_head, instead_of=head)
