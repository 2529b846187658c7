"""Schemas as TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from accountant.errors import ParameterError
from accountant.formats.toml_writer import table_key, table_lines
from algorithms.frames.columns.dates import Date
from algorithms.frames.columns.keys import Key
from algorithms.frames.columns.kinds import ColumnKind
from algorithms.frames.columns.labels import Category, Flag
from algorithms.frames.columns.numbers import Integer, Number

KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (Number, Integer, Date, Flag, Category, Key)
}
FACTS = ("person", "rows_per_person", "relation")


def read_schema(path: str) -> dict[str, Any]:
    """Return the arguments of the schema that a file declares."""
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError("path", str(path), f"a TOML file ({error})") from None
    unknown = set(document) - {*FACTS, "columns"}
    if unknown or not isinstance(document.get("columns"), dict):
        allowed = f"keys {', '.join(FACTS)} and a table for each column, [columns.NAME]"
        raise ParameterError("schema", sorted(document), allowed)
    columns = {name: _kind(name, table) for name, table in document.pop("columns").items()}
    return {"columns": columns, **document}


def _kind(name: str, table: Any) -> ColumnKind:
    settings = dict(table) if isinstance(table, dict) else {}
    word = settings.pop("kind", None)
    if word not in KINDS:
        raise ParameterError(f"columns.{name}.kind", word, f"one of {', '.join(KINDS)}")
    names = [field.name for field in fields(KINDS[word])]
    needed = [field.name for field in fields(KINDS[word]) if field.default is MISSING]
    if not set(needed) <= set(settings) <= set(names):
        allowed = f"the keys kind, {', '.join(needed)}, and if wanted {names[-1]}"
        raise ParameterError(f"columns.{name}", sorted(settings), allowed)
    try:
        column_kind: ColumnKind = KINDS[word](**settings)
    except ParameterError as error:
        argument = f"columns.{name}.{error.argument}"
        raise ParameterError(argument, error.value, error.allowed) from None
    return column_kind


def write_schema(facts: dict[str, Any], columns: Mapping[str, ColumnKind], path: str | None) -> str:
    """Return a schema as TOML; write it to a file where one is named."""
    blocks = [table_lines(facts)]
    for name, kind in columns.items():
        settings = {field.name: getattr(kind, field.name) for field in fields(kind)}
        table = table_lines({"kind": kind.kind, **settings})
        blocks.append([f"[columns.{table_key(name)}]", *table])
    text = "\n\n".join("\n".join(lines) for lines in blocks) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
