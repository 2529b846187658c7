"""The packages of the distribution, and whether another one has taken the place of one of them.

Packages with common names can be overwritten: ``pip install algorithms`` puts its own files where
ours were, and says nothing.  They can be hidden, too: by a folder ``algorithms/`` of the user that
Python finds first.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

HOME = Path(__file__).parents[1]  # the folder in which all packages were installed
PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")
AGAIN = "install dp-attest again with `pip install --force-reinstall --no-deps`"
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
            raise ImportError(f"dp-attest's package {package!r} is missing; {AGAIN}")
        if MARK not in Path(spec.origin).read_text(encoding="utf-8", errors="replace"):
            raise ImportError(
                f"{spec.origin} is not dp-attest's package {package!r}: "
                f"{_what_happened(package, Path(spec.origin))}",
                name=package,
                path=spec.origin,
            )


def hidden_by(folder: Path) -> str:
    """Which package of ours a folder hides that Python looks into first, and what helps, or ""."""
    for package in PACKAGES if folder.resolve() != HOME.resolve() else ():
        for found in (folder / package / "__init__.py", folder / f"{package}.py"):
            if found.is_file():
                return f"{found} hides dp-attest's package {package!r}: {_rename(found)}"
    return ""


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


def _what_happened(package: str, found: Path) -> str:
    """Whether a package is overwritten, or hidden by a folder of the user, and what helps."""
    import importlib.metadata

    owners = importlib.metadata.packages_distributions().get(package, [])
    others = sorted({name for name in owners if name != "dp-attest"})
    if others:
        return (
            f"another one of the same name of {' and '.join(others)} has taken its place; run "
            f"`pip uninstall {' '.join(others)}`, then {AGAIN}, or use an environment of its own"
        )
    if HOME.resolve() in (found.parent.resolve(), found.parents[1].resolve()):
        return f"another one of the same name has taken its place; {AGAIN}"
    return f"it hides that one, for Python finds it first; {_rename(found)}"


def _rename(found: Path) -> str:
    """What helps against a package or module of the user, whose file is given."""
    hiding = found.parent if found.name == "__init__.py" else found
    return f"rename {hiding}, or work in another folder: to install again cannot help"
