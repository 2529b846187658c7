"""Audits of differential privacy: try to falsify the claims of mechanisms and algorithms.

Attacks on one release, exact densities, replays of algorithms, known faults of other libraries, a
zoo of broken specimens, and minimax lower bounds.  Rooms, lowest first: `statistics`, `values`;
`claims`, `runs`, `neighbours`; `classifiers`, `known_densities`; `algorithm_runs`, `attacks`,
`one_run`; `results`, `adapters`, `recorded_runs`; `libraries`, `papers`, `zoo`, `minimax`;
`runner`, `utility`; `report`, `pytest_support`; `cli`.  Imports run towards the lower rooms.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
