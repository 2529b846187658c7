"""Compositions of mechanisms: a plan made from shapes, and a run through the gate."""

import lazy_loader

from dp_attest.public_names import with_hints

_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_hints(__name__, _lazy, __all__)
