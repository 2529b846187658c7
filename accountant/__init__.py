"""The core package: plans, privacy losses, composition, accountants, and gates to private data.

Mechanisms, algorithms and audits import it; it imports none of them.  Each room's first lines
name the theorem behind it.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

import lazy_loader

from dp_attest.public_names import with_hints

_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_hints(__name__, _lazy, __all__)
