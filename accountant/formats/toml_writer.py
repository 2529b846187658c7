"""Writes plan files as TOML and JSON; reading them gives the same plan back."""

from __future__ import annotations

import json
from typing import Any

from accountant.formats.plan_file import PlanFile
from accountant.formats.plan_json import SCHEMA


def file_to_toml(file: PlanFile) -> str:
    """Return the file as TOML; `file_from_toml` returns an equal file."""
    document = file.to_dict()
    blocks = []
    if "budget" in document:
        blocks.append(["[budget]", *table_lines(document["budget"])])
    blocks += [["[[release]]", *table_lines(table)] for table in document["release"]]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def file_to_json(file: PlanFile) -> str:
    """Return the file as JSON, which `read_file` reads."""
    return json.dumps({"schema": SCHEMA, **file.to_dict()}, allow_nan=False, indent=2) + "\n"


def table_lines(table: dict[str, Any]) -> list[str]:
    """Return a table as lines of TOML, a key a line."""
    return [f"{table_key(key)} = {_value(value)}" for key, value in table.items()]


def table_key(key: str) -> str:
    """Return a key as TOML writes it, in quotes where it needs them."""
    return key if key.isascii() and key.replace("_", "a").isalnum() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        # a JSON string is a TOML one, but for DEL and for characters in two halves
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inside = ", ".join(table_lines(value))
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
