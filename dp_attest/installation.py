"""The packages of the distribution, and whether another one has taken the place of one of them.

Packages with common names can be overwritten: ``pip install algorithms`` puts its own files where
ours were, and says nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")
MARK = "from dp_attest.public_names import"  # in the `__init__` of every package of ours


def check_packages() -> None:
    """Refuse to go on where a package is missing, or another distribution's.

    Raises
    ------
    ImportError
        Its words name the package, the file, and what puts it right.
    """
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise ImportError(f"dp-attest's package {package!r} is missing; {_remedy([])}")
        if MARK not in Path(spec.origin).read_text(encoding="utf-8", errors="replace"):
            others = _other_distributions(package)
            whose = f" of {' and '.join(others)}" if others else ""
            raise ImportError(
                f"{spec.origin} is not dp-attest's package {package!r}: another one of the same "
                f"name{whose} has taken its place; {_remedy(others)}",
                name=package,
                path=spec.origin,
            )


def modules_digest() -> tuple[str, int]:
    """SHA-256 of the lines ``digest  path`` of all modules, ordered by path, and how many they are.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    lines = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        folders = [] if spec is None else spec.submodule_search_locations or ()
        lines += [
            f"{hashlib.sha256(file.read_bytes()).hexdigest()}  "
            f"{name}/{file.relative_to(folder).as_posix()}"
            for folder in map(Path, folders)
            for file in sorted(folder.rglob("*.py"))
        ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest(), len(lines)


def _other_distributions(package: str) -> list[str]:
    """The other installed distributions that say the package is theirs."""
    import importlib.metadata

    owners = importlib.metadata.packages_distributions().get(package, [])
    return sorted({name for name in owners if name != "dp-attest"})


def _remedy(others: list[str]) -> str:
    again = "install dp-attest again with `pip install --force-reinstall --no-deps`"
    if not others:
        return again
    return f"run `pip uninstall {' '.join(others)}`, then {again}, or use an environment of its own"
