"""Declared mechanisms, one small file each: sampler, density, privacy loss.

A module dropped into this folder is found and its mechanisms exported; nothing else is edited.
Their types are in `__init__.pyi`, which `make table` writes.
"""

import importlib
import pkgutil

from dp_attest.public_names import with_hints
from mechanisms.base.mechanism import EXACT, IDEALISED, Arithmetic, Mechanism, registry
from mechanisms.base.parameters import declare, param

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

_DECLARED = {cls.__name__: cls for cls in registry()}
globals().update(_DECLARED)

__all__ = ["EXACT", "IDEALISED", "Arithmetic", "Mechanism", "declare", "param", "registry"]
__all__ += list(_DECLARED)
__getattr__ = with_hints(__name__, None, __all__)


def __dir__() -> list[str]:
    return __all__
