"""The pin of a book: a file in another place that has the head of the log.

The head is the number and the hash of the last entry.  If the book is replaced by an older copy,
such as a backup, its log is shorter than the pin says, and the charges that are lost are noticed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accountant.book.chain.entries import ChainHead
from accountant.errors import LedgerCorrupt, LedgerUnwritable, ParameterError

# The digits of the number, and the bytes of the line "number:hash\n" with a hash of 64 digits.
DIGITS, LENGTH = 20, 20 + 1 + 64 + 1


class HeadPin:
    """A file of one line: the number and the hash of the last committed entry.

    Keep it on another disk or machine, so that restoring the book does not restore the pin too.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if self._path.is_dir() or not self._path.parent.is_dir():
            raise ParameterError("pin", str(path), "a file in a folder that exists")

    def read(self) -> ChainHead | None:
        """Return the pinned head; None before the first pin."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return self._parse_head(raw)

    def advance(self, head: ChainHead) -> None:
        """Pin ``head`` unless a later one is pinned; it is on disk on return."""
        with self._locked() as handle:
            before = self._parse_head(os.pread(handle, LENGTH + 1, 0))
            if before is not None and before.seq >= head.seq:
                return
            # The line is shorter than a sector, so a crash leaves the old or the new head.
            os.pwrite(handle, f"{head.seq:0{DIGITS}d}:{head.hash}\n".encode(), 0)
            os.fsync(handle)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file, locked against other processes, and yield its handle."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            problem = f"{self._path}: {error.strerror}; the head was not pinned"
            raise LedgerUnwritable(error.errno, problem) from None

    def _parse_head(self, raw: bytes) -> ChainHead | None:
        if not raw:
            return None
        text = raw.decode("ascii", "replace")
        number, _, mark = text.partition(":")
        if len(raw) != LENGTH or not number.isdigit() or not mark.endswith("\n"):
            raise LedgerCorrupt(str(self._path), "is no pin, or a damaged one")
        return ChainHead(int(number), mark[:-1])
