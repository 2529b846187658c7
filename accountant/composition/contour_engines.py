"""The engines that integrate a cumulant along a contour: as it is, or smoothed.

The delta of a composition is an integral of ``e^{K(z) - z epsilon}`` along a line ``z = a + iu``,
with K the cumulant (see `Contour`).  Where the integrand decays slowly, it takes too many nodes.
The smoothed engine then adds a fictitious Gaussian loss of variance S, which makes the decay fast,
and subtracts a bound on what the Gaussian adds to delta: fewer nodes, but a wider interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from accountant.composition.composition import Neighbourhood
from accountant.composition.contour import Contour
from accountant.composition.engine import Attempt, DeltaBounds, EngineNearEpsilon

MAX_NODES = 2**20  # nodes of a contour: limits its memory
MAX_OPERATIONS = 4e8  # complex products of a contour: about a second
REFINEMENTS, REFINEMENT = 4, 4.0  # contours at most, each with a quarter of the smoothing before


class ContourEngine(EngineNearEpsilon):
    """One contour integral of the composition as it is: its only error of note is round-off."""

    name = "contour"
    planning_cost, contours_planned = 5e4, 1

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield one contour, where it is affordable."""
        contour = neighbourhood.contour
        if _is_affordable(contour):
            yield Attempt(contour.operations, _integrated(contour))


class SmoothedContourEngine(EngineNearEpsilon):
    """A contour integral of the composition and a fictitious Gaussian, corrected afterwards."""

    name = "smoothed contour"
    planning_cost, contours_planned = 4e6, 3

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield affordable contours with less and less smoothing."""
        smoothing = neighbourhood.smoothing
        contour = _with_smoothing(neighbourhood, smoothing)
        if neighbourhood.contour.operations <= contour.operations:
            return  # without smoothing it is exact
        for number in range(REFINEMENTS):
            if number > 0:
                smoothing /= REFINEMENT
                contour = _with_smoothing(neighbourhood, smoothing)
            while not _is_affordable(contour) and contour.smoothing < 1:
                # The number of nodes falls as the square root of the smoothing grows, at least
                # where the smoothing decides how fast the integrand decays.
                excess = max(contour.nodes / MAX_NODES, contour.operations / MAX_OPERATIONS)
                factor = min(max(excess**2, 2.0), 16.0)
                contour = _with_smoothing(neighbourhood, factor * contour.smoothing)
            if not _is_affordable(contour):
                return
            yield Attempt(contour.operations, _integrated(contour))
            if contour.smoothing > smoothing:
                return  # this is already the least smoothing that is affordable


def _with_smoothing(neighbourhood: Neighbourhood, smoothing: float) -> Contour:
    """Return the contour of a neighbourhood with a Gaussian of this squared mu."""
    cgf = neighbourhood.composition.cgf
    return Contour(cgf, neighbourhood.tilt, neighbourhood.epsilon, smoothing)


def _integrated(contour: Contour) -> Callable[[], DeltaBounds]:
    """Return a function that integrates a contour and returns it, for `Attempt`."""

    def integrate() -> DeltaBounds:
        contour.integrate()
        return contour

    return integrate


def _is_affordable(contour: Contour) -> bool:
    """Return whether time and memory suffice for the contour."""
    return contour.nodes <= MAX_NODES and contour.operations <= MAX_OPERATIONS
