"""What a command line says of errors and interruptions: no more than it knows."""

import pytest
import typer

from accountant.cli.exit_status import run_app


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file or directory"), 2,
         "program: could not read or write: No such file or directory"),
        (OSError("no number"), 2, "program: could not read or write: no number"),
    ],
)  # fmt: skip
def test_what_ends_a_command_is_one_line_and_a_status(error, status, line, capsys):
    app = typer.Typer()

    @app.command()
    def command():
        raise error

    assert run_app(app, "program", []) == status
    assert capsys.readouterr().err.strip().splitlines()[-1] == line
