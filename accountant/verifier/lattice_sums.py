"""Delta of many releases by the law of the sum of their losses, on one lattice of step h.

Each release is replaced by a pair on the lattice, above or below it: its delta is at least, or at
most, that of the release at every epsilon.  The law of the sum is computed in whole numbers, which
are rounded down, and cut to a window; what was lost is bounded.

The law is tilted by a: the mass p of a loss L is multiplied by e^{aL}, and all are divided by their
sum.  This moves the bulk of the law to the losses that decide delta, so that little is lost there.
An entry of the proof file chooses the lattice, the window and the tilt a; bad choices only make the
bounds loose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb, arb_poly, ctx, fmpz_poly

from .balls import floor_below, spend
from .document import Fields, is_list, need
from .lattice_pairs import LatticePair
from .pairs_of_sets import MOST_SIZE, pair_of
from .releases import Release

# A law on the lattice times 2^bits: the number of its first point, and whole numbers at that point
# and at those after it.
Weights = tuple[int, list[int]]


def composed(
    items: list[tuple[Release, int]], back: bool, entry: Fields, *, above: bool
) -> Callable[[float], tuple[arb, arb]]:
    """Return a function that bounds delta at an epsilon, by pairs on a lattice above or below.

    Theorem (`domination`, `composition`: Zhu, Dong & Wang 2022, Theorem 10): pairs above, or
    below, each release are so together, and their laws multiply.

    The losses of each release are moved so that the largest one lies a ``slack`` away from a point
    of the lattice: below the point for pairs above, and above it for pairs below.
    """
    a, h = entry.real("a", 1e-6, 1e9), arb(entry.real("h", 1e-12, 1e3))
    slack, size = entry.real("slack", 0, 1), entry.whole("size", 2, MOST_SIZE)
    rules = entry.take("rules", fits=is_list)
    sum_of_losses = TiltedSum(a, h, size)
    for release, count in items:
        pair = pair_of(release, back, rules, h, slack, above=above)
        need(len(pair.masses) <= 10 * size, "a lattice too fine for its size")
        sum_of_losses.add(pair, count)
    need(not rules, "more rules than releases")
    return sum_of_losses.delta_bounds


class TiltedSum:
    """The law of a sum of losses in proportion to p e^{aL}, as whole numbers over 2^bits.

    ``moment`` is M(a) = E e^{aL} of the sum and ``finite`` the mass of its finite losses.  A loss L
    lies at the point L + ``moved``, and epsilon at epsilon + ``moved`` (theorem `lowered_losses`).
    """

    def __init__(self, a: float, h: arb, size: int) -> None:
        self.a, self.h, self.size, self.bits = a, h, size, ctx.prec
        self.moment, self.finite, self.moved = arb(1), arb(1), arb(0)
        self.weights: Weights = (0, [1 << self.bits])

    def add(self, pair: LatticePair, count: int) -> None:
        """Add the losses of a pair that is released ``count`` times."""
        tilted = {
            i: p * (self.a * self.h * (pair.first + i)).exp()
            for i, p in enumerate(pair.masses)
            if not p.is_zero()
        }
        moment = sum(tilted.values(), arb(0))
        need(moment > 0, "a release without finite losses")
        self.moment *= moment**count
        self.finite *= (1 - pair.infinite) ** count
        self.moved += count * pair.moved
        rounded_down = [0] * len(pair.masses)
        for i, p in tilted.items():
            rounded_down[i] = max(0, floor_below(p / moment * 2**self.bits))
        # The law of ``count`` losses, by repeated squares.
        power: Weights = (0, [1 << self.bits])
        for bit in bin(count)[2:]:
            power = self.product(power, power)
            power = self.product(power, (pair.first, rounded_down)) if bit == "1" else power
        self.weights = self.product(self.weights, power)

    def product(self, former: Weights, latter: Weights) -> Weights:
        """Return the law of the sum of two losses, in a window of ``size`` points at its mean."""
        spend(3 * (len(former[1]) + len(latter[1])))
        weights: Any = (fmpz_poly(former[1]) * fmpz_poly(latter[1])).coeffs()
        mean = sum(i * weight for i, weight in enumerate(weights)) // max(sum(weights), 1)
        start = max(0, min(int(mean) - self.size // 2, len(weights) - self.size))
        window = weights[start : start + self.size]
        return former[0] + latter[0] + start, [weight >> self.bits for weight in window]

    def delta_bounds(self, end: float) -> tuple[arb, arb]:
        """Return bounds of delta of the pairs on the lattice.

        Theorem (`left_out_of_the_tilted`): a share lost of the law in proportion to p e^{aL} adds
        to delta at most that share of M(a) e^{-a eps} c_a, c_a = a^a / (1 + a)^(1 + a) the greatest
        e^{-aL} (1 - e^{eps - L}) at eps = 0.
        """
        a, h, eps = self.a, self.h, arb(end) + self.moved
        first, weights = self.weights
        # Losses above eps count, from the index ``start`` on.  The quotient is a ball, and a point
        # between its ends is left out, which adds at most ``error``.
        point = eps / h
        start = max(0, -floor_below(-point) - first)
        error = 3 * (1 + a) * h * (point.upper() - point.lower())
        need(error < h, "epsilon is not known well enough")
        # The weight w_k is P's mass of the loss kh times e^{akh} / M(a).  So M(a) sum w_k e^{-akh}
        # is P of the losses beyond eps, and M(a) sum w_k e^{-(a + 1)kh} is Q of them.
        series, lowest = arb_poly(weights[start:] or [0]), (first + start) * h
        p_sum, q_sum = (
            series((-order * h).exp()) * (-order * lowest).exp() for order in (arb(a), arb(a) + 1)
        )
        low = self.moment * (p_sum - eps.exp() * q_sum) / 2**self.bits
        lost = 1 - arb(sum(weights)) / 2**self.bits + error
        lost = lost * self.moment * (-a * eps).exp() * (arb(a) / (a + 1)) ** a / (arb(a) + 1)
        return low + 1 - self.finite, low + lost.max(arb(0)) + 1 - self.finite
