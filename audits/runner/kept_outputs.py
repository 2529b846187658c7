"""A file that keeps the outputs of an audited function, so that a continued audit can reuse them.

Without it an audit that was interrupted would have to draw all outputs again.  Each record of the
file has the outputs of one request for some runs.  Its key is a digest of the function's file, the
pair of values, the side of the pair, the seed and the number of runs; if one of them differs, the
outputs are drawn anew.  Messages are arrays or JSON; no pickle is read.
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

# The head of a record: SHA-256 key, number of runs, length of the message in bytes, its kind.
RECORD = struct.Struct(">32sQQB")
MAX_KEPT_BYTES = 1 << 30  # largest size of the file; outputs beyond it are not kept
SUFFIX = ".outputs"


@final
class KeptOutputs:
    """Outputs in a file that only its owner can read; several threads may use one object.

    ``runs`` is the number of runs whose outputs the file has.
    """

    def __init__(self, path: str) -> None:
        self._path, self._lock = Path(path), threading.Lock()
        # for each key where its message begins in the file, its length in bytes, and its kind
        self._places: dict[bytes, tuple[int, int, int]] = {}
        self._file: int | None = None  # its descriptor
        self._end = self.runs = 0

    def begin(self, *, again: bool) -> None:
        """Open the file, with the records of an earlier run if ``again``, else empty.

        A last record that is not complete is cut off.
        """
        flags = os.O_RDWR | os.O_CREAT | (0 if again else os.O_TRUNC)
        self._file = os.open(self._path, flags, 0o600)
        os.fchmod(self._file, 0o600)  # a file that was there already may have another mode
        size = os.fstat(self._file).st_size
        while self._end + RECORD.size <= size:
            head = os.pread(self._file, RECORD.size, self._end)
            key, runs, length, kind = RECORD.unpack(head)
            end_of_record = self._end + RECORD.size + length
            if end_of_record > size:  # an interruption cut this record
                break
            self._places[key] = self._end + RECORD.size, length, kind
            self._end, self.runs = end_of_record, self.runs + runs
        os.ftruncate(self._file, self._end)

    def find(self, key: bytes) -> Any:
        """The message that was added with this key; KeyError if none can be read."""
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
        """Append the outputs of ``runs`` runs.

        If the disk or the file is full, nothing is added, and a continued audit draws them again.
        """
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
        """Close the file, and delete it if ``remove``."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
        if remove:
            self._path.unlink(missing_ok=True)


def outputs_key(identity: Sequence[str | None], request: Sequence[int]) -> bytes:
    """The SHA-256 digest of a request to a function that ``identity`` describes."""
    return hashlib.sha256(json.dumps([list(identity), list(request)]).encode()).digest()
