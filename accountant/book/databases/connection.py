"""Opens the database of a book, which a URL or a file's name names: SQLite or PostgreSQL.

A wrong URL may hold a password, so an error about it repeats only its scheme.
"""

from __future__ import annotations

import os
import re

from accountant.book.databases.storage import Storage
from accountant.domains import Interval
from accountant.errors import ParameterError

WAIT = Interval(0.0, 86400.0)  # seconds that a writer may wait for another one
# found in the name of a file that is in fact a connection string, or a URL that lacks a slash
SERVER_WORDS = re.compile(r"(?i)pass\w*\s*=|^postgres\w*(\+\w+)?:")
# what errors say is allowed
URL = "a file, 'sqlite:///PATH' or 'postgresql://USER@HOST/DATABASE'"


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


def book_url(name: str | os.PathLike[str]) -> str:
    """Return the URL of a book that is named by its file or its URL."""
    url = isinstance(name, str | os.PathLike) and os.fspath(name)
    if not url or not isinstance(url, str):
        raise ParameterError("url", name, URL)
    return url if "://" in url else f"sqlite:///{url}"


def scheme_of(url: str) -> str:
    """Return the part of a URL that holds no password; connection strings have no such part."""
    scheme, mark, _ = url.partition("://")
    return scheme if mark and scheme.replace("+", "").isalnum() else "words that are no URL"
