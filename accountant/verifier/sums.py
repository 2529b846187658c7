"""The law of a sum of losses on a lattice, and pairs above all pairs of a set."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from flint import arb, arb_poly, ctx, fmpz_poly

from .choices import ANY_OF
from .lattice import cells, law, under
from .parts import exact, outcomes, spend
from .plan import Fields, is_list, need

MOST_SIZE, MOST_POINTS = 2**18, 10 * 2**18  # points of the sum, and of one pair


class LatticePair(NamedTuple):
    """A pair (P, Q) of losses ``(first + i) h - moved``, of masses ``masses[i]`` of P.

    ``infinite`` is P's mass of infinite losses; what Q has more is where P has nothing.
    """

    first: int
    masses: list[arb]
    infinite: arb
    moved: arb


def composed(items: list[Any], back: bool, entry: Fields, *, above: bool) -> Callable[..., Any]:
    """Return bounds of delta at an epsilon: from above, or from below, by pairs on a lattice."""
    # The law of the sum of losses kh, times e^{akh} and over its total M, in whole numbers over
    # 2^bits, each rounded down; of each product ``size`` terms around the mean are kept.  What
    # was lost adds at most M e^{-a eps} a^a / (1 + a)^(1 + a) to delta: the greatest of e^{-aL}
    # (1 - e^{eps - L}).  All losses are moved, and epsilon with them: the largest of each release
    # is on the lattice, but for a ``slack``, so that what is about on it is within one cell.
    a, h = entry.real("a", 1e-6, 1e9), arb(entry.real("h", 1e-12, 1e3))
    slack, size = entry.real("slack", 0, 1), entry.whole("size", 2, MOST_SIZE)
    rules = entry.take("rules", fits=is_list)
    bits = ctx.prec

    def times(x: Any, y: Any) -> Any:
        spend(3 * (len(x[1]) + len(y[1])))
        weights = (fmpz_poly(x[1]) * fmpz_poly(y[1])).coeffs()
        mean = sum(i * c for i, c in enumerate(weights)) // max(sum(weights), 1)
        start = max(0, min(int(mean) - size // 2, len(weights) - size))
        return x[0] + y[0] + start, [c >> bits for c in weights[start : start + size]]

    sum_law, total, finite, moved = (0, [1 << bits]), arb(1), arb(1), arb(0)
    for release, n in items:
        pair = pair_of(release, back, rules, h, slack, above=above)
        need(len(pair.masses) <= 10 * size, "a lattice too fine for its size")
        tilted = {
            i: p * (a * h * (pair.first + i)).exp()
            for i, p in enumerate(pair.masses)
            if not p.is_zero()
        }
        sum_ = sum(tilted.values(), arb(0))
        need(sum_ > 0, "a release without finite losses")
        total, finite = total * sum_**n, finite * (1 - pair.infinite) ** n
        moved += n * pair.moved
        weights = [0] * len(pair.masses)
        for i, p in tilted.items():
            weights[i] = max(0, under(p / sum_ * 2**bits))
        power = 0, [1 << bits]
        for bit in bin(n)[2:]:
            power = times(power, power)
            power = times(power, (pair.first, weights)) if bit == "1" else power
        sum_law = times(sum_law, power)
    need(not rules, "more rules than releases")

    def delta(end: float) -> tuple[arb, arb]:
        eps = arb(end) + moved
        point = eps / h  # a ball: a point between its ends is left out, and adds ``error``
        start = max(0, -under(-point) - sum_law[0])
        error = 3 * (1 + a) * h * (point.upper() - point.lower())
        need(error < h, "epsilon is not known well enough")
        series, power = arb_poly(sum_law[1][start:] or [0]), (sum_law[0] + start) * h
        p_sum, q_sum = (series((-b * h).exp()) * (-b * power).exp() for b in (arb(a), arb(a) + 1))
        low = total * (p_sum - eps.exp() * q_sum) / 2**bits
        lost = 1 - arb(sum(sum_law[1])) / 2**bits
        lost = (lost + error) * total * (-a * eps).exp() * (arb(a) / (a + 1)) ** a / (arb(a) + 1)
        return low + 1 - finite, low + lost.max(arb(0)) + 1 - finite

    return delta


def pair_of(
    release: Any, back: bool, rules: list[Any], h: arb, slack: float, *, above: bool
) -> LatticePair:
    """Return the pair above or below a release, its largest loss a ``slack`` below a point."""
    if release[0] == ANY_OF:
        need(above, "a set has one pair above it, and none below")
        pairs = [sum_above(part, back, rules, h, slack) for part in release[1]]
        return greatest_pair(pairs, h)
    outcomes_in_cells = cells(release, back, rules)
    top = [arb(0), *(y for *_, y in outcomes_in_cells if y is not None)][-1].mid()
    moved = (-slack if above else slack) - top
    return on_points(outcomes_in_cells, moved, h, above=above)


def on_points(outcomes_in_cells: list[Any], moved: arb, h: arb, *, above: bool) -> LatticePair:
    """Return the pair on the lattice of outcomes whose losses are moved up by ``moved``."""
    # The pair (P, Q e^-s) has the losses L + s, and at eps + s the delta of (P, Q) at eps.
    shifted = [
        (p, q * (-moved).exp(), *(end if end is None else end + moved for end in ends))
        for p, q, *ends in outcomes_in_cells
    ]
    mass_at, infinite = law(shifted, h, above=above)
    lowest, highest = min(mass_at, default=0), max(mass_at, default=0)
    need(highest - lowest < MOST_POINTS, "a lattice too fine")
    zero = arb(0)
    masses = [mass_at.get(k, zero) for k in range(lowest, highest + 1)]
    return LatticePair(lowest, masses, infinite, moved)


def sum_above(part: Any, back: bool, rules: list[Any], h: arb, slack: float) -> LatticePair:
    """Return a pair above all releases of a part of a set, one after the other."""
    # Laws of independent releases multiply (Zhu, Dong & Wang 2022, Theorem 10).
    total = LatticePair(0, [arb(1)], arb(0), arb(0))
    for release, n in part:
        pair = pair_of(release, back, rules, h, slack, above=True)
        total = both_above(total, power_above(pair, n))
    return total


def power_above(pair: LatticePair, n: int) -> LatticePair:
    """Return a pair above ``n`` releases of a pair."""
    power = pair
    for bit in bin(n)[3:]:
        power = both_above(power, power)
        power = both_above(power, pair) if bit == "1" else power
    return power


def both_above(former: LatticePair, latter: LatticePair) -> LatticePair:
    """Return a pair above two pairs, one after the other, without its thin tails."""
    # What is cut off above is counted as infinite; what is cut off below moves up to the lowest
    # point that is kept.  Both move mass of P to larger losses, which only raises delta.
    spend(40 * (len(former.masses) + len(latter.masses)))
    masses = (arb_poly(former.masses) * arb_poly(latter.masses)).coeffs() or [arb(0)]
    lowest, thin = former.first + latter.first, arb(2) ** (32 - ctx.prec)
    infinite = 1 - (1 - former.infinite) * (1 - latter.infinite)
    cut, beyond = len(masses), arb(0)
    while cut > 1 and beyond + masses[cut - 1] < thin:
        cut, beyond = cut - 1, beyond + masses[cut - 1]
    start, before = 0, arb(0)
    while start < cut - 1 and before + masses[start] < thin:
        start, before = start + 1, before + masses[start]
    need(cut - start <= MOST_SIZE, "a lattice too fine")
    kept_masses = [masses[start] + before, *masses[start + 1 : cut]]
    return LatticePair(lowest + start, kept_masses, infinite + beyond, former.moved + latter.moved)


def greatest_pair(pairs: list[LatticePair], h: arb) -> LatticePair:
    """Return a pair above each of some pairs: its delta at the points is their greatest there."""
    # In x = e^eps each delta is convex, is 1 at x = 0, and straight between the points.  So their
    # maximum is convex, and at most its own chords between the points.  The chords are the delta
    # of a pair: Q has the mass beyond a point by which their slope falls there ("connect the
    # dots", Doroshenko et al. 2022).  With G_k at the point k, P has there
    #     (G_{k-1} - G_k) / (1 - e^-h) - (G_k - G_{k+1}) / (e^h - 1).
    tops = [float((pair.first + len(pair.masses)) * h - pair.moved) for pair in pairs]
    moved = pairs[tops.index(max(tops))].moved
    pairs = [pair_moved(pair, moved, h) for pair in pairs]
    lowest = min(pair.first for pair in pairs)
    highest = max(pair.first + len(pair.masses) for pair in pairs) - 1
    need(highest - lowest < MOST_SIZE, "a lattice too fine")
    spend(20 * len(pairs) * (highest - lowest + 1))
    curves = [deltas_at_points(pair, lowest, highest, h) for pair in pairs]
    greatest = [reduce(arb.max, deltas) for deltas in zip(*curves, strict=True)]
    infinite = greatest[-1]
    before = 1 - (-h).exp() * (1 - greatest[0])  # on the chord from delta 1 at x = 0
    values = [before, *greatest, infinite]
    falling, rising = 1 - (-h).exp(), h.exp() - 1
    masses = [
        (values[k - 1] - values[k]) / falling - (values[k] - values[k + 1]) / rising
        for k in range(1, len(values) - 1)
    ]
    return LatticePair(lowest, masses, infinite, moved)


def pair_moved(pair: LatticePair, moved: arb, h: arb) -> LatticePair:
    """Return a pair above one whose losses are moved by another number than its own."""
    shift = moved - pair.moved
    if shift.is_zero() or pair.moved is moved:
        return pair
    points = [(p, (pair.first + i) * h) for i, p in enumerate(pair.masses)]
    atoms = [(p, p * (-x).exp(), x, x) for p, x in points]
    spend(20 * len(atoms))
    lowest, masses, infinite, _ = on_points(atoms, shift, h, above=True)
    return LatticePair(lowest, masses, infinite + pair.infinite, moved)


def deltas_at_points(pair: LatticePair, lowest: int, highest: int, h: arb) -> list[arb]:
    """Return delta of a pair at the points from ``lowest`` to ``highest``, its own among them."""
    # delta_k = (mass beyond k) - e^{kh} sum_{i > k} p_i e^{-ih}, from the last point down
    step, beyond, discounted = (-h).exp(), pair.infinite, arb(0)
    deltas = []
    for k in range(highest, lowest - 1, -1):
        deltas.append(beyond - discounted)
        mass = pair.masses[k - pair.first] if 0 <= k - pair.first < len(pair.masses) else arb(0)
        beyond, discounted = beyond + mass, (discounted + mass) * step
    return deltas[::-1]


def largest(items: list[Any], back: bool, end: Fraction, *, above: bool) -> Any:
    """Return whether the largest losses add up to at most, or at least, an end as it is printed."""
    need(len(items) < 999, "too many different losses")
    fraction, ball = largest_sum(items, back, above=above)
    remainder = exact(end - fraction)
    return ball <= remainder if above else ball >= remainder


def largest_sum(items: Any, back: bool, *, above: bool) -> tuple[Fraction, arb]:
    """Return the sum of the largest losses, as an exact number and a ball to be added."""
    # Of a set the largest loss of all counts: at delta 0 every outcome that can be must be paid.
    fraction, balls = Fraction(0), arb(0)
    for release, n in items:
        if release[0] == ANY_OF:
            sums = [largest_sum(part, back, above=above) for part in release[1]]
            if all(ball.is_zero() for _, ball in sums):
                fraction += n * max(exactly for exactly, _ in sums)
            else:
                balls += n * reduce(arb.max, (exact(exactly) + ball for exactly, ball in sums))
            continue
        exactly, ball = largest_loss(release, back, above=above)
        fraction, balls = fraction + n * exactly, balls + n * ball
    return fraction, balls


def largest_loss(release: Any, back: bool, *, above: bool) -> tuple[Fraction, arb]:
    """Return the largest loss of one release, as an exact number and a ball to be added."""
    kind, parameter, *parameters = release
    if kind == "laplace":  # drawn wider by 2^-46: docs/proofs/discrete.md, 4
        return parameter * (1 - Fraction(above * parameters[1], 2**46)), arb(0)
    if kind == "discrete laplace":
        return parameters[0] / parameter, arb(0)
    if kind == "response" and not parameters[0]:
        return parameter, arb(0)
    unknown = f"the largest loss of a {kind} has no proof here"
    need(kind in {"response", "pair", "sampled", "sampled laplace"}, unknown)
    if kind == "sampled laplace":
        ratios = [1 - exact(parameters[0]) * (1 - (x * exact(parameter)).exp()) for x in (-1, 1)]
        masses = [(1, r) if back else (r, arb(1)) for r in ratios]
    else:
        masses = outcomes(release, back)[0]
    need(all(q > 0 or p == 0 for p, q in masses), unknown)
    return Fraction(0), reduce(arb.max, ((p / q).log() for p, q in masses if p > 0))
