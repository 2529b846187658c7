"""The engines that integrate a cumulant along a contour: as it is, or smoothed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from accountant.composition.composition import Neighbourhood, Query
from accountant.composition.contour import Contour
from accountant.composition.engine import Attempt, DeltaBounds, EngineNearEpsilon

MAX_NODES = 2**20
MAX_OPERATIONS = 4e8  # products, in a second
LONG_NODES = 2**16  # a smoothed contour of so many nodes waits for what a rough one shows
ROUGH_SMOOTHING = 500.0  # of a rough one, over that of the long one
LEAST_GAIN = 1.3  # of smoothing, for which another contour is tried first
REFINEMENTS, REFINEMENT = 4, 4.0  # of a smoothed contour, each over the one before


class ContourEngine(EngineNearEpsilon):
    """One contour integral of the composition as it is: exact but for round-off."""

    name = "contour"
    planning_cost, contours_planned = 5e4, 1

    def neighbourhoods(self, query: Query) -> Iterator[Neighbourhood]:
        """Yield the neighbourhood of Chernoff's order; then the flattest, with fewer nodes."""
        yield query.neighbourhood
        if query.flat_neighbourhood is not query.neighbourhood:
            yield query.flat_neighbourhood

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield one contour, where it is affordable."""
        contour = neighbourhood.contour
        if _is_affordable(contour):
            yield Attempt(contour.operations, _integrated(contour))


class SmoothedContourEngine(EngineNearEpsilon):
    """A contour integral of the composition with a fictitious Gaussian, and the way back."""

    name = "smoothed contour"
    planning_cost, contours_planned = 4e6, 2

    def neighbourhoods(self, query: Query) -> Iterator[Neighbourhood]:
        """Yield the flattest neighbourhood, where the transform decays soonest."""
        yield query.flat_neighbourhood

    def near(self, neighbourhood: Neighbourhood) -> Iterator[Attempt[DeltaBounds]]:
        """Yield contours with less and less smoothing, each affordable."""
        composition, tilt = neighbourhood.composition, neighbourhood.tilt
        smoothing = neighbourhood.smoothing
        contour = _with_smoothing(neighbourhood, smoothing)
        if neighbourhood.contour.operations <= contour.operations:
            return  # without smoothing it is exact
        if contour.nodes > LONG_NODES:
            # Where most of the mass is at atoms the density p_S between them is small, and so is
            # what smoothing adds, S p_S / delta: a short contour measures it where it is asked.
            short_contour = _with_smoothing(neighbourhood, ROUGH_SMOOTHING * smoothing)
            if short_contour.nodes <= LONG_NODES and _is_affordable(short_contour):
                yield Attempt(short_contour.operations, _integrated(short_contour))
                # in the formula for the smoothing this share is S a (a + 1)
                usual_share = short_contour.smoothing * tilt * (tilt + 1)
                factor = 1.0
                if short_contour.added_share > 0:
                    factor = min(usual_share / short_contour.added_share, ROUGH_SMOOTHING)
                if factor > LEAST_GAIN:
                    sharper = _with_smoothing(neighbourhood, factor * smoothing)
                    if _is_affordable(sharper):
                        yield Attempt(sharper.operations, _integrated(sharper))
        for _ in range(REFINEMENTS):
            contour = _with_smoothing(neighbourhood, smoothing)
            while not _is_affordable(contour) and contour.smoothing < 1:
                contour = Contour(
                    composition.cgf, tilt, neighbourhood.epsilon, 2 * contour.smoothing
                )
            if not _is_affordable(contour):
                return
            yield Attempt(contour.operations, _integrated(contour))
            if contour.smoothing > smoothing:
                return  # none with less smoothing is affordable
            smoothing /= REFINEMENT


def _with_smoothing(neighbourhood: Neighbourhood, smoothing: float) -> Contour:
    cgf = neighbourhood.composition.cgf
    return Contour(cgf, neighbourhood.tilt, neighbourhood.epsilon, smoothing)


def _integrated(contour: Contour) -> Callable[[], DeltaBounds]:
    """Return what integrates a contour and returns it."""

    def integrate() -> DeltaBounds:
        contour.integrate()
        return contour

    return integrate


def _is_affordable(contour: Contour) -> bool:
    """Return whether time and memory suffice for the contour."""
    return contour.nodes <= MAX_NODES and contour.operations <= MAX_OPERATIONS
