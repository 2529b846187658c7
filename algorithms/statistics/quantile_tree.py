"""Many quantiles by a binary tree: each level draws the middle quantile of every part.

The quantiles that are known cut the numbers into parts.  The parts are disjoint, so a level is one
release and is charged once, however many parts it has; m quantiles take about log2(m) levels.

References: Kaplan, Schnapp & Stemmer (2022); proof in docs/proofs/quantiles.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from accountant.numerics import Array
from algorithms.statistics.quantile_scores import Part, QuantileScores, ValueGrid, share_units


class Node(NamedTuple):
    """A quantile of a level: its index ``at``, and the indices of its part's two ends.

    The indices are those of the ascending quantiles; -1 and their count are the public bounds.
    """

    at: int
    below: int
    above: int


def levels_of(count: int) -> int:
    """Return how many levels draw ``count`` quantiles: each level doubles the number of parts."""
    return count.bit_length()


def tree_levels(count: int) -> Iterator[list[Node]]:
    """Yield the quantiles of each level: the middle one of every part that still has one."""
    parts = [(-1, count)]
    for _ in range(levels_of(count)):
        nodes = [Node((a + b) // 2, a, b) for a, b in parts if b - a > 1]
        yield nodes
        parts = [pair for n in nodes for pair in ((n.below, n.at), (n.at, n.above))]


def part_share(levels: Sequence[float], node: Node) -> float:
    """Return which share of its part's records should lie below a quantile."""
    low = levels[node.below] if node.below >= 0 else 0.0
    high = levels[node.above] if node.above < len(levels) else 1.0
    return (levels[node.at] - low) / (high - low) if high > low else 0.5


def released_places(
    ledger: Any,
    mechanisms: Sequence[Any],
    levels: Sequence[float],
    grid: ValueGrid,
    column: Callable[[Any], Array],
    replaced: bool,
) -> list[int]:
    """Return the places of ascending quantiles, ascending, by one release a level.

    ``replaced`` says that neighbours replace a record; the mechanisms are then of sensitivity 1,
    else of 1/2.
    """
    ends = {-1: 0, len(levels): grid.places}
    for mechanism, nodes in zip(mechanisms, tree_levels(len(levels)), strict=True):
        parts = [Part(ends[n.below], ends[n.above], part_share(levels, n)) for n in nodes]
        public_root = replaced and len(parts) == 1
        query = QuantileScores(grid, parts, mechanism.scale, column, public_root)
        drawn = ledger.release(mechanism, query, shape=len(parts))
        for node, part, index in zip(nodes, parts, drawn, strict=True):
            ends[node.at] = part.start + int(index)
    return [ends[i] for i in range(len(levels))]


class RankNoise(NamedTuple):
    """Noise of the ranks of ascending quantiles, in records.

    ``own`` has the scale of each quantile's two-sided exponential noise.  The noise of rank i is
    sum_j mixed[i, j] N_j with N_j the own noise of quantile j, and mixed[i, i] = 1.
    """

    own: Array
    mixed: Array

    @property
    def rest(self) -> Array:
        """The variance of each rank that comes from the ends of the quantile's part."""
        return self.mixed**2 @ (2 * self.own**2) - 2 * self.own**2


def rank_noise(levels: Sequence[float], scale: float, replaced: bool) -> RankNoise:
    """Return the noise of the ranks of ascending quantiles.

    The noise of a rank is its own two-sided exponential noise plus the noise of the two ends of its
    part: where it is a share s of the way between them, (1 - s) times that of the lower end and s
    times that of the upper end.
    """
    count = len(levels)
    own_noise, mixed = np.zeros(count), np.zeros((count + 2, count))
    for depth, nodes in enumerate(tree_levels(count)):
        for node in nodes:
            share = part_share(levels, node)
            own_noise[node.at] = scale / share_units(share, scale, replaced and depth == 0).weight
            # The rows -1 and `count` are the public ends, which have no noise.
            mixed[node.at] = (1 - share) * mixed[node.below] + share * mixed[node.above]
            mixed[node.at, node.at] = 1.0
    return RankNoise(own_noise, mixed[:count])
