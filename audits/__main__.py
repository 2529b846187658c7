"""``dp-attest audit``: try to falsify privacy claims; ``python -m audits`` alone audits all."""

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
from dp_attest.public_names import nearest_name

PROGRAM = "dp-attest audit"
COMMANDS: dict[str, Callable[..., None]] = {
    "run": run, "list": list_, "papers": papers, "libraries": libraries, "target": target,
    "scores": scores, "replay": replay, "record": record, "power": power, "zoo": zoo,
    "canaries": canaries, "bounds": bounds, "index": index,
}  # fmt: skip
HELP = """Try to falsify privacy claims of code: of your own, of this project, of other libraries.

A word that is no command is (part of) the name of a subject, and means run: `dp-attest audit
Laplace` audits the Laplace mechanism, `dp-attest audit run` all subjects, `dp-attest audit list`
shows them.

Examples: dp-attest audit Laplace --runs 1000000;
dp-attest audit target mycode:release --epsilon 1 --pair 0 1 --allow-import;
dp-attest audit run --seed 7 --json report.json --out report.html

Exit status: 0 all as expected, 1 a claim was falsified or a broken specimen survived, 2 bad usage
or input, 3 inconclusive under --strict, 130 interrupted.
"""
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=HELP,
)
for name, command in COMMANDS.items():
    app.command(name)(command)


def main(
    arguments: list[str] | None = None, program: str = PROGRAM, alone: tuple[str, ...] = ("run",)
) -> int:
    """Run the command line and return its exit status; errors are one line on stderr.

    ``alone`` are the words that stand for none.
    """
    words = (sys.argv[1:] if arguments is None else arguments) or [*alone]
    is_command = words[0] in {*COMMANDS, "--version", "--help"}
    # a first word that is no subcommand means `run`, unless it is nearly one and no subject
    if not is_command and not is_misspelled_command(words[0]):
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


def is_misspelled_command(word: str) -> bool:
    """Whether a word is nearly a command, and no part of a subject; only then cases are loaded."""
    if word.startswith("-") or nearest_name(word, COMMANDS) is None:
        return False
    from audits.runner.cases import cases

    return not any(word.lower() in case.subject.lower() for case in cases())


if __name__ == "__main__":
    exit_process(PROGRAM, main())
