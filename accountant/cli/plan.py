"""``dp-attest account plan``: a plan, what it costs, and what remains of its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.exit_status import parse_number
from accountant.cli.options import (
    EXCEEDED,
    Delta,
    Epsilon,
    Force,
    Json,
    PlanName,
    allocation_facts,
    budget_of,
    print_report,
    write_json,
)

if TYPE_CHECKING:
    from accountant.planning.allocation_table import Allocation
    from accountant.plans.plan import Plan


def plan(
    plan: PlanName,
    epsilon: Epsilon = None,
    delta: Delta = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Also print what the plan costs a group of K people, whose records all are in the "
            "data.",
        ),
    ] = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Show a plan, what it costs, what remains of its budget, and how much more would fit.

    The budget stands in the file, or comes from --epsilon and --delta:

    \b
      [budget]
      epsilon = 1.0
      delta = 1e-6
    \b
      [[release]]
      name = "ages"
      kind = "Laplace"
      scale = 60.0
      count = 12
      error = "deviation"

    Names and errors are for the table: "deviation" is the noise's standard deviation,
    { quantile = 0.95 } what it exceeds once in twenty times, { maximum = 30 } the expected
    largest noise of 30 coordinates, { selection = 100 } how far the winner of 100 candidates is
    expected to lie below the best. The last line says how many more releases of each line alone
    would fit beside the plan.

    Examples: dp-attest account plan plan.toml;
    dp-attest account plan plan.toml --epsilon 2 --delta 1e-9 --group 3

    Exit status: 0 it fits, 1 it costs more than the budget, 2 bad usage or a bad plan file,
    130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    from accountant.accountants.tight import Tight
    from accountant.domains import RECORDS
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.formatting import format_upper
    from accountant.planning.allocation_table import Allocation
    from accountant.planning.what_if import for_groups

    size = None if group is None else RECORDS.check("--group", parse_number(group))
    whole_plan, file = read_plan(plan), read_file(plan)
    budget = budget_of(file, epsilon, delta)
    cost = Tight().epsilon(whole_plan, budget.delta)
    scales = tuple(release.scale for release in file.releases)
    table = Allocation(file.releases, scales, budget, cost)
    lines, facts = [str(table)], allocation_facts(table)
    if size is not None:
        [(_, group_epsilon)] = for_groups(whole_plan, budget.delta, [size])
        lines.append(f"for groups of {size:,}: epsilon {format_upper(group_epsilon, 9)}")
        facts["groups"] = {"size": size, "epsilon": group_epsilon}
    facts["fits"] = cost <= budget.epsilon
    lines += _remaining_lines(whole_plan, table, facts)
    print_report("\n".join(lines), json)
    write_json(json, facts)
    if not facts["fits"]:
        raise typer.Exit(EXCEEDED)


def _remaining_lines(whole_plan: Plan, table: Allocation, facts: dict[str, Any]) -> list[str]:
    """Return what remains of the budget and how much more would fit, and note it as facts."""
    from accountant.formatting import format_remaining
    from accountant.planning.capacity import remaining_capacity

    if not facts["fits"]:
        return ["does not fit the budget"]
    remaining = format_remaining(table.budget.epsilon, table.epsilon)
    shown = "nothing" if remaining == "0" else f"epsilon {remaining}"
    capacities = [
        (release.label, remaining_capacity(whole_plan, release.plan(release.scale), table.budget))
        for release in table.releases
    ]
    facts["more"] = [{"release": label, "count": count} for label, count in capacities]
    return [f"fits the budget; {shown} is left", room_in_words(capacities)]


def room_in_words(counts: list[tuple[str, int]]) -> str:
    """Return one sentence on how many more of each release fit, if nothing else is added."""
    fits = [f"{count:,} more of {label}" for label, count in counts if count]
    misfits = [label for label, count in counts if not count]
    clauses = [f"there is room for {', or else '.join(fits)}"] if fits else []
    if misfits:
        verb = "" if fits else "there is "
        clauses.append(f"{verb}no room for one more of {', or of '.join(misfits)}")
    return "; ".join(clauses)
