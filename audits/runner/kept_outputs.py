"""Outputs of a user's function in a file, piece by piece, so that a continued run draws no twice.

A record is found again by a digest of the function's file, the pair, the side, the seed and the
number of runs: whatever differs in one of them is drawn anew.  No pickle is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

from audits.runner.target_messages import BrokenMessage, pack_message, unpack_message

RECORD = struct.Struct(">32sQQB")  # key, runs, bytes, kind of the message
MAX_KEPT_BYTES = 1 << 30  # of all outputs; what comes after is drawn again
SUFFIX = ".outputs"


@final
class KeptOutputs:
    """The outputs in a file that its owner alone can read; threads may share it."""

    def __init__(self, path: str) -> None:
        self._path, self._lock = Path(path), threading.Lock()
        self._places: dict[bytes, tuple[int, int, int]] = {}
        self._file: int | None = None
        self._end = self.runs = 0

    def begin(self, *, again: bool) -> None:
        """Open the file, empty unless a run is continued."""
        flags = os.O_RDWR | os.O_CREAT | (0 if again else os.O_TRUNC)
        self._file = os.open(self._path, flags, 0o600)
        os.fchmod(self._file, 0o600)  # of a file that was there too
        size = os.fstat(self._file).st_size
        while self._end + RECORD.size <= size:
            head = os.pread(self._file, RECORD.size, self._end)
            key, runs, length, kind = RECORD.unpack(head)
            end_of_record = self._end + RECORD.size + length
            if end_of_record > size:  # the record that an interruption cut
                break
            self._places[key] = self._end + RECORD.size, length, kind
            self._end, self.runs = end_of_record, self.runs + runs
        os.ftruncate(self._file, self._end)

    def find(self, key: bytes) -> Any:
        """The message of a key; raises KeyError if there is none that can be read."""
        with self._lock:
            if self._file is None:
                raise KeyError(key)
            offset, length, kind = self._places[key]
            body = os.pread(self._file, length, offset)
        try:
            return unpack_message(kind, body)
        except BrokenMessage:
            raise KeyError(key) from None

    def add(self, key: bytes, runs: int, message: Any) -> None:
        """Append a message; a full disk or a full share of it only means to draw again."""
        kind, body = pack_message(message)
        record = RECORD.pack(key, runs, len(body), kind) + bytes(body)
        with self._lock:
            if self._file is None or self._end + len(record) > MAX_KEPT_BYTES:
                return
            with contextlib.suppress(OSError):
                if os.pwrite(self._file, record, self._end) == len(record):
                    self._places[key] = self._end + RECORD.size, len(body), kind
                    self._end, self.runs = self._end + len(record), self.runs + runs

    def close(self, *, remove: bool) -> None:
        """Close the file, and remove it where nothing is to be continued."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
        if remove:
            self._path.unlink(missing_ok=True)


def outputs_key(identity: Sequence[str | None], request: Sequence[int]) -> bytes:
    """The key of the outputs of a request to a function that ``identity`` describes."""
    return hashlib.sha256(json.dumps([list(identity), list(request)]).encode()).digest()
