"""Supports: where a mechanism's outputs lie, and which cells or points to sum over.

A cell is one output, or a part of the outputs with its measure.  Audits sum over the cells that two
values have in common, in place of all outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array

MAX_CELLS = 1 << 22  # cells that are listed, at most; time and memory grow with them


@dataclass(frozen=True, slots=True)
class Cells:
    """A partition of the outputs: one output for each cell, and the measure of the cell.

    Cells are grouped into parts.  ``parts`` has the index of the part of each cell, where
    quadrature needs several cells for one part; by default each cell is a part of its own.
    ``locate`` maps outputs to the index of their part.
    """

    outputs: NDArray[Any]  # one for each cell, along the first axis
    measure: Array  # a number for each cell; its mass is the measure times the density
    locate: Callable[[NDArray[Any]], NDArray[np.intp]]
    parts: NDArray[np.intp] | None = None


class Support:
    """A set of outputs; a subclass lists all outcomes, or cells, or neither (the real line)."""

    __slots__ = ()

    def outcomes(self, value: Any) -> NDArray[np.intp] | None:
        """Return all outputs that can follow ``value`` where they are 0, 1, 2, ..., else None."""
        del value
        return None

    def cells(self, first: Any, second: Any) -> Cells | None:
        """Return the common cells of two values, or None where outputs fill the real line."""
        del second
        outputs = self.outcomes(first)
        if outputs is None:
            return None
        return Cells(
            outputs, np.ones(outputs.size), lambda output: np.asarray(output, dtype=np.intp)
        )

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs can follow some value; True where only that is refuted.

        The outputs have the type and the shape of the mechanism's.
        """
        return bool(np.isfinite(outputs).all())


@dataclass(frozen=True, slots=True)
class RealLine(Support):
    """The real line; the density for a value may jump at its ``breakpoints``.

    With two ``ends``, all outputs lie between them and each end has positive probability.
    """

    breakpoints: Callable[[float], Array] = field(default=lambda value: np.empty(0))
    ends: tuple[float, float] | None = None

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs are finite, and between the ends."""
        low, high = self.ends or (-np.inf, np.inf)
        return bool(np.isfinite(outputs).all() and ((outputs >= low) & (outputs <= high)).all())


@dataclass(frozen=True, slots=True)
class Labels(Support):
    """The labels 0 to ``count - 1``."""

    count: int

    def outcomes(self, value: Any) -> NDArray[np.intp]:
        """Return all labels, which do not depend on the value."""
        del value
        return np.arange(self.count)

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs are labels."""
        return bool(((outputs >= 0) & (outputs < self.count)).all())


@dataclass(frozen=True, slots=True)
class Candidates(Support):
    """The indices of the scores of a value, and ``extra_outcomes`` further outcomes."""

    extra_outcomes: int = 0

    def outcomes(self, value: Any) -> NDArray[np.intp]:
        """Return one outcome for each score, and the extra ones."""
        return np.arange(np.shape(value)[-1] + self.extra_outcomes)

    def may_hold(self, outputs: NDArray[Any]) -> bool:
        """Return whether all outputs are indices of some value, which may have any length."""
        return bool((outputs >= 0).all())


@dataclass(frozen=True, slots=True)
class Lattice(Support):
    """The integers; those farther than ``reach`` from the value have total mass below 1e-30."""

    reach: float

    def cells(self, first: Any, second: Any) -> Cells | None:
        """Return every integer within reach of one of the two values."""
        lowest, highest = min(first, second) - self.reach, max(first, second) + self.reach
        if not highest - lowest < MAX_CELLS - 2:  # also where the reach is infinite, or NaN
            raise ParameterError(
                "mechanism", self, f"of reach below {MAX_CELLS:,}, to be enumerated"
            )
        low, high = math.floor(lowest), math.ceil(highest)
        outputs = np.arange(low, high + 1)
        return Cells(outputs, np.ones(outputs.size), lambda output: np.asarray(output) - low)


@dataclass(frozen=True, slots=True)
class FiniteRows(Support):
    """Finitely many outputs that are rows of numbers, the same for every value.

    ``make_rows`` computes them; it is called only when they are needed.
    """

    count: int
    make_rows: Callable[[], NDArray[Any]]

    def cells(self, first: Any, second: Any) -> Cells | None:
        """Return one cell for every row."""
        if self.count > MAX_CELLS:
            raise ParameterError(
                "mechanism", self, f"of at most {MAX_CELLS:,} outputs, to be listed"
            )
        rows = self.make_rows()
        keys = _row_hashes(rows)
        order = np.argsort(keys)
        sorted_keys = keys[order]

        def locate(output: NDArray[Any]) -> NDArray[np.intp]:
            hashes = _row_hashes(np.asarray(output, dtype=rows.dtype))
            at = np.minimum(np.searchsorted(sorted_keys, hashes), keys.size - 1)
            if not (sorted_keys[at] == hashes).all():
                raise ParameterError("output", "rows beyond the list", f"outputs of {self!r}")
            return order[at]

        return Cells(rows, np.ones(len(rows)), locate)


def _row_hashes(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of every row; equal rows have equal hashes.

    Each eight bytes of a row are one word.  The words are mixed, multiplied by odd numbers, one for
    each place in the row, and added.  If two rows of a list had one hash, outputs of one would be
    counted as the other; among 4 million rows the chance of that is about 1 in two million.
    """
    raw = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 8)), dtype=np.uint64)
    padded.view(np.uint8)[:, : raw.shape[1]] = raw
    factors = 2 * np.random.default_rng(0).integers(0, 2**63, padded.shape[1], dtype=np.uint64) + 1
    mixed = (padded ^ (padded >> np.uint64(29))) * factors
    keys: NDArray[np.uint64] = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    return keys


def bit_rows(length: int) -> NDArray[np.uint8]:
    """Return all rows of ``length`` bits."""
    numbers = np.arange(1 << length)[:, None] >> np.arange(length)
    return (numbers & 1).astype(np.uint8)
