"""The signatures of a log: who has signed each entry, and whether that person may write it.

The entries of a log are unsigned; or signed with one secret, in the fact "mac"; or, once an entry
states roles, each by its author, in the fact "signature".  From then on each entry names in the
fact "roles" the entry that states the roles in force.  All signatures are of the hash of the entry
before, followed by the text of the entry without its signature.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable
from typing import Any, NoReturn

from accountant.book.chain.approvals import guarded_roles, missing_approval
from accountant.book.chain.author_keys import (
    PRIVATE_KEY_MARK,
    AuthorKey,
    fingerprint,
    has_ed25519,
)
from accountant.book.chain.entries import (
    FIRST_PREDECESSOR,
    FORMAT,
    FORMAT_OF_TWO,
    FORMAT_WITHOUT_ROLES,
    ROLES,
    LogEntry,
    asks_for_two,
    canonical_json,
    parse_facts,
    stated_roles,
    without_signature,
)
from accountant.book.chain.roles import Roles
from accountant.book.chain.signing_key import (
    ALLOWED,
    SigningKey,
    read_private_file,
    without_newline,
)
from accountant.errors import LedgerCorrupt, ParameterError, RoleRefused

# Signatures that are not checked again, by the hashes of their entries.  More would save little:
# these are read again and again only near the end of a log.
SIGNATURES_KEPT = 4096
# What a key must be in a book with roles, for error messages.
PERSONS_KEY = "the private key of one of its people, such as ~/.ssh/id_ed25519"
# The kinds of entries that are written before there can be roles.
BEFORE_ROLES = ("book", "index")


def key_of(
    key: bytes | str | os.PathLike[str], ask: Callable[[], str] | None = None
) -> SigningKey | AuthorKey:
    """Return a private key where a file holds one; any other key is a secret for HMAC.

    ``ask`` returns the passphrase of a private key that has one.
    """
    if not isinstance(key, str | os.PathLike):
        return SigningKey(key)
    path = os.path.expanduser(os.fspath(key))
    if isinstance(key, str) and not os.path.lexists(path):  # the text may be the secret itself
        allowed = f"{ALLOWED} (a text names a file, and there is no such one; key=b'...' is the "
        allowed += "secret itself)"
        raise ParameterError("key", f"a text of {len(key)} characters", allowed)
    file_bytes = read_private_file(path)
    if file_bytes.startswith(PRIVATE_KEY_MARK):
        return AuthorKey.of(file_bytes, path, ask)
    # Earlier versions took all white space off both ends of a file, also of random bytes.
    return SigningKey(without_newline(file_bytes), file_bytes.strip())


class Signatures:
    """Signs the entries that a log appends, and checks those that it reads.

    ``entry_of`` returns the entry with a number, itself checked, and ``body_of`` its text as it is.
    ``asked_before`` returns whether a data set asks for two curators before the entry of a number.
    """

    def __init__(
        self,
        book: str,
        key: SigningKey | AuthorKey | None,
        entry_of: Callable[[int], LogEntry],
        body_of: Callable[[int], str],
        asked_before: Callable[[int], bool],
    ) -> None:
        self._book, self._key, self._entry_of, self._body_of = book, key, entry_of, body_of
        self._asked_before = asked_before
        self._roles: dict[int, Roles] = {}  # by the number of the entry that states them
        self._checked: set[str] = set()  # hashes of entries whose signatures are right
        self._latest_roles = 0  # the last entry of roles that this process knows of
        self.accepts_unsigned = False  # whether a secret may sign after an unsigned entry

    # --- roles

    def roles_at(self, seq: int) -> Roles | None:
        """Return the roles that the entry ``seq`` states; None for 0."""
        # Each entry of roles is checked under the roles before it.  So the oldest comes first: else
        # each check would first need another one, as deep as there are entries of roles.  A damaged
        # entry that names itself or a later one ends the list, and its check refuses it.
        unknown, number = [], seq
        while number and number not in self._roles:
            unknown.append(number)
            before = stated_roles(parse_facts(self._book, number, self._body_of(number)))
            number = before if before < number else 0
        for number in reversed(unknown):
            entry = self._entry_of(number)
            if entry.kind != ROLES:
                raise LedgerCorrupt(self._book, "takes for roles what are none", number)
            replaced = self._entry_of(stated_roles(entry.facts) or number)
            roles_before = self._roles.get(replaced.seq)
            if roles_before is not None:
                facts_before = guarded_roles(replaced.facts, self._asked_before(number))
                replaced = replaced._replace(facts=facts_before)
            why = missing_approval(entry, replaced, roles_before, self._entry_of)
            if why:
                raise LedgerCorrupt(self._book, why, number)
            self._roles[number] = self._stated_roles(entry.facts)
        return self._roles[seq] if seq else None

    def author_after(self, head: LogEntry) -> str | None:
        """Return the name that the roles after an entry give the holder of the key, if any."""
        if not isinstance(self._key, AuthorKey):
            return None
        roles = self.roles_at(head.roles_after)
        return None if roles is None else roles.name_of(self._key)

    def forget(self) -> None:
        """Forget what was read in a transaction that failed: perhaps it was never committed."""
        self._roles.clear()
        self._checked.clear()

    def refuse_lost_roles(self, head: LogEntry, first_facts: dict[str, Any]) -> None:
        """Raise `LedgerCorrupt` if the last entry names no roles, though the book has some.

        It has some if it was made with them, or if this process has seen some: later entries name
        the same roles or later ones.  A book that is made with roles states its format in entry 1,
        and its roles in entry 2.
        """
        roles = head.roles_after
        is_lost = first_facts.get("schema") == FORMAT and not roles and head.seq > 1
        if is_lost or roles < self._latest_roles:
            why = "is not signed by a person whom the roles in force name"
            raise LedgerCorrupt(self._book, why, head.seq)
        self._latest_roles = roles

    def refuse_unsigned(self, head: LogEntry) -> None:
        """Raise `LedgerCorrupt` if the reader has a secret, and the last entry is unsigned.

        A signature covers all entries before it.  So who signs after an unsigned entry vouches for
        a log that anyone may have written anew.
        """
        if not isinstance(self._key, SigningKey) or self.accepts_unsigned:
            return
        if not head.roles_after and "mac" not in head.facts:
            why = "is not signed with the key, as the last entry must be; a book that was begun "
            why += (
                "without a key is signed from the next entry on: Book.open(accept_unsigned=True), "
            )
            why += "or --accept-unsigned of `ledger open`, `raise` and others"
            raise LedgerCorrupt(self._book, why, head.seq)

    def refuse_other_roles(self, roles_before: int, facts: dict[str, Any]) -> None:
        """Raise `LedgerCorrupt` unless an entry names the roles in force before it."""
        if facts.get("roles", 0) != roles_before:
            why = "does not name the roles in force before it"
            raise LedgerCorrupt(self._book, why, facts["seq"])

    # --- new entries

    def facts_of_next(
        self, kind: str, facts: dict[str, Any], head: LogEntry | None
    ) -> dict[str, Any]:
        """Return what an entry after ``head`` states of its format, and of the roles in force."""
        roles_before = 0 if head is None else head.roles_after
        if not roles_before and kind != ROLES:
            return {"format": FORMAT_WITHOUT_ROLES}
        is_asked_for = kind == "dataset" and asks_for_two(facts)
        is_of_two = is_asked_for or (head is not None and head.facts.get("format") == FORMAT_OF_TWO)
        return {"format": FORMAT_OF_TWO if is_of_two else FORMAT, "roles": roles_before}

    def signed_body(self, previous: str, facts: dict[str, Any], head: LogEntry | None) -> str:
        """Return the text of a new entry; its signature is added to its facts."""
        key = self._key
        if "roles" in facts:
            author_key = self._refuse_to_write(facts)
            message = f"entry {previous}{canonical_json(facts)}".encode()
            facts["signature"] = base64.b64encode(author_key.sign(message)).decode()
        elif isinstance(key, AuthorKey):
            if facts["kind"] not in BEFORE_ROLES:
                allowed = "left out, or of a book with roles: Book.set_roles states them"
                raise ParameterError("key", "a private key", allowed)
        elif key is not None:
            facts["mac"] = key.sign_entry(previous, canonical_json(facts))
        elif head is not None and "mac" in head.facts:
            raise ParameterError("key", None, "given: the entries of this book are signed")
        return canonical_json(facts)

    def _refuse_to_write(self, facts: dict[str, Any]) -> AuthorKey:
        """Return the author's key; refuse an entry that the roles do not let the author write."""
        if not isinstance(self._key, AuthorKey):
            shown = None if self._key is None else "a secret"
            allowed = f"given: the entries of this book are signed by their authors; {PERSONS_KEY}"
            raise ParameterError("key", shown, allowed)
        roles, author = self._roles_over(facts), facts["author"]
        if roles.name_of(self._key) != author:
            # `Log` takes the author's name from the roles, so that another name is that of no key.
            self._refuse_stranger(self._key)
        why = roles.refusal(author, facts)
        if why:
            raise RoleRefused(self._book, why)
        return self._key

    def refuse_to_sign_head(self, head: LogEntry) -> None:
        """Refuse a private key that is of no person whom the roles after an entry name."""
        if head.roles_after and isinstance(self._key, AuthorKey) and not self.author_after(head):
            self._refuse_stranger(self._key)

    def _refuse_stranger(self, key: AuthorKey) -> NoReturn:
        why = f"the roles name no holder of this key, {fingerprint(key.public)}"
        raise RoleRefused(self._book, f"{why}; a curator adds it with Book.set_roles")

    def note_right(self, mark: str) -> None:
        """Note that the signature of the entry with this hash is right: it was checked, or made."""
        if len(self._checked) >= SIGNATURES_KEPT:
            self._checked.clear()
        self._checked.add(mark)

    # --- entries that were read

    def fit(self, last_rows: list[tuple[Any, ...]]) -> None:
        """Choose between two readings of a secret by which one signed the last entry.

        Earlier versions took other bytes of the same file as the secret.  The rows are (number,
        text, hash), the last entry first.
        """
        if not isinstance(self._key, SigningKey) or not self._key.is_ambiguous:
            return
        if last_rows and isinstance(last_rows[0][1], str):
            (seq, body, _), *earlier_rows = last_rows
            previous = earlier_rows[0][2] if earlier_rows else FIRST_PREDECESSOR
            signature = parse_facts(self._book, seq, body).get("mac")
            if isinstance(signature, str):
                self._key.fit_entry(previous, body, signature)

    def refuse_other(self, previous: str, body: str, facts: dict[str, Any], mark: str) -> None:
        """Raise `LedgerCorrupt` if an entry of this hash is signed otherwise than it states.

        Signatures of people are checked wherever the package for them is installed.  An entry
        without any signature may be older than the key: `refuse_unsigned` and `Book.verify` refuse
        it at the end of the log and after signed entries.
        """
        if "roles" in facts or facts["kind"] == ROLES:
            if mark not in self._checked and has_ed25519():
                self._refuse_other_author(previous, body, facts)
                self.note_right(mark)
        elif isinstance(self._key, SigningKey) and "mac" in facts:
            unsigned_body = without_signature(body, "mac", facts["mac"])
            if facts["mac"] != self._key.sign_entry(previous, unsigned_body):
                why = "an entry is signed with another key, or was written anew without the key"
                raise LedgerCorrupt(self._book, why, facts["seq"])

    def _refuse_other_author(self, previous: str, body: str, facts: dict[str, Any]) -> None:
        roles, author = self._roles_over(facts), facts.get("author")
        signature = facts.get("signature")
        public_key = roles.keys.get(str(author))
        why = ""
        if public_key is None:
            why = f"is written by {author!r}, whom the roles do not name"
        elif not isinstance(signature, str) or not public_key.has_signed(
            _decoded(signature),
            f"entry {previous}{without_signature(body, 'signature', signature)}".encode(),
        ):
            why = f"is not signed by {author!r}, who is said to have written it"
        elif refusal := roles.refusal(str(author), facts):
            why = f"was not to be written by its author: {refusal}"
        if why:
            raise LedgerCorrupt(self._book, why, facts["seq"])

    def _roles_over(self, facts: dict[str, Any]) -> Roles:
        """Return the roles under which an entry is written: the first ones are its own."""
        seq, stated = facts["seq"], facts.get("roles")
        if stated == 0 and facts["kind"] == ROLES:
            return self._stated_roles(facts)
        roles = self.roles_at(stated) if isinstance(stated, int) and 0 < stated < seq else None
        if roles is None:
            raise LedgerCorrupt(self._book, "names no roles that were in force", seq)
        return roles

    def _stated_roles(self, facts: dict[str, Any]) -> Roles:
        try:
            return Roles.of(facts)
        except (KeyError, TypeError, ValueError):
            raise LedgerCorrupt(self._book, "states roles that are none", facts["seq"]) from None


def _decoded(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return b""
