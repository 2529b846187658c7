"""Sensitivity of a strategy matrix: its square is the greatest sum of |G_ij| over the patterns.

A strategy C releases C x plus noise for the steps x.  A record is used in the steps i of a pattern
and moves step i by a vector u_i of norm at most 1, hence C x by the square root of

    sum_ij G_ij <u_i, u_j>,    G = C^T C, i and j in the pattern.

That is at most the sum of |G_ij|, which equal vectors u_i attain where no entry is negative.  A
pattern has at most ``uses`` steps, any two at least ``separation`` apart.  The Gram matrix G is
given by its diagonals: ``gram[d, j]`` is G[j, j + d], the inner product of two columns at distance
d.  Columns at a distance of at least ``len(gram)`` are orthogonal.

Proof: `docs/proofs/correlated_noise.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant.correlated_noise.participation import (
    FixedEpochs,
    MinSeparation,
    Participation,
)
from accountant.correlated_noise.strategy import EXACT_SUM, Sensitivity, certified_root
from accountant.numerics import Array
from accountant.numerics.rounding import ULP

# The most patterns, beginnings of patterns included, that are tried one by one: about a second's
# work.  With more of them a bound is returned.
MAX_PATTERNS = 20_000
# The relative difference up to which two sums count as equal but for round-off: it decides whether
# a bound is called attained.
EQUAL = 1e-12
# The text that follows a reason where a pattern has negative inner products.
BY_SIZE = ", with absolute inner products: a bound"

# The steps of a pattern, in increasing order.
Places = NDArray[np.integer[Any]]


class PatternSum(NamedTuple):
    """A greatest sum of ``|G_ij|`` or a bound of it, whether a record attains it, and why."""

    total: float
    exact: bool
    reason: str


def sensitivity_by_inner_products(
    entries: Array, participation: Participation, gram_of: Callable[[Array, int], Array]
) -> Sensitivity:
    """Return the greatest norm of a sum of columns over the patterns, or a bound of it, rounded up.

    Column j of ``entries`` has the entries of column j of the strategy that are not 0, in any
    order.  ``gram_of(entries, separation)`` returns the inner products of such columns by their
    distance, as ``gram`` above; none at a distance of 1 to ``separation`` - 1 is needed.
    """
    steps = entries.shape[1]
    # The entries are divided by 2^power, so that no square overflows.
    power = math.frexp(float(np.abs(entries).max()))[1]
    scaled = np.ldexp(entries, -power)
    longest = float(np.einsum("ij,ij->j", scaled, scaled).max())
    match participation:
        case FixedEpochs():
            uses, period = participation.epochs, participation.period(steps)
            greatest = greatest_of_epochs(gram_of(scaled, period), uses, period)
        case MinSeparation() if participation.most(steps) > 1:
            uses, separation = participation.most(steps), participation.separation
            greatest = greatest_of_patterns(gram_of(scaled, separation), uses, separation)
        case _:
            uses, greatest = 1, PatternSum(longest, True, "the longest column")
    total = math.ldexp(greatest.total, 2 * power)
    is_integral = bool((entries == np.rint(entries)).all())
    # A sum of whole numbers below 2^53 is exact.
    if is_integral and math.ldexp(uses * uses * longest, 2 * power) < EXACT_SUM:
        value, squared = certified_root(total, integral=True, ulps=0)
        return Sensitivity(value, greatest.exact, greatest.reason, squared)
    # An inner product of n numbers errs by at most n ulps of the longest column's square.  A sum of
    # them takes at most 4 uses additions, and few more where numpy adds by halves: 64 are allowed.
    round_off = (len(scaled) + 4 * uses + 64) * ULP * uses * uses * longest
    squared_upper = math.ldexp(greatest.total + round_off, 2 * power)
    value, _ = certified_root(squared_upper, integral=False, ulps=4)
    return Sensitivity(value, greatest.exact, greatest.reason)


def greatest_of_patterns(gram: Array, uses: int, separation: int) -> PatternSum:
    """Return the greatest sum over the patterns, or an upper bound of it.

    The cases are tried in turn: orthogonal columns, or one use; a bound that the earliest pattern
    attains; two uses; few enough patterns to try all; the lesser of two bounds.
    """
    # The last diagonals are dropped if they are 0, but the first one, of squared lengths, stays.
    gram = gram[: int(np.flatnonzero(gram.any(axis=1)).max(initial=0)) + 1]
    if len(gram) <= separation or uses == 1:
        reason = "columns of a pattern are orthogonal" if uses > 1 else "the longest column"
        return PatternSum(greatest_sum(gram[0], uses, separation), True, reason)
    absolute_gram, earliest = np.abs(gram), separation * np.arange(uses)
    bound = _earliest_pattern_bound(absolute_gram, earliest)
    if _sum_of_pattern(absolute_gram, earliest) >= bound * (1 - EQUAL):
        attained = _meets_positively(gram, earliest)
        reason = "the earliest pattern meets itself most" + ("" if attained else BY_SIZE)
        return PatternSum(bound, attained, reason)
    if uses == 2:
        return _best_pair(gram, separation)
    searched = _every_pattern(absolute_gram, uses, separation)
    if searched is not None:
        attained = _meets_positively(gram, searched[1])
        return PatternSum(
            searched[0], attained, "every pattern tried" + ("" if attained else BY_SIZE)
        )
    row_bound = greatest_sum(_row_bounds(absolute_gram, uses, separation), uses, separation)
    reason = "each step with its own best pattern: a bound"
    return PatternSum(min(row_bound, bound), False, reason)


def greatest_of_epochs(gram: Array, epochs: int, period: int) -> PatternSum:
    """Return the greatest sum over the patterns r, r + period, ... of ``epochs`` steps.

    ``totals[r]`` is the sum of ``|G_ij|`` over the pattern that begins at step r, and ``signed[r]``
    that of ``G_ij``: a record attains the greatest total if its two sums are equal.
    """
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
    """Return the greatest sum of at most ``uses`` non-negative terms at least ``separation`` apart.

    By dynamic programming: of the terms from i on, the greatest sum of at most k of them is
    best_k[i] = max(best_k[i + 1], terms[i] + best_{k-1}[i + separation]).
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
    """Return a bound on the sums of all patterns, from the earliest pattern 0, b, 2 b, ...

    ``gram`` has absolute values, and b is the separation.  The use number c of any pattern (from 0)
    is at step c b or later, and uses a < c are at least (c - a) b apart.  So ``|G|`` of these two
    uses is at most M[(c - a) b, c b], where M[d, j] is the greatest ``|G|`` of two columns at a
    distance of at least d, the later of which is column j or a later one.
    """
    later = _by_end(gram)  # becomes M: the greatest value over later steps and greater distances
    for axis in (0, 1):
        flipped = np.flip(later, axis)
        np.maximum.accumulate(flipped, axis=axis, out=flipped)
    lengths = np.maximum.accumulate(gram[0, ::-1])[::-1]
    total = float(lengths[earliest].sum())
    for use in range(1, earliest.size):
        if earliest[use] < len(gram):
            total += 2 * float(later[earliest[use], earliest[use:]].sum())
    return total


def _by_end(gram: Array) -> Array:
    """Return the diagonals indexed by the later step: [d, j] is G[j - d, j]."""
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
    """Return the greatest sum over the patterns of at most two steps."""
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

    A pattern to which a later use can still be added is not summed itself: the longer patterns that
    begin with it have no smaller sum, since ``gram`` has absolute values.
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
    """Return for each step i the greatest sum of ``|G_ij|`` over the steps j of a pattern with i.

    The other ``uses - 1`` uses are divided in all ways into uses before i and uses after i, and
    the best ones on each side are chosen independently of the other side.
    """
    sides = [
        _greatest_of_side(gram_side, uses - 1, separation) for gram_side in (_by_end(gram), gram)
    ]
    # A list ends with the most uses that fit on a side.  If both sides may have so many, no
    # division of the uses need be tried.
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
    """Return the greatest sums of ``|G_ij|`` over steps j on one side of step i.

    Entry k of the list has, for every i, the greatest sum over at most k steps j, which are at
    least ``separation`` apart from i and from each other.  ``gram[d, i]`` is the value for i and
    the step at distance d.  Over steps at a distance of at least d from i, the greatest sum is
    best_k[d, i] = max(best_k[d + 1, i], gram[d, i] + best_{k-1}[d + separation, i]).
    """
    width, n = gram.shape
    best = np.zeros((width + separation, n))
    sums_by_uses = [best[0].copy()]
    for _ in range(min(uses, (width - 1) // separation)):
        taken = gram + best[separation:]
        best[:width] = np.maximum.accumulate(taken[::-1], axis=0)[::-1]
        sums_by_uses.append(best[separation].copy())  # A view would keep all rows alive.
    return sums_by_uses
