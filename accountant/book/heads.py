"""The head of a log in words, to note elsewhere: NUMBER:HASH, or NUMBER:HASH:SIGNATURE."""

from __future__ import annotations

import hmac
import re

from accountant.book.hash_chain import ChainHead
from accountant.book.signing_key import SigningKey
from accountant.errors import ParameterError

HEAD = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})(?::([0-9a-f]{64}))?", re.ASCII)


def format_head(head: ChainHead, key: SigningKey | None) -> str:
    """Return a head in words, signed where there is a key."""
    return str(head) if key is None else f"{head}:{key.sign_head(head)}"


def parse_head(words: str, key: SigningKey | None) -> ChainHead:
    """Return the head that `format_head` wrote; with a key only one that was signed with it."""
    found = HEAD.fullmatch(words) if isinstance(words, str) else None
    if found is None:
        raise ParameterError("head", words, "NUMBER:HASH, as an earlier verify printed it")
    number, mark, signature = found.groups()
    head = ChainHead(int(number), mark)
    if key is None and signature is not None:
        raise ParameterError("key", None, "given: the head is signed")
    if key is not None and not hmac.compare_digest(signature or "", key.sign_head(head)):
        allowed = "signed with the key of this book, NUMBER:HASH:SIGNATURE"
        raise ParameterError("head", words, allowed)
    return head
