"""``training --opacus FILE``: the statement of a run whose history and loader a file holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accountant.cli.exit_status import CommandLineError, parse_number

if TYPE_CHECKING:
    from accountant.training.statement import TrainingStatement

ASKED = ("epochs", "batch", "delta", "relation", "examples_per_user")
WRITTEN = (
    "a JSON file of json.dump(opacus_record(engine, loader), file), by accountant.formats.opacus"
)


def statement_of_file(
    name: str, given_options: dict[str, Any], on_row: Callable[[], None]
) -> TrainingStatement:
    """Return the statement of the run in a file; options check it or request more numbers."""
    from accountant.errors import ParameterError
    from accountant.files import read_text
    from accountant.formats.opacus_statement import statement_of_opacus

    for option in given_options:
        if option not in ASKED:
            option_name = option.replace("_", "-")
            raise CommandLineError(f"--{option_name} is left out with --opacus, whose file says it")
    try:
        record = json.loads(read_text(Path(name)))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError):
        raise ParameterError("--opacus", name, WRITTEN) from None
    if not isinstance(record, dict):
        raise ParameterError("--opacus", name, WRITTEN)
    arguments: dict[str, Any] = {
        key: parse_number(value) if isinstance(value, str) and key != "relation" else value
        for key, value in given_options.items()
    }
    return statement_of_opacus(record, on_row=on_row, **arguments)
