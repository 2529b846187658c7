"""Exports of a data set: its history as JSON or CSV, and its rows for a public registry."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from typing import Any

from accountant.book.history import Line, Status
from accountant.formatting import escape_control, format_upper
from accountant.plans.adjacency import Adjacency

SCHEMA = 1
FORMULA_PREFIXES = ("=", "+", "-", "@", "'", "|", "%")  # what a spreadsheet would run, or not show
COMPOSITION_NAMES = {
    "pure": "sum of the epsilons (basic composition)",
    "zcdp": "sum of rho (zero-concentrated privacy)",
    "rdp": "sum of the divergences at one order (Rényi privacy)",
    "gdp": "sum of mu squared (Gaussian privacy)",
    "pure-or-rdp": "sum of the epsilons, or of the divergences at one order, whichever fits",
}
FILTER_NOTE = "a filter: valid when answers choose what comes next"


def history_json(status: Status, lines: list[Line]) -> str:
    """Return the status of the data set and every line of its history, as JSON."""
    shown = {**status._asdict(), "budget": _budget(status)}
    document = {"schema": SCHEMA, "dataset": shown, "history": [one._asdict() for one in lines]}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def history_csv(lines: list[Line]) -> str:
    """Return one CSV row for each line; text that a spreadsheet would run is quoted."""
    columns = [name for name in Line._fields if name != "facts"]
    return _csv([columns, *([getattr(one, name) for name in columns] for one in lines)])


def registry_rows(
    status: Status, lines: list[Line], relation: str | None, post_processing: str
) -> list[dict[str, Any]]:
    """Return the rows of a public registry of deployments: one for each mechanism.

    The guarantee is the budget; what was spent stands beside it.  Source: Dwork, Kohli & Mulligan
    (2019), who proposed such a registry.
    """
    relation = status.relation if relation is None else relation
    unstated = "as the sensitivities state"
    differ = (one.difference for one in Adjacency if one == relation)
    made = Counter((one.what, one.kind) for one in lines if one.kind != "plan")
    facts = {one.what: one.facts for one in lines}
    days = [one.time for one in lines] or [status.opened]
    whole = {
        "data set": status.name,
        "unit of privacy": status.unit,
        "neighbour relation": relation or unstated,
        "neighbours differ by": next(differ, unstated),
        "model": "central" if status.users is None else "local, each user an own budget",
        "epsilon": status.budget.epsilon,
        "delta": status.budget.delta,
        "spent epsilon": status.epsilon,
        "spent": f"{status.counts} {format_upper(status.total)} of {status.limit:.6g}",
        "composition": COMPOSITION_NAMES[status.notion],
        "accountant": FILTER_NOTE,
        "post-processing": post_processing,
        "opened": status.opened,
        "first release": min(days),
        "last release": max(days),
        "seeded releases": sum(one.seeded for one in lines),
        "undeclared releases": sum(bool(one.undeclared) for one in lines),
        "releases by trusted workers": sum(bool(one.executor) for one in lines),
    }
    parts: list[dict[str, Any]] = [
        {
            "mechanism": str(facts[what].get("kind", what)),
            "parameters": what,
            "releases": count,
            "paid for": "by a plan" if kind == "step" else "one by one",
        }
        for (what, kind), count in made.items()
    ]
    nothing = {"mechanism": "none yet", "parameters": "", "releases": 0, "paid for": ""}
    return [{**whole, **part} for part in parts or [nothing]]


def registry_json(rows: list[dict[str, Any]]) -> str:
    """Return the rows of a registry as JSON."""
    return json.dumps({"schema": SCHEMA, "deployment": rows}, indent=2, allow_nan=False) + "\n"


def registry_csv(rows: list[dict[str, Any]]) -> str:
    """Return the rows of a registry as CSV."""
    return _csv([list(rows[0]), *(list(row.values()) for row in rows)])


def _csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(one) for one in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    words = escape_control(value)
    return f"'{words}" if words.lstrip().startswith(FORMULA_PREFIXES) else words


def _budget(status: Status) -> dict[str, float]:
    return {"epsilon": status.budget.epsilon, "delta": status.budget.delta}
