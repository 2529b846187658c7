"""A secret key that signs the entries and heads of a book: only its holder can rewrite entries."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat

from accountant.book.chain.entries import ChainHead, without_signature
from accountant.errors import ParameterError

SHORTEST_KEY = 16  # bytes
ALLOWED = f"at least {SHORTEST_KEY} secret bytes, or a file of them or of a private key"


class SigningKey:
    """A key for HMAC-SHA256 (RFC 2104); it is never shown.

    ``earlier_key`` is what earlier versions read from the same file.
    """

    def __init__(self, key: bytes, earlier_key: bytes = b"") -> None:
        if not isinstance(key, bytes | bytearray) or len(key) < SHORTEST_KEY:
            raise ParameterError("key", type(key).__name__, ALLOWED)
        self._key = bytes(key)
        self._earlier_key = earlier_key if len(earlier_key) >= SHORTEST_KEY else self._key

    @property
    def is_ambiguous(self) -> bool:
        """Return whether earlier versions read another key from the same file."""
        return self._key != self._earlier_key

    def fit_entry(self, previous: str, body: str, signature: str) -> None:
        """Sign as earlier versions did with the same file, if they signed this entry.

        The key is taken from the file as it is if that one signed the entry, or if neither did.
        """
        exact_key, unsigned_body = self._key, without_signature(body, "mac", signature)
        if self.sign_entry(previous, unsigned_body) != signature:
            self._key = self._earlier_key
            if self.sign_entry(previous, unsigned_body) != signature:
                self._key = exact_key

    def sign_entry(self, previous: str, body: str) -> str:
        """Return the signature of an entry's body without its signature, and of what it follows."""
        return self._sign(f"entry {previous}{body}")

    def sign_head(self, head: ChainHead) -> str:
        """Return the signature of a head."""
        return self._sign(f"head {head}")

    def _sign(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(), hashlib.sha256).hex()

    def __repr__(self) -> str:
        return "SigningKey(...)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")


def without_newline(file_bytes: bytes) -> bytes:
    """Return the bytes of a key's file; text loses the one newline that editors write at its end.

    Other bytes are the key as they are, for one random key in 256 ends with the byte of a newline.
    """
    try:
        text = file_bytes.decode()
    except UnicodeDecodeError:
        return file_bytes
    if not all(letter.isprintable() or letter in "\t\r\n" for letter in text):
        return file_bytes
    return re.sub(rb"\r?\n\Z", b"", file_bytes)


def read_private_file(path: str) -> bytes:
    """Return the bytes of a key's file; like ssh, refuse one that other users can read or write."""
    try:
        with open(path, "rb") as file:
            file_bytes, mode = file.read(), os.fstat(file.fileno()).st_mode
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no path"
        raise ParameterError("key", path, f"{ALLOWED} ({why})") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ParameterError("key", path, "a file that no other user can read: chmod 600")
    return file_bytes
