"""A costly path through a plan whose releases stand for several pairs, for its lower end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from accountant.verifier.choices import ANY_OF, on_path

MOST_TRIES = 200  # of one level of a plan; each takes some milliseconds
Score = Callable[[Counter[Any]], float]  # about the epsilon of releases


def costly_path(releases: Counter[Any], score: Score) -> list[Any]:
    """Return the choices, as `accountant.verifier.choices.on_path` reads them, of a costly path.

    All occurrences of a set take one part at first.  Then half of them, a quarter, ... and one
    move to another part where that costs more.
    """
    sets = [(release[1], count) for release, count in releases.items() if release[0] == ANY_OF]
    insides = [[costly_path(Counter(dict(part)), score) for part in parts] for parts, _ in sets]

    def choices(shares: list[list[int]]) -> list[Any]:
        return [
            [[n, k, inside[k]] for k, n in enumerate(share) if n]
            for share, inside in zip(shares, insides, strict=True)
        ]

    def cost(shares: list[list[int]]) -> float:
        return score(on_path(releases, _copied(choices(shares))))

    shares = [[count] + [0] * (len(parts) - 1) for parts, count in sets]
    tries, best = 0, cost(shares) if sets else 0.0
    for i, (parts, count) in enumerate(sets):
        size = count
        while size and tries < MOST_TRIES:
            better = []
            for source, target in _moves(shares[i], size, len(parts)):
                moved = [list(share) for share in shares]
                moved[i][source] -= size
                moved[i][target] += size
                tries += 1
                better.append((cost(moved), moved))
            highest, moved = max(better, key=lambda one: one[0], default=(best, shares))
            if highest > best:
                best, shares = highest, moved
            else:
                size //= 2
    return choices(shares)


def _moves(share: list[int], size: int, parts: int) -> list[tuple[int, int]]:
    """Return from which part to which other one so many occurrences can move."""
    sources = [k for k, n in enumerate(share) if n >= size]
    return [(source, target) for source in sources for target in range(parts) if source != target]


def _copied(choices: list[Any]) -> list[Any]:
    """Return the choices anew: the checker takes them out of the lists."""
    return [[[n, k, _copied(inside)] for n, k, inside in rows] for rows in choices]
