"""Plan files: TOML with one ``[[release]]`` a line of the plan.

[budget]                # what may be spent, optional
epsilon = 1.0
delta = 1e-6

[[release]]
kind = "Laplace"        # a mechanism, a loss or a node
scale = 20.0
count = 64
name = "ages"           # for tables

[[release]]
kind = "Gaussian"       # its scale is to be found: least of weighted errors, or a target
sensitivity = 2.0
error = "deviation"     # or { quantile = 0.95 }, { maximum = 30 }, { selection = 100 }
weight = 1.0            # `fit --out` adds the scale that it found: fitted = 35.2

[[release]]
kind = "PoissonSampled"
rate = 0.004
count = 15000
part = { kind = "Gaussian", scale = 0.8 }
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from accountant.errors import ParameterError
from accountant.files import STANDARD_INPUT, read_text
from accountant.formats.plan_file import PlanFile, plan_file_of_document
from accountant.formats.toml_positions import NestingTooDeep, key_offsets, line_and_column, tokens
from accountant.plans.plan import Plan
from accountant.serialisation.plan_json import PlanFileError, parse_document

MAX_FILE_SIZE = 1_000_000  # most characters of a file
MAX_TOKEN_LENGTH = 1_000  # most characters of a number or a bare key
T = TypeVar("T")  # what is made of a file: all that it says, or its plan


class PlanSyntaxError(ParameterError):
    """An error in a plan file: ``line`` and ``column`` give the position."""

    def __init__(self, line: int, column: int, why: str, file: str = "") -> None:
        self.line, self.column, self.why, self.file = line, column, why, file
        super().__init__(f"line {line}, column {column}", why, "right")

    def in_file(self, file: str) -> PlanSyntaxError:
        """Return the same error with the name of the file."""
        return PlanSyntaxError(self.line, self.column, self.why, file)

    def __str__(self) -> str:
        file = f"{self.file}, " if self.file else ""
        return f"{file}line {self.line}, column {self.column}: {self.why}"


def read_plan(name: str | os.PathLike[str]) -> Plan:
    """Return the plan of a plan file; errors name the file, and the place in it.

    Parameters
    ----------
    name : path
        A .toml or .json file, or ``-`` for standard input.

    Returns
    -------
    Plan
        Its releases, one after another.

    Raises
    ------
    ParameterError
        If the file cannot be read, or is no plan: with line and column.

    Examples
    --------
    >>> import tempfile
    >>> from accountant import PureLoss, read_plan, write_plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_plan(12 * PureLoss(0.1), f"{folder}/plan.toml")
    ...     read_plan(f"{folder}/plan.toml")
    Repeat(part=PureLoss(epsilon=0.1), count=12)
    """
    return read_document(os.fspath(name), lambda document, suffix: _file(document, suffix).plan)


def read_file(name: str | os.PathLike[str], again: bool = False) -> PlanFile:
    """Return all that a .toml or .json file says; errors as those of `read_plan`.

    With ``again`` noise that was found from weights and targets is to be found anew.
    """
    return read_document(os.fspath(name), lambda document, suffix: _file(document, suffix, again))


def file_from_toml(text: str) -> PlanFile:
    """Return all that a TOML document says, or raise `PlanSyntaxError`."""
    return _from_toml(text, PlanFile.from_dict)


def _file(document: dict[str, Any], suffix: str, again: bool = False) -> PlanFile:
    """Return the plan file of the tables of a .toml or .json document."""
    convert = plan_file_of_document if suffix == ".json" else PlanFile.from_dict
    return convert(document, again)


def read_document(
    name: str, convert: Callable[[dict[str, Any], str], T], argument: str = "plan"
) -> T:
    """Return what ``convert`` makes of the tables of a file and its suffix; errors name the file.

    ``convert`` raises `PlanFileError` with the path to what is wrong, which is shown as line and
    column of a .toml file; ``argument`` is what errors of the whole file call it.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        allowed = "a .toml or .json file (YAML is not read: it can name code to run)"
        raise ParameterError(argument, name, allowed)
    if name != STANDARD_INPUT and path.suffix not in {".toml", ".json"}:
        raise ParameterError(argument, name, "a .toml or .json file")
    try:
        if name != STANDARD_INPUT and path.stat().st_size > MAX_FILE_SIZE:
            why = f"the file is longer than {MAX_FILE_SIZE:,} bytes"
            raise PlanSyntaxError(1, 1, why, name)
        text = read_text(path)
    except OSError as error:
        raise ParameterError(
            argument, name, f"a file that can be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise ParameterError(argument, name, "a file of UTF-8 text") from None
    try:
        if suffix_of(path, text) == ".toml":
            return _from_toml(text, lambda document: convert(document, ".toml"))
        return convert(parse_document(text), ".json")
    except PlanSyntaxError as error:
        raise error.in_file(name) from None
    except PlanFileError as error:
        raise PlanFileError((name, *error.path), error.value, error.why) from None


def suffix_of(path: Path, text: str) -> str:
    """Return the kind of a plan file, .toml or .json; that of standard input is seen in its text.

    A document in JSON begins with a brace, which no line of TOML does.
    """
    return path.suffix or (".json" if text.lstrip().startswith("{") else ".toml")


def _from_toml(text: str, convert: Callable[[dict[str, Any]], T]) -> T:
    """Return what ``convert`` makes of the tables of a text; errors have its line and column."""
    if len(text) > MAX_FILE_SIZE:
        raise PlanSyntaxError(1, 1, f"the file is longer than {MAX_FILE_SIZE:,} characters")
    document = _parse_toml(text)
    try:
        return convert(document)
    except PlanFileError as error:
        # The error is shown at its key, or else at the last key above it that the text has.
        offsets, path = key_offsets(text), error.path
        above = (path[:length] for length in range(len(path), 0, -1))
        offset = next((offsets[key] for key in above if key in offsets), 0)
        raise PlanSyntaxError(*line_and_column(text, offset), str(error)) from None
    except ParameterError as error:
        raise PlanSyntaxError(1, 1, str(error)) from None


def _parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a text, or raise `PlanSyntaxError`."""
    try:
        for token, at in tokens(text):
            # Python refuses to read whole numbers of more than 4,300 digits
            if len(token) > MAX_TOKEN_LENGTH and not token.startswith(('"', "'")):
                raise PlanSyntaxError(
                    *line_and_column(text, at), f"longer than {MAX_TOKEN_LENGTH:,} characters"
                )
        return tomllib.loads(text)
    except NestingTooDeep as error:
        raise PlanSyntaxError(
            *line_and_column(text, error.offset), "the tables are nested too deeply"
        ) from None
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (
            (int(position[1]), int(position[2])) if position else (text.count("\n") + 1, 1)
        )
        raise PlanSyntaxError(line, column, re.sub(r" \(at .*\)$", "", str(error))) from None
