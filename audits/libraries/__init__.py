"""Other libraries under audit: known faults that must be found, and sound controls.

One adapter file per library, with its `LibraryCheck`s, imported on demand.  A library that is not
installed, or fails to import, is reported and skipped.  The room may import `results`, `attacks`
and the rooms below; it does not know `papers`, `zoo` or `minimax`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata

from audits.claims.findings import Outcome
from audits.libraries.checks import LibraryCheck, check_row
from audits.results.rows import AuditCase

# distribution -> (module to try, adapter); numpy is always installed
LIBRARIES = {
    "numpy": ("numpy", "numpy_noise"),
    "opendp": ("opendp.prelude", "opendp_checks"),
    "diffprivlib": ("diffprivlib", "diffprivlib_checks"),
    "dp-accounting": ("dp_accounting", "dp_accounting_checks"),
    "opacus": ("opacus.accountants", "opacus_checks"),
}


def cases() -> list[AuditCase]:
    """One case per check of every installed library."""
    return available_cases([])[0]


def available_cases(names: list[str]) -> tuple[list[AuditCase], dict[str, str]]:
    """The cases of installed libraries, and the reasons for the others; no names means all.

    Only libraries that one of the names is part of are imported, or all if a name is of none.
    """
    requested = [word.strip().lower() for word in names]
    matching = [
        library for library in LIBRARIES if any(word and word in library for word in requested)
    ]
    every = not requested or any(
        not any(word in library for library in LIBRARIES) for word in requested
    )
    installed_cases: list[AuditCase] = []
    missing: dict[str, str] = {}
    checks: list[LibraryCheck] = []
    for library in LIBRARIES if every else matching:
        module, adapter = LIBRARIES[library]
        why = _missing(library, module)
        if why:
            missing[library] = why
            continue
        loaded = importlib.import_module(f"audits.libraries.{adapter}")
        checks += loaded.CHECKS
    for check in checks:
        expected = check.expected(version(check.library))
        name = f"{check.library}: {check.name}"
        run = functools.partial(check_row, check, name, expected)
        installed_cases.append(
            AuditCase(
                name, "library", check.about, expected or Outcome.SURVIVED, run, check.function
            )
        )
    return installed_cases, missing


def version(library: str) -> str:
    """The version of an installed distribution; "" if it is not installed."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _missing(library: str, module: str) -> str:
    if not version(library):
        return f"not installed (pip install {library})"
    try:
        importlib.import_module(module)
    except Exception as error:  # an import may raise any error
        message = (str(error).splitlines() or [""])[0]
        return f"does not import: {type(error).__name__}: {message}"
    return ""
