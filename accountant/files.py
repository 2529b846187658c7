"""Output files: checked before the computation starts, and written whole or not at all; CSV."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import secrets
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from accountant.errors import ParameterError
from accountant.formatting import escape_control

STANDARD_INPUT = "-"  # as the path of a file that is read
# characters before text that a spreadsheet would run, or not show
FORMULA_PREFIXES = ("=", "+", "-", "@", "'", "|", "%")


def check_writable(targets: dict[str, str | None]) -> None:
    """Raise `ParameterError` unless each option's file is distinct and can be written now."""
    paths = {option: Path(name) for option, name in targets.items() if name is not None}
    for option, path in paths.items():
        name, folder = targets[option], path.parent
        if name in {"", "-"} or path.is_dir() or not folder.is_dir():
            raise ParameterError(option, name, "a file in a folder that exists")
        if path.exists() and not os.access(path, os.W_OK):
            raise ParameterError(option, name, "a file that may be written")
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            raise ParameterError(option, name, "a file that may be written") from None
    if len({path.resolve() for path in paths.values()}) < len(paths):
        *_, last_option = paths
        raise ParameterError(last_option, targets[last_option], "another file than the others")


def read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark; of standard input for ``-``."""
    if str(path) == STANDARD_INPUT:
        return text_of_stream(sys.stdin).removeprefix("\ufeff")
    return path.read_text(encoding="utf-8-sig")


@functools.cache
def text_of_stream(stream: TextIO) -> str:
    """Return the text of a stream, which is read once and kept."""
    return stream.read()


def write_text(name: str | None, text: str | Iterable[str]) -> None:
    """Write text or its pieces to the file that an option names; ``-`` is stdout, None no file."""
    if name == "-":
        sys.stdout.writelines([text] if isinstance(text, str) else text)
    elif name is not None:
        write_atomically(Path(name), text)


def write_atomically(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write to a temporary file and rename it, so that no partial file is ever visible.

    A new file gets the permissions that the umask leaves; one that is replaced hands on its own,
    and its owner and group where the system allows it.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    raw = (piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    path = path.resolve()  # the target of a link is replaced, not the link
    if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
        with open(path, "wb") as file:
            file.writelines(raw)
        return
    earlier = path.stat() if path.exists() else None
    # until it has its owner and mode, no other user may read what replaces a file
    mode = 0o666 if earlier is None else 0o600
    name = str(path.with_name(f".{path.name}.{secrets.token_hex(4)}"))
    new_binary_file = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(name, new_binary_file, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(raw)
        if earlier is not None:
            _hand_on(earlier, name)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _hand_on(earlier: os.stat_result, name: str) -> None:
    """Give a file the owner, the group and the mode of an earlier one."""
    if hasattr(os, "chown"):  # not on Windows
        for owner in (earlier.st_uid, -1):  # who may not give a file away may still set its group
            with contextlib.suppress(OSError):
                os.chown(name, owner, earlier.st_gid)
                break
    os.chmod(name, stat.S_IMODE(earlier.st_mode))


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield rows as CSV; text that a spreadsheet would run is quoted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([_cell(value) for value in row])
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    text = escape_control(value)
    # some spreadsheets read full-width and small signs as the plain ones
    plain = unicodedata.normalize("NFKC", text.lstrip()[:1])
    return f"'{text}" if plain.startswith(FORMULA_PREFIXES) else text
