"""The hash chain: the hash of every entry covers the entry and the hash before it."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

FIRST_PREDECESSOR = "0" * 64  # what the first entry follows


class ChainHead(NamedTuple):
    """The end of a chain: the number of its entries, and the hash of the last one."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


class LogEntry(NamedTuple):
    """One entry of a log, as it was read and checked."""

    seq: int
    hash: str
    facts: dict[str, Any]

    @property
    def chain_head(self) -> ChainHead:
        """Return the head of the chain that ends at this entry."""
        return ChainHead(self.seq, self.hash)

    @property
    def kind(self) -> str:
        """Return the kind, such as dataset, terms, plan, reserve, step, release or failed."""
        return str(self.facts["kind"])

    @property
    def latest(self) -> str:
        """Return the latest time that the log had seen; clocks may run back."""
        return str(self.facts.get("latest", self.facts["time"]))

    @property
    def index_root(self) -> int | None:
        """Return the number of the last entry under a key; None where entries have no index yet."""
        return self.seq if "index" in self.facts else self.facts.get("root")


def canonical_json(facts: dict[str, Any]) -> str:
    """Return the facts as canonical JSON: sorted keys, no spaces, plain ASCII."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def next_hash(previous: str, body: str) -> str:
    """Return the SHA-256 of the previous hash and the entry."""
    return hashlib.sha256(f"{previous}{body}".encode()).hexdigest()


def digest(raw: Any) -> str:
    """Return the SHA-256 of an attachment; in a damaged database it may not be bytes."""
    return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes | memoryview) else ""
