"""Results as JSON, and files that are written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from audits.cases import Row

SCHEMA = 1


def document(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """The rows as a JSON-ready dictionary, schema 1."""
    return {"schema": SCHEMA, "seed": seed, "findings": [_finding(row) for row in rows]}


def to_json(rows: Sequence[Row], seed: int) -> str:
    """The document as text; numbers that JSON does not know become null."""
    return json.dumps(document(rows, seed), indent=2, allow_nan=False) + "\n"


def _finding(row: Row) -> dict[str, Any]:
    return {
        "subject": row.subject,
        "kind": row.kind,
        "claim": {"epsilon": _finite(row.claim[0]), "delta": _finite(row.claim[1])},
        "exact_epsilon": _finite(row.exact_epsilon),
        "epsilon_lower": _finite(row.epsilon_lower),
        "confidence": row.confidence,
        "runs": row.runs,
        "outcome": row.outcome.name.lower(),
        "expected": row.expected.name.lower(),
        "witness": row.witness,
        "seconds": round(row.seconds, 6),
    }


def _finite(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(x)
