"""Sums of logarithms over similar sampled Gaussians with hits: few rows for many members.

h and w are those of `hit_line`.  Proof: `docs/proofs/schedules.md`, step 21.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from accountant.amplification.sampled_gaussian.density_rows import (
    BLOCK_SIZE,
    DensityRows,
    FewRows,
    real_by_complex,
)
from accountant.amplification.sampled_gaussian.hit_line import HitLine
from accountant.numerics import Array, Complex
from accountant.numerics.logspace import log1p
from accountant.numerics.rounding import ULP

NOTHING = 1e-26  # of the greatest: columns with less are left out
MAX_SHARE = 0.5  # of 1, that w and h may be


class HitSums(NamedTuple):
    """Sums over members of ``ln(1 + w)`` and of ``ln(1 + h / (1 + w))``, and their errors."""

    others: Complex
    hits: Complex
    others_error: Array
    hits_error: Array


class _Rows(NamedTuple):
    rows: FewRows
    some: Any  # the nodes
    scale: Array
    left_out: float  # of the other nodes, summed over all members


class SimilarHits(HitLine):
    """Sampled Gaussians with the record present, mu in one octave; no power above ``highest``."""

    def __init__(
        self,
        mu: Array,
        log_odds: Array,
        counts: Array,
        *,
        odds: float,
        highest: float,
        tolerance: float,
    ) -> None:
        super().__init__(mu, log_odds, counts, odds=odds, highest=highest)
        self._tolerance = tolerance
        self._factored: dict[float, tuple[_Rows, _Rows]] = {}
        self._kept_turns: dict[Any, Complex] = {}

    def _rows_at(self, p: float) -> tuple[_Rows, _Rows]:
        if p not in self._factored:
            one, two = (self._rows(scale) for scale in self._scales(p))
            self._factored = {p: (one, two)}
        return self._factored[p]

    def _rows(self, scale: Array) -> _Rows:
        """Return few rows on the nodes where more than nothing is; the others are a rest."""
        _, absolute = self._column_sums
        mass = absolute * scale
        some = np.flatnonzero(mass > NOTHING * np.max(mass))
        own = DensityRows(self.mu, self.mean, self.counts, self.y[some])
        rows, _ = own.factored(scale[some] * self._step, self._tolerance)
        left = float(np.sum(mass[mass <= NOTHING * np.max(mass)])) * (1 + 1e-9)
        return _Rows(rows, some, scale[some], left)

    def _turned(self, p: float, which: int, turns: Array) -> Complex:
        """Return ``e^{i turn l}`` on the nodes of rows, kept for the next powers."""
        key = p, which, turns.size, float(turns[-1])
        some = self._rows_at(p)[which].some
        if key not in self._kept_turns:
            if len(self._kept_turns) > 3:
                self._kept_turns.clear()
            self._kept_turns[key] = np.exp(np.outer(self.loss[some], 1j * turns))
        return self._kept_turns[key]

    def sums(self, start: complex, turns: Array) -> HitSums:
        """Return both sums of logarithms over all members, at powers ``start + i turns``."""
        p, powers = start.real, start + 1j * turns
        rows, growth = self._rows_at(p), np.abs(powers) / p
        found = []
        for i, one in enumerate(rows):
            kernel = self._turned(p, i, turns) * np.exp(start * self.loss[one.some])[:, None]
            if i == 0:
                kernel = (kernel - 1) * np.exp(self._log_other[one.some, None]) - self._phi[
                    one.some, None
                ]
            else:
                kernel *= self._phi[one.some, None]
            kernel *= (1 / one.scale)[:, None]
            found.append(one.rows.inner(kernel, growth * (1 + 1e-9)))
        total: Any = np.zeros((2, powers.size), dtype=complex)
        most = np.zeros((2, powers.size))
        size = np.zeros((2, powers.size))
        block = max(1, BLOCK_SIZE // powers.size)
        for first in range(0, self.mu.size, block):
            part = slice(first, first + block)
            w, h = (
                real_by_complex(one.rows.coordinates[part], inner)
                for one, (inner, _, _) in zip(rows, found, strict=True)
            )
            most = np.maximum(most, [np.max(np.abs(w), axis=0), np.max(np.abs(h), axis=0)])
            h /= 1 + w
            for i, values in enumerate((w, h)):
                size[i] += np.einsum("i,ij->j", self.counts[part], np.abs(values))
                total[i] += np.einsum("i,ij->j", self.counts[part], log1p(values))
        own = self._others_error(p), self._hits_error(p)
        off = [
            growth * (error + one.left_out) + lost
            for one, error, (_, _, lost) in zip(rows, own, found, strict=True)
        ]
        # rows leave the rest, of first order known: of what follows |w| and |h| are a factor
        rest = [one.rows.rest * growth * (1 + 1e-6) for one in rows]
        share = most[0] + most[1] + rest[0] + rest[1] + off[0] + off[1]
        known = share <= MAX_SHARE
        kept = 1 - np.where(known, share, 0.0)
        size *= ULP * (32 + block + self.mu.size / block)
        first_order = off[0] + size[0] + 32 * ULP * float(np.sum(self.counts))
        error_others = (first_order + rest[0] * (share + 1e-12)) / kept
        error_hits = (off[1] + rest[1] * (share + 1e-12)) / kept + size[1]
        error_hits += (first_order + rest[0]) * (most[1] + rest[1] + off[1]) / kept**2
        return HitSums(
            total[0] + found[0][1],
            total[1] + found[1][1],
            np.where(known, error_others, math.inf),
            np.where(known, error_hits, math.inf),
        )
