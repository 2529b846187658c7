"""``dp-attest account least``: the least epsilon that wanted accuracies cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from accountant.cli.exit_status import parse_number
from accountant.cli.options import Force, Json, print_report, write_json
from accountant.cli.vocabulary import option


def least(
    statistics: Annotated[
        str,
        typer.Argument(metavar="STATISTICS", help="The file of wanted statistics, .toml or .json."),
    ],
    delta: Annotated[
        str | None,
        option("delta", "Use the delta D, instead of that of the file; else 0."),
    ] = None,
    out: Annotated[
        str | None,
        option(
            "out",
            "Write the mechanisms with their noise as a plan to FILE, .toml or .json.",
            value="FILE",
        ),
    ] = None,
    force: Force = False,
    json: Json = None,
) -> None:
    """Find mechanisms that answer all statistics within their errors, at the least epsilon.

    The file says how exact each answer must be, and how often:

    \b
      delta = 1e-6
    \b
      [[statistic]]
      name = "visits each week"
      kind = "count"          # or "sum" (also a mean), or "selection"
      error = 20.0            # exceeded at most once in twenty:
      probability = 0.95
      count = 52
      sensitivity = 1
    \b
      [[statistic]]
      name = "top diagnosis"
      kind = "selection"
      candidates = 300
      monotone = true
      error = 50.0            # how far the winner may lie below the best

    Every mechanism that can answer a statistic is tried, with the largest noise that keeps to the
    error. The last line also says how much less any mechanism at all could cost. It reads no data.
    The reverse question, the least error that a budget allows, is answered by fit.

    Examples: dp-attest account least statistics.toml --out plan.toml;
    dp-attest account least statistics.toml --delta 1e-9 --json -

    Exit status: 0 found, 2 bad usage, a bad file, or an error that no mechanism can reach,
    130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    import importlib.metadata

    from accountant.accountants.budget import Budget
    from accountant.cli.progress import waiting
    from accountant.domains import DELTA
    from accountant.errors import ParameterError
    from accountant.files import write_atomically
    from accountant.formats.plan_file import PlanFile
    from accountant.formats.statistics_file import read_statistics
    from accountant.formats.toml_writer import file_to_json, file_to_toml
    from accountant.planning.least_epsilon import least_epsilon
    from accountant.planning.requests import Wanted

    target = None if out is None else Path(out)
    if target is not None and target.suffix not in {".toml", ".json"}:
        raise ParameterError("--out", out, "a .toml or .json file")
    file = read_statistics(statistics)
    option = None if delta is None else DELTA.check("--delta", parse_number(delta))
    at = next((value for value in (option, file.delta) if value is not None), 0.0)
    # An installed package registers the lower bound; this package has none.
    registered = importlib.metadata.entry_points(group="dp_attest.bounds", name="least_epsilon")
    lower_bound = next((point.load() for point in registered), None)
    with waiting("choosing the mechanisms"):
        answer = least_epsilon(file.statistics, at, lower_bound)
    print_report(answer, json)
    facts = {"epsilon": answer.epsilon, "delta": answer.delta, "lower": answer.lower}
    write_json(json, {**facts, "statistics": answer.to_records()})
    if target is not None:
        releases = tuple(
            Wanted(mechanism, statistic.measure, count=statistic.count, name=statistic.name)
            for statistic, (mechanism, _, _) in zip(answer.statistics, answer.answers, strict=True)
        )
        # The budget of the plan is what its answers cost.
        plan = PlanFile(releases, Budget(answer.epsilon, answer.delta))
        write_atomically(target, (file_to_json if target.suffix == ".json" else file_to_toml)(plan))
        print(f"wrote {target}", file=sys.stderr)
