"""A query as a program that answers requests: ``python sql_program.py URL QUERY``.

It speaks the protocol of `audits.runs.command`, and imports the standard library and the module of
the database alone.  Each run is one execution of the query; its parameter ``:value`` is the value,
or if this is a dictionary, each key is a parameter.  Files are only read; what the
query writes elsewhere is rolled back.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

# Modules of the DB-API by the scheme of a URL, with what installs them.  Any other scheme is the
# name of a module itself.
MODULES = {"sqlite": "sqlite3", "postgresql": "psycopg", "postgres": "psycopg"}
PACKAGES = {"psycopg": "psycopg[binary]"}
# In a query: what may hold a colon and is no parameter (texts, quoted names, comments, casts), or a
# parameter, or a percent sign, which some modules read as the beginning of one.
TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::|(?<!\w):(?P<name>[A-Za-z_]\w*)|%",
    re.DOTALL,
)
MARKS = {"qmark": "?", "format": "%s", "numeric": ":{}", "named": ":{}", "pyformat": "%({})s"}


def main(url: str, query: str) -> None:
    """Answer the requests on standard input until it is closed."""
    connection, style = connect(url)
    statement, names = translated(query, style)
    if not names:
        sys.exit("Error: the query has no parameter :value, which the value would be")
    cursor = connection.cursor()
    for line in sys.stdin:
        request = json.loads(line)
        value = request["value"]
        by_name = value if isinstance(value, dict) else {"value": value}
        for name in names:
            if name not in by_name:
                sys.exit(f"Error: the value gives the query no parameter :{name}")
        parameters: Any = {name: by_name[name] for name in names}
        if style not in {"named", "pyformat"}:
            parameters = [by_name[name] for name in names]
        outputs: list[Any] = []
        errors: list[str | None] = []
        begin = time.perf_counter()
        for _ in range(request["runs"]):
            try:
                cursor.execute(statement, parameters)
                outputs.append(plain(cursor.fetchall()))
                errors.append(None)
            except Exception as error:  # each module has its own classes
                outputs.append(None)
                errors.append(f"{type(error).__name__}: {error}")
            # An error ends a transaction; a module that opens none may refuse to end it.
            with contextlib.suppress(Exception):
                connection.rollback()
        seconds = time.perf_counter() - begin
        answer: dict[str, Any] = {"outputs": outputs, "seconds": seconds}
        if any(errors):
            answer["errors"] = errors
        print(json.dumps(answer, default=as_json), flush=True)


def connect(url: str) -> tuple[Any, str]:
    """A connection to the database, and how its module marks parameters."""
    parts = urlsplit(os.path.expandvars(url))
    module_name = MODULES.get(parts.scheme, parts.scheme)
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        package = PACKAGES.get(module_name, module_name)
        sys.exit(f"Error: {module_name} is not installed: python -m pip install '{package}'")
    path = unquote(parts.path.removeprefix("/"))
    if module_name == "psycopg":
        return module.connect(os.path.expandvars(url)), module.paramstyle
    if module_name == "sqlite3":
        return module.connect(f"file:{quote(path)}?mode=ro", uri=True), module.paramstyle
    if module_name == "duckdb":
        return module.connect(path, read_only=True) if path else module.connect(), "qmark"
    arguments = {
        "host": parts.hostname,
        "port": parts.port,
        "user": parts.username and unquote(parts.username),
        "password": parts.password and unquote(parts.password),
        "database": path or None,
        **dict(parse_qsl(parts.query)),
    }
    given = {name: word for name, word in arguments.items() if word is not None}
    return module.connect(**given), module.paramstyle


def translated(query: str, style: str) -> tuple[str, list[str]]:
    """The query with its parameters marked as a module reads them, and their names in order."""
    names: list[str] = []

    def marked(token: re.Match[str]) -> str:
        name = token["name"]
        text = token[0]
        if name is not None:
            names.append(name)
            return MARKS[style].format(len(names) if style == "numeric" else name)
        return text.replace("%", "%%") if style in {"format", "pyformat"} else text

    return TOKEN.sub(marked, query.strip().removesuffix(";")), names


def plain(rows: Sequence[Sequence[Any]]) -> Any:
    """The number or text of a result of one row and column, else a list of rows."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return rows[0][0]
    return [list(row) for row in rows]


def as_json(value: Any) -> Any:
    """What JSON does not hold: a decimal as a float if that has all its digits, else a text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    return str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
