"""A secret key that signs the entries and heads of a book, and heads in words, to note elsewhere.

Only the holder of the key can rewrite entries.  A head is NUMBER:HASH, or NUMBER:HASH:SIGNATURE.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from pathlib import Path

from accountant.book.chain.entries import ChainHead
from accountant.errors import ParameterError

SHORTEST_KEY = 16  # bytes
HEAD = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})(?::([0-9a-f]{64}))?", re.ASCII)


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

    def _sign(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(), hashlib.sha256).hex()

    def __repr__(self) -> str:
        return "SigningKey(...)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")


def without_signature(body: str, signature: str) -> str:
    """Return the canonical JSON of an entry without its signature."""
    return body.replace(f',"mac":"{signature}"', "", 1)


def format_head(head: ChainHead, key: SigningKey | None) -> str:
    """Return a head in words, signed where there is a key."""
    return str(head) if key is None else f"{head}:{key.sign_head(head)}"


def parse_head(text: str, key: SigningKey | None) -> ChainHead:
    """Return the head that `format_head` wrote; with a key only one that was signed with it."""
    head_match = HEAD.fullmatch(text) if isinstance(text, str) else None
    if head_match is None:
        raise ParameterError("head", text, "NUMBER:HASH, as an earlier verify printed it")
    number, mark, signature = head_match.groups()
    head = ChainHead(int(number), mark)
    if key is None and signature is not None:
        raise ParameterError("key", None, "given: the head is signed")
    if key is not None and not hmac.compare_digest(signature or "", key.sign_head(head)):
        allowed = "signed with the key of this book, NUMBER:HASH:SIGNATURE"
        raise ParameterError("head", text, allowed)
    return head
