"""``dp-attest``: both command lines as one, with completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

import accountant.__main__ as accounting
import audits.__main__ as auditing
from accountant.cli.exit_status import exit_process, run_app
from accountant.cli.ledger import app as ledger
from accountant.cli.page import page
from accountant.cli.receipt import app as receipt
from accountant.cli.vocabulary import table_of_options
from audits.cli.index import index
from dp_attest import __version__

PROGRAM = "dp-attest"
HELP = """What does a private algorithm cost, is that true of the code, and is it any good?

Examples: dp-attest account plan plan.toml; dp-attest audit Laplace --runs 1000000;
dp-attest audit target mycode:release --epsilon 1 --pair 0 1 --allow-import;
dp-attest ledger --help; dp-attest receipt verify receipt.json --key ada.pub

These options mean the same in every command that has them:

\b
{options}

A plan may be - for standard input. dp-attest account and dp-attest audit are other names of
dp-attest account and dp-attest audit.
"""
COMMON = ("json", "out", "force", "epsilon", "delta", "runs", "seed")
app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=HELP.format(options="\n".join(f"  {line}" for line in table_of_options(COMMON))),
)
app.add_typer(auditing.app, name="audit", help="Try to falsify privacy claims of code.")
app.add_typer(accounting.app, name="account", help="Plan a budget, and say what a plan costs.")
app.add_typer(ledger, name="ledger")
app.add_typer(receipt, name="receipt")
app.command("page")(page)
app.command("index")(index)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    words = sys.argv[1:] if arguments is None else arguments
    parts: dict[str, Callable[[list[str], str], int]] = {
        "audit": partial(auditing.main, alone=("--help",)),
        "account": accounting.main,
    }
    # completion asks the whole application; a part runs by its own rules, such as its default
    if words and words[0] in parts and "_DP_ATTEST_COMPLETE" not in os.environ:
        return parts[words[0]](words[1:], f"{PROGRAM} {words[0]}")
    return run_app(app, PROGRAM, words or ["--help"])


def run() -> None:
    """Run the command and end the process."""
    exit_process(PROGRAM, main())


if __name__ == "__main__":
    run()
