"""The ground floor: what privacy is, how it composes, and the gate to the data.

Glossary: ``scale`` noise scale in the query's units; ``sensitivity``; ``shift = sensitivity /
scale``; ``mu`` Gaussian shift over standard deviation; ``rho`` zCDP; ``rate`` sampling
probability; ``epsilon``, ``delta``; ``order`` Rényi order; ``runs`` draws used by an audit.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
