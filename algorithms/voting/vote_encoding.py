"""The message of a machine: its ternary vote in two bits a feature, made where its data are.

A message starts with a status in one byte; a vote continues with the number of features in four
bytes and two maps of bits: which features are 1, and which are -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Votes = NDArray[np.int8]

FATES = ("counted", "twice", "failed", "invalid", "late")
COUNTED, TWICE, FAILED, INVALID, LATE = range(len(FATES))
HEADER_BYTES = 5  # bytes: a status, and the number of features in four


def pack_vote(vote: Any) -> bytes:
    """Return a machine's message: its vote in two bits a feature, or that it has none."""
    try:
        votes = np.asarray(vote)
    except ValueError:  # rows of different lengths
        return bytes([INVALID])
    fate = COUNTED
    if votes.ndim == 2 and len(votes) > 1:
        votes, fate = votes[0], TWICE
    if votes.ndim != 1 or votes.size == 0 or votes.dtype.kind not in "iuf":
        return bytes([INVALID])
    positive, negative = votes == 1, votes == -1
    if np.count_nonzero(positive) + np.count_nonzero(negative) != np.count_nonzero(votes):
        return bytes([INVALID])  # NaN is not zero either
    header = bytes([fate]) + votes.size.to_bytes(HEADER_BYTES - 1, "little")
    return header + np.packbits(positive).tobytes() + np.packbits(negative).tobytes()


def vote_length(message: Any) -> int:
    """Return the number of features that a message votes on; 0 where it is no vote."""
    if not isinstance(message, bytes) or len(message) < HEADER_BYTES or message[0] > TWICE:
        return 0
    features = int.from_bytes(message[1:HEADER_BYTES], "little")
    return features if len(message) == HEADER_BYTES + 2 * -(-features // 8) else 0


def unpack_vote(message: bytes, row: Votes) -> bool:
    """Write a vote of the row's length to the row and return True; return False if it is none."""
    positive, negative = np.frombuffer(message, dtype=np.uint8, offset=HEADER_BYTES).reshape(2, -1)
    if (positive & negative).any():
        return False
    positives, negatives = (np.unpackbits(part, count=row.size) for part in (positive, negative))
    np.subtract(positives.view(np.int8), negatives.view(np.int8), out=row)
    return True


def encode_own_vote(local: Callable[[Any], Any], handle: Any) -> bytes:
    """Return a machine's message; an error is sent without its text, which may show data."""
    try:
        # numpy's warnings are about the data, so they stay on the machine
        with np.errstate(all="ignore"):
            return pack_vote(local(handle() if callable(handle) else handle))
    except Exception:
        return bytes([FAILED])
