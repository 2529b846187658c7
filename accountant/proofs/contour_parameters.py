"""Chooses the numbers in a proof that bounds delta by one integral of moments.

With M(z) = E_P e^{zL} the product of the moments of all releases, L = ln dP/dQ,

    delta(eps) = (1 / 2 pi i) int M(z) e^{-z eps} / (z (z + 1)) dz    along Re z = a > 0.

The proof names the line: the abscissa a, the step h and the number of nodes a + ijh, an abscissa b
for the bound of the aliases, the variance of a smoothing Gaussian, and quadrature rules for the
moments of mixtures.  This file chooses them by floats; `accountant/verifier/contour.py` computes
the sum with balls and bounds all errors, so that a bad choice can only make a proof fail.

An entry is the part of a proof that bounds delta at one epsilon from above or below, in one
direction of the neighbours.  A part is a release with its count.

- Aliases: what the sum over the nodes has more than the integral; they fall with the period
  T = 2 pi / h.
- The tail: what the sum leaves out beyond the last node, a + iU.
- Chernoff's bound: delta(eps) <= c_a M(a) e^{-a eps}.  The a where it is least is near the saddle
  point, where the integrand is least on the real line.

Mathematics: docs/proofs/contour.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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

MAX_NODES = 2**19 - 1  # nodes of a line; a proof that needs more is not written
ALIAS_RATIOS = np.geomspace(0.35, 20, 80)  # values of b that are tried, over the saddle point
# Lines that are tried: their abscissas over the saddle point.  No other line is tried after an
# entry whose check costs less than `CHEAP`, in products of 128 bits.
LINE_RATIOS, CHEAP = 4.0 ** -np.arange(6), 5e6
SLACK = 0.4  # nats: how much larger the bound of the tail may be with a shorter quadrature rule
# Abscissas that are tried for Chernoff's bound: the least of them, if the saddle point is large,
# and how many.
LEAST_CHERNOFF, CHERNOFF_COUNT = 1e-3, 40
CHERNOFF_MARGIN = 0.1  # nats: Chernoff's bound must be so far below delta, for the checker's errors
# Pairs that are tried in turn: the error of the sum, and what a smoothing may add.  Both are shares
# of the relative change of delta over the width of the certificate's interval.
SHARES = ((1e-3, 1.0), (1e-3, 0.3), (1e-4, 0.1), (1e-6, 0.03))
LAST_SHARE = 1e-12  # the error and the smoothing of the last attempt, as shares of delta itself
# Abscissas that are tried for one line, over the one that is asked for: right of it a moment may be
# very large.  A lesser one is taken if its period is shorter than `PERIOD_GAIN` of the best so far.
ABSCISSA_RATIOS, PERIOD_GAIN = (1.0, 0.9, 0.8, 0.65, 0.5, 0.35), 0.95
# nats by which each of several errors is smaller than the one that all may add up to: of aliases,
# of the rules for all moments on the line, and of the rules for one moment alone.
ALIAS_MARGIN, RULE_MARGIN, MOMENT_MARGIN = 3, 4, 6
GUARD_BITS = 64  # bits of the checker's numbers beyond those that the sum loses
# An integrand needs no smoothing if its tail is small at this height, over the abscissa.
FAR_HEIGHT = 1e4
# The estimated cost of a check, in products of 128 bits: of a node for each release; of a term of a
# rule for each node and each root of nodes (fast exponential sums); of a term for the rule itself.
COST_OF_NODE = 40.0
COST_OF_TERM_AND_NODE, COST_OF_TERM_AND_ROOT, COST_OF_TERM = 1 / 8, 20, 200.0
Parts = Sequence[tuple[FloatPair, int]]
Items = list[tuple[Any, int]]
Entry = dict[str, Any]


def contour_entries(
    items: Items, back: bool, delta: float, end: float, width: float, lower: bool
) -> Iterator[Entry]:
    """Yield entries of one integral, each with less error than the one before it.

    ``items`` are releases with their counts; ``back`` asks for the pair (Q, P).  The entry is to
    show that delta at epsilon ``end`` is at most ``delta``, or with ``lower`` that it is at least
    ``delta``; ``width`` is the width of the certificate's interval of epsilon.
    """
    if lower and sum(n * largest_loss(release, back) for release, n in items) < (1 - 1e-9) * end:
        return  # no loss is above the end, so delta is 0 there
    integrand = _Integrand([(float_pair(release, back), n) for release, n in items], end)
    saddle, log_delta = integrand.saddle(), math.log(delta)
    if (moment := _chernoff_entry(integrand, saddle, log_delta)) is not None:
        # Delta at the end is less than ``delta``: that proves an upper end, and rules out a lower.
        if not lower:
            yield moment
        return
    if any(isinstance(pair, FloatRenyi) for pair, _ in integrand.parts):
        raise NoMethod("of a Renyi curve no more is known than moments")
    # ln delta falls by about the saddle per nat of epsilon, so delta falls by this share of itself
    # over the width.  It is at least 1e-13, as the width may be 0.
    fall_of_delta = min(1.0, max(width * saddle, 1e-13))
    failure, is_yielded = NoMethod(""), False
    attempts = [(error * fall_of_delta, smoothing * fall_of_delta) for error, smoothing in SHARES]
    # The two ends may be those of different pairs.  The width then says nothing about the error
    # that is allowed, so a very small one is tried last.
    for error_share, smoothing in [*attempts, (LAST_SHARE, LAST_SHARE)]:
        # At epsilon 0 the error need not be below delta / 100.
        log_error = log_delta + math.log(error_share if end else max(error_share, 0.01))
        try:
            entry = _cheapest_entry(integrand, saddle, log_error, smoothing, lower)
        except NoMethod as error:
            failure = error
        else:
            is_yielded = True
            yield entry
    if not is_yielded:
        raise failure


def moment_entry(items: Items, back: bool, delta: float) -> tuple[Entry, float]:
    """Return an entry that shows an upper end of epsilon by one moment, and that end.

    By Chernoff's bound delta(eps) <= M(a) e^{-a eps} c_a, c_a as in `_log_chernoff_factor`, so that
    the end is (ln M(a) + ln c_a - ln delta) / a, which is minimised over a.
    """
    parts = [(float_pair(release, back), n) for release, n in items]

    def end(log_a: float) -> float:
        a = math.exp(log_a)
        return (_log_moment(parts, a) + _log_chernoff_factor(a) - math.log(delta)) / a

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
    # The factor, and 1e-300 for an end of 0, leave room for the round-off of these floats.
    return _moment_fields(parts, a), (1 + 1e-9) * max(end(math.log(a)), 0.0) + 1e-300


@dataclass(frozen=True, slots=True)
class _Integrand:
    """The integrand of delta at one epsilon, for releases with their counts in one direction."""

    parts: Parts
    epsilon: float

    def log_size(self, a: float) -> float:
        """Return ``ln (M(a) e^{-a eps})``."""
        return _log_moment(self.parts, a) - a * self.epsilon

    def log_tail(self, a: float, u: float) -> float:
        """Return about ``ln (B / u)``, where B bounds |M(z) e^{-z eps}| at z = a + iv, v >= u.

        The integral beyond the height u is at most this, over pi.
        """
        log_decay = sum(n * pair.log_decay(a, u) for pair, n in self.parts)
        return log_decay - a * self.epsilon - math.log(u)

    def saddle(self) -> float:
        """Return about the a > 0 at which the integrand is least, by a grid in ln a.

        The grid ends where the logarithm rises by more than 5 nats in a step, as moments of larger
        orders are expensive.
        """

        def height(log_a: float) -> float:
            """Return the logarithm of the integrand, ``M(a) e^{-a eps} / (a (a + 1))``."""
            a = math.exp(log_a)
            return self.log_size(a) - log_a - math.log1p(a)

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


def _chernoff_entry(integrand: _Integrand, saddle: float, log_delta: float) -> Entry | None:
    """Return an entry of one node, Chernoff's bound, if this is below ``delta``; else None."""
    # Small abscissas come first, as the rules of large ones are long.
    for a in np.geomspace(min(saddle / 64, LEAST_CHERNOFF), 4 * saddle, CHERNOFF_COUNT).tolist():
        if integrand.log_size(a) + _log_chernoff_factor(a) < log_delta - CHERNOFF_MARGIN:
            with suppress(LongRule):
                return _moment_fields(integrand.parts, a)
            return None
    return None


def _cheapest_entry(
    integrand: _Integrand, saddle: float, log_error: float, smoothing: float, lower: bool
) -> Entry:
    """Return the entry whose check is cheapest; it has an abscissa b if it is for a lower end.

    ``log_error`` is the logarithm of the error of delta that is aimed at; ``smoothing`` is what a
    fictitious Gaussian may add to delta, as a share of it.  If the saddle point is far out, the
    rules of mixtures are long there.  So abscissas left of it are tried as long as the check
    becomes cheaper, and the cheapest entry is returned.
    """
    cost, entry, failure = math.inf, None, NoMethod("")
    for ratio in LINE_RATIOS:
        previous_cost = cost
        try:
            cost, candidate = _costed_entry(integrand, ratio * saddle, log_error, smoothing, lower)
        except NoMethod as error:
            failure = error
            if isinstance(error, LongRule):
                continue
            break
        entry = candidate if cost < previous_cost else entry
        if cost < CHEAP or cost > previous_cost:
            break
    if entry is None:
        raise failure
    return entry


def _costed_entry(
    integrand: _Integrand, abscissa: float, log_error: float, smoothing: float, lower: bool
) -> tuple[float, Entry]:
    """Return an entry on a line near an abscissa, after its cost in products of 128 bits.

    ``log_error`` and ``smoothing`` are as in `_cheapest_entry`.
    """
    a, h, b = _line(integrand, abscissa, log_error)
    releases = sum(n for _, n in integrand.parts)
    mu_squared = 0.0
    decays = any(isinstance(pair, (FloatGaussian, FloatMixture)) for pair, _ in integrand.parts)
    if not decays and integrand.log_tail(a, FAR_HEIGHT * a) >= log_error:
        # The integrand does not fall along the line.  A fictitious Gaussian release with
        # mu^2 = S makes it fall, and raises delta by at most about S a^2 delta.
        mu_squared = _dyadic(smoothing / a**2)
    if mu_squared:
        parts = [*integrand.parts, (FloatGaussian(mu_squared), 1)]
        integrand = replace(integrand, parts=parts)
    nodes = _node_count(integrand, a, h, log_error)
    log_excess = max(integrand.log_size(a) - log_error, 0.0)
    log_rule_error = -log_excess - math.log(releases) - RULE_MARGIN
    rules, cost = [], COST_OF_NODE * nodes * len(integrand.parts)
    for pair, n in integrand.parts:
        if isinstance(pair, FloatMixture):
            last_node, slack = (nodes - 1) * h, SLACK / len(integrand.parts)
            log_decay = pair.log_decay(a, last_node) - pair.log_moment(a)
            decay_height = pair.decay_height(a, last_node, n, slack)
            rules_of_pair = {
                "line": pair.rule(a, log_rule_error),
                "decay": pair.rule(a, log_decay - RULE_MARGIN - math.log(n), decay_height),
            }
            if lower:
                rules_of_pair["alias"] = pair.rule(b, -RULE_MARGIN - math.log(n))
            rules.append(rules_of_pair)
            terms = rules_of_pair["line"]["last"] - rules_of_pair["line"]["first"]
            cost += terms * (
                nodes * COST_OF_TERM_AND_NODE + COST_OF_TERM_AND_ROOT * math.sqrt(nodes)
            )
            cost += sum(
                COST_OF_TERM * (rule["far"] - rule["first"]) for rule in rules_of_pair.values()
            )
    bits = 8 * math.ceil((GUARD_BITS + math.log2(releases) + (log_excess + 10) / math.log(2)) / 8)
    # The time of a product grows about as the power 1.5 of its bits.
    return cost * (bits / 128) ** 1.5, {
        "road": "contour",
        "a": a.hex(),
        "h": h.hex(),
        "b": (b if lower else 0.0).hex(),
        "nodes": nodes,
        "smooth": mu_squared.hex(),
        "bits": bits,
        "rules": rules,
    }


def _line(integrand: _Integrand, start: float, log_error: float) -> tuple[float, float, float]:
    """Return an abscissa, a step whose aliases are small, and the b that shows it.

    With the period T = 2 pi / h the aliases are about e^{-aT}, and at most about
    M(b) e^{-b eps} e^{-(b - a) T} for any b > a.  Both are to be e^{log_error - ALIAS_MARGIN} at
    most, and T short.  Moments may become very large just right of the saddle, so a is at most
    ``start``.
    """
    grid = start * ALIAS_RATIOS
    sizes = np.array([integrand.log_size(b) for b in grid])
    best = (math.inf, start, start)
    for ratio in ABSCISSA_RATIOS:
        a = ratio * start
        beyond = grid > 1.0001 * a
        periods = (sizes[beyond] + ALIAS_MARGIN - log_error) / (grid[beyond] - a)
        k = int(np.argmin(periods))
        period = max((ALIAS_MARGIN - log_error) / a, float(periods[k]))
        if period < PERIOD_GAIN * best[0]:
            best = (period, a, float(grid[beyond][k]))
    period, a, b = best
    return _dyadic(a), _dyadic(2 * math.pi / period), _dyadic(b)


def _node_count(integrand: _Integrand, a: float, h: float, log_error: float) -> int:
    """Return about the least number of nodes beyond which the tail is small enough.

    It is 2 `SLACK` nats below the error, since the bound of the checker may be larger by `SLACK`.
    """
    low, high = 8, 16
    while integrand.log_tail(a, high * h) > log_error - 2 * SLACK:
        low, high = high, 2 * high
        if high > 2 * MAX_NODES:
            raise NoMethod("a contour of so many nodes is too long to check")
    while high > 1.03 * low + 1:
        middle = (low + high) // 2
        is_small = integrand.log_tail(a, middle * h) <= log_error - 2 * SLACK
        low, high = (low, middle) if is_small else (middle, high)
    return high + 2


def _log_moment(parts: Parts, a: float) -> float:
    """Return ``ln M(a)`` of all releases."""
    return sum(n * pair.log_moment(a) for pair, n in parts)


def _dyadic(value: float) -> float:
    """Return a number near ``value`` with the 24 bits of a single-precision float: a short text."""
    return float(np.float32(value)) if 1e-30 < value < 1e30 else value


def _log_chernoff_factor(a: float) -> float:
    """Return the logarithm of c_a, the greatest ``(1 - e^{-y}) e^{-ay}`` over y > 0."""
    return a * math.log(a) - (a + 1) * math.log1p(a)


def _moment_fields(parts: Parts, a: float) -> dict[str, Any]:
    """Return the fields of an entry with one node, which bounds delta by the moment at a."""
    releases = sum(n for _, n in parts)
    mixtures = [mixture for mixture, _ in parts if isinstance(mixture, FloatMixture)]
    rules = [
        {"alias": mixture.rule(a, -MOMENT_MARGIN - math.log(releases))} for mixture in mixtures
    ]
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
