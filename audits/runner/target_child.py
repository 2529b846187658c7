"""The child process that imports a user's function and audits it, started by `runner.target`."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import warnings
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.claims.findings import Outcome
from audits.results.rows import Settings
from audits.runner.target import TargetRequest, load_value


def _run_child(answer: int) -> None:
    """Audit the function that standard input names, and answer on the pipe."""
    held = os.dup(0)
    with open(os.devnull) as empty:
        os.dup2(empty.fileno(), 0)  # the code must not read the parent's pipe
    with open(held, "rb") as parent:
        work = json.loads(parent.readline())
        threading.Thread(target=_exit_with_parent, args=(os.dup(held),), daemon=True).start()
    try:
        answered = _audit_target(work)
    except ParameterError as error:
        answered = {"error": f"a release that can be audited: {error}"}
    except BaseException as error:  # any error of the code, sys.exit too
        answered = {"error": f"code that runs: {_error_text(error)}"}
    os.write(answer, json.dumps(answered).encode() + b"\n")  # a pipe takes 64 kB at once
    os._exit(0)


def _exit_with_parent(parent: int) -> None:
    """Exit when the parent process is gone."""
    while os.read(parent, 1):
        pass
    os._exit(1)


def _error_text(error: BaseException) -> str:
    """The class of an exception and the first line of its message."""
    try:
        words = (str(error).splitlines() or [""])[0][:200]
    except Exception:  # its own __str__ may raise
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _audit_target(work: dict[str, Any]) -> dict[str, Any]:
    from audits.attacks.floating_point import audit_bits
    from audits.attacks.front import audit
    from audits.runner.cases import guess_test_row

    given = work["asked"]
    asked = TargetRequest(**{**given, "pair": tuple(given["pair"])})
    sys.path.insert(0, "")
    warnings.simplefilter("ignore")
    first, second = map(load_value, asked.pair)
    release = _import_function(asked.name)
    settings = Settings(work["samples"], work["confidence"], work["seed"], jobs=work["jobs"])
    known = (release, (first, second), asked.claim, settings.samples, settings.confidence)
    rng = np.random.default_rng(settings.seed)
    if work["kind"] == "outputs":
        with settings.workers() as pool:
            finding = audit(*known, rng=rng, executor=pool)
    else:
        finding = audit_bits(*known, rng=rng)
    row = guess_test_row(
        asked.name, "target", asked.claim, finding, Outcome.SURVIVED, None, work["verdict"]
    )
    return {
        "epsilon_lower": row.epsilon_lower, "confidence": row.confidence, "runs": row.runs,
        "outcome": row.outcome.name, "witness": row.witness[:4000], "evidence": row.evidence,
        "seconds": row.seconds, "decisive": bool(row.decisive),
        "verdict_lower": row.verdict_lower, "guesses": row.guesses,
    }  # fmt: skip


def _import_function(name: str) -> Any:
    module, _, function = name.partition(":")
    found: Any = importlib.import_module(module)
    for word in function.split("."):
        found = getattr(found, word)
    if not callable(found):
        raise ParameterError(name, type(found).__name__, "a function")
    return found


if __name__ == "__main__":
    _run_child(int(sys.argv[1]))
