"""The table of engines: what bounds the epsilon of a composition, and in which order of costs.

A new engine is a file with a class, and a line here.
"""

from __future__ import annotations

from accountant.composition.contour_engines import ContourEngine, SmoothedContourEngine
from accountant.composition.engine import Engine, EngineNearEpsilon
from accountant.composition.enumeration import EnumerationEngine
from accountant.composition.finite_pairs import FinitePairsEngine
from accountant.composition.grid_certificate import GridPairsEngine
from accountant.composition.lattice import LatticeEngine
from accountant.composition.truncated_contour import TruncatedContourEngine

# exact but for round-off, near an epsilon
EXACT_ENGINES: tuple[EngineNearEpsilon, ...] = (
    EnumerationEngine(),
    LatticeEngine(),
    ContourEngine(),
)
ENGINES_NEAR_EPSILON: tuple[EngineNearEpsilon, ...] = (*EXACT_ENGINES, SmoothedContourEngine())
# of losses with exact cumulants
SUMMING_ENGINES: tuple[Engine, ...] = (*ENGINES_NEAR_EPSILON, TruncatedContourEngine())
ENGINES: tuple[Engine, ...] = (
    *SUMMING_ENGINES,
    GridPairsEngine(),
    FinitePairsEngine(SUMMING_ENGINES),
)
