"""Writes plan files as TOML and JSON; reading them gives the same plan back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from accountant.accountants.budget import Budget
from accountant.domains import OneOf
from accountant.files import write_atomically
from accountant.formats.plan_file import PlanFile
from accountant.plans.plan import Plan, Sequential, as_plan
from accountant.serialisation.plan_json import SCHEMA


def write_plan(plan: Plan, name: str | os.PathLike[str], budget: Budget | None = None) -> None:
    """Write a plan file, which `read_plan` and the command line read; whole, or not at all.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism; of a sequence, each part is a line of the file.
    name : path
        A .toml or .json file; one that is there is replaced.
    budget : Budget, optional
        What may be spent: the file's ``[budget]``.

    Raises
    ------
    ParameterError
        If a part is no declared kind, or the suffix is another one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from accountant import Budget, write_plan
    >>> from mechanisms import Laplace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_plan(12 * Laplace(60.0), f"{folder}/plan.toml", Budget(1.0))
    ...     print(Path(f"{folder}/plan.toml").read_text().splitlines()[4:])
    ['[[release]]', 'kind = "Laplace"', 'scale = 60.0', 'count = 12']
    """
    path = Path(name)
    kind = OneOf((".toml", ".json")).check("the suffix of name", path.suffix)
    whole_plan = as_plan(plan)
    parts = whole_plan.parts if isinstance(whole_plan, Sequential) else (whole_plan,)
    releases = [release for part in parts for release in PlanFile.of(part).releases]
    file = PlanFile(tuple(releases), budget)
    write_atomically(path, (file_to_json if kind == ".json" else file_to_toml)(file))


def file_to_toml(file: PlanFile) -> str:
    """Return the file as TOML; `file_from_toml` returns an equal file."""
    return document_to_toml(file.to_dict())


def document_to_toml(document: dict[str, Any]) -> str:
    """Return the content of a plan file as TOML."""
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
    """Return a value as TOML writes it; tables and lists are on one line."""
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
