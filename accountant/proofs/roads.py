"""The methods that may prove a bound of one direction, the cheapest to check first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from flint import ctx

from accountant.proofs.allocation_parameters import allocation_entry
from accountant.proofs.contour_parameters import Contour, moment_parameters
from accountant.proofs.float_pairs import (
    FloatFinite,
    FloatGaussian,
    FloatLaplace,
    FloatMixture,
    FloatPair,
    FloatRenyi,
)
from accountant.proofs.no_road import NoRoad
from accountant.verifier import NoProof
from accountant.verifier.balls import Budget
from accountant.verifier.outcomes import outcomes
from accountant.verifier.releases import ANY_OF, EQUAL_STEPS, LISTED

MAX_SUMS = 60_000
MIN_LAPLACES = 300  # fewer are on a lattice
# of what the width of the interval is for delta: the error, and what a smoothing may add
SHARES = ((1e-3, 1.0), (1e-3, 0.3), (1e-4, 0.1), (1e-6, 0.03))
LEAST_SHARE = 1e-12
ANY: Any = ()
Items = list[tuple[Any, int]]
Entry = dict[str, Any]


def roads(
    items: Items, back: bool, delta: float, end: float, width: float, *, lower: bool
) -> Iterator[Entry]:
    """Yield entries that may show that delta at ``end`` is at most ``delta``, or at least."""
    kinds = {release[0] for release, _ in items}
    only, n = items[0] if len(items) == 1 else (ANY, 0)
    if delta == 0:
        yield {"road": "largest losses", "bits": 256}
    elif ANY_OF in kinds:
        raise NoRoad("a set of releases to choose of is bounded on a lattice")
    elif kinds == {"laplace"} and sum(n for _, n in items) <= MIN_LAPLACES:
        raise NoRoad("few Laplaces are composed on a lattice")
    elif kinds == {"allocation"} and n == 1:
        yield allocation_entry(float(only[1]), only[2], back, end, delta)
    elif kinds <= LISTED and _sums(items) <= MAX_SUMS:
        yield {"road": "enumeration", "bits": 192}
    else:
        yield from _contours(items, back, delta, end, width, lower)


def moment_entry(items: Items, back: bool, delta: float) -> tuple[Entry, float]:
    """Return an entry that shows an upper end by one moment, and that end."""
    return moment_parameters([(_float_pair(release, back), n) for release, n in items], delta)


def _contours(
    items: Items, back: bool, delta: float, end: float, width: float, lower: bool
) -> Iterator[Entry]:
    if lower and sum(n * _most(release, back) for release, n in items) < (1 - 1e-9) * end:
        return  # delta is 0 there
    pairs = [(_float_pair(release, back), n) for release, n in items]
    contour = Contour(pairs, end, delta, 1e-3, 0.0)
    if (moment := contour.chernoff()) is not None:  # of a lower end it shows that there is none
        if not lower:
            yield moment
        return
    if any(isinstance(pair, FloatRenyi) for pair, _ in pairs):
        raise NoRoad("of a Renyi curve no more is known than moments")
    slack = min(1.0, max(width * contour.a, 1e-13))
    reason, is_yielded = NoRoad(""), False
    wanted = [(share * slack, smooth * slack) for share, smooth in SHARES]
    # the ends may be those of different pairs, and the interval says nothing of their width
    for share, smooth in [*wanted, (LEAST_SHARE, LEAST_SHARE)]:
        try:
            entry = Contour(pairs, end, delta, share, smooth).entry(lower)
        except NoRoad as error:
            reason = error
        else:
            is_yielded = True
            yield entry
    if not is_yielded:
        raise reason


def _most(release: Any, back: bool) -> float:
    """Return a bound on the losses of a release, or infinity."""
    match release:
        case ("mixture", _, first, second):
            first, second = (second, first) if back else (first, second)
            still = [float(w) for w, s in second if s == 0]
            if still and all(s == 0 for _, s in first):
                return -math.log(still[0])
        case ("response", e, d) if d == 0:
            return float(e)
        case ("laplace", m, *_):
            return float(m)
    return math.inf


def _float_pair(release: Any, back: bool) -> FloatPair:
    match release:
        case ("gaussian", mu2):
            return FloatGaussian(float(mu2))
        case ("laplace", m, _, _):
            return FloatLaplace(float(m))
        case ("zcdp", rho, xi):
            return FloatRenyi(float(rho), float(xi))
        case ("range", e):
            return FloatRenyi(float(e) ** 2 / 8, 0.0)
        case ("mixture", unit2, first, second):
            sides = [[(float(w), float(s)) for w, s in side] for side in (first, second)]
            if back:
                sides = [[(w, -s) for w, s in side] for side in reversed(sides)]
            return FloatMixture(float(unit2), *sides)
        case (kind, *_) if kind in LISTED:
            law = [(float(p), float(q)) for p, q in _outcomes(release, back)]
            return FloatFinite(*np.array(law).T)
    raise NoRoad(f"releases of the kind {release[0]} have no contour")


def _outcomes(release: Any, back: bool) -> list[Any]:
    ctx.prec, Budget.remaining = 96, math.inf
    try:
        return outcomes(release, back)[0]
    except NoProof as error:
        raise NoRoad(str(error)) from None


def _sums(items: Items) -> float:
    """Return the number of terms of the checker's polynomials."""
    terms = 1.0
    for release, n in items:
        size = sum(p > 0 and q > 0 for p, q in _outcomes(release, back=False))
        if release[0] in EQUAL_STEPS or n == 1:
            terms *= n * (size - 1) + 1
        else:
            terms *= min(n * float(n + 1) ** min(size - 2, 20) + 1, 1e18)
    return terms
