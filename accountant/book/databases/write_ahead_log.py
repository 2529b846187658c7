"""Finds a flipped bit in SQLite's write-ahead log before SQLite reads it.

SQLite takes the log to end at the first frame whose checksum is wrong, as after a power cut, and
drops the commits behind it: one flipped bit would give back what they spent.  A frame that was cut
off differs from what was meant in whole sectors.  A frame that one bit would make right was whole
once, so the log is damaged.

References: the WAL format, section 4 of https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

HEADER, FRAME_HEADER = 32, 24  # bytes
MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # the byte order of the words that are summed
WORD = 1 << 32
FRAMES_PER_READ = 1024
Sums = tuple[int, int]


def has_flipped_bit(path: Path) -> bool:
    """Return whether one bit of the log would make its first wrong checksum right."""
    try:
        with path.open("rb") as file:
            return _has_flipped_bit(file)
    except OSError:  # SQLite reports a file that cannot be read
        return False


def _has_flipped_bit(file: BinaryIO) -> bool:
    header = file.read(HEADER)
    if len(header) < HEADER:
        return False
    if not _is_header(header):
        return any(_is_header(_flipped(header, bit)) for bit in range(8 * HEADER))
    magic, _, page, _, *salt, checksum_1, checksum_2 = struct.unpack(">8I", header)
    length, sums = FRAME_HEADER + page, (checksum_1, checksum_2)
    while raw := file.read(length * FRAMES_PER_READ):
        raw = raw[: len(raw) // length * length]
        fields = np.frombuffer(raw, ">u4").reshape(-1, length // 4)[:, 2:6].tolist()
        for (*frame_salt, stored_1, stored_2), frame_sums in zip(
            fields, _frame_sums(raw, page, magic), strict=True
        ):
            computed = _next_sums(sums, frame_sums, page)
            bits = _distance(frame_salt, salt)
            if bits:
                return bits == 1 and (stored_1, stored_2) == computed
            if (stored_1, stored_2) != computed:
                return _is_one_bit_off((stored_1, stored_2), computed, page)
            sums = computed
    return False


def _is_header(header: bytes) -> bool:
    magic, _, page, _, _, _, *stored = struct.unpack(">8I", header)
    if magic not in MAGIC or not 512 <= page <= 65536 or page & (page - 1):
        return False
    header_words = np.frombuffer(header, f"{MAGIC[magic]}u4", 6).astype(np.uint32)
    return bool((header_words @ _weights(3)).tolist() == stored)


def _flipped(raw: bytes, bit: int) -> bytes:
    bent = bytearray(raw)
    bent[bit // 8] ^= 1 << bit % 8
    return bytes(bent)


def _frame_sums(raw: bytes, page: int, magic: int) -> list[list[int]]:
    """Return what each frame adds to the sums: its first two words, and its page."""
    frame_words = np.frombuffer(raw, f"{MAGIC[magic]}u4").reshape(-1, (FRAME_HEADER + page) // 4)
    summed = np.delete(frame_words, slice(2, FRAME_HEADER // 4), axis=1).astype(np.uint32)
    frame_sums: list[list[int]] = (summed @ _weights(summed.shape[1] // 2)).tolist()
    return frame_sums


@cache
def _weights(pairs: int) -> NDArray[np.uint32]:
    """Return the weight of each word in both sums, which are taken modulo 2^32."""
    rows: list[list[int]] = []
    a, b, c, d = 1, 0, 0, 1  # the map of the sums from after a pair to the end
    for _ in range(pairs):
        # a pair (x, y) takes (s, t) to (s + t + x, s + 2 t + x + y)
        rows += [[b % WORD, d % WORD], [(a + b) % WORD, (c + d) % WORD]]
        a, b, c, d = a + b, a + 2 * b, c + d, c + 2 * d
    return np.array(rows[::-1], dtype=np.uint32)


@cache
def _carry(pairs: int) -> tuple[int, int, int, int]:
    """Return the matrix that takes the sums before some pairs of words to those after them."""
    a, b, c, d = 1, 0, 0, 1
    for _ in range(pairs):
        a, b, c, d = (a + b) % WORD, (a + 2 * b) % WORD, (c + d) % WORD, (c + 2 * d) % WORD
    return a, b, c, d


def _next_sums(before: Sums, frame_sums: list[int], page: int) -> Sums:
    (s, t), (a, b, c, d) = before, _carry((8 + page) // 8)
    return (a * s + b * t + frame_sums[0]) % WORD, (c * s + d * t + frame_sums[1]) % WORD


def _is_one_bit_off(stored: Sums, computed: Sums, page: int) -> bool:
    """Return whether one bit of the sums, or of the words, explains the difference."""
    if _distance(stored, computed) == 1:
        return True
    missing = np.array([(s - c) % WORD for s, c in zip(stored, computed, strict=True)], np.uint32)
    weights = _weights((8 + page) // 8)
    powers = np.uint32(1) << np.arange(32, dtype=np.uint32)
    moved = weights[:, :, None] * powers
    return bool(
        np.any(np.all(moved == missing[:, None], axis=1))
        or np.any(np.all(moved == (np.uint32(0) - missing)[:, None], axis=1))
    )


def _distance(stored: Sequence[int], expected: Sequence[int]) -> int:
    """Return the number of bits in which words differ."""
    return sum(
        (stored_word ^ expected_word).bit_count()
        for stored_word, expected_word in zip(stored, expected, strict=True)
    )
