"""What a log asks of a database; two kinds of database give it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

# `charges` leads to the last entry of each data set that spent something
TABLES = (
    """CREATE TABLE entries (seq {whole} PRIMARY KEY, dataset TEXT, kind TEXT NOT NULL,
       key TEXT UNIQUE, body TEXT NOT NULL, hash TEXT NOT NULL)""",
    "CREATE INDEX entries_of ON entries (dataset, seq)",
    "CREATE INDEX charges ON entries (dataset, seq) WHERE kind IN ('plan', 'reserve')",
    "CREATE TABLE blobs (seq {whole} PRIMARY KEY, body {bytes} NOT NULL)",
    "CREATE VIEW datasets AS SELECT * FROM entries WHERE kind = 'dataset'",
    "CREATE VIEW plans AS SELECT * FROM entries WHERE kind = 'plan'",
    "CREATE VIEW reservations AS SELECT * FROM entries WHERE kind IN ('reserve', 'step')",
    "CREATE VIEW releases AS SELECT * FROM entries WHERE kind IN ('release', 'failed')",
)


class Storage(Protocol):
    """A database that makes a transaction durable before it returns."""

    @property
    def name(self) -> str:
        """How errors call it; no password."""
        ...

    @property
    def empty(self) -> bool:
        """Whether it has no tables yet; asked inside a transaction."""
        ...

    def create(self) -> None:
        """Make the tables, inside a transaction."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """A transaction of one writer at a time, on disk when it ends.

        Raises `LedgerBusy`, `LedgerUnwritable` or `LedgerCorrupt`, and leaves nothing behind.
        """
        ...

    def reading(self) -> AbstractContextManager[None]:
        """One consistent view of the whole."""
        ...

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement, inside a transaction."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
