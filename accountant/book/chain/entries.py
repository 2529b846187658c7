"""The entries of a book's log: each is chained to the one before by a hash, and found by keys.

A book is a database with an append-only log of privacy charges.  An entry is a JSON object (its
facts) with a number, ``seq``, counted from 1.

The kinds of entries are "book", the first entry; "dataset", which opens a data set; "terms", which
changes its terms; "reserve", which charges a release before it reads data, and "release" or
"failed", which record its answer or its failure; "plan", which charges all releases of a plan, and
"step", which records one of them; "seed", which names a seeded stream of noise; "restored", which
accepts a book that was put back from a backup; "clock", which sets the log's time back to a clock
that is right; "roles", which states who may write what, and "proposal", which asks another person
to approve a change that gives more; "claim", which opens a claim on the privacy of a program, and
"evidence", which adds what an audit found against it; "index", which adds the key of an old entry
to the index of keys.

The hash of an entry is the SHA-256 of the hash before it followed by the text of the entry.  An
entry may have several keys, and many entries may have the same key.  The last entry under a key
states the present values: what a data set has spent, its terms, what a bucket (a public part of the
users, such as a region) has spent, or what an author has spent and may spend.

Every entry states the *format* of its writer.  A version that does not know the format of a book
reads the book and writes nothing.  The entries that open a data set, or change its terms, state
what they *need*: the limits that a version must know to spend from that data set.  These are what
file systems and SQLite call incompatible features.

Books of which a data set asks for two curators go on in format 4, because one curator with an
earlier version could change the roles alone, and so be two.

Format 1 stated neither.  Its versions never look at formats, so the database itself refuses what
they write, by a trigger that is made with the first entry of format 2.  Entries of a book with
roles have format 3: each is signed by its author, and names the entry that states the roles.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from accountant.errors import LedgerCorrupt, LedgerNewer, ParameterError

FIRST_PREDECESSOR = "0" * 64  # stands for the hash before the first entry
CHARGING_KINDS = ("plan", "reserve")  # the kinds of entries that spend
TERMS = "terms"  # the kind of entries that change the terms of a data set
# The kind of entries that correct the log's time, and the change of "terms" entries by which a data
# set with windows states anew what was spent in each of them.
CLOCK = "clock"
# How far the clock may be ahead of the log and be believed.  Data sets that are spent from daily
# need no more, and a wrong clock opens a window by at most this much too early.
BELIEVED_STEP = timedelta(days=1)
EVERY_CLOCK = "9999-12-31T24"  # a time up to which every clock is right: texts compare as times do
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# The exceptions that a decoder may raise for the text of an entry that it does not understand.
UNDECODED = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
# The opening of a data set may charge several runs of a plan at once: they are set aside.  The
# entry of such a run has under this name the number of the entry that charged them.
PAID = "paid"
FORMAT = 3  # that of books with roles
FORMAT_OF_TWO = 4  # that of books with a data set which asks for two curators, from there on
KNOWN_FORMATS = (1, 2, FORMAT, FORMAT_OF_TWO)
FORMAT_WITHOUT_ROLES = 2  # what it writes to other books, so that earlier versions go on with them
# The kinds of entries that state who may write what, and that propose a change to another person.
ROLES, PROPOSAL = "roles", "proposal"
RESTORED = "restored"  # the kind of entries that go on from a book which was put back
# The kinds of entries that open a claim on the privacy of a program, and that are evidence on it.
CLAIM, EVIDENCE = "claim", "evidence"
# The limits that this version knows, each by the name of the fact that states it.
KNOWN_LIMITS = frozenset(
    {
        "aside", "buckets", "closed", "expires", "idealised", "limited_authors", "quotas",
        "raise_needs", "users", "verified", "window",
    }
)  # fmt: skip
# All facts that an entry of terms, or of an opening, may state.
KNOWN_TERMS = KNOWN_LIMITS | {
    "author", "before", "carry", "change", "dataset", "delta", "epsilon", "format", "index", "key",
    "kind", "largest", "latest", "mac", "needs", "notion", "order", "own", "parts", "people",
    "proposal", "quota", "reason", "relation", "roles", "root", "seq", "signature", "time", "total",
    "unit", "used", "whose", "window_time",
}  # fmt: skip
# What each change of the terms may set.
CHANGES = {
    "closed": (),
    "raised": ("epsilon", "delta"),
    "expires": ("expires",),
    "quota": ("quotas", "limited_authors"),
    CLOCK: (),
}
# What the database says to a version that states no format.
OLDER_VERSION = "this book needs a newer version of dp-attest; this one may only read it"


class ChainHead(NamedTuple):
    """The end of a chain: the number of its last entry, which counts them all, and its hash."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


START = ChainHead(0, FIRST_PREDECESSOR)  # the head of a log without entries


class LogEntry(NamedTuple):
    """One entry of a log: its number, its hash and its facts."""

    seq: int
    hash: str
    facts: dict[str, Any]

    @property
    def chain_head(self) -> ChainHead:
        """Return the head of the chain that ends at this entry."""
        return ChainHead(self.seq, self.hash)

    @property
    def kind(self) -> str:
        """Return the kind of the entry, as listed at the head of this file."""
        kind: str = self.facts["kind"]
        return kind

    @property
    def latest(self) -> str:
        """Return the latest time of this entry and all before it.

        It differs from the time of the entry only where the clock was set back.
        """
        return str(self.facts.get("latest", self.facts["time"]))

    @property
    def window_time(self) -> str:
        """Return the time by which windows count after this entry."""
        return window_time_of(self.facts)

    @property
    def states_charges(self) -> bool:
        """Return whether the entry says what its data set has spent: a charge or a correction."""
        facts = self.facts
        return facts["kind"] in CHARGING_KINDS or facts.get("change") == CLOCK

    @property
    def index_root(self) -> int | None:
        """Return the number of the last entry, up to this one, that has keys: the index's root.

        It is None in a log that was written without an index.
        """
        return self.seq if "index" in self.facts else self.facts.get("root")

    @property
    def roles_after(self) -> int:
        """Return the number of the entry that states the roles after this one; 0 without roles."""
        facts = self.facts
        return self.seq if facts["kind"] == ROLES else stated_roles(facts)

    @property
    def own_keys(self) -> list[str]:
        """Return the keys by which the entry must be found, whether or not the log has an index."""
        key, dataset, kind = self.facts["key"], self.facts["dataset"], self.facts["kind"]
        # Keys of noise are only in the index of the database, not in that of the log.
        keys = [] if key is None or key.startswith("noise:") else [key]
        if kind == "dataset" and asks_for_two(self.facts):
            return [*keys, TWO_CURATORS_KEY]
        if kind in CHARGING_KINDS:
            states_own = self.facts.get("own") is not None
            author_keys = [author_key(dataset, self.facts["author"])] if states_own else []
            bucket_keys = [bucket_key(dataset, bucket) for bucket in self.facts.get("buckets", ())]
            is_set_aside = "runs" in self.facts or PAID in self.facts
            set_aside_keys = [set_aside_key(dataset)] if is_set_aside else []
            return [charge_key(dataset), *author_keys, *bucket_keys, *set_aside_keys, *keys]
        if kind == TERMS:
            # Earlier versions stated as "used" what every author had spent.
            authors = [*self.facts.get("used", ())]
            authors += [self.facts["whose"]] if "own" in self.facts else []
            author_keys = [author_key(dataset, author) for author in authors]
            charge_keys = [charge_key(dataset)] if self.states_charges else []
            return [terms_key(dataset), *charge_keys, *author_keys, *keys]
        if kind == PROPOSAL:
            return [proposal_key(dataset), *keys]
        if kind in {CLAIM, EVIDENCE}:
            all_claims_key = [CLAIMS_KEY] if kind == CLAIM else []
            return [evidence_key(self.facts["claim"]), *all_claims_key, *keys]
        return [CLOCK_KEY] if kind == CLOCK else keys


# --- times


def window_time_of(facts: dict[str, Any]) -> str:
    """Return the time by which windows count after the entry with these facts."""
    return str(facts.get("window_time", facts.get("latest", facts["time"])))


class LogTimes(NamedTuple):
    """The times at the end of a log: ISO 8601 in UTC, so that texts compare as times do.

    ``clock`` is what the clock says.  ``latest`` is the latest time of all entries, by which data
    sets expire.  ``window`` is the time by which windows count: a clock that is more than
    `BELIEVED_STEP` ahead of it moves it only if the caller has confirmed the clock.
    """

    clock: str
    latest: str
    window: str

    @property
    def clock_is_ahead(self) -> bool:
        """Return whether the clock is so far ahead that windows do not follow it."""
        return self.clock > self.window

    def facts(self) -> dict[str, str]:
        """Return the times as an entry states them: no time that follows from the others."""
        stated = {"time": self.clock}
        if self.latest > self.clock:  # the clock ran back: expired budgets stay expired
            stated["latest"] = self.latest
        if self.window != self.latest:
            stated["window_time"] = self.window
        return stated

    def difference(self, log_time: str) -> str:
        """Return the log's time and the clock's in words, where they are a minute apart or more."""
        gap = datetime.fromisoformat(log_time) - datetime.fromisoformat(self.clock)
        if abs(gap) < timedelta(minutes=1):
            return ""
        # the first 19 characters of a time are those up to its second
        said = f"the log's time is {log_time[:19]}, the clock says {self.clock[:19]} (UTC)"
        if log_time > self.clock:
            said += "; where the clock is right, Book.correct_clock sets the log's time"
        return said


def times_after(head: LogEntry | None, clock: str, confirmed: str) -> LogTimes:
    """Return the times after the last entry; clocks up to the time ``confirmed`` are right."""
    if head is None:
        return LogTimes(clock, clock, clock)
    latest, window = max(clock, head.latest), head.window_time
    if clock > window and (clock <= confirmed or not is_jump(window, clock)):
        window = clock
    return LogTimes(clock, latest, window)


def is_jump(before: str, after: str) -> bool:
    """Return whether a time is more than `BELIEVED_STEP` after another."""
    if before[:10] == after[:10]:  # times of the same day, as most are
        return False
    return datetime.fromisoformat(after) - datetime.fromisoformat(before) > BELIEVED_STEP


def canonical_json(facts: dict[str, Any]) -> str:
    """Return the facts as canonical JSON: sorted keys, no spaces, plain ASCII."""
    return CANONICAL.encode(facts)


def parse_facts(book: str, seq: int, body: str) -> dict[str, Any]:
    """Return the facts of an entry of a book from its text, or raise `LedgerCorrupt`."""
    facts: Any = None
    try:
        facts = msgspec.json.decode(body)
    except UNDECODED:
        # msgspec refuses NaN and half of a surrogate pair; the standard library reads both.
        with suppress(ValueError, TypeError, RecursionError):
            facts = json.loads(body)
        if facts is None:
            raise LedgerCorrupt(book, "an entry is not JSON", seq) from None
    # The names are looked up one by one: comparing sets of names takes five times as long.
    is_entry = (
        isinstance(facts, dict)
        and facts.get("seq") == seq
        and "dataset" in facts
        and isinstance(facts.get("kind"), str)
        and "key" in facts
    )
    if not is_entry:
        raise LedgerCorrupt(book, "an entry is no entry", seq)
    checked_facts: dict[str, Any] = facts
    return checked_facts


def next_hash(previous: str, body: str) -> str:
    """Return the SHA-256 of the previous hash followed by the text of the entry."""
    return hashlib.sha256(f"{previous}{body}".encode()).hexdigest()


def without_signature(body: str, name: str, signature: str) -> str:
    """Return the canonical JSON of an entry without its signature, the fact with this name."""
    return body.replace(f',"{name}":"{signature}"', "", 1)


def digest(raw: Any) -> str:
    """Return the SHA-256 of attached bytes, or "" if a damaged database returned no bytes."""
    return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes | memoryview) else ""


# --- formats, and what terms need


def stated_roles(facts: dict[str, Any]) -> int:
    """Return the number of the entry of roles that an entry names; 0 for none."""
    stated = facts.get("roles", 0)
    return stated if isinstance(stated, int) else 0


def asks_for_two(facts: dict[str, Any]) -> bool:
    """Return whether the terms, or the roles, of an entry ask for two curators to give more."""
    return bool(facts.get("raise_needs", 1) != 1)


def limits_of(facts: dict[str, Any]) -> list[str]:
    """Return the limits of a data set under these terms, in order, as entries name them."""
    limits = {name for name in KNOWN_LIMITS if facts.get(name) not in (None, False, {})}
    return sorted(limits | ({"closed"} if facts.get("change") == "closed" else set()))


def refuse_newer_format(book: str, facts: dict[str, Any]) -> None:
    """Raise `LedgerNewer` if an entry was written in a format that this version does not know."""
    stated = facts.get("schema", 1) if facts["kind"] == "book" else 1
    for number in (stated, facts.get("format", 1)):
        if number not in KNOWN_FORMATS:
            raise LedgerNewer(book, f"has the format {number!r}")


def unknown_terms(facts: dict[str, Any]) -> list[str]:
    """Return what an entry of terms, or of an opening, states that this version does not know."""
    return sorted({*facts.get("needs", ())} - KNOWN_LIMITS | facts.keys() - KNOWN_TERMS)


# --- names and keys


def checked_name(argument: str, name: object) -> str:
    """Return the name of a data set, an author, a run, a label or a bucket.

    One that could look like another when it is shown is refused.
    """
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise ParameterError(argument, name, "1 to 200 printable characters")
    if name != name.strip() or name != unicodedata.normalize("NFC", name):
        allowed = "without spaces at its ends and in Unicode's composed form (NFC)"
        raise ParameterError(argument, name, allowed)
    return name


CLOCK_KEY = "clock"  # the key of all corrections of the log's time


TWO_CURATORS_KEY = "two curators"  # the key of the data sets that ask for two curators


CLAIMS_KEY = "claims"  # the key of the entries that open claims


def dataset_key(name: str) -> str:
    """Return the key of a data set's first entry."""
    return canonical_json({"dataset": name})


def charge_key(dataset: str) -> str:
    """Return the key of the charges of a data set."""
    return f"charge:{dataset}"


def terms_key(dataset: str) -> str:
    """Return the key of the terms of a data set."""
    return f"terms:{dataset}"


def proposal_key(dataset: str | None) -> str:
    """Return the key of what is proposed for a data set, or of proposed roles where it is None."""
    return canonical_json({"proposal": dataset})


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


def claim_key(name: str) -> str:
    """Return the key of the entry that opens a claim."""
    return canonical_json({"claim": name})


def evidence_key(name: str) -> str:
    """Return the key of the opening of a claim and all evidence on it."""
    return canonical_json({"claim": name, "evidence": "all"})


def evidence_of_runs_key(name: str, runs: str) -> str:
    """Return the key of the evidence on a claim that comes from the runs with this digest."""
    return canonical_json({"claim": name, "runs": runs})
