"""A statement as JSON, and back: what a document says is computed again before it is believed."""

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

SCHEMA, KIND = 2, "dp-sgd statement"
# 1 had no zero-out rows, and what they cost for removed records of passes
BEFORE_ZERO_OUT = 1
NEAR = 1e-3  # two machines, or two versions, may differ in the last digits of an interval
ARGUMENTS = ("examples", "batch", "epochs", "steps", "loader", "drop_last", "max_batch", "rate",
             "microbatching", "examples_per_user")  # fmt: skip
# words may change from version to version, numbers may not
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
        "rows": [{key: _finite(value) for key, value in asdict(one).items()}
                 for one in statement.rows],
        "assumptions": assumptions(statement),
        "plan": to_dict(statement.plan),
    }  # fmt: skip


def to_text(statement: StatementFacts) -> str:
    """Return the statement as a JSON document."""
    return json.dumps(to_document(statement), indent=2, allow_nan=False) + "\n"


class StatementDiffers(ParameterError):
    """A document says another number than the run costs."""


def read_document(text: object) -> dict[str, Any]:
    """Return the values of a document that `to_text` wrote, its form checked."""
    try:
        read = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        read = None
    shown = text[:60] if isinstance(text, str) else text
    allowed = "what to_json of a statement wrote"
    if not isinstance(read, dict) or read.get("kind") != KIND:
        raise ParameterError("statement", shown, allowed)
    if read.get("schema") not in (BEFORE_ZERO_OUT, SCHEMA):
        raise ParameterError("schema", read.get("schema"), f"{SCHEMA}: other versions are unknown")
    run, found = read.get("run"), read.get("found")
    names = {*ARGUMENTS, "noise", "delta", "relation"}
    if not isinstance(run, dict) or set(run) != names:
        raise ParameterError("run", run, f"a table of {', '.join(sorted(names))}")
    if not isinstance(found, dict) or set(found) != {"what", "target", "default_delta"}:
        raise ParameterError("found", found, allowed)
    if found["what"] not in {"", "noise", "epochs"} or (found["what"] == "") != (
        found["target"] is None
    ):
        raise ParameterError("found.what", found["what"], "'noise' or 'epochs', with a target")
    if found["target"] is not None:
        POSITIVE.check("found.target", found["target"])
    if not isinstance(found["default_delta"], bool):
        raise ParameterError("found.default_delta", found["default_delta"], "true or false")
    return read


def check_same(statement: StatementFacts, read: dict[str, Any]) -> None:
    """Raise `StatementDiffers` where a document says another number than the statement."""
    ours = json.loads(to_text(statement))
    if read.get("schema") == BEFORE_ZERO_OUT:
        # its epsilon is compared: a run whose own number was that of a blank record is refused
        ours = {**ours, "rows": _rows_before_zero_out(ours["rows"])}
        read = {**ours, **read, "plan": ours["plan"]}
        read["rows"] = _rows_before_zero_out(read["rows"])
    for key in COMPARED:
        _compare(key, ours[key], read.get(key))


def _rows_before_zero_out(rows: Any) -> Any:
    """Return the rows whose numbers are the same in both schemas."""
    known = isinstance(rows, list) and all(isinstance(one, dict) for one in rows)
    if not known:
        return rows
    return [
        one for one in rows
        if one.get("relation") != Adjacency.ZERO_OUT
        and (one.get("loader") not in PASSES or one.get("relation") != Adjacency.ADD_REMOVE)
    ]  # fmt: skip


def _compare(path: str, ours: Any, theirs: Any) -> None:
    if isinstance(ours, dict) and isinstance(theirs, dict) and set(ours) == set(theirs):
        for key, value in ours.items():
            _compare(f"{path}.{key}", value, theirs[key])
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            _compare(f"{path}[{place}]", one, other)
    elif not _is_near(ours, theirs):
        raise StatementDiffers(path, theirs, f"{ours!r}, as it is computed from the run")


def _is_near(ours: Any, theirs: Any) -> bool:
    numbers = all(isinstance(one, float) for one in (ours, theirs))
    return math.isclose(ours, theirs, rel_tol=NEAR) if numbers else bool(ours == theirs)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
