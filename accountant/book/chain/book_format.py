"""Which versions of this package may spend from a book: its format, and the terms that they know.

Every entry states the *format* of its writer.  A version that does not know the format of a book
reads the book and writes nothing.  The entries that open a data set, or change its terms, state
what they *need*: the limits that a version must know to spend from that data set.  These are what
file systems and SQLite call incompatible features.

Format 1 stated neither.  Its versions never look at formats, so the database itself refuses what
they write, by a trigger that is made with the first entry of format 2.
"""

from __future__ import annotations

from typing import Any

from accountant.errors import LedgerNewer

FORMAT = 2  # what this version writes; it reads formats 1 and 2
# The limits that this version knows, each by the name of the fact that states it.
KNOWN_LIMITS = frozenset(
    {"aside", "buckets", "closed", "expires", "idealised", "quotas", "users", "verified", "window"}
)
# All facts that an entry of terms, or of an opening, may state.
KNOWN_TERMS = KNOWN_LIMITS | {
    "author", "carry", "change", "dataset", "delta", "epsilon", "format", "index", "key", "kind",
    "largest", "latest", "mac", "needs", "notion", "order", "people", "reason", "root", "seq",
    "time", "unit", "used", "whose",
}  # fmt: skip
# Part of the text of every entry from format 2 on.  In a word of a user its quotes are escaped.
FORMAT_MARK = '"format":'
# What the database says to a version that states no format.
OLDER_VERSION = "this book needs a newer version of dp-attest; this one may only read it"


def limits_of(facts: dict[str, Any]) -> list[str]:
    """Return the limits of a data set under these terms, in order, as entries name them."""
    limits = {name for name in KNOWN_LIMITS if facts.get(name) not in (None, False, {})}
    return sorted(limits | ({"closed"} if facts.get("change") == "closed" else set()))


def refuse_newer_format(book: str, facts: dict[str, Any]) -> None:
    """Raise `LedgerNewer` if an entry was written in a format that this version does not know."""
    stated = facts.get("schema", 1) if facts["kind"] == "book" else 1
    for number in (stated, facts.get("format", 1)):
        if number not in range(1, FORMAT + 1):
            raise LedgerNewer(book, f"has the format {number!r}")


def unknown_terms(facts: dict[str, Any]) -> list[str]:
    """Return what an entry of terms, or of an opening, states that this version does not know."""
    return sorted({*facts.get("needs", ())} - KNOWN_LIMITS | facts.keys() - KNOWN_TERMS)
