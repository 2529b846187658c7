"""The table of engines: the methods that can bound the epsilon of a composition.

The order in the table decides only ties: `accountant.composition.engine` tries the cheapest engine
first.  A new engine is a file with a class, and a line here.
"""

from __future__ import annotations

from accountant.composition.contour_engines import (
    ContourEngine,
    SmoothedContourEngine,
    TruncatedContourEngine,
)
from accountant.composition.engine import Engine, EngineNearEpsilon
from accountant.composition.enumeration import EnumerationEngine
from accountant.composition.finite_pairs import FinitePairsEngine
from accountant.composition.grid_certificate import GridPairsEngine
from accountant.composition.lattice import LatticeEngine

# these bound delta near an epsilon, and their only error is round-off
EXACT_ENGINES: tuple[EngineNearEpsilon, ...] = (
    EnumerationEngine(),
    LatticeEngine(),
    ContourEngine(),
)
ENGINES_NEAR_EPSILON: tuple[EngineNearEpsilon, ...] = (*EXACT_ENGINES, SmoothedContourEngine())
# these apply to losses whose cumulants are known exactly, up to a bounded round-off
SUMMING_ENGINES: tuple[Engine, ...] = (*ENGINES_NEAR_EPSILON, TruncatedContourEngine())
ENGINES: tuple[Engine, ...] = (
    *SUMMING_ENGINES,
    GridPairsEngine(),
    FinitePairsEngine(SUMMING_ENGINES),
)
