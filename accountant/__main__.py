"""``dp-attest account``: plan a budget, spend it, and show what was spent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import typer

from accountant.cli.certify import certify
from accountant.cli.compare import compare
from accountant.cli.exit_status import exit_process, run_app
from accountant.cli.explain import explain
from accountant.cli.fit import fit
from accountant.cli.least import least
from accountant.cli.ledger import app as ledger
from accountant.cli.page import page
from accountant.cli.plan import plan
from accountant.cli.receipt import app as receipt
from accountant.cli.training import training
from accountant.cli.verify import verify

PROGRAM = "dp-attest account"
COMMANDS: dict[str, Callable[..., None]] = {
    "plan": plan,
    "fit": fit,
    "least": least,
    "compare": compare,
    "explain": explain,
    "page": page,
    "training": training,
    "certify": certify,
    "verify": verify,
}
GROUPS = {"ledger": ledger, "receipt": receipt}
HELP = """Plan a privacy budget before any data are read, and say what it means.

A plan file has a table for each line of the plan:

\b
  [budget]
  epsilon = 1.0
  delta = 1e-6
\b
  [[release]]
  kind = "Laplace"
  scale = 60.0
  count = 12

Examples: dp-attest account fit wanted.toml --out plan.toml;
dp-attest account least statistics.toml --out plan.toml;
dp-attest account plan plan.toml; dp-attest account compare plan.toml --delta 1e-6;
dp-attest account explain plan.toml; dp-attest page plan.toml --out budget.html;
dp-attest ledger --help; dp-attest account training --help;
dp-attest account certify plan.toml --delta 1e-6 --out cost.proof.json;
dp-attest account verify cost.proof.json; dp-attest receipt --help

A plan file as the first word means compare. Exit status: 0 answered, 1 the budget does not
suffice, 2 bad usage or a bad plan file, 130 interrupted.
"""
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=HELP,
)
for name, command in COMMANDS.items():
    app.command(name)(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


def main(arguments: list[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    command_line = sys.argv[1:] if arguments is None else arguments
    # a first word that is a plan, or an option, means `compare`
    beginning = command_line[0] if command_line else "--help"
    is_plan = beginning.startswith("-") or Path(beginning).suffix or Path(beginning).exists()
    if is_plan and beginning not in {*COMMANDS, *GROUPS, "--help", "--version"}:
        command_line = ["compare", *command_line]
    return run_app(app, program, command_line or ["--help"])


if __name__ == "__main__":
    exit_process(PROGRAM, main())
