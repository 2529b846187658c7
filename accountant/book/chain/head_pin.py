"""The pins of a book: files in other places that have the head of its log.

The head is the number and the hash of the last entry.  If the book is replaced by an older copy,
such as a backup, its log is shorter than a pin says, and the charges that are lost are noticed.

Every book has a pin on each machine that writes to it, beside the user's configuration, named by
the book's id (`OwnPin`).  It is compared before each write and not before a look, so that a backup
can be read.  A pin that the caller names (`HeadPin`) is compared both times.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from accountant.book.chain.entries import ChainHead
from accountant.errors import LedgerCorrupt, LedgerUnwritable, ParameterError

# The variable that names the folder of the machine's own pins; empty for none.
FOLDER_VARIABLE = "DP_ATTEST_PINS"
# The digits of the number, and the bytes of the line "number:hash\n" with a hash of 64 digits.
DIGITS, LENGTH = 20, 20 + 1 + 64 + 1
NEEDS_FILE_LOCKS = "files of books and pins need the locks of Linux or macOS"


class HeadPin:
    """A file of one line: the number and the hash of the last committed entry.

    Keep it on another disk or machine, so that restoring the book does not restore the pin too.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not has_file_locks():
            raise ParameterError("pin", str(path), f"left out: {NEEDS_FILE_LOCKS}")
        if self._path.is_dir() or not self._path.parent.is_dir():
            raise ParameterError("pin", str(path), "a file in a folder that exists")

    def read(self) -> ChainHead | None:
        """Return the pinned head; None before the first pin."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return self._parse_head(raw)

    def advance(self, head: ChainHead, instead_of: ChainHead | None = None) -> None:
        """Pin ``head`` unless a later one is pinned; it is on disk on return.

        The pin goes back only from ``instead_of``, an end that the caller accepts as lost.
        """
        with self._locked() as handle:
            before = self._parse_head(os.pread(handle, LENGTH + 1, 0))
            if is_before(head, before, instead_of):
                return
            # The line is shorter than a sector, so a crash leaves the old or the new head.
            os.pwrite(handle, head_line(head), 0)
            os.fsync(handle)

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
        head = parsed_line(raw)
        if head is None:
            raise LedgerCorrupt(str(self._path), "is no pin, or a damaged one")
        return head


class OwnPin:
    """The pin that this machine keeps of a book; its methods never raise.

    No spend fails, or waits, for a configuration that cannot be written.  The file is not flushed,
    which would double the time of a spend: a power cut leaves at worst an earlier head, which
    older backups still lack, or no line at all.  Nor is it locked: of two processes that write at
    the same moment one may leave the earlier of their two heads, until the next spend.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None  # kept open: a spend reads and writes it in microseconds
        # The last line that was written, and its head: mostly the next one that is read.
        self._written: tuple[bytes, ChainHead | None] = b"", None

    def read(self) -> ChainHead | None:
        """Return the pinned head; None before the first pin, or where there can be none."""
        return self._pinned(self._opened(0))

    def advance(self, head: ChainHead, instead_of: ChainHead | None = None) -> None:
        """Pin ``head`` unless a later one is pinned; see `HeadPin.advance`."""
        handle = self._opened(os.O_CREAT) if self._handle is None else self._handle
        if handle is None or is_before(head, self._pinned(handle), instead_of):
            return
        line = head_line(head)
        with suppress(OSError):
            os.pwrite(handle, line, 0)
        self._written = line, head

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _opened(self, flags: int) -> int | None:
        """Return the handle of the file, None where there is none; a file that is gone is left."""
        if self._handle is not None and os.fstat(self._handle).st_nlink == 0:
            self.close()
        if self._handle is None:
            with suppress(OSError):
                self._handle = os.open(self._path, os.O_RDWR | flags, 0o644)
        return self._handle

    def _pinned(self, handle: int | None) -> ChainHead | None:
        if handle is None:
            return None
        try:
            line = os.pread(handle, LENGTH + 1, 0)
        except OSError:
            return None
        written_line, head = self._written
        return head if line == written_line else parsed_line(line)


class Pins:
    """The pins of one book: the one that the caller named, and this machine's own.

    The named one is compared always, the own one before a write.
    """

    def __init__(self, named: HeadPin | None) -> None:
        self.named = named
        self.own: OwnPin | None = None

    def heads(self, own_too: bool) -> list[ChainHead]:
        """Return the pinned heads."""
        pins = (self.named, self.own if own_too else None)
        return [head for pin in pins if pin is not None and (head := pin.read()) is not None]

    def advance(self, head: ChainHead) -> None:
        """Pin the head of the log."""
        if self.own is not None:
            self.own.advance(head)
        if self.named is not None and self.named.read() != head:
            self.named.advance(head)

    def close(self) -> None:
        """Close the file that is kept open."""
        if self.own is not None:
            self.own.close()


def has_file_locks() -> bool:
    """Return whether the system has the locks that files of books and pins need: not Windows."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


def own_pin(book_id: str) -> OwnPin | None:
    """Return this machine's pin of the book with an id; None where no folder can be made for it."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
    folder = os.environ.get(FOLDER_VARIABLE, os.path.join(home, "dp-attest", "pins"))
    if not folder or not book_id.isalnum() or not has_file_locks():
        return None
    try:
        path = Path(folder).expanduser()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a user without a home
        return None
    return OwnPin(path / book_id)


def is_before(head: ChainHead, pinned: ChainHead | None, instead_of: ChainHead | None) -> bool:
    """Return whether a head is no later than the pinned one, and may not take its place."""
    return pinned is not None and pinned != instead_of and pinned.seq >= head.seq


def head_line(head: ChainHead) -> bytes:
    """Return the line of a pin."""
    return f"{head.seq:0{DIGITS}d}:{head.hash}\n".encode()


def parsed_line(raw: bytes) -> ChainHead | None:
    """Return the head that a line states; None if it is no such line."""
    number, _, mark = raw.decode("ascii", "replace").partition(":")
    if len(raw) != LENGTH or not number.isdigit() or not mark.endswith("\n"):
        return None
    return ChainHead(int(number), mark[:-1])
