"""The stub file with the types of what `mechanisms` exports; `make table` writes it.

The package loads a name when it is first asked for, from the module that the stub names.
"""

from __future__ import annotations

from pathlib import Path

from mechanisms.base.mechanism import registry

STUB = Path(__file__).parents[1] / "__init__.pyi"
HEAD = '"""The types of the public names: made by `make table`."""\n\n'
# The module and the name of each export that is no mechanism, in the order of sorted imports.
BASE_EXPORTS = (
    ("base.mechanism", "EXACT"),
    ("base.mechanism", "IDEALISED"),
    ("base.mechanism", "Arithmetic"),
    ("base.mechanism", "Mechanism"),
    ("base.mechanism", "registry"),
    ("base.parameters", "declare"),
    ("base.parameters", "param"),
    ("sum_of_clients", "ClientVectors"),
    ("sum_of_clients", "calibrate_sum"),
)


def package_stub() -> str:
    """Return the text of the stub: an import of each public name of the package."""
    mechanisms = [
        (cls.__module__.removeprefix("mechanisms."), cls.__name__)
        for cls in registry()
        if cls.__module__.startswith("mechanisms.")  # not one that a test or a user registered
    ]
    exports = sorted(
        [*BASE_EXPORTS, *mechanisms], key=lambda export: (export[0], export[1].islower())
    )
    return HEAD + "".join(f"from .{module} import {name} as {name}\n" for module, name in exports)


def write_stub() -> None:
    """Write the stub next to the package."""
    STUB.write_text(package_stub(), encoding="utf-8")
