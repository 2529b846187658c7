"""The hash chain: every entry's hash covers the entry and the hash before it."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

FIRST_PREDECESSOR = "0" * 64  # what the first entry follows


class ChainHead(NamedTuple):
    """The end of a chain: how many entries it has, and the last one's hash."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


class LogEntry(NamedTuple):
    """One entry of a log, as it was found and checked."""

    seq: int
    hash: str
    facts: dict[str, Any]

    @property
    def chain_head(self) -> ChainHead:
        """The chain that ends here."""
        return ChainHead(self.seq, self.hash)

    @property
    def kind(self) -> str:
        """What happened: book, dataset, plan, reserve, step, release or failed."""
        return str(self.facts["kind"])


def canonical_json(facts: dict[str, Any]) -> str:
    """The facts as JSON in its one form: keys sorted, no spaces, plain ASCII."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def next_hash(previous: str, body: str) -> str:
    """SHA-256 of the hash before and the entry."""
    return hashlib.sha256(f"{previous}{body}".encode()).hexdigest()


def digest(raw: Any) -> str:
    """SHA-256 of what lies beside the log; a damaged database may hold what is no bytes."""
    return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes | memoryview) else ""
