"""The parameters of a proof that bounds delta by one integral along a line Re z = a.

The checker (`accountant.verifier.contour`) sums M(z) e^{-z eps} / (z (z + 1)) over nodes z = a +
ijh, where M(z) = E e^{zL} is the moment of the summed loss L, and bounds what the sum leaves out:
the aliases, by Chernoff's bound at an abscissa b > a, and the truncation.  This file chooses a, b,
the step h, the number of nodes, a smoothing, and the rules with which moments of mixtures are
computed.  With one node the bound is Chernoff's own, M(a) e^{-a eps} c_a.

The choice is made in floats and written as numbers with few binary digits.  Nothing here is
trusted: the checker computes its bounds anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import optimize

from accountant.proofs.float_pairs import (
    FloatGaussian,
    FloatMixture,
    FloatPair,
    FloatRenyi,
    LongRule,
    float_pair,
    largest_loss,
)
from accountant.proofs.no_method import NoMethod

MAX_NODES = 2**19 - 1  # about the most nodes of a contour; one that needs more is not proposed
ALIAS_RATIOS = np.geomspace(0.35, 20, 80)  # candidates for b, as multiples of the saddle
# Candidates for a, as multiples of the saddle, and the cost of an entry, in products of 128 bits,
# below which no further one is tried.
FACTORS, CHEAP = 4.0 ** -np.arange(6), 5e6
SLACK = 0.4  # nats by which shorter rules may raise the bound on the truncation
LEAST, CHERNOFFS = 1e-3, 40  # the least abscissa of Chernoff's bound that is tried, and how many
# The error of an entry, and what a smoothing may add, relative to delta: as shares of how much
# delta changes over the width of the interval.
SHARES = ((1e-3, 1.0), (1e-3, 0.3), (1e-4, 0.1), (1e-6, 0.03))
LEAST_SHARE = 1e-12  # both of them in the last entry, relative to delta
Parts = Sequence[tuple[FloatPair, int]]
Items = list[tuple[Any, int]]
Entry = dict[str, Any]


def contour_entries(
    items: Items, back: bool, delta: float, end: float, width: float, lower: bool
) -> Iterator[Entry]:
    """Yield entries that may show that ``end`` is a bound, each with less error than the last.

    The ``end`` is an epsilon, the lower or the upper end of an interval of this ``width``, at which
    delta is to be shown.  Where Chernoff's bound is enough there is one entry for an upper end, and
    none for a lower one.
    """
    if lower and sum(n * largest_loss(release, back) for release, n in items) < (1 - 1e-9) * end:
        return  # no loss is above the end, so that delta is 0 there
    pairs = [(float_pair(release, back), n) for release, n in items]
    contour = Contour(pairs, end, delta, 1e-3, 0.0)
    if (moment := contour.chernoff()) is not None:
        # Delta is less than wanted at this epsilon, so that it cannot be a lower end.
        if not lower:
            yield moment
        return
    if any(isinstance(pair, FloatRenyi) for pair, _ in pairs):
        raise NoMethod("of a Renyi curve no more is known than moments")
    slack = min(1.0, max(width * contour.a, 1e-13))
    reason, is_yielded = NoMethod(""), False
    wanted = [(share * slack, smooth * slack) for share, smooth in SHARES]
    # The two ends may come from different pairs.  Then the width of the interval does not say how
    # precise an entry must be, and so the last one is far more precise than the others.
    for share, smooth in [*wanted, (LEAST_SHARE, LEAST_SHARE)]:
        try:
            entry = Contour(pairs, end, delta, share, smooth).entry(lower)
        except NoMethod as error:
            reason = error
        else:
            is_yielded = True
            yield entry
    if not is_yielded:
        raise reason


def moment_entry(items: Items, back: bool, delta: float) -> tuple[Entry, float]:
    """Return an entry with Chernoff's bound at the best order, and the upper end that it shows."""
    parts = [(float_pair(release, back), n) for release, n in items]

    def end(log_a: float) -> float:
        a = math.exp(log_a)
        size = sum(n * pair.log_moment(a) for pair, n in parts)
        return (size + _log_share(a) - math.log(delta)) / a

    grid = np.linspace(-7, 9, 65)
    ends = [end(log_order) for log_order in grid]
    k = int(np.nanargmin(ends))
    bounds = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    minimum = optimize.minimize_scalar(
        end, bounds=bounds, method="bounded", options={"xatol": 1e-7}
    )
    if not math.isfinite(minimum.fun):
        raise NoMethod("no moment is finite")
    a = _dyadic(math.exp(minimum.x))
    return _moment_fields(parts, a), (1 + 1e-9) * max(end(math.log(a)), 0.0) + 1e-300


class Contour:
    """The parameters of one contour at an epsilon; ``a`` is the saddle point of its integrand.

    ``share`` is the error of the sum relative to delta, and ``smooth`` what a fictitious Gaussian
    release may add, relative to delta too.  ``target`` is the logarithm of the allowed error.
    """

    def __init__(
        self, parts: Parts, epsilon: float, delta: float, share: float, smooth: float
    ) -> None:
        self.parts, self.epsilon = list(parts), epsilon
        self.releases = sum(n for _, n in parts)
        self.a = self._saddle()
        self.smooth, self.log_delta = smooth, math.log(delta)
        # At epsilon 0 there is only an upper bound, and the true delta may be far below this one.
        self.target = self.log_delta + math.log(share if epsilon else max(share, 0.01))

    def _log_size(self, a: float) -> float:
        """Return ``ln M(a) - a eps``."""
        return sum(n * pair.log_moment(a) for pair, n in self.parts) - a * self.epsilon

    def _saddle(self) -> float:
        """Return the a > 0 at which ``M(a) e^{-a eps} / (a (a + 1))`` is least."""

        def height(log_a: float) -> float:
            a = math.exp(log_a)
            return self._log_size(a) - log_a - math.log1p(a)

        grid = np.linspace(-7, 9, 33)
        heights: list[float] = []
        for log_order in grid:
            heights.append(height(log_order))
            if len(heights) > 2 and heights[-1] > heights[-2] + 5:
                break
        k = int(np.argmin(heights))
        ends = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        minimum = optimize.minimize_scalar(
            height, bounds=ends, method="bounded", options={"xatol": 1e-3}
        )
        return _dyadic(math.exp(minimum.x))

    def _line(self) -> tuple[float, float, float]:
        """Return an abscissa a, a step h whose aliases are small, and the b that shows it.

        With the period T = 2 pi / h the aliases are about e^{-aT}, and M(b) e^{-b eps - (b - a) T}:
        both are to be 3 nats below the target.  Moments may explode just to the right of the
        saddle; then an a further to the left, with more distance to b, has a shorter period.
        """
        grid = self.a * ALIAS_RATIOS
        sizes = np.array([self._log_size(b) for b in grid])
        best = (math.inf, self.a, self.a)
        for factor in (1.0, 0.9, 0.8, 0.65, 0.5, 0.35):
            a = factor * self.a
            beyond = grid > 1.0001 * a
            periods = (sizes[beyond] + 3 - self.target) / (grid[beyond] - a)
            k = int(np.argmin(periods))
            period = max((3 - self.target) / a, float(periods[k]))
            if period < 0.95 * best[0]:
                best = (period, a, float(grid[beyond][k]))
        period, a, b = best
        return _dyadic(a), _dyadic(2 * math.pi / period), _dyadic(b)

    def _log_tail(self, u: float) -> float:
        """Return the logarithm of pi times about a bound on what the nodes beyond u add."""
        log_size = sum(n * pair.log_decay(self.a, u) for pair, n in self.parts)
        return log_size - self.a * self.epsilon - math.log(u)

    def _nodes(self, h: float) -> int:
        """Return how many nodes it takes until what lies beyond is below the target."""
        low, high = 8, 16
        while self._log_tail(high * h) > self.target - 2 * SLACK:
            low, high = high, 2 * high
            if high > 2 * MAX_NODES:
                raise NoMethod("a contour of so many nodes is too long to check")
        while high > 1.03 * low + 1:
            middle = (low + high) // 2
            small = self._log_tail(middle * h) <= self.target - 2 * SLACK
            low, high = (low, middle) if small else (middle, high)
        return high + 2

    def chernoff(self) -> dict[str, Any] | None:
        """Return an entry of one node, Chernoff's bound, where that is enough; else None."""
        # Small orders come first, because rules of a large one are long.  At an epsilon far beyond
        # the losses any order will do.
        for a in np.geomspace(min(self.a / 64, LEAST), 4 * self.a, CHERNOFFS).tolist():
            if self._log_size(a) + _log_share(a) < self.log_delta - 0.1:
                with suppress(LongRule):
                    return _moment_fields(self.parts, a)
                return None
        return None

    def entry(self, lower: bool) -> dict[str, Any]:
        """Return the fields of an entry of the proof.

        For a ``lower`` bound it has what bounds the aliases.  Where the saddle is far to the right
        the rules of mixtures are long there; so abscissas to the left of it are tried until one is
        cheap to check, or costs more than the one before.
        """
        saddle, parts = self.a, self.parts
        cost, entry, reason = math.inf, None, NoMethod("")
        for factor in FACTORS:
            self.a, self.parts = factor * saddle, parts
            try:
                before, (cost, candidate) = cost, self._entry(lower)
            except NoMethod as error:
                reason = error
                if isinstance(error, LongRule):
                    continue
                break
            entry = candidate if cost < before else entry
            if cost < CHEAP or cost > before:
                break
        if entry is None:
            raise reason
        return entry

    def _entry(self, lower: bool) -> tuple[float, dict[str, Any]]:
        """Return what an entry costs to check, in products of 128 bits, and its fields."""
        self.a, h, b = self._line()
        mixture_rules, smooth = None, 0.0
        decays = any(isinstance(pair, (FloatGaussian, FloatMixture)) for pair, _ in self.parts)
        if not decays and self._log_tail(1e4 * self.a) >= self.target:
            # Nothing else makes the integrand decay.  A fictitious Gaussian release of mu^2 = S
            # adds at most about S a^2 delta.
            smooth = _dyadic(self.smooth / self.a**2)
        if smooth:
            self.parts = [*self.parts, (FloatGaussian(smooth), 1)]
        nodes = self._nodes(h)
        size = max(self._log_size(self.a), self.target)
        log_error = min(self.target - size, 0.0) - math.log(self.releases) - 4
        rules, u, cost = [], (nodes - 1) * h, 40.0 * nodes * len(self.parts)
        for pair, n in self.parts:
            if isinstance(pair, FloatMixture):
                log_decay = pair.log_decay(self.a, u) - pair.log_moment(self.a)
                y = pair.decay_height(self.a, u, n, SLACK / len(self.parts))
                mixture_rules = {
                    "line": pair.rule(self.a, log_error),
                    "decay": pair.rule(self.a, log_decay - 4 - math.log(n), y),
                }
                if lower:
                    mixture_rules["alias"] = pair.rule(b, -4 - math.log(n))
                rules.append(mixture_rules)
                terms = mixture_rules["line"]["last"] - mixture_rules["line"]["first"]
                cost += terms * (nodes / 8 + 20 * math.sqrt(nodes))
                cost += sum(
                    200.0 * (rule["far"] - rule["first"]) for rule in mixture_rules.values()
                )
        bits = 64 + math.log2(self.releases) + (size - self.target + 10) / math.log(2)
        bits = 8 * math.ceil(bits / 8)
        return cost * (bits / 128) ** 1.5, {
            "road": "contour",
            "a": self.a.hex(),
            "h": h.hex(),
            "b": (b if lower else 0.0).hex(),
            "nodes": nodes,
            "smooth": smooth.hex(),
            "bits": bits,
            "rules": rules,
        }


def _dyadic(value: float) -> float:
    """Return a number near this one with 24 binary digits, where its size allows that."""
    return float(np.float32(value)) if 1e-30 < value < 1e30 else value


def _log_share(a: float) -> float:
    """Return the logarithm of the greatest ``(1 - e^{-y}) e^{-ay}``."""
    return a * math.log(a) - (a + 1) * math.log1p(a)


def _moment_fields(parts: Parts, a: float) -> dict[str, Any]:
    """Return the fields of an entry of one node: Chernoff's bound at the order a."""
    releases = sum(n for _, n in parts)
    mixtures = [mixture for mixture, _ in parts if isinstance(mixture, FloatMixture)]
    rules = [{"alias": mixture.rule(a, -6 - math.log(releases))} for mixture in mixtures]
    return {
        "road": "contour",
        "a": _dyadic(a).hex(),
        "h": (1.0).hex(),
        "b": (0.0).hex(),
        "nodes": 1,
        "smooth": (0.0).hex(),
        "bits": 128 + 32 * math.ceil(math.log2(releases) / 32),
        "rules": rules,
    }
