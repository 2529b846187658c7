"""The privacy statement on a run of DP-SGD as JSON, and back.

When a document is read, every number of it is computed again and compared.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from accountant.domains import POSITIVE
from accountant.errors import ParameterError
from accountant.plans.adjacency import Adjacency
from accountant.serialisation.plan_json import to_dict
from accountant.training.facts import StatementFacts
from accountant.training.loaders import PASSES
from accountant.training.words import assumptions

SCHEMA, KIND = 3, "dp-sgd statement"
# Schema 1 had no rows for zero-out, that is for blanked records.  For loaders that go through the
# data in passes it stated the cost of a blanked record as that of a removed one.  Up to schema 2
# shuffled passes were stated at what they cost in any order, which is more.
BEFORE_ZERO_OUT, OLDER = 1, (1, 2)
# Relative difference up to which two numbers count as the same: two machines, or two versions, may
# differ in the last digits of an interval.
NEAR = 1e-3
# the fields of a run, apart from its noise
ARGUMENTS = ("examples", "batch", "epochs", "steps", "loader", "drop_last", "max_batch", "rate",
             "microbatching", "examples_per_user")  # fmt: skip
# The parts of a document that are compared.  Words may change from version to version, numbers may
# not.
COMPARED = ("run", "relation", "epsilon", "lower", "user_epsilon", "advantage", "found_records",
            "rows", "plan")  # fmt: skip


def to_document(statement: StatementFacts) -> dict[str, Any]:
    """Return the statement as plain values."""
    run = {name: getattr(statement.run, name) for name in ARGUMENTS}
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "run": {**run, "noise": statement.noise, "delta": statement.delta,
                "relation": str(statement.relation)},
        "found": {"what": statement.found, "target": statement.target,
                  "default_delta": statement.own_delta},
        "relation": str(statement.relation),  # of the numbers that follow
        "epsilon": _finite(statement.epsilon),
        "lower": statement.lower,
        "user_epsilon": _finite(statement.user_epsilon),
        "advantage": statement.advantage,
        "found_records": statement.found_records,
        "rows": [{key: _finite(value) for key, value in asdict(row).items()}
                 for row in statement.rows],
        "assumptions": assumptions(statement),
        "plan": to_dict(statement.plan),
    }  # fmt: skip


def to_text(statement: StatementFacts) -> str:
    """Return the statement as a JSON document."""
    return json.dumps(to_document(statement), indent=2, allow_nan=False) + "\n"


class StatementDiffers(ParameterError):
    """A document says another number than the run costs."""


def read_document(text: object) -> dict[str, Any]:
    """Return the values of a document that `to_text` wrote, after a check of its form."""
    try:
        document = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        document = None
    shown = text[:60] if isinstance(text, str) else text
    allowed = "what to_json of a statement wrote"
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ParameterError("statement", shown, allowed)
    if document.get("schema") not in (*OLDER, SCHEMA):
        raise ParameterError(
            "schema", document.get("schema"), f"{SCHEMA}: other versions are unknown"
        )
    run, solved = document.get("run"), document.get("found")
    names = {*ARGUMENTS, "noise", "delta", "relation"}
    if not isinstance(run, dict) or set(run) != names:
        raise ParameterError("run", run, f"a table of {', '.join(sorted(names))}")
    if not isinstance(solved, dict) or set(solved) != {"what", "target", "default_delta"}:
        raise ParameterError("found", solved, allowed)
    if solved["what"] not in {"", "noise", "epochs"} or (solved["what"] == "") != (
        solved["target"] is None
    ):
        raise ParameterError("found.what", solved["what"], "'noise' or 'epochs', with a target")
    if solved["target"] is not None:
        POSITIVE.check("found.target", solved["target"])
    if not isinstance(solved["default_delta"], bool):
        raise ParameterError("found.default_delta", solved["default_delta"], "true or false")
    return document


def check_same(statement: StatementFacts, document: dict[str, Any]) -> None:
    """Raise `StatementDiffers` where a document says another number than the statement."""
    ours = json.loads(to_text(statement))
    schema = document.get("schema")
    if schema in OLDER:
        # epsilon is compared too, so a run whose own number has changed is refused
        ours = {**ours, "rows": _unchanged_rows(ours["rows"], schema)}
        document = {**ours, **document, "plan": ours["plan"]}
        document["rows"] = _unchanged_rows(document["rows"], schema)
    for key in COMPARED:
        _compare(key, ours[key], document.get(key))


def _unchanged_rows(rows: Any, schema: Any) -> Any:
    """Return the rows whose numbers are the same in an older schema and in this one."""
    are_tables = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    if not are_tables:
        return rows
    compared = [row for row in rows if row.get("loader") != "shuffled"]
    if schema != BEFORE_ZERO_OUT:
        return compared
    return [
        row
        for row in compared
        if row.get("relation") != Adjacency.ZERO_OUT
        and (row.get("loader") not in PASSES or row.get("relation") != Adjacency.ADD_REMOVE)
    ]


def _compare(path: str, ours: Any, theirs: Any) -> None:
    """Raise `StatementDiffers` unless two values are equal, up to `NEAR` where they are floats."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and set(ours) == set(theirs):
        for key, value in ours.items():
            _compare(f"{path}.{key}", value, theirs[key])
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (our_value, their_value) in enumerate(zip(ours, theirs, strict=True)):
            _compare(f"{path}[{index}]", our_value, their_value)
    elif isinstance(ours, float) and isinstance(theirs, float):
        if not math.isclose(ours, theirs, rel_tol=NEAR):
            raise StatementDiffers(path, theirs, f"{ours!r}, as it is computed from the run")
    elif ours != theirs:
        raise StatementDiffers(path, theirs, f"{ours!r}, as it is computed from the run")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
