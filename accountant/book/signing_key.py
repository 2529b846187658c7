"""A secret key that signs the entries and heads of a book: who lacks it cannot write them anew."""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from accountant.book.hash_chain import ChainHead
from accountant.errors import ParameterError

SHORTEST_KEY = 16  # bytes


class SigningKey:
    """A key for HMAC-SHA256 (RFC 2104); it is never shown."""

    def __init__(self, key: bytes | str | os.PathLike[str]) -> None:
        allowed = f"at least {SHORTEST_KEY} secret bytes, or a file of them"
        if isinstance(key, str | os.PathLike):
            try:
                key = Path(key).read_bytes().strip()
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or "no path"
                raise ParameterError("key", os.fspath(key), f"{allowed} ({why})") from None
        if not isinstance(key, bytes | bytearray) or len(key) < SHORTEST_KEY:
            raise ParameterError("key", type(key).__name__, allowed)
        self._key = bytes(key)

    def sign_entry(self, previous: str, body: str) -> str:
        """Return the signature of an entry's body without its signature, and of what it follows."""
        return self._sign(f"entry {previous}{body}")

    def sign_head(self, head: ChainHead) -> str:
        """Return the signature of a head."""
        return self._sign(f"head {head}")

    def _sign(self, words: str) -> str:
        return hmac.digest(self._key, words.encode(), hashlib.sha256).hex()

    def __repr__(self) -> str:
        return "SigningKey(...)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")


def without_signature(body: str, signature: str) -> str:
    """Return the canonical JSON of an entry without its signature."""
    return body.replace(f',"mac":"{signature}"', "", 1)
