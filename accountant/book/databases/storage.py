"""The interface between a log and its database; SQLite and PostgreSQL implement it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

# No spend relies on an index: entries lead to earlier ones by their numbers (`key_index`)
TABLES = (
    """CREATE TABLE entries (seq {whole} PRIMARY KEY, dataset TEXT, kind TEXT NOT NULL,
       key TEXT UNIQUE, body TEXT NOT NULL, hash TEXT NOT NULL)""",
    "CREATE INDEX entries_of ON entries (dataset, seq)",
    "CREATE TABLE blobs (seq {whole} PRIMARY KEY, body {bytes} NOT NULL)",
    "CREATE VIEW datasets AS SELECT * FROM entries WHERE kind = 'dataset'",
    "CREATE VIEW plans AS SELECT * FROM entries WHERE kind = 'plan'",
    "CREATE VIEW reservations AS SELECT * FROM entries WHERE kind IN ('reserve', 'step')",
    "CREATE VIEW releases AS SELECT * FROM entries WHERE kind IN ('release', 'failed')",
)


Question = tuple[str, dict[str, Any]]  # a statement, and its values
ROWS_PER_PAGE = 1000  # rows that are read at a time


class Storage(Protocol):
    """A database that makes a transaction durable before it returns."""

    @property
    def name(self) -> str:
        """Return the name of the database in error messages, without a password."""
        ...

    @property
    def empty(self) -> bool:
        """Return whether there are no tables yet; call it inside a transaction."""
        ...

    @property
    def schema(self) -> str | None:
        """Return the schema of the tables on a server; None of a file; inside a transaction."""
        ...

    def create(self) -> None:
        """Create the tables, inside a transaction."""
        ...

    def refuse_older_versions(self) -> None:
        """Refuse from now on entries that state no format; inside a transaction.

        It does nothing where that is so already, or where the user may not make a trigger.
        """
        ...

    def writing(self, ahead: Sequence[Question] = ()) -> AbstractContextManager[None]:
        """Open a transaction of one writer at a time; it is on disk when it ends.

        ``ahead`` are questions that `ask` will ask: a server answers them together with the lock.

        Raises `LedgerBusy`, `LedgerUnwritable` or `LedgerCorrupt`, and then no change is stored.
        """
        ...

    def reading(self, durable: bool = False) -> AbstractContextManager[None]:
        """Open a read-only transaction with one consistent view.

        With ``durable`` what was seen is on disk when it ends, also what other processes wrote.
        """
        ...

    def now(self) -> datetime:
        """Return the time in UTC by the clock that all writers of the book share, if there is one.

        It is that of the server, or of this machine; call it inside a transaction.
        """
        ...

    def note_length(self, length: int) -> None:
        """Note the number of entries in another place than the entries; inside a transaction."""
        ...

    def has_length(self, length: int) -> bool:
        """Return whether this is the number that was noted; inside a transaction."""
        ...

    def check_integrity(self) -> None:
        """Raise `LedgerCorrupt` if the database finds itself damaged; inside a transaction."""
        ...

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, inside a transaction."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def paged_rows(
    storage: Storage, query: str, after: Any, **values: Any
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a query in pages; no cursor stays open between pages.

    The query returns rows above ``:after`` in their first column, in its order.
    """
    while True:
        rows = storage.ask(f"{query} LIMIT {ROWS_PER_PAGE}", after=after, **values)
        yield rows
        if len(rows) < ROWS_PER_PAGE:
            return
        after = rows[-1][0]
