"""Bounds of delta at one epsilon, by the method that an entry of the proof file names."""

from __future__ import annotations

from flint import arb

from .allocation import delta_of_epoch
from .balls import spend
from .contour import delta_by_contour
from .document import Fields, need
from .lattice_sums import composed
from .outcomes import delta_by_enumeration
from .releases import Release

# The values of the field "road", by which a file names the method of an entry.
METHODS = ("enumeration", "allocation", "largest losses", "contour", "lattice")
Items = list[tuple[Release, int]]  # releases and their counts


def delta_bounds(
    method: str, items: Items, back: bool, entry: Fields, end: float, *, above: bool
) -> tuple[arb, arb]:
    """Return a lower and an upper bound of delta(``end``) by the method that the entry names."""
    if method == "lattice":
        return composed(items, back, entry, above=above)(end)
    items = [(mirrored_mixture(release) if back else release, n) for release, n in items]
    spend(100 * len(items))
    if method == "enumeration":
        return delta_by_enumeration(items, back, end)
    is_one_epoch = len(items) == 1 and items[0][1] == 1 and items[0][0][0] == "allocation"
    if method == "allocation" and is_one_epoch:
        delta = delta_of_epoch(items[0][0], back, entry, end)
        return delta, delta
    need(method == "contour", f"this plan has no {method}")
    return delta_by_contour(items, back, entry, end)


def mirrored_mixture(release: Release) -> Release:
    """Return a mixture with P and Q exchanged and all shifts negated; other releases unchanged.

    Losses stay the same if the line is mirrored; afterwards P has the positive shifts.
    """
    if release[0] != "mixture":
        return release
    _, unit_squared, *sides = release
    mirrored_sides = (tuple((w, -shift) for w, shift in side) for side in reversed(sides))
    return "mixture", unit_squared, *mirrored_sides
