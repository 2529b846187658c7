"""The engines that integrate a cumulant along a contour: as it is, or smoothed.

The delta of a composition is an integral of ``e^{K(z) - z epsilon}`` along a line ``z = a + iu``,
the contour.  K(z) = ln E e^{zL} is the cumulant of the summed loss L, and the tilt a > 0 is chosen
near the least Chernoff bound.  The integral is computed as a sum over nodes u (see `Contour`);
where the integrand decays slowly, it takes too many of them.  The smoothed engine then adds a
fictitious Gaussian loss of variance S, which makes the decay fast, and subtracts a bound on what
the Gaussian adds to delta: fewer nodes, but an interval of epsilon wider by about S (a + 1).

An engine proposes attempts, each with its estimated cost; the caller makes the cheapest.  Costs are
in products of two complex numbers, about 2 ns each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from accountant.composition.composition import Neighbourhood
from accountant.composition.contour import Contour
from accountant.composition.engine import Attempt, DeltaBounds, EngineNearEpsilon

MAX_NODES = 2**20  # nodes of a contour: limits its memory
MAX_OPERATIONS = 4e8  # complex products of a contour: about a second
# The smoothed engine proposes at most CONTOURS contours; each has the smoothing of the one before
# divided by REFINEMENT, and so gives a narrower interval.
CONTOURS, REFINEMENT = 4, 4.0
# A smoothing of 1 or more would make the interval of epsilon wider by more than 1.
USABLE_SMOOTHING = 1.0
# The smoothing of a contour that costs too much is multiplied by a factor between these: a smaller
# one would take many trials, a larger one might smooth far more than is needed.
LOW_FACTOR, HIGH_FACTOR = 2.0, 16.0


class ContourEngine(EngineNearEpsilon):
    """One contour integral of the composition as it is: its only error of note is round-off."""

    name = "contour"
    planning_cost = 5e4  # complex products
    contours_planned = 1  # contours whose nodes are chosen before the cost is known

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield one contour, where it is affordable."""
        contour = neighbourhood.contour
        if _is_affordable(contour):
            yield Attempt(contour.operations, _integrated(contour))


class SmoothedContourEngine(EngineNearEpsilon):
    """A contour integral of the composition and a fictitious Gaussian, corrected afterwards."""

    name = "smoothed contour"
    planning_cost = 4e6  # complex products
    # about: the contour without smoothing, and smoothed ones until one is affordable
    contours_planned = 3

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield affordable contours with less and less smoothing."""
        smoothing = neighbourhood.smoothing
        contour = _with_smoothing(neighbourhood, smoothing)
        if neighbourhood.contour.operations <= contour.operations:
            return  # `ContourEngine` has a contour that costs no more and needs no correction
        for number in range(CONTOURS):
            if number > 0:
                smoothing /= REFINEMENT
                contour = _with_smoothing(neighbourhood, smoothing)
            while not _is_affordable(contour) and contour.smoothing < USABLE_SMOOTHING:
                # Where the smoothing S decides how fast the integrand decays, the number of nodes
                # is proportional to 1 / sqrt(S): to divide it by `excess` takes excess^2 times S.
                excess = max(contour.nodes / MAX_NODES, contour.operations / MAX_OPERATIONS)
                factor = min(max(excess**2, LOW_FACTOR), HIGH_FACTOR)
                contour = _with_smoothing(neighbourhood, factor * contour.smoothing)
            if not _is_affordable(contour):
                return
            yield Attempt(contour.operations, _integrated(contour))
            if contour.smoothing > smoothing:
                return  # it was raised to be affordable: a contour with less smoothing is not


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
