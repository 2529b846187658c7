"""Names of the databases that keep books: URLs, and files of SQLite.

A wrong URL may hold a password, so an error about it repeats only its scheme.  The file in which
SQLite stores a book is a plain file with one name, on a local disk.
"""

from __future__ import annotations

import os
from pathlib import Path

from accountant.errors import ParameterError

# Types of network file systems.  SQLite's write-ahead log needs shared memory, which processes on
# different machines do not have.
NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "9p",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.rclone",
}

# what errors say is allowed as a URL
URL = "a file, 'sqlite:///PATH' or 'postgresql://USER@HOST/DATABASE'"
# What to do where no book is: a disk that is not mounted must not give the budget again.
MAKE_ONE = "a book that is there; Book.create, or `ledger open --new`, makes one"


class MissingBook(ParameterError):
    """The folder exists, but there is no file with the name of the book."""


def book_url(name: str | os.PathLike[str]) -> str:
    """Return the URL of a book that is named by its file or its URL."""
    url = isinstance(name, str | os.PathLike) and os.fspath(name)
    if not url or not isinstance(url, str):
        raise ParameterError("url", name, URL)
    return url if "://" in url else f"sqlite:///{url}"


def scheme_of(url: str) -> str:
    """Return the part of a URL that holds no password; connection strings have no such part."""
    scheme, mark, _ = url.partition("://")
    return scheme if mark and scheme.replace("+", "").isalnum() else "words that are no URL"


def checked_path(path: str, create: bool) -> Path:
    """Return the file that SQLite will open, symbolic links followed; refuse any other kind.

    Without ``create`` the file must exist.  One without bytes is refused in any case: it was a book
    that is lost, or the making of one was cut off.
    """
    if path == ":memory:" or "\0" in path:
        raise ParameterError("url", path, "a file: what is in memory does not outlive a crash")
    try:
        real = Path(path).resolve()
        there, folder = real.exists(), real.parent.is_dir()
        # A resolved path that is still a link is in a circle; Python below 3.13 raises instead.
        unfit = real.is_symlink() or (there and not real.is_file()) or not (there or create)
        if not folder or unfit:
            if folder and not there and not real.is_symlink():
                raise MissingBook("url", path, MAKE_ONE)
            allowed = "a file, in a folder that is there (a disk not mounted, or a wrong name?)"
            raise ParameterError("url", path, allowed)
        if there and not real.stat().st_size:
            allowed = "a book: this file has no bytes (a disk not mounted, or a copy cut off?); "
            raise ParameterError("url", path, f"{allowed}remove it to make a new book there")
        if there and real.stat().st_nlink > 1:
            # SQLite names its log after the file: with two names there are two logs, and charges
            # are lost.
            allowed = "a file of one name, without another hard link to it"
            raise ParameterError("url", path, allowed)
    except (OSError, RuntimeError) as error:  # the name is too long, or links form a circle
        allowed = f"a path that can be looked at ({getattr(error, 'strerror', 'a loop')})"
        raise ParameterError("url", path, allowed) from None
    return real


def file_system(folder: Path) -> str:
    """Return the type of the file system of a folder, or "" if it is unknown.

    It is the type of the mount with the longest path that contains the folder.
    """
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    real, best, kind = str(folder.resolve()), "", ""
    for line in lines:
        _, mount, name, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, name
    return kind
