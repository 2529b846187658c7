"""The number of records that an error needs, from the options of a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accountant.accountants.budget import Budget
from accountant.cli.exit_status import parse_number
from accountant.domains import POSITIVE, RECORDS
from accountant.errors import ParameterError
from accountant.planning.requests import Wanted
from accountant.planning.what_if import Needed, records_needed


def records_needed_for(
    need: str, records: str, bound: str | None, releases: Sequence[Wanted], budget: Budget
) -> Needed:
    """Return the records needed: ``need`` is NAME=ERROR, ``bound`` PROBLEM,KEY=VALUE,..."""
    name, _, error = need.rpartition("=")
    labels = [release.label for release in releases]
    if labels.count(name) != 1:
        raise ParameterError("--need", need, f"NAME=ERROR with a name of one of {labels}")
    target = POSITIVE.check("--need", parse_number(error))
    many = RECORDS.check("--records", parse_number(records))
    below = None if bound is None else _lower_bound(bound)
    return records_needed(releases, budget, labels.index(name), target, many, below)


def _lower_bound(option: str) -> Callable[[float, Budget], int]:
    """Return a lower bound that an installed package registers; this package has none."""
    import importlib.metadata

    problem, *pairs = option.split(",")
    parameters = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError("--bound", option, "PROBLEM,KEY=VALUE,...")
        parameters[key] = parse_number(value)
    if "error" not in parameters:
        raise ParameterError("--bound", option, "given with error=, in the units of that bound")
    registered = list(importlib.metadata.entry_points(group="dp_attest.bounds"))
    if not registered:
        raise ParameterError("--bound", option, "absent: no installed package has lower bounds")
    sample_size: Callable[..., int] = registered[0].load()

    def bound(target: float, budget: Budget) -> int:
        del target  # the target has the query's units, and the bound its own
        stated = {"epsilon": budget.epsilon, **parameters}
        if parameters.get("model") == "central":
            stated = {"delta": budget.delta, **stated}
        return sample_size(problem, **stated)

    return bound
