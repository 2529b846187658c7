"""The greatest sum of absolute inner products of columns over patterns of participation.

A record that moves step i by a vector u_i of norm at most 1 moves the rows by the square root of
``sum_ij G_ij <u_i, u_j>``, ``G = C^T C``: at most the sum of ``|G_ij|`` over the pattern, which
equal vectors attain where no entry is negative (docs/proofs/correlated_noise.md).  Here
``gram[d, j]`` is ``G[j, j + d]``, for d below the number of rows of ``gram``; others are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accountant.numerics import Array

MAX_PATTERNS = 20_000
EQUAL = 1e-14  # differences of inner products, of the greatest, that round-off may make


class PatternSum(NamedTuple):
    """A greatest sum of ``|G_ij|``, whether a record attains it, and why."""

    total: float
    exact: bool
    reason: str


def greatest_of_patterns(gram: Array, uses: int, separation: int) -> PatternSum:
    """Return the greatest sum over at most so many steps with the separation, or a bound of it."""
    gram = gram[: _meeting_bands(gram)]
    if len(gram) <= separation or uses == 1:
        reason = "columns of a pattern are orthogonal" if uses > 1 else "the longest column"
        return PatternSum(greatest_sum(gram[0], uses, separation), True, reason)
    apart = gram[separation:]
    positive = bool((apart >= 0).all())
    if positive and _falls_with_time_and_distance(gram, separation):
        total = _sum_of_pattern(gram, separation * np.arange(uses))
        slack = uses * uses * EQUAL * float(gram[0].max())
        return PatternSum(total + slack, True, "the earliest pattern meets itself most")
    if uses == 2:
        return _best_pair(gram, separation)
    found = _every_pattern(np.abs(gram), uses, separation)
    if found is not None:
        total, places = found
        met = positive or _meets_positively(gram, places)
        reason = "every pattern tried" + ("" if met else ", with absolute inner products: a bound")
        return PatternSum(total, met, reason)
    rows = _row_bounds(np.abs(gram), uses, separation)
    reason = "each step with its own best pattern: a bound"
    return PatternSum(greatest_sum(rows, uses, separation), False, reason)


def greatest_of_epochs(gram: Array, epochs: int, period: int) -> PatternSum:
    """Return the greatest sum over the patterns r, r + period, ..., and whether it is attained."""
    totals = gram[0].reshape(epochs, period).sum(axis=0)
    signed = totals.copy()
    for use in range(1, epochs):
        d = use * period
        if d < len(gram):
            met = gram[d, : (epochs - use) * period].reshape(epochs - use, period)
            totals += 2 * np.abs(met).sum(axis=0)
            signed += 2 * met.sum(axis=0)
    worst = int(np.argmax(totals))
    exact = bool(signed[worst] >= totals[worst] * (1 - 1e-12))
    reason = "every place of an epoch tried"
    return PatternSum(
        float(totals[worst]), exact,
        reason if exact else f"{reason}, with absolute inner products: a bound",
    )  # fmt: skip


def greatest_sum(terms: Array, uses: int, separation: int) -> float:
    """Return the greatest sum of at most so many non-negative terms with the separation.

    best[i] = max(best[i + 1], terms[i] + best'[i + separation]), best' that of one use less.
    """
    n = terms.size
    if separation == 1:
        return float(np.sort(terms)[-uses:].sum())
    best = np.zeros(n + separation)
    for _ in range(min(uses, -(-n // separation))):
        taken = terms + best[separation:]
        best[:n] = np.maximum.accumulate(taken[::-1])[::-1]
    return float(best[0])


def _meeting_bands(gram: Array) -> int:
    """Return the number of distances up to the last at which columns meet, at least 1."""
    return int(np.flatnonzero(gram.any(axis=1)).max(initial=0)) + 1


def _falls_with_time_and_distance(gram: Array, separation: int) -> bool:
    """Return whether G[j, j + d] falls as j or d grows, over the distances of a pattern.

    The earliest pattern is then the greatest, term by term: its places and its distances are the
    least.
    """
    used = np.concatenate([gram[:1], gram[separation:]])
    slack = EQUAL * float(gram[0].max())
    later = bool((np.diff(used, axis=1) <= slack).all())
    return later and _falls_at_the_end_of_a_distance(used[1:], slack)


def _falls_at_the_end_of_a_distance(apart: Array, slack: float) -> bool:
    """Return whether a pair that ends in the same step meets less the farther it is apart."""
    # G[j, j + d] against G[j - 1, (j - 1) + (d + 1)], both ending in step j + d
    return bool((apart[1:, :-1] <= apart[:-1, 1:] + slack).all())


def _sum_of_pattern(gram: Array, places: Array) -> float:
    total = float(gram[0, places].sum())
    for use in range(1, len(places)):
        d = places[use:] - places[:-use]
        near = d < len(gram)
        total += 2 * float(np.abs(gram[d[near], places[:-use][near]]).sum())
    return total


def _meets_positively(gram: Array, places: Array) -> bool:
    pairs = ((i, j - i) for at, i in enumerate(places) for j in places[at + 1 :])
    return all(d >= len(gram) or gram[d, i] >= 0 for i, d in pairs)


def _best_pair(gram: Array, separation: int) -> PatternSum:
    """Return the greatest of two columns."""
    n = gram.shape[1]
    best, exact = greatest_sum(gram[0], 2, len(gram)), True  # two that do not meet, or one
    for d in range(separation, min(len(gram), n)):
        met = gram[d, : n - d]
        totals = gram[0, : n - d] + gram[0, d:] + 2 * np.abs(met)
        at = int(np.argmax(totals))
        if totals[at] > best:
            best, exact = float(totals[at]), bool(met[at] >= 0)
    return PatternSum(
        best, exact, "every pair tried" if exact else "every pair tried, by size: a bound"
    )


def _every_pattern(gram: Array, uses: int, separation: int) -> tuple[float, Array] | None:
    """Return the greatest sum and its pattern, or None where there are too many patterns.

    Only those of all uses, or that end too late for a further one: it would make no sum less.
    """
    n, found, tried = gram.shape[1], (-1.0, np.zeros(0, dtype=int)), 0
    left = [(step,) for step in range(n)]
    while left:
        places = left.pop()
        tried += 1
        if tried + len(left) > MAX_PATTERNS:
            return None
        if len(places) < uses and places[-1] + separation < n:
            left += [(*places, step) for step in range(places[-1] + separation, n)]
            continue
        total = _sum_of_pattern(gram, np.array(places))
        if total > found[0]:
            found = total, np.array(places)
    return found


def _row_bounds(gram: Array, uses: int, separation: int) -> Array:
    """Return for each step the greatest sum of ``|G_ij|`` over a pattern that it belongs to."""
    before = np.zeros_like(gram)  # [d, j]: with step j - d
    for d in range(len(gram)):
        before[d, d:] = gram[d, : gram.shape[1] - d]
    sides = [_greatest_of_side(one, uses - 1, separation) for one in (before, gram)]
    most = len(sides[0]) - 1
    best = np.max(
        [sides[0][min(use, most)] + sides[1][min(uses - 1 - use, most)] for use in range(uses)],
        axis=0,
    ) if uses - 1 < 2 * most else sides[0][most] + sides[1][most]  # fmt: skip
    rows: Array = gram[0] + best
    return rows


def _greatest_of_side(gram: Array, uses: int, separation: int) -> list[Array]:
    """Return for 0, 1, ... uses the greatest sums over distances with the separation."""
    width, n = gram.shape
    best = np.zeros((width + separation, n))
    found = [best[0]]
    for _ in range(min(uses, (width - 1) // separation)):
        taken = gram + best[separation:]
        best = np.zeros_like(best)
        best[:width] = np.maximum.accumulate(taken[::-1], axis=0)[::-1]
        found.append(best[separation])
    return found
