"""An excerpt of a book: the entries of a data set that follow one another, for readers outside."""

from __future__ import annotations

from typing import NamedTuple

from accountant.book.chain.author_keys import AuthorKey, fingerprint
from accountant.book.chain.checkpoint import format_head
from accountant.book.chain.entries import START, LogEntry
from accountant.book.log import Log
from accountant.domains import IntegerRange
from accountant.errors import ParameterError, RoleRefused

ENTRIES_READ = 10_000  # of one receipt, which is held in memory
# A range that has only entries of the data set itself, and those of the whole book.
ALLOWED_RANGE = "a range without entries of other data sets, or others=True to show them too"


class Excerpt(NamedTuple):
    """Texts of entries, the hash ``previous`` before the first, and the ``head`` at the last.

    Where the book has roles the head is a checkpoint, signed by the person ``author``.
    """

    book_id: str
    author: str
    previous: str
    bodies: tuple[str, ...]
    head: str


def read_excerpt(
    log: Log, name: str, opened: int, key: AuthorKey, since: int | None, until: int | None,
    others: bool,
) -> Excerpt:  # fmt: skip
    """Return the entries of a data set from ``since`` up to its last one, or up to ``until``."""
    within = IntegerRange(opened, log.head.seq)
    start = opened if since is None else within.check("since", since)
    end = log.head.seq if until is None else IntegerRange(start, log.head.seq).check("until", until)
    before = START if start == 1 else log.entry(start - 1).chain_head
    entries: list[LogEntry] = []
    last_length = 0
    for entry in log.entries_after(before):
        if entry.seq > end:
            break
        if len(entries) == ENTRIES_READ:
            raise ParameterError("until", until, f"a range of at most {ENTRIES_READ:,} entries")
        entries.append(entry)
        last_length = len(entries) if entry.facts["dataset"] == name else last_length
    del entries[last_length:]
    strangers = sorted({entry.facts["dataset"] for entry in entries} - {name, None})
    if strangers and not others:
        shown = f"entries of {', '.join(strangers)} lie between"
        raise ParameterError("since", shown, ALLOWED_RANGE)
    if not entries:
        raise ParameterError("since", since, f"a range with entries of {name!r}")
    last_entry = entries[-1]
    roles = log.signatures.roles_at(last_entry.roles_after)
    author = "" if roles is None else roles.name_of(key)
    if author is None:
        why = f"the roles name no holder of this key, {fingerprint(key.public)}"
        raise RoleRefused(log.name, why)
    book_id = str(log.first_facts.get("id", ""))
    head = format_head(last_entry.chain_head, None if roles is None else key, book_id)
    bodies = tuple(log.body(entry.seq) for entry in entries)
    return Excerpt(book_id, author, before.hash, bodies, head)
