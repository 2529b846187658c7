"""The entries of a log: a hash chains each to the one before, and keys say how to find it.

The kinds of entries are "book", the first; "dataset", an opening; "terms", a change of it;
"reserve", which charges a release before it reads data, and "release" or "failed", which answers
it; "plan", which charges all releases of a plan, and "step", which records one of them; "seed",
which names a seeded stream of noise; "index", which brings the key of an old entry into the index.

The hash of an entry covers the entry and the hash before it.  The last entry under a key says how
things stand: what a data set has spent, its terms, what an author or a bucket of people spent.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from accountant.errors import LedgerCorrupt

FIRST_PREDECESSOR = "0" * 64  # what the first entry follows
CHARGING_KINDS = ("plan", "reserve")  # the kinds of entries that spend
TERMS = "terms"  # the kind of entries that change the terms of a data set
# what a decoder may raise for a body that it does not understand
UNDECODED = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
# a fact of a run of a plan that was set aside: the number of the entry that paid for it
PAID = "paid"


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

    @property
    def own_keys(self) -> list[str]:
        """Return the keys it must be found by, whether or not it has an index yet."""
        key, dataset = self.facts["key"], self.facts["dataset"]
        # Noise is looked for in the index of the database alone.
        keys = [] if key is None or key.startswith("noise:") else [key]
        if self.kind in CHARGING_KINDS:
            author_keys = [author_key(dataset, self.facts["author"])] if "own" in self.facts else []
            bucket_keys = [bucket_key(dataset, bucket) for bucket in self.facts.get("buckets", ())]
            is_set_aside = "runs" in self.facts or PAID in self.facts
            set_aside_keys = [set_aside_key(dataset)] if is_set_aside else []
            return [charge_key(dataset), *author_keys, *bucket_keys, *set_aside_keys, *keys]
        if self.kind == TERMS:
            author_keys = [author_key(dataset, author) for author in self.facts.get("used", ())]
            return [terms_key(dataset), *author_keys, *keys]
        return keys


def canonical_json(facts: dict[str, Any]) -> str:
    """Return the facts as canonical JSON: sorted keys, no spaces, plain ASCII."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse_facts(book: str, seq: int, body: str) -> dict[str, Any]:
    """Return the facts of an entry of a book, from its body."""
    facts: Any = None
    try:
        facts = msgspec.json.decode(body)
    except UNDECODED:
        # The standard library reads what it writes itself: NaN, or half a surrogate pair.
        with suppress(ValueError, TypeError, RecursionError):
            facts = json.loads(body)
        if facts is None:
            raise LedgerCorrupt(book, "an entry is not JSON", seq) from None
    # They are looked up one by one: a comparison of sets of keys takes five times as long.
    is_entry = (
        isinstance(facts, dict)
        and facts.get("seq") == seq
        and "dataset" in facts
        and "kind" in facts
        and "key" in facts
    )
    if not is_entry:
        raise LedgerCorrupt(book, "an entry is no entry", seq)
    checked_facts: dict[str, Any] = facts
    return checked_facts


def next_hash(previous: str, body: str) -> str:
    """Return the SHA-256 of the previous hash and the entry."""
    return hashlib.sha256(f"{previous}{body}".encode()).hexdigest()


def digest(raw: Any) -> str:
    """Return the SHA-256 of an attachment; in a damaged database it may not be bytes."""
    return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes | memoryview) else ""


# --- keys


def dataset_key(name: str) -> str:
    """Return the key of a data set's first entry."""
    return canonical_json({"dataset": name})


def charge_key(dataset: str) -> str:
    """Return the key of the charges of a data set."""
    return f"charge:{dataset}"


def terms_key(dataset: str) -> str:
    """Return the key of the terms of a data set."""
    return f"terms:{dataset}"


def author_key(dataset: str, author: str) -> str:
    """Return the key of the charges of one author."""
    return canonical_json({"author": author, "charges": dataset})


def bucket_key(dataset: str, bucket: str) -> str:
    """Return the key of the charges of one bucket of people."""
    return canonical_json({"bucket": bucket, "charges": dataset})


def set_aside_key(dataset: str) -> str:
    """Return the key of the runs of the plan that was set aside for a data set."""
    return canonical_json({"charges": dataset, "plan": "set aside"})


def run_key(dataset: str, run: str) -> str:
    """Return the key of the first entry of a named run of a plan."""
    return canonical_json({"dataset": dataset, "run": run})


def step_key(run: int, step: int) -> str:
    """Return the key of a step of a run; the run's number is that of its first entry."""
    return canonical_json({"run": run, "step": step})


def answer_key(run: int, step: int) -> str:
    """Return the key of the answer of a step."""
    return canonical_json({"answer": step, "run": run})
