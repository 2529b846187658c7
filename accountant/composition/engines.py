"""The engines of one composition, cheapest first: enumeration, lattice, contour."""

from __future__ import annotations

from collections.abc import Iterator

from accountant.composition.cgf import PlanCGF
from accountant.composition.closed_form import ClosedForm, Engine
from accountant.composition.contour import Contour
from accountant.composition.enumeration import MAX_SUMS, Enumeration, number_of_sums
from accountant.composition.lattice import MAX_LATTICE_POINTS, Lattice, common_unit
from accountant.losses.loss import Loss

MAX_UNSMOOTHED_NODES = 2**13  # a contour of so many nodes is cheap without smoothing
MAX_CONTOUR_NODES = 2**20
CHEAP_SUMS = 5_000  # enumerated before other engines are tried
MAX_QUICK_OPERATIONS = 4e6
LONG_NODES = 2**16  # a smoothed contour of so many nodes waits for what a rough one shows
ROUGH_SMOOTHING = 500.0  # of a rough one, over that of the long one
LEAST_GAIN = 1.3  # of smoothing, for which another contour is tried first
ENOUGH = 0.8  # of the wanted width: a margin, so that it is reached
OPERATIONS_OF_A_LATTICE = 4e7  # exponentials that take as long as pairs on a lattice, .05 s
MAX_OPERATIONS = 2e8  # exponentials, multiplied in half a second


def engines_near(
    items: list[tuple[Loss, int]],
    cgf: PlanCGF,
    a: float,
    epsilon: float,
    width: float,
    *,
    quick_only: bool = False,
    smoothed: bool = True,
) -> Iterator[Engine]:
    """Yield engines with real part ``a``, near ``epsilon``, until the caller has a narrow answer.

    ``width``, relative to epsilon, is what a smoothed contour aims at; with ``quick_only`` there
    is none where that is not quick.  Without ``smoothed`` all are exact but for round-off.
    """
    if len(items) == 1 and items[0][1] == 1:
        yield ClosedForm(items[0][0])
        return
    sums = number_of_sums(items)
    if sums <= CHEAP_SUMS:
        yield Enumeration(items)
        return
    unit = common_unit(items)
    if unit is not None:
        lattice = Lattice(cgf, a, epsilon, unit)
        if lattice.nodes <= MAX_LATTICE_POINTS:
            lattice.integrate(cgf)
            yield lattice
    yield from _contours(cgf, a, epsilon, width, quick_only, smoothed)
    if sums <= MAX_SUMS:
        yield Enumeration(items)


def has_exact_engine(
    items: list[tuple[Loss, int]], cgf: PlanCGF, a: float, epsilon: float, max_nodes: int
) -> bool:
    """Return whether the first engine is exact, and a contour has at most so many nodes."""
    if number_of_sums(items) <= CHEAP_SUMS or common_unit(items) is not None:
        return True
    contour = Contour(cgf, a, epsilon, 0.0)
    return contour.nodes <= max_nodes and contour.operations <= MAX_QUICK_OPERATIONS


def _smoothing(a: float, epsilon: float, width: float) -> float:
    """Return the smoothing of a sandwich of this width, which is about S (a + 1) wide."""
    return width * max(epsilon, 1e-3 / a) / (a + 1) * 0.6


def _contours(
    cgf: PlanCGF, a: float, epsilon: float, width: float, quick_only: bool, smoothed: bool
) -> Iterator[Engine]:
    direct = Contour(cgf, a, epsilon, 0.0)
    for share in (0.9, 0.75, 0.5):
        # near the edge of where the cumulant is small, a smaller real part needs fewer nodes
        if direct.nodes > MAX_UNSMOOTHED_NODES / 4 or direct.operations > MAX_OPERATIONS / 16:
            flatter = Contour(cgf, share * a, epsilon, 0.0)
            direct = min(direct, flatter, key=lambda candidate: candidate.operations)
    if (direct.nodes <= MAX_UNSMOOTHED_NODES or not smoothed) and _is_affordable(direct):
        direct.integrate()
        yield direct
        return
    if not smoothed:
        return
    smoothing = _smoothing(a, epsilon, width)
    max_operations = OPERATIONS_OF_A_LATTICE if quick_only else MAX_OPERATIONS
    yield from _rough_contours(cgf, a, epsilon, width, direct, max_operations)
    for _ in range(4):
        contour = _smoothed(cgf, a, epsilon, smoothing)
        if _is_affordable(direct) and direct.operations <= contour.operations:
            contour = direct
        elif not (_is_affordable(contour) and contour.operations <= max_operations):
            return
        contour.integrate()
        yield contour
        if contour is direct or contour.smoothing > smoothing:
            return  # no finer engine exists
        smoothing /= 4


def _rough_contours(
    cgf: PlanCGF, a: float, epsilon: float, width: float, direct: Contour, max_operations: float
) -> Iterator[Engine]:
    """Yield a short smoothed contour, and one as narrow as wanted if that need not be long.

    Where most of the mass is at atoms the density between them is small, and so is what smoothing
    adds: S p_S / delta, which the short contour measures where it is asked.
    """
    smoothing = _smoothing(a, epsilon, width)
    long = Contour(cgf, a, epsilon, smoothing)
    if long.nodes <= LONG_NODES or direct.operations <= long.operations:
        return
    rough_contour = Contour(cgf, a, epsilon, ROUGH_SMOOTHING * smoothing)
    if not (rough_contour.nodes <= LONG_NODES and _is_affordable(rough_contour)):
        return
    rough_contour.integrate()
    yield rough_contour
    # in the formula for `smoothing` this share is S a (a + 1)
    usual = rough_contour.smoothing * a * (a + 1)
    factor = (
        min(usual / rough_contour.added_share, ROUGH_SMOOTHING)
        if rough_contour.added_share > 0
        else 1.0
    )
    if rough_contour.found_width > 0:  # which is in proportion to the smoothing
        factor = ROUGH_SMOOTHING * min(ENOUGH * width / rough_contour.found_width, 1.0)
    if factor > LEAST_GAIN:
        contour = Contour(cgf, a, epsilon, smoothing * factor)
        if _is_affordable(contour) and contour.operations <= max_operations:
            contour.integrate()
            yield contour


def _smoothed(cgf: PlanCGF, a: float, epsilon: float, smoothing: float) -> Contour:
    """Return a contour with this smoothing, or with the least above it that is affordable."""
    contour = Contour(cgf, a, epsilon, smoothing)
    while not _is_affordable(contour) and contour.smoothing < 1:
        contour = Contour(cgf, a, epsilon, 2 * contour.smoothing)
    return contour


def _is_affordable(contour: Contour) -> bool:
    """Return whether time and memory suffice for the contour."""
    return contour.nodes <= MAX_CONTOUR_NODES and contour.operations <= MAX_OPERATIONS
