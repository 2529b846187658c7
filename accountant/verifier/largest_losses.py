"""At delta 0 epsilon is the largest loss: the sum of the largest losses of all releases.

Theorem (`largest_loss`: the definition of delta; docs/proofs/discrete.md, 4): delta(eps) is 0 from
the largest loss on, and not before.  Numbers are those that are printed; a sum is a fraction as far
as its terms are, and a ball that is to be added.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

from flint import arb

from .balls import exact
from .document import NoProof, need
from .outcomes import outcomes
from .releases import ANY_OF, Release

Largest = tuple[Fraction, arb]


def largest_holds(items: list[Any], back: bool, end: Fraction, *, above: bool) -> bool:
    """Return whether the largest losses add up to at most, or at least, an end as it is printed."""
    need(len(items) < 999, "too many different losses")
    fraction, ball = largest_sum(items, back, above=above)
    remainder = exact(end - fraction)
    return bool(ball <= remainder if above else ball >= remainder)


def largest_sum(items: Any, back: bool, *, above: bool) -> Largest:
    """Return the sum of the largest losses.

    Of a set the largest loss of all counts: at delta 0 every outcome that can be must be paid.
    """
    fraction, balls = Fraction(0), arb(0)
    for release, count in items:
        if release[0] == ANY_OF:
            sums = [largest_sum(part, back, above=above) for part in release[1]]
            if all(ball.is_zero() for _, ball in sums):
                fraction += count * max(part_fraction for part_fraction, _ in sums)
            else:
                balls += count * reduce(arb.max, (exact(part) + ball for part, ball in sums))
            continue
        loss_fraction, ball = largest_loss(release, back, above=above)
        fraction, balls = fraction + count * loss_fraction, balls + count * ball
    return fraction, balls


def largest_loss(release: Release, back: bool, *, above: bool) -> Largest:
    """Return the largest loss of one release."""
    kind = release[0]
    if kind == "laplace":
        # theorem (discrete.md, 4): noise on a grid is drawn so much wider that 2^-46 is saved
        _, shift, _, is_on_grid = release
        return shift * (1 - Fraction(above * is_on_grid, 2**46)), arb(0)
    if kind == "discrete laplace":
        _, scale, shift = release
        return shift / scale, arb(0)
    if kind == "response" and not release[2]:
        return release[1], arb(0)
    unknown = f"the largest loss of a {kind} has no proof here"
    if kind == "sampled laplace":
        masses = extreme_masses(release, back)
    elif kind in ("response", "pair", "sampled"):
        masses = outcomes(release, back)[0]
    else:
        raise NoProof(unknown)
    need(all(q > 0 or p == 0 for p, q in masses), unknown)
    return Fraction(0), reduce(arb.max, ((p / q).log() for p, q in masses if p > 0))


def extreme_masses(release: Release, back: bool) -> list[tuple[Any, Any]]:
    """Return masses in the ratios beyond both ends of sampled Laplace noise: 1 - r + r e^{-+m}."""
    _, shift, rate = release
    ratios = [1 - exact(rate) * (1 - (sign * exact(shift)).exp()) for sign in (-1, 1)]
    return [(1, ratio) if back else (ratio, arb(1)) for ratio in ratios]
