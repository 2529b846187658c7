"""Chances of the number of a user's records in a batch, rounded towards more records.

Numbers with hardly a chance are left out, and their chance is returned with the others': a step
that has such a number counts as one that reveals all.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.numerics.rounding import ULP

NEGLIGIBLE = 1e-34  # relative to the likeliest number, far below any delta over the steps
MOST_NUMBERS = 500

# numbers with their chances, and the chance of all others
Hits = tuple[tuple[tuple[int, float], ...], float]


def binomial_hits(size: int, rate: float) -> Hits | None:
    """Return the chances where each of ``size`` records is drawn by its own coin."""
    if rate >= 1:
        return ((size, 1.0),), 0.0
    odds = rate / (1 - rate)
    return _hits(0, size, lambda j: (size - j) / (j + 1) * odds)


def hypergeometric_hits(size: int, batch: int, examples: int) -> Hits | None:
    """Return the chances where ``batch`` of the ``examples`` are drawn; None: too many numbers."""
    others = examples - size
    return _hits(
        max(0, batch - others),
        min(size, batch),
        lambda j: (size - j) * (batch - j) / ((j + 1) * (others - batch + j + 1)),
    )


def _hits(smallest: int, largest: int, ratio: Callable[[int], float]) -> Hits | None:
    """Return chances of ``smallest`` to ``largest`` hits; ``ratio(j)``, of j + 1 over j, falls."""
    low, high = smallest, largest
    while low < high:  # the likeliest number is the first whose successor is not likelier
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ratio(middle) > 1 else (low, middle)
    likeliest, chance = low, {low: 1.0}
    for direction in (1, -1):
        j = likeliest
        while smallest <= j + direction <= largest and chance[j] > NEGLIGIBLE:
            step = ratio(j) if direction > 0 else 1 / ratio(j - 1)
            j += direction
            chance[j] = chance[j - direction] * step
            if len(chance) > MOST_NUMBERS:
                return None
    numbers, rare = sorted(chance), 0.0
    total = math.fsum(chance.values())
    if numbers[-1] < largest:  # the remaining chance is below the last chance over 1 - ratio
        last_number = numbers[-1]
        rare = 2 * chance[last_number] / max(1 - ratio(last_number), 1e-6) / total
    # each is exact to a few ulps a step; what the others are raised by is taken from the first
    raised = [chance[j] / total * (1 + 8 * len(numbers) * ULP) for j in numbers[1:]]
    first_chance = max(1 - math.fsum(raised), 0.0)
    normaliser = math.fsum([first_chance, *raised])
    chances = [first_chance / normaliser, *(raised_chance / normaliser for raised_chance in raised)]
    return tuple(zip(numbers, chances, strict=True)), rare
