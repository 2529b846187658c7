"""``python -m accountant plan.toml``: what a plan costs, by every accountant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from accountant.command_line import leave, number, status_of

if TYPE_CHECKING:
    from accountant.comparison import Comparison

PROGRAM = "python -m accountant"
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def cost(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, .toml or .json.")],
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Tell epsilon at this delta.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="Tell delta at this epsilon instead.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Write JSON; - is stdout.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the curves: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Say what a plan of releases costs: epsilon at a delta, or delta at an epsilon.

    Every accountant gives an upper bound, and Tight, the least, also a lower one. A plan file
    has a table for each line of the plan:

    \b
      [[release]]
      kind = "Laplace"
      scale = 20.0
      count = 64
    \b
      [[release]]
      kind = "PoissonSampled"
      rate = 0.004
      count = 15000
      part = { kind = "Gaussian", scale = 0.8 }

    Kinds are the mechanisms (Laplace, Gaussian, NoisyMax, ...), the losses (PureLoss, ZCDPLoss,
    ...) and the nodes (Parallel, Shuffled, Grouped, ...).

    Examples: python -m accountant plan.toml --delta 1e-6;
    python -m accountant plan.toml --epsilon 1 --json - ;
    python -m accountant plan.toml --delta 1e-6 --plot cost.png

    Exit status: 0 answered, 2 bad usage or a bad plan file, 130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    from accountant.comparison import compare, compare_deltas
    from accountant.domains import DELTA, EPSILON
    from accountant.errors import ParameterError
    from accountant.outputs import check_writable
    from accountant.plan_toml import read_plan

    if (delta is None) == (epsilon is None):
        raise ParameterError("--delta, --epsilon", None, "given, one of the two")
    check_writable({"--json": None if json == "-" else json, "--plot": plot})
    whole = read_plan(plan)
    if delta is not None:
        table = compare(whole, DELTA.check("--delta", number(delta)))
    else:
        table = compare_deltas(whole, EPSILON.check("--epsilon", number(cast("str", epsilon))))
    _report(table, json)
    if plot is not None:
        from accountant.figure import plot as draw

        draw(whole, table.best.delta or 1e-6, plot)


def _report(table: Comparison, json: str | None) -> None:
    from accountant.outputs import write_whole

    print(table, file=sys.stderr if json == "-" else sys.stdout)
    if json == "-":
        sys.stdout.write(table.to_json())
    elif json is not None:
        write_whole(Path(json), table.to_json())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    return status_of(app, PROGRAM, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    leave(PROGRAM, main())
