"""Sensitivities of banded strategies: the greatest sum of |G_ij| over patterns of participation.

A strategy C releases C x plus noise for the steps x.  A record is used in the steps i of a pattern
and moves step i by a vector u_i of norm at most 1, hence C x by the square root of

    sum_ij G_ij <u_i, u_j>,    G = C^T C, i and j in the pattern.

That is at most the sum of |G_ij|, which equal vectors attain where no entry is negative.  A
pattern has at most ``uses`` steps, any two at least ``separation`` apart.  ``gram[d, j]`` is
G[j, j + d] for d below its number of rows; columns farther apart are orthogonal.

Proof: `docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array

MAX_PATTERNS = 20_000  # that are tried one by one, a second's work; else there is a bound
EQUAL = 1e-12  # relative: two sums that differ by less are equal but for round-off
BY_SIZE = ", with absolute inner products: a bound"

Places = NDArray[np.integer[Any]]


class PatternSum(NamedTuple):
    """A greatest sum of ``|G_ij|``, whether a record attains it, and why."""

    total: float
    exact: bool
    reason: str


def greatest_of_patterns(gram: Array, uses: int, separation: int) -> PatternSum:
    """Return the greatest sum over at most so many steps with the separation, or a bound of it."""
    # Distances at which no columns meet any more are dropped, but the first row stays.
    gram = gram[: int(np.flatnonzero(gram.any(axis=1)).max(initial=0)) + 1]
    if len(gram) <= separation or uses == 1:
        reason = "columns of a pattern are orthogonal" if uses > 1 else "the longest column"
        return PatternSum(greatest_sum(gram[0], uses, separation), True, reason)
    sizes, earliest = np.abs(gram), separation * np.arange(uses)
    bound = _earliest_pattern_bound(sizes, earliest)
    if _sum_of_pattern(sizes, earliest) >= bound * (1 - EQUAL):
        attained = _meets_positively(gram, earliest)
        reason = "the earliest pattern meets itself most" + ("" if attained else BY_SIZE)
        return PatternSum(bound, attained, reason)
    if uses == 2:
        return _best_pair(gram, separation)
    searched = _every_pattern(sizes, uses, separation)
    if searched is not None:
        attained = _meets_positively(gram, searched[1])
        return PatternSum(
            searched[0], attained, "every pattern tried" + ("" if attained else BY_SIZE)
        )
    rows = greatest_sum(_row_bounds(sizes, uses, separation), uses, separation)
    reason = "each step with its own best pattern: a bound"
    return PatternSum(min(rows, bound), False, reason)


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
    exact = bool(signed[worst] >= totals[worst] * (1 - EQUAL))
    reason = "every place of an epoch tried" + ("" if exact else BY_SIZE)
    return PatternSum(float(totals[worst]), exact, reason)


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


def _earliest_pattern_bound(gram: Array, earliest: Places) -> float:
    """Return a bound on all patterns, from the places of the earliest one, 0, b, 2 b, ...

    In any pattern the k-th use is no earlier than in the earliest one, and no two uses are nearer:
    each inner product is at most the greatest one that is as late and as far apart.
    """
    later = _by_end(gram)
    for axis in (0, 1):
        backwards = np.flip(later, axis)
        np.maximum.accumulate(backwards, axis=axis, out=backwards)
    lengths = np.maximum.accumulate(gram[0, ::-1])[::-1]
    total = float(lengths[earliest].sum())
    for use in range(1, earliest.size):
        if earliest[use] < len(gram):
            total += 2 * float(later[earliest[use], earliest[use:]].sum())
    return total


def _by_end(gram: Array) -> Array:
    """Return the entries by the later of their two steps: [d, j] is that of j - d and j."""
    ended = np.zeros_like(gram)
    for d in range(len(gram)):
        ended[d, d:] = gram[d, : gram.shape[1] - d]
    return ended


def _sum_of_pattern(gram: Array, places: Places) -> float:
    """Return the sum of ``|G_ij|`` over a pattern."""
    total = float(gram[0, places].sum())
    for use in range(1, len(places)):
        d = places[use:] - places[:-use]
        overlapping = d < len(gram)
        total += 2 * float(np.abs(gram[d[overlapping], places[:-use][overlapping]]).sum())
    return total


def _meets_positively(gram: Array, places: Places) -> bool:
    """Return whether no inner product of two columns of a pattern is negative."""
    pairs = ((i, j - i) for at, i in enumerate(places) for j in places[at + 1 :])
    return all(d >= len(gram) or gram[d, i] >= 0 for i, d in pairs)


def _best_pair(gram: Array, separation: int) -> PatternSum:
    """Return the greatest sum over two columns, or one."""
    n = gram.shape[1]
    best, exact = greatest_sum(gram[0], 2, len(gram)), True  # two columns that do not meet
    for d in range(separation, min(len(gram), n)):
        met = gram[d, : n - d]
        totals = gram[0, : n - d] + gram[0, d:] + 2 * np.abs(met)
        at = int(np.argmax(totals))
        if totals[at] > best:
            best, exact = float(totals[at]), bool(met[at] >= 0)
    return PatternSum(best, exact, "every pair tried" + ("" if exact else BY_SIZE))


def _every_pattern(gram: Array, uses: int, separation: int) -> tuple[float, Places] | None:
    """Return the greatest sum and its pattern, or None where there are too many patterns.

    Patterns to which a further use could be added are left out, as that would make no sum less.
    """
    n, best, tried = gram.shape[1], (-1.0, np.zeros(0, dtype=int)), 0
    pending: list[tuple[int, ...]] = [(step,) for step in range(n)]
    while pending:
        places = pending.pop()
        tried += 1
        if tried + len(pending) > MAX_PATTERNS:
            return None
        if len(places) < uses and places[-1] + separation < n:
            pending += [(*places, step) for step in range(places[-1] + separation, n)]
            continue
        total = _sum_of_pattern(gram, np.array(places))
        if total > best[0]:
            best = total, np.array(places)
    return best


def _row_bounds(gram: Array, uses: int, separation: int) -> Array:
    """Return for each step i the greatest sum of ``|G_ij|`` over j in a pattern that has i.

    The uses before and after i are chosen apart, in all divisions of the other uses.
    """
    sides = [
        _greatest_of_side(gram_side, uses - 1, separation) for gram_side in (_by_end(gram), gram)
    ]
    end = len(sides[0]) - 1
    best = (
        np.max(
            [sides[0][min(use, end)] + sides[1][min(uses - 1 - use, end)] for use in range(uses)],
            axis=0,
        )
        if uses - 1 < 2 * end
        else sides[0][end] + sides[1][end]
    )
    rows: Array = gram[0] + best
    return rows


def _greatest_of_side(gram: Array, uses: int, separation: int) -> list[Array]:
    """Return for 0, 1, ... uses on one side of a step the greatest sums, by the step."""
    width, n = gram.shape
    best = np.zeros((width + separation, n))
    sums_by_uses = [best[0].copy()]
    for _ in range(min(uses, (width - 1) // separation)):
        taken = gram + best[separation:]
        best[:width] = np.maximum.accumulate(taken[::-1], axis=0)[::-1]
        sums_by_uses.append(best[separation].copy())  # A view would keep all rows alive.
    return sums_by_uses
