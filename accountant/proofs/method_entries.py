"""Chooses the method by which the checker bounds delta of releases at one epsilon."""

from __future__ import annotations

from collections.abc import Iterator

from accountant.proofs.allocation_parameters import allocation_entry
from accountant.proofs.contour_parameters import Entry, Items, contour_entries
from accountant.proofs.float_pairs import listed_masses
from accountant.proofs.no_method import NoMethod
from accountant.verifier.releases import ANY_OF, EQUAL_STEPS, LISTED

MAX_SUMS = 60_000  # terms of a sum over all outcomes, at most: it limits the time of the check
MAX_LATTICE_LAPLACES = 300  # more Laplace releases are bounded by one integral


def method_entries(
    items: Items, back: bool, delta: float, end: float, width: float, *, lower: bool
) -> Iterator[Entry]:
    """Yield entries that may show that delta at ``end`` is at most ``delta``, or more if ``lower``.

    The method is the cheapest to check: a sum over all outcomes where they are few, else one
    integral.  Where the method is pairs on a lattice, `NoMethod` is raised.  Errors are bounded at
    any number of ``bits``; more of them make the bounds narrower, and the check longer.
    """
    kinds = {release[0] for release, _ in items}
    count = sum(n for _, n in items)
    if delta == 0:
        yield {"road": "largest losses", "bits": 256}
    elif ANY_OF in kinds:
        raise NoMethod("a set of releases to choose of is bounded on a lattice")
    elif kinds == {"laplace"} and count <= MAX_LATTICE_LAPLACES:
        raise NoMethod("few Laplaces are composed on a lattice")
    elif kinds == {"allocation"} and count == 1:
        _, mu_squared, steps = items[0][0]
        yield allocation_entry(float(mu_squared), steps, back, end, delta)
    elif kinds <= LISTED and _term_count(items) <= MAX_SUMS:
        yield {"road": "enumeration", "bits": 192}
    else:
        yield from contour_entries(items, back, delta, end, width, lower)


def _term_count(items: Items) -> float:
    """Return how many terms the checker's sum over all outcomes has, or about that.

    A release with s finite losses has n (s - 1) + 1 sums of n of them if they are equally far
    apart; else at most as many as multisets, for which the estimate (n + 1)^(s - 2) n is taken.
    Only the choice of the method depends on it.  Its powers are capped far above `MAX_SUMS`.
    """
    terms = 1.0
    for release, n in items:
        size = sum(p > 0 and q > 0 for p, q in listed_masses(release, back=False))
        if release[0] in EQUAL_STEPS or n == 1:
            terms *= n * (size - 1) + 1
        else:
            terms *= min(n * float(n + 1) ** min(size - 2, 20) + 1, 1e18)
    return terms
