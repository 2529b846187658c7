"""Declared mechanisms, one small file each: sampler, density, privacy loss.

A name is loaded when it is first asked for; where it stands is said in `__init__.pyi`, which
`make table` writes.  A module dropped into this folder is found and its mechanisms exported;
nothing else is edited.
"""

import importlib
import pkgutil
from pathlib import Path

import lazy_loader

from dp_attest.public_names import with_hints

_lazy, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_hints(__name__, _lazy, __all__)
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg or f"from .{_module.name} import" in _STUB:
        continue
    # dropped in since the stub was written: it is loaded now
    importlib.import_module(f"{__name__}.{_module.name}")
    from mechanisms.base.parameters import REGISTERED

    _declared = [cls for cls in REGISTERED if cls.__module__ == f"{__name__}.{_module.name}"]
    globals().update({cls.__name__: cls for cls in _declared})
    __all__ += [cls.__name__ for cls in _declared]


def __dir__() -> list[str]:
    return __all__
