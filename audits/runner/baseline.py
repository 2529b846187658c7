"""Which rows of an earlier report need not be computed again, since nothing of them has changed.

A row is kept if its command, its subject, its settings and its seed are the same, and so are the
code that it runs and all installed packages.  Where that is not known, every row is computed again:
a row that is kept by mistake would clear code that no audit has looked at.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from audits.results.project_code import ProjectCode, is_installed
from audits.results.result_file import Digests, Request, Result, code_digest, versions
from audits.results.rows import AuditCase, Compared, ReportRow
from audits.runner.california_housing import data_file

# Options of `target` that its digests take into account; a target with others is never kept.
KNOWN_OPTIONS = {"epsilon", "delta", "pair", "bits", "early", "allow-import"}
PACKAGE_FILES = ("*.dist-info", "*.egg-info", "*.pth")  # what an installed package leaves
MAX_READS = 3  # places that a sentence names


def digests_of(request: Request) -> Digests:
    """The digests of all that decides the rows of a request, but for their subjects and seeds."""
    code, unknown = [code_digest()], ""
    try:
        if request.command == "run":
            code.append(hashlib.sha256(data_file().read_bytes()).hexdigest())
        elif request.command == "target":
            options = {name for name, value in request.options.items() if value}
            if len(request.names) != 1 or ":" not in request.names[0] or options - KNOWN_OPTIONS:
                unknown = "what it runs is not known"
            else:
                project = ProjectCode(request.names[0].partition(":")[0])
                code.append(project.digest)
                if project.reads:
                    places = ", ".join(project.reads[:MAX_READS])
                    unknown = f"its code may read what no digest stands for: {places}"
        settings = json.dumps(request.settings, sort_keys=True, default=repr)
    except OSError as error:
        settings, unknown = "", f"a file could not be read ({error.strerror})"
    code_text, packages = "\n".join(code), "\n".join(installed_packages())
    digests = [
        hashlib.sha256(text.encode()).hexdigest() for text in (code_text, settings, packages)
    ]
    return Digests(digests[0], digests[1], digests[2], unknown)


def installed_packages() -> list[str]:
    """A line for Python, and one for each installed package: its version and its files.

    Two installations of one version differ where RECORD does, which has a digest of every file.
    Python runs the lines of a .pth file when it starts.
    """
    system = (platform.system(), platform.machine(), platform.python_implementation())
    lines = {" ".join((*system, *sorted(f"{k} {v}" for k, v in versions().items())))}
    for folder in map(Path, sys.path):
        for package in (path for kind in PACKAGE_FILES for path in folder.glob(kind)):
            if package.suffix == ".pth" and not is_installed(package):
                continue  # elsewhere it is no file of Python's
            files = [package, *(package / name for name in ("RECORD", "METADATA", "PKG-INFO"))]
            content = b"".join(file.read_bytes() for file in files if file.is_file())
            lines.add(f"{package.name} {hashlib.sha256(content).hexdigest()}")
    return sorted(lines)


def kept_rows(baseline: Result, todo: Sequence[AuditCase]) -> dict[str, ReportRow]:
    """The rows of a baseline without a `difference` that stand for cases, by their subjects.

    All rows of a report have its digests: those that it kept had them too.
    """
    kinds = {case.subject: case.kind for case in todo}
    rows = {}
    for row in baseline.rows:
        if kinds.get(row.subject) == row.kind:
            date = row.compared.date if row.compared and row.kept else baseline.date
            rows[row.subject] = replace(row, compared=Compared("unchanged", date))
    return rows


def compared(row: ReportRow, baseline: Result, why: str) -> ReportRow:
    """A row that was computed now, beside a baseline; ``why`` it could not be kept."""
    is_new = all(row.subject != earlier.subject for earlier in baseline.rows)
    reason = "it is not in the baseline" if is_new else why
    return replace(row, compared=Compared("new" if is_new else "updated", reason=reason))


def difference(baseline: Result, digests: Digests, request: Request) -> str:
    """Why the rows of a baseline are not those of a request; "" if they are."""
    is_other_seed = baseline.request.seed != request.seed
    reasons = [digests.difference(baseline.digests), "another seed was named" * is_other_seed]
    return ", ".join(filter(None, reasons))
