"""Plan files: TOML with one ``[[release]]`` a line of the plan.

[[release]]
kind = "Laplace"        # a mechanism, a loss or a node
scale = 20.0
count = 64

[[release]]
kind = "PoissonSampled"
rate = 0.004
count = 15000
part = { kind = "Gaussian", scale = 0.8 }
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from accountant.errors import ParameterError
from accountant.plan import Plan, Sequential
from accountant.plan_json import PlanFileError, Steps, from_dict, from_json

LARGEST = 1_000_000  # characters


class PlanSyntaxError(ParameterError):
    """A plan file is wrong: ``line`` and ``column`` say where."""

    def __init__(self, line: int, column: int, why: str, file: str = "") -> None:
        self.line, self.column, self.why, self.file = line, column, why, file
        super().__init__(f"line {line}, column {column}", why, "right")

    def of(self, file: str) -> PlanSyntaxError:
        """The same error, of a file."""
        return PlanSyntaxError(self.line, self.column, self.why, file)

    def __str__(self) -> str:
        file = f"{self.file}, " if self.file else ""
        return f"{file}line {self.line}, column {self.column}: {self.why}"


def read_plan(name: str) -> Plan:
    """Return the plan of a .toml or .json file; errors name the file, and the place in it."""
    path = Path(name)
    if path.suffix not in {".toml", ".json"}:
        raise ParameterError("plan", name, "a .toml or .json file")
    try:
        if path.stat().st_size > LARGEST:
            raise ParameterError("plan", name, f"a file of at most {LARGEST:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ParameterError("plan", name, f"a file that can be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ParameterError("plan", name, "a file of UTF-8 text") from None
    try:
        return from_json(text) if path.suffix == ".json" else from_toml(text)
    except PlanSyntaxError as error:
        raise error.of(name) from None
    except PlanFileError as error:
        raise PlanFileError((name, *error.path), error.value, error.why) from None


def from_toml(text: str) -> Plan:
    """Return the plan of a TOML document, or raise `PlanSyntaxError`."""
    if len(text) > LARGEST:
        raise PlanSyntaxError(1, 1, f"the file is longer than {LARGEST:,} characters")
    document = _parsed(text)
    for key in document:
        if key != "release":
            raise _located(text, (key,), f"unknown key {key!r}; a plan file has [[release]] tables")
    releases = document.get("release")
    if not isinstance(releases, list):
        raise PlanSyntaxError(1, 1, "no [[release]] tables; each needs a kind, such as 'Laplace'")
    parts = []
    for i, table in enumerate(releases):
        try:
            parts.append(from_dict(table, ("release", i)))
        except PlanFileError as error:
            raise _located(text, error.path, str(error)) from None
    try:
        return Sequential(parts) if len(parts) != 1 else parts[0]
    except ParameterError as error:
        raise PlanSyntaxError(1, 1, str(error)) from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(found[1]), int(found[2])) if found else (text.count("\n") + 1, 1)
        raise PlanSyntaxError(line, column, re.sub(r" \(at .*\)$", "", str(error))) from None
    except RecursionError:
        raise PlanSyntaxError(1, 1, "the tables are nested too deeply") from None


def _located(text: str, path: Steps, why: str) -> PlanSyntaxError:
    """The error with the first line at whose end ``path`` exists, and its key's column there."""
    lines = text.splitlines()
    # TOML can be read up to the end of any line that ends a value
    for known in range(len(path), 0, -1):
        low = _first_line(lines, path[:known])
        if low:
            key = next((str(k) for k in reversed(path[:known]) if isinstance(k, str)), "")
            found = re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", lines[low - 1])
            return PlanSyntaxError(low, found.start() + 1 if found else 1, why)
    return PlanSyntaxError(1, 1, why)


def _first_line(lines: list[str], path: Steps) -> int:
    low, high = 1, len(lines)
    if not _reaches(lines, high, path):
        return 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _reaches(lines, middle, path) else (middle + 1, high)
    return low


def _reaches(lines: list[str], count: int, path: Steps) -> bool:
    """Whether ``path`` exists in the longest readable beginning of the first ``count`` lines."""
    while count:
        try:
            value: Any = tomllib.loads("\n".join(lines[:count]))
        except (tomllib.TOMLDecodeError, RecursionError):
            count -= 1
            continue
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return False
        return True
    return False
