"""Lengths whose Fourier transforms are quick."""

from __future__ import annotations


def fast_length(points: int) -> int:
    """Return the least product of powers of 2, 3 and 5 that is at least ``points``."""
    best = 1 << max(points - 1, 0).bit_length()
    five = 1
    while five < best:
        odd = five
        while odd < best:
            missing = -(-points // odd)
            best = min(best, odd << max(missing - 1, 0).bit_length())
            odd *= 3
        five *= 5
    return best
