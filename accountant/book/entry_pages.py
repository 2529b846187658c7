"""Pages of a book's entries of some kinds, for its history: each is checked against its hash.

A page is read in one short transaction, and decoded into few objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeVar

import msgspec

from accountant.book.chain.entries import FIRST_PREDECESSOR, UNDECODED, next_hash, parse_facts
from accountant.book.databases.storage import ROWS_PER_PAGE
from accountant.book.log import Log
from accountant.errors import LedgerCorrupt


class Facts(msgspec.Struct, gc=False):
    """What every entry has; other facts of an entry are skipped while its text is decoded."""

    seq: int
    dataset: str | None
    kind: str
    key: str | None


class Outcome(Facts, gc=False):
    """What came of a spend, whose entry has the number ``of``."""

    of: int


class Spend(Facts, gc=False):
    """A spend, a step that a plan paid for, or a change of the terms, or a proposal of one."""

    time: str
    author: str
    mechanism: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    loss: dict[str, Any] | None = None
    total: list[str] | None = None
    counting: str | None = None
    who: Any = None
    label: str | None = None
    run: Any = None
    seeded: bool = False
    undeclared: str = ""
    executor: str = ""
    runs: int | None = None  # how many runs of a plan are set aside
    paid: int | None = None  # the entry that has paid for a run which was set aside
    certified: float | None = None  # the exact epsilon that a plan was charged
    proof: dict[str, Any] | None = None
    buckets: Any = None  # the names of buckets, or a total for each name
    question: str = ""
    cost: list[str] | None = None


ReadEntry = TypeVar("ReadEntry", bound=Facts)


def read_page(
    log: Log,
    dataset: str,
    entry_type: type[ReadEntry],
    kinds: tuple[str, ...],
    after: int,
    upto: int,
) -> Iterator[ReadEntry]:
    """Yield the next page of entries of some kinds, each checked; inside a transaction."""
    decode = msgspec.json.Decoder(entry_type).decode
    for seq, body in bodies(log, dataset, kinds, after, upto):
        try:
            entry = decode(body)
        except UNDECODED:
            facts = parse_facts(log.name, seq, body)
            entry = entry_type(
                **{name: facts[name] for name in entry_type.__struct_fields__ if name in facts}
            )
        if entry.seq != seq:
            raise LedgerCorrupt(log.name, "an entry is no entry", seq)
        if entry.dataset != dataset or entry.kind not in kinds:
            raise LedgerCorrupt(log.name, "a column does not say what its entry says", seq)
        yield entry


def bodies(
    log: Log, dataset: str, kinds: tuple[str, ...], after: int, upto: int
) -> Iterator[tuple[int, str]]:
    """Yield numbers and bodies of the next entries of some kinds, at most `ROWS_PER_PAGE`.

    Each body is checked against the hash of the entry before it.
    """
    quoted_kinds = ", ".join(f"'{kind}'" for kind in kinds)
    rows = log.storage.ask(
        "SELECT seq, hash, body FROM entries WHERE dataset = :d AND "
        f"kind IN ({quoted_kinds}) AND seq > :after AND seq <= :upto "
        f"ORDER BY seq LIMIT {ROWS_PER_PAGE}",
        d=dataset,
        after=after,
        upto=upto,
    )
    # Mostly the row before is the entry before.  Elsewhere that entry's hash is queried.
    gaps = [row[0] for before, row in pairwise([(0,), *rows]) if row[0] != before[0] + 1]
    hashes = _hashes_before(log, dataset, quoted_kinds, after, gaps[-1]) if gaps else {}
    last_seq, previous = 0, FIRST_PREDECESSOR
    for seq, mark, body in rows:
        if seq != last_seq + 1:
            previous = hashes.get(seq, "")
        if next_hash(previous, body) != mark:
            raise LedgerCorrupt(log.name, "an entry does not fit its hash", seq)
        last_seq, previous = seq, mark
        yield seq, body


def _hashes_before(
    log: Log, dataset: str, quoted_kinds: str, after: int, upto: int
) -> dict[int, str]:
    """Return by the number of each entry of some kinds the hash of the entry before it."""
    rows = log.storage.ask(
        "SELECT one.seq, before.hash FROM entries one JOIN entries before "
        "ON before.seq = one.seq - 1 WHERE one.dataset = :d AND "
        f"one.kind IN ({quoted_kinds}) AND one.seq > :after AND one.seq <= :upto",
        d=dataset,
        after=after,
        upto=upto,
    )
    return dict(rows)
