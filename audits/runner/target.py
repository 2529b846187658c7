"""The audit of a user's own function, in a separate process.

An imported module can print, exit, hang or crash; the child process isolates that.  The child
receives its work as JSON on standard input, and answers with one line of JSON on a pipe of its
own: no pickle is read, and what the code prints is dropped.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from accountant.cli.exit_status import parse_number
from accountant.domains import DELTA, EPSILON
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.claims.findings import Outcome
from audits.results.result_file import Request
from audits.results.rows import FAMILY_ERROR, AuditCase, ReportRow, Settings

TARGET_METAVAR = "PKG.MODULE:FUNCTION"
MAX_ANSWER_CHARACTERS = 60_000  # characters of an answer


@final
@dataclass(frozen=True, slots=True)
class TargetRequest:
    """The audit that the command line asks for, checked."""

    name: str
    epsilon: float
    delta: float
    pair: tuple[str, str]
    bits: bool

    @classmethod
    def from_request(cls, request: Request) -> TargetRequest:
        """Check a request; raises `ParameterError` before any code is imported."""
        given = request.options
        name = request.names[0] if len(request.names) == 1 else ""
        module, colon, function = name.partition(":")
        words = [*module.split("."), *function.split(".")]
        if not colon or not all(word.isidentifier() for word in words):
            raise ParameterError(TARGET_METAVAR, name, "written package.module:function")
        epsilon = EPSILON.check("--epsilon", parse_number(str(given.get("epsilon"))))
        delta = DELTA.check("--delta", parse_number(str(given.get("delta", 0))))
        pair = given.get("pair")
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ParameterError("--pair", pair, "two .npy files")
        found = cls(name, epsilon, delta, (str(pair[0]), str(pair[1])), given.get("bits") is True)
        first, second = map(load_value, found.pair)
        if np.shape(first) != np.shape(second):
            shapes = f"shapes {np.shape(first)} and {np.shape(second)}"
            raise ParameterError("--pair", shapes, "two neighbouring values of one shape")
        return found

    @property
    def claim(self) -> Loss:
        """The claim as a loss."""
        return ApproxLoss(self.epsilon, self.delta) if self.delta > 0 else PureLoss(self.epsilon)


def target_cases(target: TargetRequest) -> list[AuditCase]:
    """The guess test of the function's outputs, and on request of their low-order bits."""
    verdict = 1 - FAMILY_ERROR / (2 if target.bits else 1)
    kinds = ["outputs", "bits"] if target.bits else ["outputs"]
    return [
        AuditCase(
            target.name if kind == "outputs" else f"low bits of {target.name}", "target",
            "a function of yours", Outcome.SURVIVED,
            functools.partial(_audit_in_child, target, kind, verdict),
        )
        for kind in kinds
    ]  # fmt: skip


def load_value(path: str) -> Any:
    """An array, or a number, from a .npy file that holds no objects."""
    try:
        value = np.load(path, allow_pickle=False)
    except OSError as error:
        why = error.strerror or "not a .npy file"
        raise ParameterError("--pair", path, f"a .npy file to read ({why})") from None
    except (ValueError, EOFError, SyntaxError, MemoryError):
        raise ParameterError("--pair", path, "a .npy file of numbers, without objects") from None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
        raise ParameterError("--pair", path, "a .npy file of numbers, without objects")
    return value.item() if value.ndim == 0 else value


def _audit_in_child(
    target: TargetRequest, kind: str, verdict: float, settings: Settings, rng: np.random.Generator
) -> ReportRow:
    """The row that a child process computed."""
    work = {
        "asked": asdict(target), "kind": kind, "verdict": verdict, "samples": settings.samples,
        "confidence": settings.confidence, "seed": int(rng.integers(2**53)), "jobs": settings.jobs,
    }  # fmt: skip
    reader, writer = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "audits.runner.target_child", str(writer)], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writer],
    )  # fmt: skip
    os.close(writer)
    try:
        if child.stdin is not None:  # stays open: the child ends when it is closed
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(json.dumps(work).encode() + b"\n")
                child.stdin.flush()
        child.wait()
        os.set_blocking(reader, False)  # a grandchild may still hold the pipe
        with open(reader, encoding="utf-8", errors="replace", closefd=False) as answer:
            line = (answer.read(MAX_ANSWER_CHARACTERS) or "").partition("\n")[0]
    finally:
        child.kill()
        child.communicate()
        os.close(reader)
    return _row(target, kind, line, child.returncode)


def _row(target: TargetRequest, kind: str, line: str, code: int) -> ReportRow:
    try:
        found = json.loads(line)
    except ValueError:
        raise ParameterError(
            TARGET_METAVAR, target.name, f"code that returns: its process exited with {code}"
        ) from None
    if "error" in found:
        raise ParameterError(TARGET_METAVAR, target.name, str(found["error"]))
    return ReportRow(
        target.name if kind == "outputs" else f"low bits of {target.name}", "target",
        (target.epsilon, target.delta), None, found["epsilon_lower"], found["confidence"],
        found["runs"], Outcome[found["outcome"]], Outcome.SURVIVED, found["witness"],
        found["evidence"], found["seconds"], found["decisive"], found["verdict_lower"],
        tuple(found["guesses"]), (), None,
    )  # fmt: skip
