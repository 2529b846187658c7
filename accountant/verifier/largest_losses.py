"""Proofs at delta 0, where epsilon is the sum of the largest losses of all releases.

The loss of an outcome with masses p under P and q under Q, the laws on two neighbours, is ln(p/q).
Theorem (`largest_loss`: the definition of
delta; docs/proofs/discrete.md, 4): delta(eps) is 0 if eps is at least the largest loss, and above 0
if it is less.  The ends of the proof and the parameters of the plan are taken as they are printed.
So that equal numbers compare as equal, losses that are rational stay exact fractions; those that
are logarithms are balls, intervals of Arb that contain the number.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

from flint import arb

from .balls import exact
from .document import NoProof, need
from .outcomes import outcomes
from .releases import ANY_OF, POISSON, Release

Largest = tuple[Fraction, arb]  # the two parts of a loss, of which it is the sum


def largest_holds(items: list[Any], back: bool, end: Fraction, *, above: bool) -> bool:
    """Return whether the sum of the largest losses is surely at most ``end``, or at least it.

    It is "at most" with ``above``, to prove an upper end, else "at least".
    """
    need(len(items) < 999, "too many different losses")
    fraction, ball = largest_sum(items, back, above=above)
    remainder = exact(end - fraction)
    return bool(ball <= remainder if above else ball >= remainder)


def largest_sum(items: Any, back: bool, *, above: bool) -> Largest:
    """Return the sum of the largest losses of releases, each as often as its count says.

    A release that is a set of parts counts with the part of the largest sum: any part may be
    chosen, and at delta 0 no outcome of positive mass may be left out.
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
    """Return the largest loss of one release, of Q against P with ``back``.

    It is a fraction for Laplace noise (shift over scale) and for a randomised response (its
    epsilon).  For other releases with finitely many outcomes, and for sampled Laplace noise, it is
    the greatest ln(p/q) of the masses.
    """
    kind = release[0]
    if kind == "laplace":
        # Theorem (discrete.md, 4): noise on a grid is drawn at a wider scale, so that its largest
        # loss is at most (1 - 2^-46) times the shift over the declared scale.
        _, shift, _, is_on_grid = release
        return shift * (1 - Fraction(above * is_on_grid, 2**46)), arb(0)
    if kind == "discrete laplace":
        _, scale, shift = release
        return shift / scale, arb(0)
    if kind == "response" and not release[2]:
        return release[1], arb(0)
    if kind == "best" and above:
        return largest_of_best(release)
    unknown = f"the largest loss of a {kind} has no proof here"
    if kind == "sampled laplace":
        masses = extreme_masses(release, back)
    elif kind in ("response", "pair", "sampled"):
        masses = outcomes(release, back)[0]
    else:
        raise NoProof(unknown)
    need(all(q > 0 or p == 0 for p, q in masses), unknown)
    return Fraction(0), reduce(arb.max, ((p / q).log() for p, q in masses if p > 0))


def largest_of_best(release: Release) -> Largest:
    """Return a bound on the largest loss of the best of runs of one pure response.

    Theorem (`largest_of_best`: docs/proofs/repeated.md, 4): it is at most epsilon + ln R, R the
    greatest ratio of f'(1 - u) to f'(1 - u - gap(u)).  For the response of epsilon that is e^{mean
    (e^epsilon - 1) / (e^epsilon + 1)} for a Poisson number, and e^{(1 + shape) s} for a negative
    binomial one, with e^s = (1 + (1 + c) e^epsilon) / (1 + c + e^epsilon), c = (1 - stop) / stop.
    """
    _, (family, *numbers), runs = release
    one_response = len(runs) == 1 and runs[0][1] == 1 and runs[0][0][0] == "response"
    need(one_response and not runs[0][0][2], "the largest loss of such runs has no proof here")
    epsilon = runs[0][0][1]
    odds = exact(epsilon).exp()
    if family == POISSON:
        return epsilon, exact(numbers[0]) * (odds - 1) / (odds + 1)
    shape, stop = numbers
    c = exact((1 - stop) / stop)
    return epsilon, exact(1 + shape) * ((1 + (1 + c) * odds) / (1 + c + odds)).log()


def extreme_masses(release: Release, back: bool) -> list[tuple[Any, Any]]:
    """Return (p, q), up to a common factor, for outcomes on either side of sampled Laplace noise.

    With the shift m and the rate r, p/q is 1 - r + r e^-m below 0, and 1 - r + r e^m above m.
    """
    _, shift, rate = release
    ratios = [1 - exact(rate) * (1 - (sign * exact(shift)).exp()) for sign in (-1, 1)]
    return [(1, ratio) if back else (ratio, arb(1)) for ratio in ratios]
