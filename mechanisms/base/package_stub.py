"""The stub file with the types of what `mechanisms` exports; `make table` writes it.

The package loads a name when it is first asked for, from the module that the stub names.
"""

from __future__ import annotations

from pathlib import Path

from mechanisms.base.mechanism import registry

STUB = Path(__file__).parents[1] / "__init__.pyi"
HEAD = '"""The types of the public names: made by `make table`."""\n\n'
# The modules and names of the other exports, in the order of sorted imports.
BASE_NAMES = (
    *(("base.mechanism", one) for one in ("EXACT", "IDEALISED", "Arithmetic", "Mechanism")),
    ("base.mechanism", "registry"),
    ("base.parameters", "declare"),
    ("base.parameters", "param"),
)


def package_stub() -> str:
    """Return the text of the stub: an import of each public name of the package."""
    inside = [cls for cls in registry() if cls.__module__.startswith("mechanisms.")]
    ours = ((cls.__module__.removeprefix("mechanisms."), cls.__name__) for cls in inside)
    names = sorted([*BASE_NAMES, *ours], key=lambda entry: entry[0])
    return HEAD + "".join(f"from .{home} import {name} as {name}\n" for home, name in names)


def write_stub() -> None:
    """Write the stub next to the package."""
    STUB.write_text(package_stub(), encoding="utf-8")
