"""``dp-attest account fit``: how much noise each release should have."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.exit_status import CommandFailed, parse_number
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
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accountant.accountants.budget import Budget
    from accountant.planning.allocation_table import Allocation
    from accountant.planning.requests import Wanted
    from accountant.planning.what_if import Needed


def fit(
    plan: PlanName,
    epsilon: Epsilon = None,
    delta: Delta = None,
    out: Annotated[
        str | None,
        option(
            "out",
            "Write the plan with the noise that was found to FILE, .toml or .json.",
            value="FILE",
        ),
    ] = None,
    force: Force = False,
    more: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Assume F times as many records: each sensitivity is divided by F, as that of a "
            "mean.",
        ),
    ] = None,
    need: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=E",
            help="Print how many records bring the error of the release NAME down to E; needs "
            "--records, and does not depend on --more.",
        ),
    ] = None,
    records: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="State that the file's sensitivities are those of means of N records, for --need.",
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            metavar="PROBLEM,KEY=VALUE,...",
            help="Print with --need a lower bound: how many records every private algorithm needs.",
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Find the noise with the least weighted error that the budget allows.

    A release that lacks its scale has a weight or a target, and what its error is:

    \b
      [budget]
      epsilon = 1.0
      delta = 1e-6
    \b
      [[release]]
      name = "ages"
      kind = "Laplace"
      sensitivity = 2.0
      count = 12
      error = "deviation"     # or { quantile = 0.95 }, { maximum = 30 }, { selection = 100 }
      weight = 1.0            # or target = 40.0

    It minimises the sum of count times weight times error. Scales and targets that are
    given come first; the rest share what is left. It reads no data. --out keeps comments, weights
    and targets of the plan file, and adds to each release the scale that was found, as `fitted`.
    FILE may be the plan file itself (with --force); a later fit finds the noise anew.

    Examples: dp-attest account fit wanted.toml --out plan.toml;
    dp-attest account fit wanted.toml --more 4;
    dp-attest account fit wanted.toml --need ages=0.5 --records 10000
    --bound private_mean,error=0.25,dimension=1,model=central

    Exit status: 0 found, 1 what is given costs more than the budget, 2 bad usage or a bad plan
    file, 130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    from accountant.domains import POSITIVE
    from accountant.errors import ParameterError
    from accountant.formats.plan_toml import read_file
    from accountant.planning.what_if import with_more_records

    if (need is None) != (records is None):
        raise ParameterError("--need, --records", need or records, "given together, or neither")
    if bound is not None and need is None:
        raise ParameterError("--bound", bound, "given with --need and --records")
    factor = None if more is None else POSITIVE.check("--more", parse_number(more))
    target = None if out is None else Path(out)
    if target is not None and target.suffix not in {".toml", ".json"}:
        raise ParameterError("--out", out, "a .toml or .json file")
    file = read_file(plan, again=True)  # a scale that an earlier fit wrote is found anew
    releases = file.releases if factor is None else with_more_records(file.releases, factor)
    records_question = (
        None
        if need is None or records is None
        # --records states for how many records the file's sensitivities are, which --more changes.
        else _records_question(need, records, bound, file.releases)
    )
    allocation = _report(releases, budget_of(file, epsilon, delta), records_question, json)
    if target is not None:
        from accountant.files import write_atomically
        from accountant.formats.fitted_file import with_noise

        write_atomically(target, with_noise(Path(plan), target.suffix, file, allocation))
        print(f"wrote {target}", file=sys.stderr)


def _report(
    releases: Sequence[Wanted],
    budget: Budget,
    records_question: Callable[[Budget], Needed] | None,
    json: str | None,
) -> Allocation:
    """Find and print the noise, and the answer to ``records_question`` if there is one."""
    from accountant.errors import BudgetExceeded
    from accountant.planning.allocation import allocate

    try:
        allocation = allocate(releases, budget)
        facts, lines = allocation_facts(allocation), [str(allocation)]
        if records_question is not None:
            needed = records_question(budget)
            facts["records"] = dataclasses.asdict(needed)
            lines.append(str(needed))
    except BudgetExceeded as error:
        raise CommandFailed(str(error), EXCEEDED) from None
    print_report("\n".join(lines), json)
    write_json(json, facts)
    return allocation


def _records_question(
    need: str, records: str, bound: str | None, releases: Sequence[Wanted]
) -> Callable[[Budget], Needed]:
    """Return a function of the budget that finds how many records are needed.

    The texts are those of the options: ``need`` is NAME=ERROR, ``bound`` PROBLEM,KEY=VALUE,...
    A text of another form is refused here, before any noise is looked for.  An unknown problem or
    key is refused by the package that computes the bound, when the function is called.
    """
    from accountant.domains import POSITIVE, RECORDS
    from accountant.errors import ParameterError
    from accountant.planning.what_if import records_needed

    name, _, error = need.rpartition("=")  # at the last sign: a name may have one too
    labels = [release.label for release in releases]
    if labels.count(name) != 1:
        raise ParameterError("--need", need, f"NAME=ERROR with a name of one of {labels}")
    target = POSITIVE.check("--need", parse_number(error))
    record_count = RECORDS.check("--records", parse_number(records))
    lower_bound = None if bound is None else _lower_bound(bound)
    place = labels.index(name)
    return lambda budget: records_needed(releases, budget, place, target, record_count, lower_bound)


def _lower_bound(option: str) -> Callable[[float, Budget], int]:
    """Return a lower bound on the number of records, in the form that `records_needed` takes.

    That is a function of the error wanted and of the budget.  An installed package registers the
    function that computes the bound, as an entry point; this package has none.
    """
    import importlib.metadata

    from accountant.errors import ParameterError

    problem, *pairs = option.split(",")
    parameters = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in parameters:
            raise ParameterError("--bound", option, "PROBLEM,KEY=VALUE,... with each key once")
        parameters[key] = parse_number(value)  # a word, such as a model, stays a text
    if "error" not in parameters:
        raise ParameterError("--bound", option, "given with error=, in the units of that bound")
    if parameters.keys() & {"epsilon", "delta"}:
        allowed = "without epsilon and delta: the bound is for the budget"
        raise ParameterError("--bound", option, allowed)
    registered = list(importlib.metadata.entry_points(group="dp_attest.bounds", name="sample_size"))
    if not registered:
        raise ParameterError("--bound", option, "absent: no installed package has lower bounds")
    # The audits package registers one; of several, one is enough.
    sample_size: Callable[..., int] = registered[0].load()

    def bound(target: float, budget: Budget) -> int:
        # The target of --need is in the units of the query, and the problem of the bound may have
        # others.  So it takes the error that --bound states.
        del target
        stated = {"epsilon": budget.epsilon, **parameters}
        # Only problems of the central model depend on delta.
        if parameters.get("model") == "central":
            stated = {"delta": budget.delta, **stated}
        return sample_size(problem, **stated)

    return bound
