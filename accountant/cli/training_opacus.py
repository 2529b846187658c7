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
    name: str, known: dict[str, Any], on_row: Callable[[], None]
) -> TrainingStatement:
    """Return the statement of the run that a file tells of; options check it or ask for more."""
    from accountant.errors import ParameterError
    from accountant.files import read_text
    from accountant.formats.opacus_statement import statement_of_opacus

    for option in known:
        if option not in ASKED:
            words = option.replace("_", "-")
            raise CommandLineError(f"--{words} is left out with --opacus, whose file says it")
    try:
        record = json.loads(read_text(Path(name)))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError):
        raise ParameterError("--opacus", name, WRITTEN) from None
    if not isinstance(record, dict):
        raise ParameterError("--opacus", name, WRITTEN)
    given: dict[str, Any] = {
        key: parse_number(one) if isinstance(one, str) and key != "relation" else one
        for key, one in known.items()
    }
    return statement_of_opacus(record, on_row=on_row, **given)
