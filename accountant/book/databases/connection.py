"""Opens the database that a URL names."""

from __future__ import annotations

import re

from accountant.book.databases.storage import Storage
from accountant.domains import Interval
from accountant.errors import ParameterError

WAIT = Interval(0.0, 86400.0)
# a connection string, or a URL that lacks a slash, taken for the name of a file
SERVER_WORDS = re.compile(r"(?i)pass\w*\s*=|^postgres\w*(\+\w+)?:")
URL = "'sqlite:///PATH' or 'postgresql://USER@HOST/DATABASE'"


def connect(url: str, wait: float, create: bool) -> Storage:
    """Return a connection to the database that a URL names."""
    seconds = WAIT.check("wait", wait)
    if isinstance(url, str) and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from accountant.book.databases.sqlite import SQLite

        path = url.removeprefix("sqlite:///")
        if SERVER_WORDS.search(path):
            raise ParameterError("url", "words for a server, not shown", URL)
        return SQLite(path, seconds, create)
    if isinstance(url, str) and url.startswith(("postgresql://", "postgresql+psycopg://")):
        from accountant.book.databases.postgres import Postgres

        return Postgres(url, seconds)
    raise ParameterError("url", scheme_of(url), URL)


def book_url(name: str) -> str:
    """Return the URL of a book that is named by its file or its URL, as on command lines."""
    return name if "://" in name else f"sqlite:///{name}"


def scheme_of(url: object) -> object:
    """Return the part of a URL that holds no password; connection strings have no such part."""
    if not isinstance(url, str) or not url:
        return url
    scheme, mark, _ = url.partition("://")
    return scheme if mark and scheme.replace("+", "").isalnum() else "words that are no URL"
