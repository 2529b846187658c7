"""Exports of a book: the history of a data set, facts for a public registry, and evidence.

The history is written as JSON or CSV, the evidence on a claim as JSON; `accountant.publishing`
writes the record of a registry from its rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from accountant.book.evidence import Evidence
from accountant.book.history import Line
from accountant.book.status import Status, format_spent
from accountant.files import csv_lines
from accountant.plans.adjacency import Adjacency
from accountant.serialisation.plan_json import to_dict

SCHEMA = 1  # the version of both JSON formats
# The fields of a line of the history that are exported.
LINE_FIELDS = (
    "seq", "time", "author", "kind", "what", "facts", "loss", "total", "epsilon", "who", "label",
    "run", "seeded", "outcome", "answer", "undeclared", "executor", "counts",
    "buckets", "proof", "question", "price",
)  # fmt: skip
# How the registry names the notions of composition.
COMPOSITION_NAMES = {
    "pure": "sum of the epsilons (basic composition)",
    "zcdp": "sum of rho (zero-concentrated privacy)",
    "rdp": "sum of the divergences at one order (Rényi privacy)",
    "gdp": "sum of mu squared (Gaussian privacy)",
    "pure-or-rdp": "sum of the epsilons, or of the divergences at one order, whichever fits",
}
AFTER_PLAN = "the certified epsilon of a fixed plan, and the sum of the epsilons beside it"
FILTER_NOTE = "a filter: valid when answers choose what comes next"


def history_json(status: Status, lines: Iterable[Line]) -> Iterator[str]:
    """Yield the status of the data set and every line of its history, as one JSON document."""
    document = {"schema": SCHEMA, "dataset": status_facts(status), "history": []}
    start, end = json.dumps(document, indent=2, allow_nan=False).rsplit("]", 1)
    yield start
    comma = ""
    for line in lines:
        facts = {name: getattr(line, name) for name in LINE_FIELDS}
        yield f"{comma}\n    {json.dumps(facts, allow_nan=False)}"
        comma = ","
    yield f"{comma and chr(10) + '  '}]{end}\n"


def status_facts(status: Status) -> dict[str, Any]:
    """Return a status as plain values."""
    budget = {"epsilon": status.budget.epsilon, "delta": status.budget.delta}
    return {**status._asdict(), "budget": budget}


def evidence_facts(evidence: Evidence) -> dict[str, Any]:
    """Return a claim and the evidence on it as plain values."""
    return {
        "schema": SCHEMA,
        "name": evidence.name,
        "claim": to_dict(evidence.claim),
        "relation": evidence.relation,
        "alpha": evidence.alpha,
        "opened": evidence.opened,
        "author": evidence.author,
        "wealth": evidence.wealth,
        "alarm": None if evidence.alarm is None else evidence.alarm.seq,
        "evidence": [line._asdict() for line in evidence.lines],
    }


def history_csv(lines: Iterable[Line]) -> Iterator[str]:
    """Yield one CSV row for each line; text that a spreadsheet would run as a formula is quoted."""
    columns = [name for name in LINE_FIELDS if name != "facts"]

    def cells(line: Line) -> list[Any]:
        fields = (getattr(line, name) for name in columns)
        return ["; ".join(field) if isinstance(field, tuple) else field for field in fields]

    return csv_lines(chain([columns], map(cells, lines)))


def registry_rows(
    status: Status, lines: Iterable[Line], relation: str | None
) -> list[dict[str, Any]]:
    """Return what a book knows of a deployment, for a public registry: a row for each mechanism.

    The guarantee is the budget; what was spent is listed next to it.  Source: Dwork, Kohli &
    Mulligan (2019), who proposed such a registry.
    """
    relation = status.relation if relation is None else relation
    unstated = "as the sensitivities state"
    differ = (adjacency.difference for adjacency in Adjacency if adjacency == relation)
    release_counts: Counter[tuple[str, str]] = Counter()
    last_time, seeded, undeclared, by_trusted = "", 0, 0, 0
    for line in lines:
        if not line.is_spend:
            continue
        last_time = max(last_time, line.time)
        seeded += line.seeded
        undeclared += bool(line.undeclared)
        by_trusted += bool(line.executor)
        if line.kind != "plan":
            release_counts[line.what, line.kind] += 1
    dataset_fields = {
        "unit of privacy": status.protects,
        "neighbour relation": relation or unstated,
        "neighbours differ by": next(differ, unstated),
        "epsilon": status.most,  # with what earlier windows may leave to a later one
        "delta": status.budget.delta,
        "spent": (
            f"{status.counts} {format_spent(status.total, status.limit)} of {status.limit:.6g}"
        ),
        "composition": AFTER_PLAN if status.after_plan else COMPOSITION_NAMES[status.notion],
        "accountant": FILTER_NOTE,
        "last release": last_time or status.opened,
        "seeded releases": seeded,
        "undeclared releases": undeclared,
        "releases by trusted workers": by_trusted,
    }
    parts: list[dict[str, Any]] = [
        {
            "parameters": what,
            "releases": count,
            "paid for": "by a plan" if kind == "step" else "one by one",
        }
        for (what, kind), count in release_counts.items()
    ]
    nothing = {"parameters": "", "releases": 0, "paid for": ""}
    return [{**dataset_fields, **part} for part in parts or [nothing]]
