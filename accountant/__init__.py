"""The core package: plans, privacy losses, composition, accountants, and gates to private data.

Mechanisms, algorithms and audits import it; it imports none of them.  Each room's first lines
name the theorem behind it.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
