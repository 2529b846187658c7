"""The pin of a book: a file in another place that has the head of the log.

The head is the number and the hash of the last entry.  If the book is replaced by an older copy,
such as a backup, its log is shorter than the pin says, and the charges that are lost are noticed.

Every book has a pin on each machine that writes to it, beside the user's configuration, named by
the book's id (`own_pin`).  It is compared before each write and not before a look, so that a
backup can be read.  A pin that the caller names is compared both times, and flushed to its disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accountant.book.chain.entries import ChainHead
from accountant.errors import LedgerCorrupt, LedgerUnwritable, ParameterError

# The variable that names the folder of pins; empty for none.
FOLDER_VARIABLE = "DP_ATTEST_PINS"
# The digits of the number, and the bytes of the line "number:hash\n" with a hash of 64 digits.
DIGITS, LENGTH = 20, 20 + 1 + 64 + 1
NEEDS_FILE_LOCKS = "files of books and pins need the locks of Linux or macOS"


class HeadPin:
    """A file of one line: the number and the hash of the last committed entry.

    Keep it on another disk or machine, so that restoring the book does not restore the pin too.
    With ``is_own`` it is the pin that this machine has of every book.
    """

    def __init__(self, path: str | os.PathLike[str], is_own: bool = False) -> None:
        self._path, self.is_own = Path(path), is_own
        if not has_file_locks():
            raise ParameterError("pin", str(path), f"left out: {NEEDS_FILE_LOCKS}")
        if self._path.is_dir() or not self._path.parent.is_dir():
            raise ParameterError("pin", str(path), "a file in a folder that exists")

    def read(self) -> ChainHead | None:
        """Return the pinned head; None before the first pin, or where an own pin was cut off."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            if self.is_own:
                return None
            raise
        return self._parse_head(raw)

    def advance(self, head: ChainHead, accepted: bool = False) -> None:
        """Pin ``head`` unless a later one is pinned; ``accepted`` pins it in any case.

        It is on disk on return, but for the machine's own pin: a flush would double the time of a
        spend, and a power cut leaves at worst an earlier head, which older backups still lack.
        """
        try:
            with self._locked() as handle:
                before = None if accepted else self._parse_head(os.pread(handle, LENGTH + 1, 0))
                if before is not None and before.seq >= head.seq:
                    return
                # The line is shorter than a sector, so a crash leaves the old or the new head.
                os.pwrite(handle, f"{head.seq:0{DIGITS}d}:{head.hash}\n".encode(), 0)
                if not self.is_own:
                    os.fsync(handle)
        except LedgerUnwritable:
            if not self.is_own:  # no spend fails for a configuration that cannot be written
                raise

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file, locked against other processes, and yield its handle."""
        import fcntl

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
            if self.is_own:  # it is not flushed, so a power cut may leave zeros
                return None
            raise LedgerCorrupt(str(self._path), "is no pin, or a damaged one")
        return ChainHead(int(number), mark[:-1])


def has_file_locks() -> bool:
    """Return whether the system has the locks that files of books and pins need: not Windows."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


def own_pin(book_id: str) -> HeadPin | None:
    """Return this machine's pin of the book with an id; None where no folder can be made for it."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
    folder = os.environ.get(FOLDER_VARIABLE, os.path.join(home, "dp-attest", "pins"))
    if not folder or not book_id.isalnum() or not has_file_locks():
        return None
    path = Path(folder).expanduser()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            return None
    except (OSError, RuntimeError):  # a user without a home
        return None
    return HeadPin(path / book_id, is_own=True)
