"""Exact integer noise: given ideal random words, the distribution is exactly the stated one.

The noise is drawn by rejection.  The integers k >= 0 are cut into blocks of 2^s, and each block has
a range of 63-bit words.  A uniform word w proposes the block in whose range it lies, and s more
random bits choose k in the block.  With E(k) = |k / width|^power / power the proposal is accepted
if

    (w - start of the range) + U < c e^{-E(k)},     U uniform in [0, 1),

so that k comes with probability c e^{-E(k)} 2^-s / 2^63, in proportion to e^{-E(k)}.  For this the
range of each block is no shorter than c e^{-E} of its first integer.  One more bit is the sign.
Beyond the last block a geometric proposal of its own serves the tail.

Floats decide the comparison only where an interval that contains the exact right side lies on one
side; otherwise decimals of growing precision decide, with fresh random bits as needed.

References: Canonne, Kamath & Steinke (2020) for the distributions; Devroye (1986) for rejection
from a table.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from mechanisms.exact_noise.exponential_coins import (
    HEIGHT_ERROR,
    WordArray,
    below_exponential,
    random_words,
)

IntegerArray = NDArray[np.int64]

DRAWS_PER_CHUNK = 1 << 15  # the most proposals made at a time: they fit into the processor's cache
TAIL_ENERGY = 49.0  # the energy E(k) at which the table ends: beyond is less than 2^-62 of the mass


@final
@dataclass(frozen=True, slots=True)
class IntegerNoise:
    """Integers k with probability proportional to ``exp(-|k / width|^power / power)``.

    Power 1 is the discrete Laplace distribution of scale ``width``, power 2 the discrete Gaussian.
    With ``reach`` it is conditioned on ``|k| <= reach``.  With ``cells`` the integer k stands for
    the cell from k to k + 1: ``|k|`` is that of its end nearer to 0, so k is as probable as
    ``-1 - k``, and the law is that of continuous Laplace noise rounded down.
    """

    width: float
    power: int
    reach: int | None = None
    cells: bool = False

    def add_to(self, value: IntegerArray, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        """Return ``value`` plus noise; a sum beyond 64 bits becomes the last integer there."""
        noise = self.draw(math.prod(shape), rng).reshape(shape)
        with np.errstate(over="ignore"):
            total = value + noise
        # A sum has overflowed if its sign differs from the signs of both numbers.
        overflow = ((value ^ total) & (noise ^ total)) < 0
        ends = np.where(noise < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
        return np.where(overflow, ends, total)[()]

    def draw(self, size: int, rng: np.random.Generator) -> IntegerArray:
        """Return ``size`` independent draws."""
        if size == 1:  # One draw in plain Python is quicker than in arrays.
            proposal = None
            while proposal is None:
                proposal = self._proposal(rng)
            return np.array([proposal])
        draws = np.empty(size, dtype=np.int64)
        done = 0
        while done < size:
            # Some proposals are rejected, so that a few more than needed are made.
            accepted = self._accepted_proposals(min(DRAWS_PER_CHUNK, size - done + 16), rng)[
                : size - done
            ]
            draws[done : done + accepted.size] = accepted
            done += accepted.size
        return draws

    @property
    def table(self) -> dict[str, Any]:
        """The proposal table in plain numbers, for a proof that it adds up."""
        table = proposal_table(self)
        return {
            "table": "IntegerNoise",
            "width": self.width,
            "power": self.power,
            "reach": self.reach,
            "shift": table.shift,
            "height": table.height_at_zero,
            "ends": list(table.whole_ends),
        }

    def energy(self, k: Any) -> Any:
        """Return E(k) = ``|k / width|^power / power`` in floats."""
        distance = np.where(k < 0, -1 - k, k) if self.cells else abs(k)
        x = distance / self.width
        return x if self.power == 1 else x * x / 2

    def exact_energy(self, k: int) -> Fraction:
        """Return E(k) as a fraction, without rounding."""
        x = Fraction(-1 - k if self.cells and k < 0 else abs(k)) / Fraction(self.width)
        return x if self.power == 1 else x * x / 2

    def _accepted_proposals(self, size: int, rng: np.random.Generator) -> IntegerArray:
        """Return the accepted ones of ``size`` proposals, in order.

        One bit of each random word is the sign, the other 63 choose the block.
        """
        table = proposal_table(self)
        uniform_words = random_words(size, rng)
        negative = (uniform_words & np.uint64(1)).astype(bool)
        uniform_words >>= np.uint64(1)
        block = np.searchsorted(table.ends, uniform_words, side="right")
        inside = block < table.count
        block_in_table = np.minimum(block, table.count - 1)
        position = (uniform_words - table.starts[block_in_table]).astype(float)
        k = block_in_table << table.shift
        if table.shift:
            k |= (random_words(size, rng) >> np.uint64(64 - table.shift)).astype(np.int64)
        # A proposal is accepted if position + U < c exp(-energy), with 0 <= U < 1.  ``keep`` is
        # where this is certain without a draw of U; where it is ``unsure`` the exact test decides.
        height = table.height_at_zero * np.exp(-self.energy(k))
        keep = inside & (position + 1 <= height * (1 - HEIGHT_ERROR))
        unsure = inside & ~keep & (position < height * (1 + HEIGHT_ERROR))
        unsure |= block == table.count
        for i in np.flatnonzero(unsure):
            if inside[i]:
                offset = int(uniform_words[i]) - int(table.starts[block_in_table[i]])
                keep[i] = accept_exactly(offset, self, int(k[i]), table.height_at_zero, rng)
            else:
                keep[i], k[i] = self._tail_proposal(
                    int(uniform_words[i]) - int(table.starts[-1]), rng
                )
        if self.reach is not None:
            keep &= k <= self.reach
        if self.cells:
            np.invert(k, out=k, where=negative)  # -1 - k
        else:
            keep &= ~(negative & (k == 0))  # otherwise 0 would count twice
            np.negative(k, out=k, where=negative)
        accepted: IntegerArray = k[keep]
        return accepted

    def _proposal(self, rng: np.random.Generator) -> int | None:
        """Return one proposal, or None where it is not accepted; see `_accepted_proposals`."""
        table = proposal_table(self)
        word = int(random_words(None, rng))
        negative, word = word & 1, word >> 1
        block = bisect_right(table.whole_ends, word)
        block_in_table = min(block, table.count - 1)
        position, k = (
            word - (table.whole_ends[block_in_table - 1] if block_in_table else 0),
            block_in_table << table.shift,
        )
        if table.shift:
            k |= int(random_words(None, rng)) >> (64 - table.shift)
        accepted = False
        if block == table.count:
            accepted, k = self._tail_proposal(word - table.whole_ends[block_in_table], rng)
        elif block == block_in_table:
            height = table.height_at_zero * math.exp(-self.energy(k))
            accepted = position + 1 <= height * (1 - HEIGHT_ERROR)
            if not accepted and position < height * (1 + HEIGHT_ERROR):
                accepted = accept_exactly(position, self, k, table.height_at_zero, rng)
        if not accepted or (self.reach is not None and k > self.reach):
            return None
        if self.cells:
            return -1 - k if negative else k
        if negative and k == 0:
            return None
        return -k if negative else k

    def _tail_proposal(self, position: int, rng: np.random.Generator) -> tuple[bool, int]:
        """Return whether a proposal beyond the table is accepted, and the proposal k.

        The tail is cut into stretches of 64 blocks.  Stretch j = 0, 1, ... is proposed with
        probability 2^-(j+1), and k uniformly in it.  Accepting at c e^{-E(k)} 2^(j+7) makes up for
        these probabilities, 2^-(j+1) / 64.  From one stretch to the next e^{-E} falls by e^-1 at
        least, more than by the factor 1/2, so that this height never exceeds the tail's range.
        """
        table, j = proposal_table(self), 0
        while int(rng.integers(2)):
            j += 1
        within = int(rng.integers(64 << table.shift))
        k = (table.count << table.shift) + j * (64 << table.shift) + within
        return accept_exactly(position, self, k, table.height_at_zero * 2.0 ** (j + 7), rng), k


@final
@dataclass(frozen=True, slots=True)
class ProposalTable:
    """``count`` blocks of ``2^shift`` integers: words from ``starts[b]`` to ``ends[b]`` propose b.

    The length of each range is at least ``height_at_zero exp(-energy)`` of the block's first
    integer.  The last entry is the tail's, empty where the reach ends before; words beyond it are
    drawn again.
    """

    shift: int
    count: int
    height_at_zero: float
    starts: WordArray
    ends: WordArray
    whole_ends: tuple[int, ...]  # the ends as Python integers


@functools.lru_cache(maxsize=256)
def proposal_table(noise: IntegerNoise) -> ProposalTable:
    """Return the proposal table of a noise.

    It has 32 to 64 blocks for each ``width`` of integers, or one block for each integer where the
    width is smaller.  Where a short ``reach`` ends the table, blocks can be smaller.
    """
    shift = max(0, math.frexp(noise.width)[1] - 6)
    end_in_widths = TAIL_ENERGY if noise.power == 1 else math.sqrt(2 * TAIL_ENERGY)
    has_tail = True
    if noise.reach is not None and noise.reach < end_in_widths * noise.width:
        shift, has_tail = min(shift, max(0, noise.reach.bit_length() - 5)), False
        count = (noise.reach >> shift) + 1
    else:
        count = int(end_in_widths * noise.width / 2**shift) + 1
    with np.errstate(over="ignore"):
        weights: Array = np.exp(-noise.energy(np.arange(count + 1) * 2.0**shift))
    # The proposal of the tail must lie above the probability; see `_tail_proposal`.
    weights[-1] *= 128 if has_tail else 0
    # The ranges add up to a little less than all 2^63 words, which leaves room to round them up.
    height_at_zero = 2.0**63 * (1 - 2.0**-20) / float(weights.sum())
    # The lengths are rounded up by more than the error of the exponentials.
    lengths = np.floor(weights * height_at_zero * (1 + 2.0**-42)).astype(np.uint64) + np.uint64(1)
    if not has_tail:
        lengths[-1] = 0
    ends = np.cumsum(lengths)
    return ProposalTable(shift, count, height_at_zero, ends - lengths, ends, tuple(ends.tolist()))


def accept_exactly(
    position: int, noise: IntegerNoise, k: int, height_at_zero: float, rng: np.random.Generator
) -> bool:
    """Return whether ``position`` plus a uniform fraction accepts ``k``; the decision is exact."""
    return below_exponential(position, noise.exact_energy(k), Fraction(height_at_zero), rng)
