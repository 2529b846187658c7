"""Codes of outputs: 32 bits of the structure, 32 bits of the numbers and of exact values."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_BLOCK = 1 << 20  # numbers that are hashed at a time
Codes = NDArray[np.uint64]


def structure_code(words: Iterable[str]) -> int:
    """The code of the words of a structure."""
    return zlib.crc32("\0".join(words).encode("utf-8", "replace"))


def exact_code(exact: Iterable[bytes]) -> int:
    """The code of exact values."""
    return zlib.crc32(b"\0".join(exact))


def combined_codes(structure: int, exactly: int, numbers: Codes) -> Codes:
    """The structure's 32 bits above 32 bits of the numbers and the exact values."""
    return np.uint64(structure << 32) | (numbers >> np.uint64(32)) ^ np.uint64(exactly)


def row_codes(rows: NDArray[Any]) -> Codes:
    """A 64-bit code of each row's bytes; -0.0 and 0.0 differ, as do the many NaN.

    ``sum_j m_j mix(word_j)`` with odd ``m_j``: the columns need no loop.
    """
    rows = np.ascontiguousarray(rows)
    if rows.dtype.kind == "f" and rows.dtype.itemsize == 8:
        bit_patterns = rows.view(np.uint64)
    elif rows.dtype.kind in "iub":
        bit_patterns = rows.astype(np.uint64)
    else:
        bit_patterns = rows.astype(np.float64).view(np.uint64)
    count, width = bit_patterns.shape
    code, odd = np.zeros(count, np.uint64), _multipliers(width)
    step = max(1, MAX_BLOCK // max(width, 1))
    for at in range(0, count, step):
        block = bit_patterns[at : at + step]
        mixed = (block ^ (block >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        code[at : at + step] = np.einsum("ij,j->i", mixed, odd)
    return code


@functools.lru_cache(maxsize=64)
def _multipliers(count: int) -> Codes:
    """Odd numbers that look random: SplitMix64 of 1, 2, 3, ..."""
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) | np.uint64(1)
