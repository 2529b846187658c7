"""The proof by one integral: abscissa, step, nodes and rules of mixtures, as dyadic numbers."""

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

MAX_NODES = 2**19 - 1
ALIAS_RATIOS = np.geomspace(0.35, 20, 80)
FACTORS, CHEAP = 4.0 ** -np.arange(6), 5e6  # abscissas to try, and what is quick to check
SLACK = 0.4  # nats of the truncated tail that shorter rules may cost
LEAST, CHERNOFFS = 1e-3, 40  # abscissas of Chernoff's bound
# of what the width of the interval is for delta: the error, and what a smoothing may add
SHARES = ((1e-3, 1.0), (1e-3, 0.3), (1e-4, 0.1), (1e-6, 0.03))
LEAST_SHARE = 1e-12
Parts = Sequence[tuple[FloatPair, int]]
Items = list[tuple[Any, int]]
Entry = dict[str, Any]


def contour_entries(
    items: Items, back: bool, delta: float, end: float, width: float, lower: bool
) -> Iterator[Entry]:
    """Yield entries of one integral, each with less error than the one before it."""
    if lower and sum(n * largest_loss(release, back) for release, n in items) < (1 - 1e-9) * end:
        return  # delta is 0 at the end
    pairs = [(float_pair(release, back), n) for release, n in items]
    contour = Contour(pairs, end, delta, 1e-3, 0.0)
    if (moment := contour.chernoff()) is not None:  # of a lower end it shows that there is none
        if not lower:
            yield moment
        return
    if any(isinstance(pair, FloatRenyi) for pair, _ in pairs):
        raise NoMethod("of a Renyi curve no more is known than moments")
    slack = min(1.0, max(width * contour.a, 1e-13))
    reason, is_yielded = NoMethod(""), False
    wanted = [(share * slack, smooth * slack) for share, smooth in SHARES]
    # the ends may be those of different pairs, and the interval says nothing of their width
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
    """Return an entry that shows an upper end by one moment, and that end."""
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
    """The parameters of one direction near an epsilon.

    ``share`` is the error over delta, ``smooth`` what a fictitious Gaussian may add to it.
    """

    def __init__(
        self, parts: Parts, epsilon: float, delta: float, share: float, smooth: float
    ) -> None:
        self.parts, self.epsilon = list(parts), epsilon
        self.releases = sum(n for _, n in parts)
        self.a = self._saddle()
        self.smooth, self.log_delta = smooth, math.log(delta)
        # at 0 there is an upper bound alone, of a delta that may be far less
        self.target = self.log_delta + math.log(share if epsilon else max(share, 0.01))

    def _log_size(self, a: float) -> float:
        return sum(n * pair.log_moment(a) for pair, n in self.parts) - a * self.epsilon

    def _saddle(self) -> float:
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
        """Return an abscissa, a step whose aliases are small, and the b that shows it.

        Far to the right moments explode, at times just beyond the saddle: a stays left of it.
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
        log_size = sum(n * pair.log_decay(self.a, u) for pair, n in self.parts)
        return log_size - self.a * self.epsilon - math.log(u)

    def _nodes(self, h: float) -> int:
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
        """Return an entry of one node, the bound by a moment alone, where that is enough."""
        # a small one first: rules of a large one are long, and far beyond the losses any will do
        for a in np.geomspace(min(self.a / 64, LEAST), 4 * self.a, CHERNOFFS).tolist():
            if self._log_size(a) + _log_share(a) < self.log_delta - 0.1:
                with suppress(LongRule):
                    return _moment_fields(self.parts, a)
                return None
        return None

    def entry(self, lower: bool) -> dict[str, Any]:
        """Return the fields of an entry of the proof; ``lower``: with the bound of the aliases.

        Where the saddle is far, rules there are long: of abscissas left of it, the cheapest counts.
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
            # a fictitious Gaussian of variance S: D_S - delta is at most about S a^2 delta
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
    """Return a number near to it with few digits."""
    return float(np.float32(value)) if 1e-30 < value < 1e30 else value


def _log_share(a: float) -> float:
    """Return the logarithm of the greatest ``(1 - e^{-y}) e^{-ay}``."""
    return a * math.log(a) - (a + 1) * math.log1p(a)


def _moment_fields(parts: Parts, a: float) -> dict[str, Any]:
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
