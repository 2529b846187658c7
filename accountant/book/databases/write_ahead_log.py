"""Finds a flipped bit in SQLite's write-ahead log before SQLite reads it.

The log is a header and a sequence of frames; each frame is a header and one page of the database.
SQLite takes the log to end at the first frame whose checksum is wrong, as it is after a power cut,
and ignores all commits from there on.  So one flipped bit could undo commits, and with them the
privacy charges that they recorded.  After a power cut whole sectors of a frame are missing.  If
flipping one bit makes frame and checksum agree, the frame was written completely, and the log was
damaged later.

The checksum is a pair of sums (s, t) modulo 2^32.  It starts at the checksum of the header, and
each pair (x, y) of 32-bit words takes

    (s, t)  to  (s + t + x, s + 2 t + x + y).

It runs over the first two words and the page of every frame.  So a frame's checksum is a linear map
of the checksum before it, plus a weighted sum of the frame's words.

Reference: the WAL format, section 4 of https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

HEADER, FRAME_HEADER = 32, 24  # lengths in bytes of the header of the log, and of each frame
# The first word of the log says in which byte order the words are summed.
MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
WORD = 1 << 32  # the sums are taken modulo this
FRAMES_PER_READ = 1024  # frames that are read from the file at a time
Sums = tuple[int, int]


def has_flipped_bit(path: Path) -> bool:
    """Return whether one flipped bit explains why the log's first wrong header or frame is wrong.

    A frame is wrong if its checksum is, or if its salt is not the salt of the log.
    """
    try:
        with path.open("rb") as file:
            return _has_flipped_bit(file)
    except OSError:  # SQLite reports a file that cannot be read
        return False


def _has_flipped_bit(file: BinaryIO) -> bool:
    """Follow the checksums from the header on, and judge what is wrong first, if anything is."""
    header = file.read(HEADER)
    if len(header) < HEADER:
        return False
    if not _is_header(header):
        bits = int.from_bytes(header, "big")
        flipped_headers = ((bits ^ 1 << k).to_bytes(HEADER, "big") for k in range(8 * HEADER))
        return any(map(_is_header, flipped_headers))
    # The words are: magic number, version, page size, checkpoint number, two of salt, two sums.
    magic, _, page, _, *salt, checksum_1, checksum_2 = struct.unpack(">8I", header)
    frame_length, (s, t) = FRAME_HEADER + page, (checksum_1, checksum_2)
    # Summed are two words and the page of a frame, in pairs of 8 bytes.  The checksum (s, t) before
    # it is that of the one pair (s, t - s), so it counts as one more pair ahead of them.
    weights_ahead, weights = np.split(_weights(1 + (8 + page) // 8), [2])
    (s_of_x, t_of_x), (s_of_y, t_of_y) = weights_ahead.tolist()
    while raw := file.read(frame_length * FRAMES_PER_READ):
        raw = raw[: len(raw) // frame_length * frame_length]  # a frame that is cut off is left out
        # Words 2 to 5 of a frame's header are two of salt and the two sums.
        fields = np.frombuffer(raw, ">u4").reshape(-1, frame_length // 4)[:, 2:6].tolist()
        frame_words = np.frombuffer(raw, f"{MAGIC[magic]}u4").reshape(-1, frame_length // 4)
        summed = np.delete(frame_words, slice(2, FRAME_HEADER // 4), axis=1).astype(np.uint32)
        frame_sums = (summed @ weights).tolist()
        for (*frame_salt, stored_1, stored_2), (frame_s, frame_t) in zip(
            fields, frame_sums, strict=True
        ):
            computed = (
                (s * s_of_x + (t - s) * s_of_y + frame_s) % WORD,
                (s * t_of_x + (t - s) * t_of_y + frame_t) % WORD,
            )
            salt_distance = _distance(frame_salt, salt)
            # The checksum does not cover the salt.  Frames of an older log have another salt.
            if salt_distance:
                return salt_distance == 1 and (stored_1, stored_2) == computed
            if (stored_1, stored_2) != computed:
                return _is_one_bit_off((stored_1, stored_2), computed, weights)
            s, t = computed
    return False


def _is_header(header: bytes) -> bool:
    """Return whether the magic number, the page size and the checksum of a header are right.

    The checksum is over its first six words, which are three pairs.
    """
    magic, _, page, _, _, _, *stored = struct.unpack(">8I", header)
    if magic not in MAGIC or not 512 <= page <= 65536 or page & (page - 1):
        return False
    header_words = np.frombuffer(header, f"{MAGIC[magic]}u4", 6).astype(np.uint32)
    return bool((header_words @ _weights(3)).tolist() == stored)


@cache
def _weights(pairs: int) -> NDArray[np.uint32]:
    """Return the weights of the words of that many pairs in the final s and t, in their order.

    If the pairs after a pair (x, y) take (s, t) to (a s + b t, c s + d t), then x, which is added
    to both sums, has the weights (a + b, c + d), and y, which is added to t, has (b, d).
    """
    rows: list[list[int]] = []
    a, b, c, d = 1, 0, 0, 1  # no pair comes after the last one
    for _ in range(pairs):
        rows += [[b % WORD, d % WORD], [(a + b) % WORD, (c + d) % WORD]]
        a, b, c, d = a + b, a + 2 * b, c + d, c + 2 * d
    return np.array(rows[::-1], dtype=np.uint32)


def _is_one_bit_off(stored: Sums, computed: Sums, weights: NDArray[np.uint32]) -> bool:
    """Return whether one bit of the stored sums, or of the summed words, explains the difference.

    A flipped bit k of a word with the weights (v, w) changes the sums by (v, w) 2^k or by its
    negative, modulo 2^32.
    """
    if _distance(stored, computed) == 1:
        return True
    difference = np.array(
        [(s - c) % WORD for s, c in zip(stored, computed, strict=True)], np.uint32
    )
    powers = np.uint32(1) << np.arange(32, dtype=np.uint32)  # 2^k for each bit k of a word
    word_changes = weights[:, :, None] * powers
    return bool(
        np.any(np.all(word_changes == difference[:, None], axis=1))
        or np.any(np.all(word_changes == (np.uint32(0) - difference)[:, None], axis=1))
    )


def _distance(stored: Sequence[int], expected: Sequence[int]) -> int:
    """Return the number of bits in which two lists of words differ."""
    return sum(
        (stored_word ^ expected_word).bit_count()
        for stored_word, expected_word in zip(stored, expected, strict=True)
    )
