"""Results as JSON, and files that are written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accountant.errors import ParameterError
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


def check_writable(targets: dict[str, str | None]) -> None:
    """Raise `ParameterError` unless a file of its own could be written for each option now."""
    given = {option: Path(name) for option, name in targets.items() if name is not None}
    for option, path in given.items():
        name, folder = targets[option], path.parent
        if name in {"", "-"} or path.is_dir() or not folder.is_dir():
            raise ParameterError(option, name, "a file in a folder that exists")
        if path.exists() and not os.access(path, os.W_OK):
            raise ParameterError(option, name, "a file that may be written")
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            raise ParameterError(option, name, "a file that may be written") from None
    if len({path.resolve() for path in given.values()}) < len(given):
        raise ParameterError("--html", targets["--html"], "another file than that of --json")


def write_whole(path: Path, text: str) -> None:
    """Write the file under another name first, so that it is never there in part."""
    path = path.resolve()  # a link keeps pointing at what it points at
    if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
        path.write_text(text, encoding="utf-8")
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
