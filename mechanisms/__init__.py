"""Declared mechanisms, one small file each: sampler, density, privacy loss.

A module dropped into this folder is found and its mechanisms exported; nothing else is edited.
"""

import importlib
import pkgutil
from typing import Any

from mechanisms.base.mechanism import EXACT, IDEALISED, Arithmetic, Mechanism, registry
from mechanisms.base.parameters import declare, param

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

_DECLARED = {cls.__name__: cls for cls in registry()}

__all__ = ["EXACT", "IDEALISED", "Arithmetic", "Mechanism", "declare", "param", "registry"]
__all__ += list(_DECLARED)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    try:
        return _DECLARED[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
