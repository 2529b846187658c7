"""Options that several commands share, and how they combine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from accountant.accountants.budget import Budget
    from accountant.formats.plan_file import PlanFile

PlanName = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, .toml or .json.")]
Epsilon = Annotated[
    str | None, typer.Option(metavar="E", help="The budget's epsilon, not that of the file.")
]
Delta = Annotated[
    str | None, typer.Option(metavar="D", help="The budget's delta, not that of the file.")
]
Json = Annotated[str | None, typer.Option(metavar="FILE|-", help="Write JSON; - is stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")]
EXCEEDED = 1


def budget_of(file: PlanFile, epsilon: str | None, delta: str | None) -> Budget:
    """Return the budget of the options, else of the file; delta is 0 if neither gives one."""
    from accountant.accountants.budget import Budget
    from accountant.cli.exit_status import parse_number
    from accountant.domains import DELTA, POSITIVE
    from accountant.errors import ParameterError

    own = file.budget
    if epsilon is None and own is None:
        raise ParameterError("--epsilon", None, "given, or a [budget] in the file")
    least = own.epsilon if epsilon is None else POSITIVE.check("--epsilon", parse_number(epsilon))  # type: ignore[union-attr]  # just seen
    rest = own.delta if own else 0.0
    return Budget(least, rest if delta is None else DELTA.check("--delta", parse_number(delta)))
