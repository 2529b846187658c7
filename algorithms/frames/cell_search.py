"""The releases that find the quantiles of every cell, and the ends of their intervals.

References: Kaplan, Schnapp & Stemmer (2022); docs/proofs/quantiles.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.frames.cell_places import CellPlaces
from algorithms.frames.cells import shape_of_sums
from algorithms.frames.questions import unseen
from algorithms.statistics.quantile_ends import EndPart, Ends, end_parts, ends_found
from algorithms.statistics.quantile_scores import Part
from algorithms.statistics.quantile_tree import levels_of, part_share, tree_levels

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CellSearch:
    """What quantiles of all cells are sought with: all cells take part in every release.

    Parameters
    ----------
    ledger : Ledger
        Holds the frame.
    read : CellPlaces
        What is asked of the frame.
    shares : sequence of float
        The quantiles, ascending.
    cells : int
        How many cells there are.
    places : int
        How many places a number can have.
    """

    ledger: Any
    read: CellPlaces
    shares: Sequence[float]
    cells: int
    places: int

    def quantiles(self, steps: Sequence[Any]) -> Places:
        """Return the place of every quantile of every cell, by a release a level."""
        count = len(self.shares)
        ends = [{-1: 0, count: self.places} for _ in range(self.cells)]
        for mechanism, nodes in zip(steps, tree_levels(count), strict=True):
            parts = [
                [Part(at[n.below], at[n.above], part_share(self.shares, n)) for n in nodes]
                for at in ends
            ]
            scores = partial(self.read.scores, parts=parts, scale=mechanism.scale)
            drawn = self._drawn(mechanism, scores, parts)
            for at, cell_parts, indices in zip(ends, parts, drawn.tolist(), strict=True):
                for node, part, index in zip(nodes, cell_parts, indices, strict=True):
                    at[node.at] = part.start + index
        return np.array([[at[i] for i in range(count)] for at in ends])

    def with_ends(
        self, steps: Sequence[Any], end_scales: Ends, level: float, rows: float | None
    ) -> Places:
        """Return the place of every quantile, with its lower and upper end behind it.

        ``rows`` is the number of rows where it is public; else the first step counts them.
        """
        steps, numbers = list(steps), np.full(self.cells, rows or 0.0)
        if rows is None:
            shape = shape_of_sums(self.cells)
            counted = self.ledger.release(steps.pop(0), unseen(self.read.counted), shape=shape)
            numbers = np.atleast_1d(np.asarray(counted, dtype=float))
        count = levels_of(len(self.shares))
        centres, scale = self.quantiles(steps[:count]), steps[0].scale
        sizes, shares = np.maximum(numbers, 1.0).tolist(), self.shares
        parts = [
            end_parts(cell_parts, shares, end_scales, scale, level, size, self.places)
            for cell_parts, size in zip(centres.tolist(), sizes, strict=True)
        ]
        drawn = self._drawn_ends(steps[count:], parts)
        ends = [
            ends_found(indices, cell_parts, shares, end_scales, scale, size, self.places)
            for indices, cell_parts, size in zip(drawn, parts, sizes, strict=True)
        ]
        return np.concatenate([centres[..., None], np.array(ends)], axis=2)

    def _drawn_ends(
        self, steps: Sequence[Any], parts: Sequence[tuple[list[EndPart], list[EndPart]]]
    ) -> list[list[list[int]]]:
        """Return the drawn indices of the lower and of the upper ends of every cell."""
        # The two parts of a single quantile are disjoint.  Of several quantiles, the upper part of
        # one and the lower part of the next may overlap.
        groups: list[list[list[EndPart]]] = (
            [[[*low, *high] for low, high in parts]]
            if len(steps) == 1
            else [[cell_parts[side] for cell_parts in parts] for side in (0, 1)]
        )
        drawn = [
            self._drawn(
                mechanism, partial(self.read.end_scores, parts=group, scale=mechanism.scale), group
            )
            for mechanism, group in zip(steps, groups, strict=True)
        ]
        by_side = np.concatenate(drawn, axis=1).reshape(self.cells, 2, len(self.shares))
        indices: list[list[list[int]]] = by_side.tolist()
        return indices

    def _drawn(self, mechanism: Any, scores: Any, parts: Sequence[Sequence[Any]]) -> Places:
        """Return the released index of every part, a row a cell."""
        lists = sum(map(len, parts))
        drawn: Places = np.asarray(self.ledger.release(mechanism, unseen(scores), shape=lists))
        return drawn.reshape(self.cells, -1)
