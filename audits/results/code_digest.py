"""The digest of audited code, by which a reader sees that it is still the same."""

from __future__ import annotations

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")
NOT_FOUND = "its file was not found"


def code_digest(target: str | None = None) -> str:
    """SHA-256 of this package's modules, or of the module file of a target; nothing is imported.

    Of many files, it is the digest of the lines ``digest  path`` in the order of their paths.
    """
    try:
        return _digest(target)
    except OSError:  # a folder that may not be read is no reason to lose a report
        return NOT_FOUND


def _digest(target: str | None) -> str:
    if target is not None:
        module = target.partition(":")[0]
        file = _module_file(module)
        return f"{module}: {NOT_FOUND}" if file is None else f"SHA-256 {_sha256(file)} of {module}"
    lines = [
        f"{_sha256(file)}  {name}/{file.relative_to(root).as_posix()}"
        for name in PACKAGES
        for root in _roots(name)
        for file in sorted(root.rglob("*.py"))
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return f"SHA-256 {digest} of {len(lines)} modules of dp-attest"


def _roots(package: str) -> list[Path]:
    spec = find_spec(package)
    return [] if spec is None else [Path(path) for path in spec.submodule_search_locations or ()]


def _module_file(module: str) -> Path | None:
    """The source of a module; not by `find_spec`, which would import its packages."""
    path = Path(*module.split("."))
    for folder in ("", *sys.path):
        for file in (Path(folder) / path / "__init__.py", Path(folder) / path.with_suffix(".py")):
            if file.is_file():
                return file
    return None


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
