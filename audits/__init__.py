"""Audits of differential privacy: try to falsify the claims of mechanisms and algorithms.

Attacks on one release, exact densities, replays of algorithms, known faults of other libraries, a
zoo of broken specimens, and minimax lower bounds.  Rooms, lowest first: `statistics`, `values`;
`claims`, `runs`, `neighbours`; `classifiers`, `known_densities`; `algorithm_runs`, `attacks`,
`one_run`; `results`, `adapters`, `recorded_runs`; `libraries`, `papers`, `zoo`, `minimax`;
`runner`, `utility`; `report`, `pytest_support`; `cli`.  Imports run towards the lower rooms.
"""

import lazy_loader

from dp_attest.public_names import with_hints

_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_hints(__name__, _lazy, __all__)
