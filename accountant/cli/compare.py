"""``dp-attest account compare``: what a plan costs, by every accountant."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.exit_status import CommandLineError, parse_number
from accountant.cli.options import (
    Force,
    Json,
    PlanName,
    ProofFile,
    delta_of,
    print_report,
)
from accountant.cli.vocabulary import option


def compare(
    plan: PlanName,
    delta: Annotated[
        str | None,
        option(
            "delta", "Print epsilon at the delta D, instead of that of the budget in the plan file."
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        option("epsilon", "Print delta at the epsilon E, instead of epsilon at a delta."),
    ] = None,
    proof: ProofFile = None,
    json: Json = None,
    out: Annotated[
        str | None,
        option(
            "out",
            "Draw delta against epsilon, a curve for each accountant, in FILE: .png, .svg or .pdf.",
            old="plot",
            value="FILE",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also print which engines (numerical methods) Tight planned, and at what cost.",
        ),
    ] = False,
    force: Force = False,
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

    With --explain a second table says which engines Tight planned for each direction of the
    neighbours, what each was to cost, and the interval of those that were asked: always the
    cheapest next, until the interval is narrow.

    With --proof the row of Tight is what the file proves: it is checked in ball arithmetic first,
    and must be of this plan and this delta.

    Examples: dp-attest account plan.toml --delta 1e-6;
    dp-attest account compare plan.toml --epsilon 1 --json - ;
    dp-attest account compare plan.toml --delta 1e-6 --explain;
    dp-attest account compare plan.toml --delta 1e-6 --out cost.png

    Exit status: 0 answered, 2 bad usage, a bad plan file or a proof that does not prove its cost,
    130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    from accountant.cli.progress import waiting
    from accountant.domains import EPSILON
    from accountant.files import write_text
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.reports import comparison

    if delta is not None and epsilon is not None:
        raise CommandLineError("give --delta or --epsilon, one of the two")
    if epsilon is not None and proof is not None:
        raise CommandLineError("give --proof with --delta: a proof is of epsilon at a delta")
    if explain and epsilon is not None:
        raise CommandLineError("give --explain with --delta: engines bound epsilon at a delta")
    whole_plan, file = read_plan(plan), read_file(plan)
    if epsilon is None and delta is None and file.budget is None:
        raise CommandLineError(f"give --delta or --epsilon: {plan} has no [budget] with a delta")
    with waiting("computing"):
        if epsilon is not None:
            at_epsilon = EPSILON.check("--epsilon", parse_number(epsilon))
            table = comparison.compare_deltas(whole_plan, at_epsilon)
        else:
            table = comparison.compare(whole_plan, delta_of(file, delta), proof=proof)
    print_report(table, json)
    if explain:
        from accountant.reports.engine_choice import engine_choice

        print_report(f"\n{engine_choice(whole_plan, delta_of(file, delta))}", json)
    write_text(json, table.to_json())
    if out is not None:
        comparison.write_figure(whole_plan, table.best.delta or 0.0, out)
