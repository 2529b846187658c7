"""``python -m audits``: audit every embedded subject, or those that are named."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from accountant.cli.exit_status import INTERRUPTED, exit_process, run_app
from audits.cli.bounds import bounds
from audits.cli.canaries import canaries
from audits.cli.index import index
from audits.cli.power import power
from audits.cli.record import record
from audits.cli.replay import replay
from audits.cli.run import libraries, list_, papers, run
from audits.cli.scores import scores
from audits.cli.target import target
from audits.cli.zoo import zoo

PROGRAM = "python -m audits"
COMMANDS: dict[str, Callable[..., None]] = {
    "run": run, "list": list_, "papers": papers, "libraries": libraries, "target": target,
    "scores": scores, "replay": replay, "record": record, "power": power, "zoo": zoo,
    "canaries": canaries, "bounds": bounds, "index": index,
}  # fmt: skip
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Try to falsify the privacy claims of mechanisms and algorithms.",
)
for name, command in COMMANDS.items():
    app.command(name)(command)


def main(arguments: list[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    words = sys.argv[1:] if arguments is None else arguments
    # a first word that is no subcommand means `run`
    if not words or words[0] not in {*COMMANDS, "--version"}:
        words = ["run", *words]
    try:
        return run_app(app, program, words)
    except Exception as stop:
        # a command that runs no cases has not loaded it
        resuming = sys.modules.get("audits.cli.resume")
        if resuming is None or not isinstance(stop, resuming.Interrupted):
            raise
        print(stop, file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    exit_process(PROGRAM, main())
