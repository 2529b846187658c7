"""What users rely on does not change by accident: names, parameters, options, files, books.

`snapshots/public.json` and `snapshots/book.db` were written at 597b72c, before the rooms of the
packages were laid out.  A promise that is changed on purpose is changed there too, by hand or by
`python tests/test_public_names.py`, and in the CHANGELOG.
"""

import enum
import importlib
import inspect
import json
import shutil
from pathlib import Path

import click
import pytest
import typer.main

SNAPSHOTS = Path(__file__).parent / "snapshots"
PACKAGES = ("accountant", "mechanisms", "algorithms", "algorithms.frames", "audits",
            "audits.minimax")  # fmt: skip
COMMAND_LINES = ("accountant", "audits")


def public_names(package: str) -> dict[str, list[str]]:
    """Every exported name with the names of its parameters, in order."""
    module = importlib.import_module(package)
    return {name: parameters(getattr(module, name)) for name in sorted(module.__all__)}


def parameters(value: object) -> list[str]:
    """Return the names of the parameters of a callable; [] of other values."""
    if isinstance(value, enum.EnumType):  # Python's own, which differ by its version
        return []
    try:
        return list(inspect.signature(value).parameters) if callable(value) else []
    except ValueError:
        return []


def options(command: click.Command) -> dict[str, object]:
    """Every option and argument of a command, and of its sub-commands."""
    if isinstance(command, click.Group) or hasattr(command, "commands"):
        return {name: options(inner) for name, inner in sorted(command.commands.items())}
    return {"options": sorted(word for p in command.params for word in p.opts + p.secondary_opts)}


def command_line(package: str) -> dict[str, object]:
    app = importlib.import_module(f"{package}.__main__").app
    return options(typer.main.get_command(app))


def plan_fields() -> dict[str, list[str]]:
    """The fields of every kind of a plan file."""
    import accountant
    from mechanisms import registry

    nodes = {name: getattr(accountant, name) for name in accountant.__all__}
    plans = {name: value for name, value in nodes.items() if inspect.isclass(value)}
    kinds = [cls for cls in plans.values() if issubclass(cls, accountant.Plan)]
    rows = {cls.__name__: parameters(cls) for cls in kinds}
    for cls in registry():
        rows[cls.__name__] = parameters(cls)
    return dict(sorted(rows.items()))


def everything() -> dict[str, object]:
    return {
        "names": {package: public_names(package) for package in PACKAGES},
        "commands": {package: command_line(package) for package in COMMAND_LINES},
        "plan files": plan_fields(),
    }


def known() -> dict[str, dict[str, dict[str, list[str]]]]:
    return json.loads((SNAPSHOTS / "public.json").read_text())


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_and_their_parameters_stay(package):
    assert public_names(package) == known()["names"][package]


@pytest.mark.parametrize("package", COMMAND_LINES)
def test_commands_and_their_options_stay(package):
    assert command_line(package) == known()["commands"][package]


def test_fields_of_plan_files_stay():
    assert plan_fields() == known()["plan files"]


def test_a_book_of_the_first_layout_is_read_verified_and_spent_from(tmp_path):
    import numpy as np

    from accountant import Book
    from mechanisms import Laplace

    shutil.copy(SNAPSHOTS / "book.db", tmp_path / "book.db")
    with Book.open(f"sqlite:///{tmp_path / 'book.db'}") as book:
        assert book.verify()
        assert book.spent("ages") == 0.75
        history = list(book.history("ages"))
        assert len(history) > 2
        with book.ledger("ages", np.arange(5.0)) as ledger:
            ledger.release(Laplace(4.0), np.sum)
        assert book.spent("ages") == 1.0


if __name__ == "__main__":
    SNAPSHOTS.joinpath("public.json").write_text(json.dumps(everything(), indent=1) + "\n")
