"""Opens the database that a URL names."""

from __future__ import annotations

from accountant.book.storage import Storage
from accountant.domains import Interval
from accountant.errors import ParameterError

WAIT = Interval(0.0, 86400.0)
URL = "'sqlite:///PATH' or 'postgresql://USER@HOST/DATABASE'"


def connect(url: str, wait: float, create: bool) -> Storage:
    """Return a connection to the database that a URL names."""
    seconds = WAIT.check("wait", wait)
    if isinstance(url, str) and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        from accountant.book.sqlite import SQLite

        return SQLite(url.removeprefix("sqlite:///"), seconds, create)
    if isinstance(url, str) and url.startswith(("postgresql://", "postgresql+psycopg://")):
        from accountant.book.postgres import Postgres

        return Postgres(url, seconds)
    raise ParameterError("url", _scheme(url), URL)


def _scheme(url: object) -> object:
    """Return the part of a URL that holds no password."""
    return url.split("://", maxsplit=1)[0] if isinstance(url, str) else url
