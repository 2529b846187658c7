"""The result file of an audit: rows and the request that made them, as JSON.

A `Result` is written by ``--json`` and read back, to continue an interrupted audit, or to run it
again.  The file also states the versions of the packages and a digest of the code that made it.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from accountant.errors import ParameterError
from audits.claims.findings import NotTested, Outcome
from audits.results.project_code import Place, find_module
from audits.results.rows import Compared, ProfileCurve, ReportRow
from dp_attest.installation import modules_digest

SCHEMA = 1  # the version of the file format
PARTIAL_SUFFIX = ".part"  # at the end of the name of a file with the rows of an unfinished audit
MAX_PATH = 4096  # a longer word names no file
MAX_BYTES = 100_000_000  # a larger file is refused, before it fills the memory
VERSIONED = ("dp-attest", "numpy", "scipy")  # packages whose versions every result states
SELECTING = ("run", "papers", "libraries")  # commands whose names choose some of their subjects
NOT_FOUND = "its file was not found"  # takes the place of a digest


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What was asked of an audit: the command, its names and options, and the numbers it needs."""

    command: str  # the subcommand of ``dp-attest audit``
    names: tuple[str, ...]  # its arguments, such as names of subjects
    samples: int  # runs of each audit
    confidence: float
    seed: int
    curves: bool = False  # whether rows have the curve of a profile
    options: dict[str, Any] = field(default_factory=dict)  # further options of the command, by name

    @property
    def repeat_command(self) -> str:
        """The command line that repeats the request."""
        command = ["dp-attest", "audit", self.command]
        command += [*self.names, "--seed", str(self.seed)]
        without_runs = self.command in ("scores", "record")
        command += [] if without_runs else ["--runs", str(self.samples)]
        if self.confidence != 0.95:
            command += ["--confidence", f"{self.confidence!r}"]
        for name, value in self.options.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            if name == "primitive":  # which is named once for each of its values
                command += [word for item in value or () for word in ("--primitive", item)]
                continue
            arguments = [] if value is True else [str(item) for item in values]
            command += [] if value in (None, False) else [f"--{name}", *arguments]
        return shlex.join(command)

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides a row besides its code, its subject and the seed.

        A word that names a file stands for what is in the file.
        """

        def contents(word: Any) -> Any:
            if isinstance(word, (list, tuple)):
                return list(map(contents, word))
            is_file = isinstance(word, str) and len(word) < MAX_PATH and Path(word).is_file()
            return [word, _sha256(Path(word))] if is_file else word

        names = () if self.command in SELECTING else self.names
        return {
            "command": self.command,
            "names": contents(names),
            "samples": self.samples,
            "confidence": self.confidence,
            "curves": self.curves and self.command == "run",  # the only one whose rows have them
            "options": {name: contents(value) for name, value in self.options.items()},
        }


@final
@dataclass(frozen=True, slots=True)
class Digests:
    """SHA-256 of the code, the settings and the installed packages that decided the rows.

    ``unknown`` says why the digests do not stand for all of that; it is empty if they do.
    """

    code: str
    settings: str
    packages: str
    unknown: str = ""

    def difference(self, earlier: Digests | None) -> str:
        """Why rows of an earlier report are not those of now; "" if they are."""
        if self.unknown:
            return self.unknown
        if earlier is None or earlier.unknown:
            return "the baseline does not say of what code it is"
        pairs = [
            ("its code changed", self.code, earlier.code),
            ("its settings changed", self.settings, earlier.settings),
            ("an installed package or Python changed", self.packages, earlier.packages),
        ]
        return ", ".join(reason for reason, now, before in pairs if now != before)


@final
@dataclass(frozen=True, slots=True)
class Result:
    """The rows of an audit, their request, and the versions of the software.

    ``absent`` has the libraries that could not be audited, with the reason.  ``date`` is when the
    result was made, ``code`` the digest of the audited code; both are empty in older files.
    ``digests`` decide whether a later audit may keep the rows; without them it may not.
    """

    request: Request
    rows: list[ReportRow]
    versions: dict[str, str]
    absent: dict[str, str] = field(default_factory=dict)
    date: str = ""
    code: str = ""
    digests: Digests | None = None


def new_result(
    request: Request,
    rows: list[ReportRow],
    extra: tuple[str, ...] = (),
    absent: dict[str, str] | None = None,
    digests: Digests | None = None,
) -> Result:
    """A result that is dated now; it also states the versions of the packages ``extra``."""
    now = datetime.datetime.now(datetime.UTC).isoformat(" ", "seconds")
    code = request_digest(request)
    return Result(request, rows, versions(extra), absent or {}, now, code, digests)


def request_digest(request: Request) -> str:
    """The digest of the code that a request audits: this package's, a module's or a program's."""
    command, name = request.options.get("command"), "".join(request.names)
    if request.command not in ("target", "record"):
        return code_digest()
    if command is None and "sql" not in request.options:
        return code_digest(name)
    return code_digest(program=["sql", name] if command is None else shlex.split(str(command)))


def versions(extra: tuple[str, ...] = ()) -> dict[str, str]:
    """The versions of Python and of the packages that the numbers come from."""
    installed = {"python": platform.python_version()}
    for name in (*VERSIONED, *extra):
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def document(result: Result) -> dict[str, Any]:
    """The result as a JSON-ready dictionary, schema 1."""
    return {
        "schema": SCHEMA,
        "seed": result.request.seed,
        "findings": [_finding(row) for row in result.rows],
        "request": {**dataclasses.asdict(result.request), "names": list(result.request.names)},
        "command": result.request.repeat_command,
        "versions": result.versions,
        "absent": result.absent,
        "date": result.date,
        "code": result.code,
        "details": [_detail(row) for row in result.rows],
        "digests": None if result.digests is None else dataclasses.asdict(result.digests),
        # what depends on where and when, so that it is no part of what a replay compares
        "provenance": [
            {
                "places": [code_place._asdict() for code_place in row.places],
                "baseline": None if row.compared is None else row.compared._asdict(),
            }
            for row in result.rows
        ],
    }


def to_json(result: Result) -> str:
    """The document as text; infinite and NaN numbers become null."""
    return json.dumps(document(result), indent=2, allow_nan=False) + "\n"


EXPECTED_DOCUMENT = "a result of schema 1 with its request and details, written by --json"
# The errors that reading a malformed document may raise.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError)


def load_document(path: str, argument: str) -> dict[str, Any]:
    """The document in a file, or `ParameterError`."""
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise ParameterError(argument, path, f"a file of at most {MAX_BYTES:,} bytes")
        contents = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(argument, path, f"a file to read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise ParameterError(argument, path, EXPECTED_DOCUMENT) from None
    if not isinstance(contents, dict) or contents.get("schema") != SCHEMA:
        raise ParameterError(argument, path, EXPECTED_DOCUMENT)
    return contents


def request_of(contents: dict[str, Any]) -> Request:
    """The request in a document."""
    fields = dict(contents["request"])
    request = Request(**{**fields, "names": tuple(fields["names"])})
    kinds: dict[str, Any] = {
        "command": str,
        "samples": int,
        "confidence": (int, float),
        "seed": int,
        "curves": bool,
        "options": dict,
    }
    if not all(isinstance(getattr(request, name), kind) for name, kind in kinds.items()):
        raise TypeError("a field of the request is of another kind")
    if not all(isinstance(name, str) for name in request.names):
        raise TypeError("a name of the request is no text")
    return request


def read_result(path: str, argument: str) -> Result:
    """The result in a file, or `ParameterError`."""
    contents = load_document(path, argument)
    try:
        findings, digests = contents["findings"], contents.get("digests")  # older files have none
        provenance = contents.get("provenance", [{}] * len(findings))
        rows = [
            _row(*parts) for parts in zip(findings, contents["details"], provenance, strict=True)
        ]
        return Result(
            request_of(contents),
            rows,
            dict(contents["versions"]),
            dict(contents["absent"]),
            str(contents.get("date", "")),
            str(contents.get("code", "")),
            None if digests is None else Digests(**{k: str(v) for k, v in digests.items()}),
        )
    except MALFORMED:
        raise ParameterError(argument, path, EXPECTED_DOCUMENT) from None


def without_times(result: Result) -> str:
    """The document without the parts that depend on the clock or the machine."""
    contents = document(result)
    contents["findings"] = [{**row, "seconds": 0.0} for row in contents["findings"]]
    return json.dumps({key: contents[key] for key in ("findings", "details")}, sort_keys=True)


def _finding(row: ReportRow) -> dict[str, Any]:
    """The fields of a row that a document has in "findings"."""
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
        "seconds": row.seconds,
    }


def _detail(row: ReportRow) -> dict[str, Any]:
    """The fields of a row that a document has in "details": all others."""
    curve: dict[str, list[float | None]] | None = None
    if row.curve is not None:
        names = [column.name for column in dataclasses.fields(row.curve)]
        curve = {name: list(map(_finite, getattr(row.curve, name))) for name in names}
    return {
        "evidence": row.evidence,
        "decisive": row.decisive,
        "unseen": list(row.unseen),
        "verdict_lower": _finite(row.verdict_lower),
        "guesses": None if row.guesses is None else list(row.guesses),
        "facts": [list(fact) for fact in row.facts],
        "notes": list(row.notes),
        "noise": row.noise,
        "needed_runs": row.needed_runs,
        "not_tested": [reason._asdict() for reason in row.not_tested],
        "curve": curve,
    }


def _row(row: dict[str, Any], details: dict[str, Any], provenance: dict[str, Any]) -> ReportRow:
    """The row from its three parts in a document; the inverse of `document`."""
    compared = provenance.get("baseline")
    claim = tuple(math.nan if x is None else float(x) for x in row["claim"].values())
    curve, guesses = details["curve"], details["guesses"]
    outcome = Outcome[row["outcome"].upper()]
    if outcome is Outcome.SURVIVED and not details["decisive"]:  # as older files have it
        outcome = Outcome.INCONCLUSIVE
    if curve is not None:
        curve = ProfileCurve(**{name: tuple(values) for name, values in curve.items()})
    return ReportRow(
        subject=str(row["subject"]),
        kind=str(row["kind"]),
        claim=(claim[0], claim[1]),
        exact_epsilon=row["exact_epsilon"],
        epsilon_lower=row["epsilon_lower"],
        confidence=row["confidence"],
        runs=row["runs"],
        outcome=outcome,
        expected=Outcome[row["expected"].upper()],
        witness=str(row["witness"]),
        evidence=str(details["evidence"]),
        seconds=row["seconds"],
        verdict_lower=details["verdict_lower"],
        guesses=None if guesses is None else tuple(guesses),
        facts=tuple((str(fact), str(value)) for fact, value in details["facts"]),
        curve=curve,
        unseen=tuple(map(str, details.get("unseen", ()))),
        notes=tuple(map(str, details.get("notes", ()))),  # older files have none
        noise=str(details.get("noise", "")),
        needed_runs=details.get("needed_runs"),
        not_tested=tuple(
            NotTested(str(reason["kind"]), str(reason["sentence"]))
            for reason in details.get("not_tested", ())
        ),
        places=tuple(
            Place(str(code_place["path"]), int(code_place["line"]), str(code_place["sentence"]))
            for code_place in provenance.get("places", ())
        ),
        compared=None
        if compared is None
        else Compared(*(str(compared[name]) for name in Compared._fields)),
    )


def _finite(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(x)


def code_digest(target: str | None = None, program: Sequence[str] = ()) -> str:
    """SHA-256 of this package's modules, or of the module file of a target; nothing is imported.

    For the package it is the digest of the lines ``digest  path`` of its files, ordered by path.
    For the words of a ``program`` it is that of these words, and of the files that they name: its
    arguments, or if none of them is a file, the program itself.
    """
    try:
        if program:
            named_files = [Path(word) for word in program[1:] if os.path.isfile(word)]
            own_file = shutil.which(program[0])
            files = named_files or ([] if own_file is None else [Path(own_file)])
            lines = [*program, *map(_sha256, files)]
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            names = ", ".join(file.name for file in files) or "the words of the command line"
            return f"SHA-256 {digest} of {names}"
        if target is not None:
            module = target.partition(":")[0]
            spec = find_module(module)
            if spec is None or not spec.has_location or spec.origin is None:
                return f"{module}: {NOT_FOUND}"
            return f"SHA-256 {_sha256(Path(spec.origin))} of {module}"
        digest, count = modules_digest()
    except OSError:  # a report is made even if a folder cannot be read
        return NOT_FOUND
    return f"SHA-256 {digest} of {count} modules of dp-attest"


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
